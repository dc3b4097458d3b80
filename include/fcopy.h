/* SPDX-License-Identifier: MIT
 *
 * libfcopy copies a file (fcopy_copy), copies several files and directory trees (fcopy_tree),
 * serves files to many clients (fcopy_serve), and removes what killed copies left (fcopy_clean).
 * It uses the kernel mechanism that the caller names, or a fast and safe one. A copy is whole or
 * absent. The library prints nothing, never exits, holds no global state, and changes no signal
 * disposition, umask or working directory. Several threads may copy at the same time.
 */
#ifndef FCOPY_H
#define FCOPY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FCOPY_VERSION "1.0.0"

/* The version of the structs in this header. A caller stores it in options.api, so that a later
 * library knows which members the caller's structs have. It increases when a struct gets a new
 * member. New members are added at the end of a struct. */
#define FCOPY_API 1

/* At least PATH_MAX, which <limits.h> defines only for POSIX programs. */
#define FCOPY_PATH_MAX 4096

/* Values of options.sparse, options.reflink, options.preallocate and options.in_place. */
enum fcopy_when {
	FCOPY_WHEN_DEFAULT, /* the same as AUTO, and allowed with every mode */
	FCOPY_WHEN_AUTO,
	FCOPY_WHEN_ALWAYS,
	FCOPY_WHEN_NEVER,
};

/* Options and operands that only some modes support; fcopy_mode.takes is a set of these. */
enum fcopy_takes {
	FCOPY_TAKES_BUFFER_SIZE = 1 << 0,
	FCOPY_TAKES_THREADS = 1 << 1,
	FCOPY_TAKES_SPARSE = 1 << 2,
	FCOPY_TAKES_REFLINK = 1 << 3,
	FCOPY_TAKES_NO_CACHE = 1 << 4,
	FCOPY_TAKES_STREAM_SRC = 1 << 5, /* SRC may be a pipe or a socket */
	FCOPY_TAKES_STREAM_DST = 1 << 6,
};

/* A mode, which a user selects by number or name. The meaning of a number never changes. */
struct fcopy_mode {
	int number;
	const char *name;
	const char *alias;   /* a short second name, or NULL */
	const char *engine;  /* the one engine that it uses, or NULL: auto chooses */
	const char *summary; /* what it does, for people; one line */
	size_t buffer_size;  /* bytes per call; 0: the engine decides */
	bool threads;        /* several threads share the file */
	bool preallocates;   /* allocates the destination's blocks before the first byte */
	unsigned takes;      /* enum fcopy_takes */
};

/* The table of modes, ended by an entry whose name is NULL. */
const struct fcopy_mode *fcopy_modes(void);

/* The mode with this number, name or alias; NULL if there is none. */
const struct fcopy_mode *fcopy_mode_find(const char *text);

/* Why this build or the running kernel lacks the mode, as a static string; NULL: the mode is
 * available. A file system may still refuse a mode that is available. */
const char *fcopy_mode_missing(const struct fcopy_mode *mode);

/* What the caller can do about a failure. A user interface translates it into its own options. */
enum fcopy_advice {
	FCOPY_ADVICE_NONE,
	FCOPY_ADVICE_AUTO,              /* let auto choose the engine */
	FCOPY_ADVICE_IN_PLACE,          /* options.in_place */
	FCOPY_ADVICE_IN_PLACE_OR_FORCE, /* options.in_place, or options.force */
	FCOPY_ADVICE_FORCE,             /* options.force */
	FCOPY_ADVICE_REMOVE_LINK,       /* the destination is a dangling symlink */
	FCOPY_ADVICE_REMOVE_PART,       /* remove or rename DST.fcopy-part */
	FCOPY_ADVICE_SHARDS,            /* remove DST.fcopy-part while no shard runs */
	/* remove error.path, a file or a tree, unless another machine is still writing it */
	FCOPY_ADVICE_REMOVE_FILE,
	FCOPY_ADVICE_REMOVE_TREE,
	FCOPY_ADVICE_FLUSH,         /* DST is complete, but may not survive a power cut */
	FCOPY_ADVICE_CACHE,         /* leave out options.no_cache */
	FCOPY_ADVICE_RECURSIVE,     /* tree_options.recursive */
	FCOPY_ADVICE_DESCRIPTORS,   /* raise RLIMIT_NOFILE: a directory level needs two */
	FCOPY_ADVICE_USAGE,         /* the operands and options cannot be combined */
	FCOPY_ADVICE_REFLINK,       /* options.reflink FCOPY_WHEN_AUTO */
	FCOPY_ADVICE_FLAGS,         /* remove the inode flags of the destination: chattr(1) */
	FCOPY_ADVICE_RESUME,        /* options.resume, or remove or rename DST.fcopy-part */
	FCOPY_ADVICE_NO_PART,       /* leave out options.resume and options.shard */
	FCOPY_ADVICE_NO_FSYNC,      /* leave out options.fsync and options.verify */
	FCOPY_ADVICE_IN_PLACE_AUTO, /* options.in_place FCOPY_WHEN_AUTO: no rename can replace it */
	FCOPY_ADVICE_DEVICE,        /* the device is not there; options.force creates a file */
	FCOPY_ADVICE_REMOVE_LOOP,   /* the destination is a loop of symlinks */
	FCOPY_ADVICE_CLEAN,         /* fcopy_clean() of the directory of error.path removes it */
	FCOPY_ADVICE_INTO,          /* into_directory copies into the destination, which exists */
};

/* A failure, or a warning. The strings are static or belong to the caller's operands or to the
 * report that holds this struct, and are valid as long as those are. */
struct fcopy_error {
	int err;               /* errno; 0 in a report without failure */
	const char *call;      /* the system call that failed; NULL: fcopy itself refused */
	const char *operation; /* what the call was part of, such as "read back", or NULL */
	const char *path;      /* the file on which the call failed */
	const char *path2;     /* the second file, if the call had two and either may have failed */
	const char *engine;    /* the engine at work, or NULL */
	const char *reason;    /* says more than strerror(err), or NULL */
	const char *option;    /* the long option of fcopy(1) that fcopy refused, or NULL */
	enum fcopy_advice advice;
	/* Nothing was changed: the options, or what SRC and DST are (missing, dangling, a
	 * directory, the same file...), exclude this copy. The exit status of fcopy(1) is 2 then,
	 * otherwise 1. */
	bool unsuitable;
};

/* Writes the error as "PATH: CALL: REASON" into text, at most size bytes including the null byte.
 * CALL is the operation if there is one. Unknown parts are left out. Without a path, but with an
 * option, the text is "--OPTION: REASON". Control characters of a path are not escaped. Returns the
 * length of the whole text, as snprintf(3) does; FCOPY_ERROR_TEXT_MAX bytes are enough unless an
 * operand is longer than FCOPY_PATH_MAX. */
#define FCOPY_ERROR_TEXT_MAX (2 * FCOPY_PATH_MAX + 512)
int fcopy_error_text(const struct fcopy_error *error, char *text, size_t size);

/* What one engine did in a copy. */
struct fcopy_step {
	const char *engine;
	uint64_t bytes;   /* data that it copied, or shared by a clone */
	uint64_t calls;   /* data calls that it made: reads and writes, not polls or seeks */
	double seconds;   /* wall-clock time spent in it */
	unsigned threads; /* most threads that ran it at once, including the caller's */
	size_t piece;     /* bytes that a thread takes at a time; 0: the engine decides */
	int refusal;      /* errno of a refusal, after which the next engine continued; 0: none */
	const char *refusal_call; /* the call that was refused */
};

#define FCOPY_STEPS_MAX 12 /* more than there are engines */

/* What a copy is doing. Phases come in this order, except that a resumed copy is in VERIFY before
 * COPY, and a tree is in COPY again for each SRC. A phase may be skipped. */
enum fcopy_phase {
	FCOPY_PHASE_WAIT,    /* for the peer of a socket, or the other side of a FIFO */
	FCOPY_PHASE_COPY,    /* data is copied */
	FCOPY_PHASE_FSYNC,   /* the file is flushed */
	FCOPY_PHASE_VERIFY,  /* copy and SRC are compared; before COPY: DST.fcopy-part and SRC */
	FCOPY_PHASE_REPLACE, /* the file gets its name; for a socket: wait for the receipt */
	/* An unfinished tree is removed; progress.entries restarts at 0. In a report also the time
	 * to discard the scratch file. */
	FCOPY_PHASE_REMOVE,
	FCOPY_PHASES /* the number of phases */
};

/* A view into a running copy. The library stores each field with __atomic_store_n or
 * __atomic_fetch_add; another thread or a signal handler reads it with __atomic_load_n. */
struct fcopy_progress {
	uint64_t bytes;    /* progress of this phase: data and holes */
	uint64_t moved;    /* data of this phase without holes and clones: for a speed */
	uint64_t total;    /* bytes expected; 0: unknown */
	uint64_t since_ms; /* when the phase began, in milliseconds of CLOCK_MONOTONIC */
	int phase;         /* enum fcopy_phase */
	uint64_t entries;  /* fcopy_tree: entries that were copied or skipped, or failed */
	uint64_t
	    total_entries; /* entries expected, set by the caller, or see wants_total; 0: unknown */
	/* fcopy_tree: `file` is the destination of the large file that was started last and is
	 * still being copied, or empty. To read it, load file_version, copy file, and load
	 * file_version again. The copy is valid if both versions are equal and even. */
	unsigned file_version;
	char file[128]; /* only the end of a long path */
	/* fcopy_tree: if the caller sets wants_total before the call, a thread counts the source,
	 * unless patterns or followed symlinks make that uncertain. Until total_is_final is 1,
	 * total and total_entries are what was found so far. */
	int wants_total;
	int total_is_final;
};

#define FCOPY_ADDRESS_MAX 80 /* [IPv6%scope]:port */
#define FCOPY_DETAIL_MAX  128

/* One request of an HTTP client, and the response. */
struct fcopy_http {
	const char *method; /* GET, HEAD, PUT or POST; "other"; NULL: no request */
	int status;         /* of the response; 0: none was sent */
	const char *file;   /* the SRC that was asked for; NULL: none */
	uint64_t first;     /* the response has the bytes from here on ... */
	uint64_t length;    /* ... so many: 0 if it has no bytes of a file */
	bool last;          /* the client has received the last byte of the file */
};

/* What happened; filled in on success and on failure. */
struct fcopy_report {
	struct fcopy_error error;
	uint64_t bytes;    /* length of the copy that was made: data and holes */
	uint64_t data;     /* bytes that engines copied or cloned */
	uint64_t moved;    /* bytes that engines copied, without clones: for a speed */
	uint64_t expected; /* bytes that the source was expected to have; 0: unknown */
	uint64_t holes;    /* bytes that were not copied: holes, unwritten extents */
	uint64_t resumed;  /* bytes of an interrupted copy that equal the source and were reused */
	/* Disk space in bytes, before the first byte was copied: needed by the copy, and free.
	 * Both are 0 if they are unknown or if the copy needs no space. */
	uint64_t space_needed, space_free;
	bool existed;        /* the destination existed before the copy */
	bool atomic;         /* the destination is a file that appears whole or not at all */
	bool in_place;       /* a file is being written in place: a failure leaves it incomplete */
	bool part_kept;      /* after a failure: what was copied is in the part, DST.fcopy-part */
	bool source_changed; /* its size or mtime changed, or it was removed or replaced */
	bool skipped;        /* no_clobber: the destination existed and was left alone */
	bool cloned;         /* the copy shares its extents with the source */
	bool preallocated;   /* blocks of the destination were allocated before the first byte */
	bool committed;      /* options.shard: DST is complete, by this process or by another */
	bool confirmed;      /* the receiving peer closed after the last byte: it has all data */
	size_t steps;
	struct fcopy_step step[FCOPY_STEPS_MAX];
	double seconds[FCOPY_PHASES];     /* wall-clock time of each phase */
	double removal_cpu;               /* CPU time that discarding the scratch file took */
	char detail[FCOPY_DETAIL_MAX];    /* storage for error.reason if it has numbers */
	char dst[FCOPY_PATH_MAX];         /* the destination's name: DST, or DST/basename(SRC) */
	char src_peer[FCOPY_ADDRESS_MAX]; /* the sender, numeric HOST:PORT; empty: not TCP */
	char dst_peer[FCOPY_ADDRESS_MAX]; /* the receiver */
	/* Why a file is written under its final name, as a static string; NULL: it is not, or DST
	 * is no file. After a failure a new file is removed. */
	const char *not_atomic;
	unsigned type;          /* of the source: S_IFMT bits of st_mode, or 0: unknown, a socket */
	struct fcopy_http http; /* of a client of http-listen: */
};

enum fcopy_event_kind {
	/* The copy continues; error says what is wrong. If error.call is NULL, ENOSPC means that
	 * the report's space_needed is more than its space_free, and EEXIST that a killed copy left
	 * error.path, a temporary file or an unfinished tree in the directory of DST. */
	FCOPY_EVENT_WARNING,
	FCOPY_EVENT_PLAN,      /* auto has chosen, or tried two ways; text says what */
	FCOPY_EVENT_STEP,      /* an engine starts for the first time; text is its name */
	FCOPY_EVENT_REFUSAL,   /* an engine refused; the next one continues; error says why */
	FCOPY_EVENT_RESUME,    /* resuming; if no bytes were reused, text says why, or is NULL */
	FCOPY_EVENT_LISTENING, /* peers can connect; text is the address, numeric HOST:PORT */
	FCOPY_EVENT_CLIENT,    /* fcopy_serve: a client's copy has ended; report describes it */
	FCOPY_EVENT_FAILED,    /* fcopy_tree: one entry failed; error says why */
	/* The copy is written under its final name: a reader can see it incomplete. error.path is
	 * the destination, error.reason says why. fcopy_tree: once for the whole call. */
	FCOPY_EVENT_NOT_ATOMIC,
	FCOPY_EVENT_ENTRY,   /* fcopy_tree, with report_entries: entry says what was done */
	FCOPY_EVENT_OPERAND, /* fcopy_tree: a SRC has ended; operand says where its copy is */
	/* Other users may enter the directory in which the copy is built: the storage has no owners
	 * or modes. error.path is the destination, error.reason says this. */
	FCOPY_EVENT_NOT_PRIVATE,
	/* fcopy_tree, with one_file_system: what is mounted at error.path is not copied. */
	FCOPY_EVENT_NOT_ENTERED,
};

/* What was done with one entry of a tree. A later version may add values at the end. */
enum fcopy_action {
	FCOPY_ACTION_COPIED,    /* a file, directory, symlink or special file was made */
	FCOPY_ACTION_UNCHANGED, /* equal, and left alone: counted as unchanged or reused */
	FCOPY_ACTION_SKIPPED,   /* existed, and was left alone because an option says so */
	FCOPY_ACTION_LINKED,    /* it became a hard link to an earlier copy */
	FCOPY_ACTION_EXCLUDED,  /* an option excludes it */
	FCOPY_ACTION_DELETED,   /* DST had it, SRC did not: it was removed from DST */
	FCOPY_ACTION_VANISHED,  /* removed from SRC before it could be opened */
	FCOPY_ACTION_FAILED,    /* error says why */
	FCOPY_ACTION_REPAIRED,  /* unchanged, and counted so, but it got attributes that differed */
};

/* One entry. In a new tree it is complete, but visible only after its SRC: FCOPY_EVENT_OPERAND. A
 * directory comes after everything below it; the one that SRC names comes last, when it is in
 * place. The numbers of entries with each action equal the counts of the report. */
struct fcopy_entry {
	enum fcopy_action action;
	const char *operand; /* SRC as the caller wrote it; NULL: the failure is of no SRC */
	const char *path;    /* below SRC; NULL: SRC itself */
	const char *dst;     /* the whole path of the copy; NULL: unknown */
	unsigned type;       /* S_IFMT bits of st_mode, or 0: unknown */
	uint64_t bytes;      /* length of a regular file that was copied or linked, otherwise 0 */
	const char *engine;  /* that moved most of the bytes, or NULL: none did */
	const struct fcopy_error *error; /* FCOPY_ACTION_FAILED, otherwise NULL */
};

/* What is counted of a tree, and of each SRC. An entry is counted once, as one of the first eight,
 * of which DST has as many entries, or as EXCLUDED, DELETED, VANISHED or FAILED. fcopy_counts()
 * returns a row for each. */
enum fcopy_count {
	FCOPY_COUNT_FILES,
	FCOPY_COUNT_DIRECTORIES, /* that were made, or REPAIRED */
	FCOPY_COUNT_SYMLINKS,
	FCOPY_COUNT_SPECIALS,   /* FIFOs, sockets and devices */
	FCOPY_COUNT_HARD_LINKS, /* names that became a hard link to an earlier copy */
	FCOPY_COUNT_SKIPPED,    /* no_clobber, update or confirm: existed, and were left alone */
	FCOPY_COUNT_REUSED,     /* resume: were already complete in DST.fcopy-part */
	FCOPY_COUNT_UNCHANGED,  /* update: equal, and left alone, or given attributes */
	FCOPY_COUNT_REPAIRED,   /* of the unchanged: given attributes that differed */
	FCOPY_COUNT_DELETED,    /* delete_extra: removed from DST */
	FCOPY_COUNT_EXCLUDED,   /* by patterns or files, without what is below these entries */
	FCOPY_COUNT_VANISHED,   /* removed from the source before they could be opened */
	FCOPY_COUNT_CHANGED,    /* files whose source changed during the copy */
	FCOPY_COUNT_CLONED,     /* files that share their extents with the source */
	FCOPY_COUNT_FAILED,
	FCOPY_COUNT_BYTES,   /* length of the files that were copied whole: data and holes */
	FCOPY_COUNT_DATA,    /* of these bytes: copied or cloned */
	FCOPY_COUNT_HOLES,   /* of these bytes: holes and unwritten extents */
	FCOPY_COUNT_RESUMED, /* bytes that an earlier run had copied */
	FCOPY_COUNTS         /* the number of counts */
};

enum fcopy_unit {
	FCOPY_UNIT_COPIES,  /* entries that DST has */
	FCOPY_UNIT_ENTRIES, /* other entries, or some of those entries */
	FCOPY_UNIT_BYTES,
};

struct fcopy_count_row {
	const char *key;   /* in the JSON object */
	const char *label; /* for people */
	enum fcopy_unit unit;
};

/* The table of counts: FCOPY_COUNTS rows. */
const struct fcopy_count_row *fcopy_counts(void);

/* Where the copy of a SRC is. */
enum fcopy_state {
	FCOPY_STATE_COMPLETE,   /* DST is the whole copy */
	FCOPY_STATE_INCOMPLETE, /* DST lacks entries, or is a device that was written in part */
	FCOPY_STATE_PART,       /* DST is unchanged; the unfinished copy is DST.fcopy-part */
	FCOPY_STATE_UNCHANGED,  /* DST is as before, perhaps absent */
	FCOPY_STATE_SKIPPED, /* complete, but for entries that were skipped: they are as before */
};

/* One SRC of fcopy_tree. */
struct fcopy_operand {
	size_t index; /* which SRC, from 0 */
	const char *src;
	const char *dst;  /* DST or DST/basename(SRC); NULL: unknown */
	const char *part; /* unfinished and left; NULL: nothing is */
	enum fcopy_state state;
	bool committed;    /* has its final name, perhaps without entries that failed; for a merge
			      or with shards: complete */
	bool merged;       /* DST was a directory */
	bool existed;      /* DST was there before, whatever it was */
	bool part_is_tree; /* not the copy of one file */
	uint64_t count[FCOPY_COUNTS];
};

/* Its strings and structs are valid until notify returns. A later version of the library may add
 * members at the end of these structs, and kinds of events; options.api says which of them the
 * caller knows. */
struct fcopy_event {
	enum fcopy_event_kind kind;
	const struct fcopy_report *report; /* of this copy so far, or NULL */
	const struct fcopy_error *error;
	const char *text;
	const struct fcopy_entry *entry;
	const struct fcopy_operand *operand;
};

/* Attributes that a copy can get from its source. */
enum fcopy_attribute {
	FCOPY_ATTR_MODE = 1 << 0, /* permissions and ACL; setuid only if the owner is kept too */
	FCOPY_ATTR_OWNERSHIP = 1 << 1,  /* owner and group */
	FCOPY_ATTR_TIMESTAMPS = 1 << 2, /* of access and modification, in nanoseconds */
	FCOPY_ATTR_XATTR = 1 << 3,      /* extended attributes, including capabilities */
};

#define FCOPY_ATTR_ALL                                                                             \
	(FCOPY_ATTR_MODE | FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_TIMESTAMPS | FCOPY_ATTR_XATTR)

/* N processes, perhaps on N machines, make one copy of a file, or a new tree, on a file system that
 * they share. All members 0: no shards. Each process copies chunks, which no other process has
 * claimed, into DST.fcopy-part/, until none is left. The process that sees all chunks complete
 * commits. If a process returned -1 or was killed, run it again with the same index and count. A
 * process returns 0 when everything that it has claimed is complete, and nothing else is left;
 * report.committed says whether DST is complete. Both operands must be files or directories.
 * in_place, resume, count, expected_size, no_clobber, scratch and clones are refused. */
struct fcopy_shard {
	unsigned index;  /* this process begins with share `index`, from 0 */
	unsigned count;  /* N, at most FCOPY_SHARDS_MAX; 0: no shards */
	bool finish;     /* copy nothing; commit if all shares are complete, otherwise fail */
	const char *job; /* shards with another name make another copy; NULL: any name */
};

#define FCOPY_SHARDS_MAX 100000
#define FCOPY_JOB_MAX    200 /* bytes of shard.job */

/* A file that the caller writes while the library copies, such as a log. If DST is this file, the
 * copy is refused: `option` and `reason` become those of the error, and if option is NULL, `taken`.
 * In a tree, the entry that would replace it, write to it or link to it fails with the reason
 * `taken`; a mirror does not remove it. */
struct fcopy_output {
	uint64_t dev, ino; /* of the file, which the caller keeps open */
	bool not_source;   /* also refuse it as SRC */
	const char *option, *reason, *taken;
};

/* {.api = FCOPY_API} is the default: auto, atomic, nothing flushed. An option that
 * cannot apply, except force, is refused: the copy fails, and error.option names it. */
struct fcopy_options {
	int api; /* must be FCOPY_API; the copy fails with EINVAL for an unknown value */
	const struct fcopy_mode *mode; /* NULL: auto */
	size_t buffer_size;            /* bytes, 1 … FCOPY_BUFFER_MAX; 0: the mode's own */
	/* Copying threads; 0: automatic, at most 4, and 1 if DST is on FUSE or a network file
	 * system; 1: only the caller's. */
	unsigned threads;
	enum fcopy_when preallocate, sparse, reflink;
	/* ALWAYS: write into the existing file, and create a new one under its final name. A
	 * failure leaves the existing file incomplete, and removes the new one. AUTO: only where
	 * the file cannot be replaced by a rename. DEFAULT is NEVER. */
	enum fcopy_when in_place;
	bool force;        /* replace DST even where fcopy(1), DESTINATION, says that it refuses */
	bool fsync;        /* when fcopy_copy returns 0, the copy is flushed to storage */
	bool strict;       /* fail if the source changes, or its length is not as expected */
	bool no_cache;     /* bypass the page cache, except for cached pages of the source */
	bool no_clobber;   /* leave an existing destination unchanged, and succeed */
	bool no_directory; /* fail if DST is a directory; false: copy into it */
	bool resume;       /* keep an interrupted copy as DST.fcopy-part, and continue it */
	/* Read source and copy back from the storage and compare; of a source that can be read only
	 * once, compare the checksum. Implies fsync. */
	bool verify;
	unsigned preserve; /* set of enum fcopy_attribute: what the copy gets from the source */
	unsigned preserve_required; /* fail if one of these is lost; if another is lost, warn */
	bool scratch;               /* write an unnamed temporary file next to DST and discard it */
	uint64_t limit_rate;        /* bytes per second; 0: no limit */
	/* The expected length in bytes; 0: any. The library warns about a copy of another length.
	 * With strict such a copy fails. It copies at most one byte more than expected, so that an
	 * endless source fails, too. */
	uint64_t expected_size;
	uint64_t count; /* copy at most this many bytes; 0: all. With strict, a short SRC fails. */
	struct fcopy_shard shard; /* this process copies a share; implies fsync and strict */
	int timeout_ms; /* longest time without progress on a connection; 0: 60 s, < 0: no limit */
	const volatile int *cancel; /* set to non-zero to stop the copy: it fails with EINTR */
	struct fcopy_progress *progress;
	void (*notify)(void *user,
		       const struct fcopy_event *event); /* called in the copying thread */
	void *user;
	/* Unless preserve contains FCOPY_ATTR_MODE, new files get mode 0666, and new directories
	 * and sockets 0777, less the umask; false: the mode of the source less the umask. */
	bool default_mode;
	const struct fcopy_output *outputs; /* output_count files */
	size_t output_count;
};

#define FCOPY_BUFFER_MAX  ((size_t)1 << 30)
#define FCOPY_THREADS_MAX 64

/*
 * Copies SRC to DST. If DST is a directory, the copy is DST/basename(SRC). Either operand may also
 * be a stream:
 *
 *     -                         standard input as SRC, standard output as DST
 *     fd:N, /dev/fd/N           an open descriptor, from its current offset
 *     tcp:HOST:PORT             connects
 *     tcp-listen:[HOST:]PORT    accepts one connection on the first address of HOST that works, or
 *                               on loopback without HOST. Port 0 is any free port, which
 *                               FCOPY_EVENT_LISTENING reports.
 *     http-listen:[HOST:]PORT   the same for clients of HTTP. As SRC: takes one upload, a PUT or
 *                               POST. As DST: serves SRC, a regular file, until a response has
 *                               delivered its last byte and no request is open.
 *
 * Write ./tcp:... for a file with such a name.
 *
 * A regular file gets the name DST only when it is complete: a reader sees the old file or the new
 * one. After a failure DST is the old file, or absent; but if error.advice is FCOPY_ADVICE_FLUSH,
 * DST is the complete new file, which may not survive a power cut. With in_place, and if DST is a
 * device, a FIFO or an open descriptor, the data is written directly into DST; after a failure DST
 * may be incomplete.
 *
 * If a TCP peer receives the copy, it sees the end of the stream only after the last byte, and a
 * reset after a failure. If a TCP peer sends the source, the library closes the connection only
 * after DST was committed; this close confirms the copy to the peer. After a failure the library
 * resets the connection.
 *
 * With options NULL, all options have their defaults, and the report has the members of API 1. The
 * report must not be NULL.
 *
 * Returns 0, or -1 with the failure in report->error. report->step is filled in either way. A
 * failed call removes only what it created. With options.resume it keeps the part that it created
 * or continued, unless its data cannot be trusted; report->part_kept says so.
 */
int fcopy_copy(const char *src, const char *dst, const struct fcopy_options *options,
	       struct fcopy_report *report);

/* What an operand names. A kind >= FCOPY_KIND_SOCKET is a connection, or will become one. */
enum fcopy_kind {
	FCOPY_KIND_PATH,       /* a name in the file system */
	FCOPY_KIND_DESCRIPTOR, /* an open descriptor: -, fd:N, /dev/stdin, /dev/fd/N */
	/* An open descriptor that is a TCP socket, or any socket named fd:N. Other sockets, such as
	 * a Unix socket named -, are FCOPY_KIND_DESCRIPTOR: later programs may still use them. */
	FCOPY_KIND_SOCKET,
	FCOPY_KIND_CONNECT,    /* an address to connect to: tcp:HOST:PORT */
	FCOPY_KIND_LISTEN,     /* an address to listen at: tcp-listen:[HOST:]PORT */
	FCOPY_KIND_LISTEN_ANY, /* the same with port 0: any free port */
	FCOPY_KIND_HTTP,       /* an address where HTTP clients connect: http-listen:[HOST:]PORT */
	FCOPY_KIND_HTTP_ANY,   /* the same with port 0 */
};

/* Returns what the operand names. dash: the descriptor that - stands for, 0 for SRC and 1 for DST.
 * descriptor: NULL, or receives the operand's descriptor, or -1 if it names none.
 *
 * A write to a socket whose peer is gone raises SIGPIPE. The library does not ignore it:
 * a caller whose DST is a socket must do so; the copy then fails with EPIPE. */
enum fcopy_kind fcopy_operand_kind(const char *operand, int dash, int *descriptor);

#define FCOPY_CLIENTS_MAX     10000
#define FCOPY_CLIENTS_DEFAULT 256 /* RLIMIT_NOFILE is usually 1024 */

/* How files are served; all zero: until the program ends. */
struct fcopy_service {
	unsigned max_clients;     /* that are served at once; 0: FCOPY_CLIENTS_DEFAULT */
	const volatile int *stop; /* when it becomes non-zero, no more clients are accepted */
	/* HTTP only: end when each SRC was delivered to its last byte and no request is open. The
	 * report then describes the client that got the last one. */
	bool once;
};

/*
 * Serves each SRC to many clients. Each client has its own thread, which runs an ordinary copy. SRC
 * is a regular file and is opened once. DST is http-listen:...; or, for one SRC, tcp-listen:... or
 * fd:N of a listening socket. More clients than max_clients wait.
 *
 * HTTP: each SRC has the URL /NAME, where NAME is its last component. / is the only SRC, or else a
 * list of the names.
 *
 * FCOPY_EVENT_CLIENT reports the result of each copy. options->notify is called concurrently, in
 * the clients' threads. options->progress is used only with service->once. service may be NULL.
 *
 * Returns 0 after *stop became non-zero and the running copies have ended. Returns -1 with
 * report->error if nothing can be served. A non-zero *options->cancel also ends the running copies:
 * the call then returns -1 with EINTR.
 */
int fcopy_serve(const char *const *src, size_t n, const char *dst,
		const struct fcopy_options *options, const struct fcopy_service *service,
		struct fcopy_report *report);

/* Which symlinks of the source are followed. The letters are the options of the program. */
enum fcopy_follow {
	FCOPY_FOLLOW_DEFAULT,  /* as NEVER if recursive, otherwise as ALWAYS */
	FCOPY_FOLLOW_NEVER,    /* -P: symlinks are copied as symlinks */
	FCOPY_FOLLOW_OPERANDS, /* -H: only a SRC that is a symlink is followed */
	FCOPY_FOLLOW_ALWAYS,   /* -L */
};

/* Which existing entries of DST that are not directories are replaced. */
enum fcopy_update {
	FCOPY_UPDATE_ALL,
	FCOPY_UPDATE_NONE,      /* none: they are skipped */
	FCOPY_UPDATE_NONE_FAIL, /* none: they fail */
	FCOPY_UPDATE_OLDER,     /* those whose modification time is older than that of SRC */
	/* Those whose type, size or modification time differs. The others are unchanged; of them
	 * only attributes that are to be preserved and differ are set. */
	FCOPY_UPDATE_CHANGED,
};

/* A pattern as of rsync(1): src/source/filter.h describes the wildcards. */
struct fcopy_pattern {
	const char *text;
	bool include; /* an entry that matches is copied; false: it is excluded */
};

/* The name of a backup, as in cp(1). */
enum fcopy_backup {
	FCOPY_BACKUP_NONE,
	FCOPY_BACKUP_SIMPLE,   /* DST~ */
	FCOPY_BACKUP_NUMBERED, /* DST.~1~, DST.~2~, … */
	FCOPY_BACKUP_EXISTING, /* numbered if there are numbered ones, otherwise simple */
};

/* All zero: one SRC, not a directory, to DST. */
struct fcopy_tree_options {
	struct fcopy_options copy; /* how each regular file is copied; see fcopy_tree() */
	bool recursive;            /* copy directories; false: a SRC that is a directory fails */
	enum fcopy_follow follow;
	bool hard_links;      /* hard links to one source file become hard links to one copy */
	bool one_file_system; /* copy a mount point below SRC as an empty directory */
	bool keep_going;      /* commit a new tree without failed entries, but not on a full disk */
	bool into_directory;  /* DST must be a directory: each copy is DST/basename(SRC) */
	bool report_entries;  /* send FCOPY_EVENT_ENTRY for each entry, also for failed ones */
	bool report_at_once;  /* FCOPY_EVENT_ENTRY may come in several threads at once: faster */
	enum fcopy_update update;
	bool checksum; /* with CHANGED: bytes decide, not times */
	/* Modification times that differ by at most this are equal. 0: the resolution of times on
	 * DST's file system; negative: they must be equal. */
	int64_t modify_window_ns;
	/* Entries below SRC: the first pattern that matches decides; without a match, the entry is
	 * copied. An excluded entry of DST is not removed. SRC itself is never excluded. */
	const struct fcopy_pattern *patterns;
	size_t pattern_count;
	/* If files is not NULL, only these entries are copied, with the directories above them. The
	 * paths are relative to SRC. files_recursive: a directory stands for everything below it.
	 */
	const char *const *files;
	size_t file_count;
	bool files_recursive;
	/* Remove from a directory of DST what the same directory of SRC does not have. Nothing is
	 * removed if any entry failed, or if more than *max_delete entries would be. What an entry
	 * of another type replaces is removed at once, and counts: an entry that would exceed
	 * *max_delete fails. NULL: no limit, but nothing is removed if SRC is empty. */
	bool delete_extra;
	const uint64_t *max_delete;
	bool dry_run; /* change nothing; report what would be done */
	/* An earlier DST: a file that is unchanged there, with the same attributes, becomes a hard
	 * link to it; with copy.reflink, its clone. The earlier copy of DST/SRC is link_dest/SRC; a
	 * warning if there is none. NULL: no earlier copy. */
	const char *link_dest;
	/* Make hard links to the files of SRC instead of copies. An entry of DST is replaced only
	 * with force, backup or remove_destination. */
	bool link;
	/* An entry of DST that is not a directory is replaced by a new one, which gets nothing of
	 * it; a symlink is not followed. The options of cp(1) below imply it. */
	bool remove_destination;
	/* It keeps its data under another name, and its own name until it is replaced. */
	enum fcopy_backup backup;
	const char *backup_suffix; /* of a simple backup; NULL: ~ */
	/* Called before an entry is replaced; false: it is skipped. user is copy.user. NULL: none.
	 * Calls do not overlap. */
	bool (*confirm)(void *user, const char *dst);
	/* The copy of a/b/SRC is DST/a/b/SRC: missing directories are made like those of SRC. */
	bool parents;
	/* Make symlinks to the files of SRC instead of copies. SRC must be absolute, unless the
	 * symlink is made in the current directory. An entry of DST is replaced as with link. */
	bool symbolic_link;
	/* Copy no bytes of regular files: a file of DST keeps its own, or is made empty, and gets
	 * the attributes that copy.preserve names. Without force, a symlink or special file
	 * replaces nothing but one of its type. */
	bool attributes_only;
	/* In an existing DST, a symlink to a directory is followed where SRC has a directory,
	 * unless the symlink belongs to another user than root and the caller. */
	bool keep_directory_symlink;
};

/* What happened; filled in on success and on failure. */
struct fcopy_tree_report {
	struct fcopy_error error; /* the first failure; err is 0 if every SRC was copied */
	uint64_t count[FCOPY_COUNTS];
	size_t steps;
	struct fcopy_step step[FCOPY_STEPS_MAX]; /* sums over all files, also failed ones */
	double seconds[FCOPY_PHASES];            /* wall-clock time; verify counts as copy */
	/* Every SRC has its final name, perhaps without entries that failed. A merge in which an
	 * entry failed is not committed, and a dry run commits nothing. */
	bool committed;
	char dst[FCOPY_PATH_MAX];      /* destination of the last SRC */
	char part[FCOPY_PATH_MAX];     /* of the last SRC that left one, unfinished; or empty */
	char path[FCOPY_PATH_MAX];     /* what error.path points to */
	char path2[FCOPY_PATH_MAX];    /* what error.path2 points to */
	char detail[FCOPY_DETAIL_MAX]; /* what error.reason points to, if it has numbers */
	/* Why the first such file or tree was written under its final name, as a static string;
	 * NULL: none was. */
	const char *not_atomic;
	unsigned threads_most;      /* threads that copied entries, at most ... */
	double threads_average;     /* ... and on average over the time */
	const char *threads_reason; /* why so many, as a static string; NULL: copy.threads */
	/* Set of enum fcopy_attribute: DST stores others than the source's, so that they were not
	 * compared to find what is unchanged. */
	unsigned not_compared;
};

/*
 * Copies n sources to DST, as cp(1) does: directories with everything below them, symlinks, FIFOs,
 * sockets, devices and regular files. The copy of SRC is DST/basename(SRC) if DST is a directory
 * and copy.no_directory is false, if n > 1, or if into_directory is set; otherwise it is DST. A SRC
 * that ends in /. is copied into DST itself. Each SRC is committed separately.
 *
 * A new directory is whole or absent: it is built under a temporary name, .fcopy- and 16 random
 * characters, with mode 0700, and renamed when it is complete. If an entry failed and keep_going is
 * false, the unfinished tree is kept as DST.fcopy-part instead. If the disk is full, the cancel
 * flag is set or another process creates DST first, the tree is removed. With copy.resume it is
 * kept in these cases, too, and a later call continues it. If the flush of the whole tree fails,
 * the tree is always removed: which files lost data is unknown. Where directories cannot be
 * renamed, the tree is built under its final name and removed after a failure;
 * FCOPY_EVENT_NOT_ATOMIC reports that. In an existing directory each file is replaced atomically,
 * but not the tree as a whole.
 *
 * A failed entry is reported by FCOPY_EVENT_FAILED, and the copy continues. The entry's name in DST
 * is then absent or unchanged. An entry that vanishes from the source before it is opened is
 * reported as a warning; with copy.strict it is a failure. Every component is opened relative to
 * its parent directory without following symlinks: if a directory is replaced by a symlink during
 * the copy, neither reads nor writes are redirected.
 *
 * copy.threads is the size of the thread pool. 0: it starts with as many as the CPUs that the
 * affinity mask and the cgroup's cpu.max allow. While the threads mostly wait for the storage and
 * more of them are faster, their number doubles, up to FCOPY_THREADS_MAX; threads that do not help
 * sleep.
 * copy.limit_rate applies to the whole tree. copy.fsync flushes a new tree by one syncfs(2) before
 * the rename. If syncfs(2) does not reach the storage or does not report its errors (FUSE, SMB, 9P,
 * overlayfs, eCryptfs), it flushes each file and directory.
 * With copy.in_place ALWAYS, a new tree is built under its final name. A file in DST that has other
 * hard links is never overwritten: it is replaced, or the entry fails.
 * copy.scratch, copy.count and copy.expected_size are refused. copy.notify is called
 * in several threads, but never in two at once.
 *
 * Returns 0, or -1 with the first failure in report->error. The call removes only what it created;
 * with copy.resume also the part that it continued, if the flush of the whole tree failed. If
 * entries failed, it keeps a new tree as a part.
 */
int fcopy_tree(const char *const *src, size_t n, const char *dst,
	       const struct fcopy_tree_options *options, struct fcopy_tree_report *report);

/* What an interrupted copy left in a directory. */
enum fcopy_left_kind {
	FCOPY_LEFT_FILE,      /* a temporary file */
	FCOPY_LEFT_DIRECTORY, /* a temporary directory, in which a tree or a special file was made
			       */
	FCOPY_LEFT_PART,      /* DST.fcopy-part, which options.resume would continue */
	FCOPY_LEFT_RECEIPT,   /* DST.fcopy-part after the commit of shards: for late ones */
	FCOPY_LEFT_OLD,       /* a temporary directory with an old entry, which a mirror replaced */
};

enum fcopy_left_state {
	FCOPY_LEFT_DEAD,    /* this user's, and no process uses it: it may be removed */
	FCOPY_LEFT_LIVE,    /* a running copy uses it */
	FCOPY_LEFT_UNKNOWN, /* whose it is, or whether it is used, is unknown; reason says why */
	FCOPY_LEFT_REMOVED, /* it was removed */
	FCOPY_LEFT_FAILED,  /* its removal has failed: error says why */
	FCOPY_LEFT_RETURNED /* of OLD: the old entry has its name again */
};

struct fcopy_left {
	const char *path;
	enum fcopy_left_kind kind;
	enum fcopy_left_state state;
	const char *reason;       /* of UNKNOWN: a static string; otherwise NULL */
	uint64_t bytes;           /* of disk space that its files take, without holes */
	bool more;                /* not all files could be measured */
	int64_t age;              /* seconds since it was last changed */
	struct fcopy_error error; /* of FAILED */
	const char *old;          /* of OLD: the name that the old entry had; otherwise NULL */
	bool returns; /* nothing has that name: instead of being removed, it is renamed back */
};

/* {.api = FCOPY_API} removes nothing. */
struct fcopy_clean_options {
	int api; /* must be FCOPY_API */
	/* Returns whether to remove this one, or to rename it back; its state is DEAD. NULL:
	 * nothing is done. */
	bool (*remove)(void *user, const struct fcopy_left *);
	/* Called once for each, when its removal, if there was one, has ended; may be NULL. */
	void (*notify)(void *user, const struct fcopy_left *);
	void *user;
	const volatile int *cancel; /* as in fcopy_options */
	bool recursive;             /* also below it, but not in what is mounted there */
	bool *unsearched;           /* set if it has directories, and recursive is not; or NULL */
};

/* Finds what killed copies left in a directory, and removes what the caller chooses of it. Another
 * process cannot use what is being removed. Returns 0, or -1 with the first failure in *error. */
int fcopy_clean(const char *dir, const struct fcopy_clean_options *options,
		struct fcopy_error *error);

/* Is this the path of a DST.fcopy-part that this user has begun, and not with shards? */
bool fcopy_is_unfinished(const char *part);

#ifdef __cplusplus
}
#endif
#endif
