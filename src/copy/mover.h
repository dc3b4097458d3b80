/* SPDX-License-Identifier: MIT
 *
 * What moves the next bytes: a choice from what is known of the two files, from what this copy has
 * seen so far, and from what the machine does at this moment. It makes no system call; move.c does
 * what it says.
 *
 * Two ways through the page cache compete. One thread of splice(2) copies each byte once. Threads
 * of pread and pwrite copy it twice, but at the same time on several CPUs. Which one is faster
 * depends on the memory, on the file system and on what else runs, so auto measures it.
 */
#ifndef COPY_MOVER_H
#define COPY_MOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MOVER_SMALL_SIZE    ((off_t)64 << 10) /* up to this size, one buffer without a query */
#define MOVER_DIRECT_SIZE   ((off_t)16 << 20) /* below, setting up io_uring costs too much */
#define MOVER_PARALLEL_SIZE ((off_t)16 << 20) /* from here on threads gain more than they cost */
#define MOVER_CHOICE_SIZE   ((off_t)32 << 20) /* below, only one thread is considered */
#define MOVER_FLUSHED_SIZE  ((off_t)16 << 20) /* paced: writeback of so much starts at a time */

/* Of each of several threads. Not smaller, because a thread waits for the inode lock before each
 * write. Not larger than the second-level cache, because other machines may use the rest of the
 * third-level one: with 1 MiB, 1 GiB took 0.85 s in place of 0.28 (2 CPUs with 512 KiB each, a busy
 * host); where the cache has 1 MiB, 512 KiB cost 3 to 5 %. */
#define MOVER_THREAD_BUFFER ((size_t)512 << 10)

enum mover {
	MOVER_MODE,   /* the engine of the mode that the user selected */
	MOVER_DIRECT, /* past the page cache */
	MOVER_REMOTE, /* copy_file_range: the server copies */
	MOVER_SPLICE,
	MOVER_SENDFILE,
	MOVER_READWRITE, /* the last: it can move anything */
};

/* What is known before the first byte, and does not change. With `mode`, only the mode members
 * and `threads` count. With `mode`, or without `files`, all of exceeds, direct, remote, one_writer,
 * helped, looks and may_wait are false. */
struct mover_facts {
	bool mode;          /* the user selected a mode */
	bool mode_threads;  /* ... which copies the data in threads */
	size_t mode_buffer; /* ... through a buffer of this size; 0: the engine's own */
	off_t size;         /* expected of a source with offsets */
	bool files;         /* both ends have offsets */
	bool stored;        /* DST has offsets: its blocks can be allocated ahead of a stream */
	bool to_socket;     /* a file that goes to a connection */
	bool memory;        /* the bytes must pass through memory of this process */
	bool zeros;         /* ... which looks for zeros in them */
	bool uncached;      /* no byte may stay in the page cache */
	bool exceeds;       /* SRC is larger than the memory */
	bool direct;        /* the page cache would only cost time */
	bool remote;        /* both files are on one server, perhaps */
	bool one_writer;    /* one thread writes in order, unless more are asked for */
	bool helped;        /* other threads of a tree may join */
	bool asked;         /* the user asks for several threads */
	bool looks;         /* does the reader wait? Then other ways are tried soon */
	bool may_wait;      /* ... with more threads than CPUs */
	bool paced;         /* the progress has to follow the device: writeback starts often */
	unsigned threads;   /* that the user asks for, or the CPUs allow; at least 1 */
};

enum way { WAY_SPLICE, WAY_THREADS, WAYS };

/* What a copy has seen so far; all zero: nothing. One for the whole file: an extent continues with
 * what the extents before it have shown. */
struct mover_state {
	unsigned refused;  /* a set of 1 << enum mover */
	enum way way;      /* the one to continue with, if enough CPUs are idle */
	unsigned threads;  /* for WAY_THREADS; 0: not asked yet, 1: no trials */
	unsigned most;     /* threads that may be tried */
	bool waits;        /* the reader waits for the storage: idle CPUs do not matter */
	bool doubled;      /* twice as many threads are tried as those that won */
	bool busy;         /* the last count found no idle CPU */
	unsigned pieces;   /* left in this trial; the ways take turns */
	off_t piece;       /* bytes of each of them */
	double cost[WAYS]; /* lowest seconds per byte in this trial; 0: not measured */
	off_t settled;     /* bytes to copy before the next trial */
	off_t interval;    /* settled after the last trial */
};

/* The range that is copied now. */
struct mover_range {
	bool rest;  /* what follows the expected size, or a stream: to the end of the source */
	bool first; /* no byte of the copy was moved yet */
	off_t size, left; /* bytes */
};

/* What the machine does at this moment. */
struct mover_now {
	unsigned idle_cpus; /* without work, the caller's own among them; only if mover_asks() */
	bool idle_threads;  /* a thread of the tree has nothing to do */
	bool waits;         /* the last reads waited for the storage */
};

struct move {
	enum mover kind;
	off_t size;        /* bytes, at most what is left */
	unsigned threads;  /* 0: the engine alone */
	size_t buffer;     /* of each thread; 0: the engine's own */
	bool allocate;     /* the blocks of so many bytes of a stream */
	bool piece;        /* its time is noted, and what is complete is written back */
	bool trial;        /* ... in a trial, */
	bool busy;         /* ... which waits: fewer than two CPUs are idle */
	unsigned starts;   /* pieces of a trial that begins with this one, ... */
	off_t trial_piece; /* ... bytes of each */
};

struct move mover_next(const struct mover_facts *, const struct mover_state *,
		       const struct mover_range *, const struct mover_now *);
/* Does the next move depend on idle_cpus? To count them costs some microseconds. */
bool mover_asks(const struct mover_facts *, const struct mover_state *, const struct mover_range *);

/* Notes how many bytes a move has copied, and its seconds per byte. */
void mover_note(struct mover_state *, const struct move *, off_t bytes, double cost);
/* The reader waits: more requests at once may be faster, whatever the CPUs do. memory: bytes that
 * buffers may take. */
void mover_note_waiting(struct mover_state *, uint64_t memory);
/* The engine is unsupported for these two files. */
void mover_note_refusal(struct mover_state *, enum mover);

/* What auto intends before the first byte, as a static string. */
const char *mover_plan(const struct mover_facts *, const struct mover_state *);

#endif
