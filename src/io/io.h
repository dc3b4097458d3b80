/* SPDX-License-Identifier: MIT
 *
 * What functions return. And the only loops around read(2), write(2) and similar calls: they handle
 * EINTR, EAGAIN and short counts.
 */
#ifndef IO_IO_H
#define IO_IO_H

#include "libc.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* What functions return besides 0, which is success, and -errno. 1 is the "yes" of a question whose
 * "no" is 0. Any other outcome is one of these, in all rooms: a value that is handed on can never
 * be taken for another one, for a "yes", or for a descriptor. */
enum result {
	/* A name in DST. */
	RESULT_SKIPPED = 1 << 30, /* no_clobber: DST exists and stays as it is; not a failure */
	RESULT_TAKEN,     /* it leads to something else than what may be replaced, which stays */
	RESULT_RIVAL,     /* it leads to the copy of another entry of the tree, which stays */
	RESULT_EXCHANGED, /* done, but at the last moment another file had it, and has come out */
	RESULT_NEW,       /* done: it did not exist */
	RESULT_SAME,      /* it is what it was to become */
	RESULT_KNOWN,     /* the outcome of the entry is known, and counted */
	RESULT_STAYS,     /* something below it cannot be removed, and stays */

	/* A way to copy. */
	RESULT_NEXT,    /* the engine does not support these descriptors; another one may */
	RESULT_UNFIT,   /* the storage lacks it */
	RESULT_CHANGED, /* done: owner or mode of the file have changed */
	RESULT_NONE,    /* neither file has what was to be kept */
	RESULT_REFUSED, /* of a dry run: the open of DST would fail, as is recorded */

	/* A new tree, a part, and the job of shards. */
	RESULT_EXISTS,    /* DST exists, and its part does not show that it was committed */
	RESULT_MERGES,    /* the operands ask for a merge into DST */
	RESULT_COMMITTED, /* DST is complete, by this process or by another one */
	RESULT_AGAIN,     /* another process has changed the part: look again */
	RESULT_LEFT,      /* other processes have chunks, and will commit */
};

/* What has failed, for decisions. */
enum step {
	STEP_OTHER,
	STEP_READ,     /* a call that reads the source */
	STEP_MAKE,     /* the call that makes something under a name */
	STEP_RENAME,   /* the rename that gives a copy its name */
	STEP_DISPLACE, /* the rename of what a copy replaces */
	STEP_OPEN,     /* the open of the copy, to read it */
	STEP_TRUNCATE, /* ftruncate(2) of the copy */
	STEP_REPORTED, /* any: the caller reports nothing more */
};

/* Which call has failed, beside -errno. */
struct failure {
	const char *call; /* for messages; NULL: no call has failed, or STEP_REPORTED */
	enum step step;
};

/* `call` has failed, or is made next. Returns -errno. NULL: nobody asks. */
static inline int fail_at(struct failure *fail, const char *call)
{
	if (fail)
		*fail = (struct failure){.call = call};
	return -errno;
}

/* As fail_at(), if r is below 0. Returns r. */
static inline int fail_if(struct failure *fail, int r, const char *call)
{
	if (r < 0)
		fail_at(fail, call);
	return r;
}

/* The failure was reported. Returns r, its -errno. */
static inline int fail_reported(struct failure *fail, int r)
{
	*fail = (struct failure){.step = STEP_REPORTED};
	return r;
}

/* While one of them is open, no other inode has its number. */
static inline bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static inline bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static inline bool time_is_before(struct timespec a, struct timespec b)
{
	return a.tv_sec < b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec < b.tv_nsec);
}

/* The seconds from one time to another. Some file systems store any time, also one that another
 * user has set: a difference that is too large becomes the largest or the smallest number. */
static inline int64_t time_between(time_t from, time_t to)
{
	int64_t seconds;
	if (__builtin_sub_overflow(to, from, &seconds))
		return to > from ? INT64_MAX : INT64_MIN;
	return seconds;
}

/* The distance of two times in ns, at most INT64_MAX. */
static inline int64_t time_distance(struct timespec a, struct timespec b)
{
	const int64_t second = 1000000000, s = time_between(b.tv_sec, a.tv_sec);
	if (s > INT64_MAX / (2 * second) || s < -(INT64_MAX / (2 * second)))
		return INT64_MAX;
	const int64_t ns = s * second + (a.tv_nsec - b.tv_nsec);
	return ns < 0 ? -ns : ns;
}

static inline struct timespec statx_time(struct statx_timestamp t)
{
	return (struct timespec){.tv_sec = (time_t)t.tv_sec, .tv_nsec = (long)t.tv_nsec};
}

static inline bool same_mtime(const struct stat *a, const struct stat *b)
{
	return same_time(a->st_mtim, b->st_mtim);
}

static inline bool same_ctime(const struct stat *a, const struct stat *b)
{
	return same_time(a->st_ctim, b->st_ctim);
}

/* Does this errno mean that a file system has no space left, or the user no quota? */
static inline bool io_is_full(int err)
{
	return err == ENOSPC || err == EDQUOT;
}

/* Does it belong to a user other than root and this one? If it is a directory, that user can
 * exchange the names in it. If it is a symlink, it could lead to any file that he cannot read or
 * write: it is not followed. */
static inline bool io_is_foreign(const struct stat *st)
{
	return st->st_uid != 0 && st->st_uid != geteuid();
}

/* Closes the descriptor unless it is negative: none, or -errno. */
static inline void io_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

#define IO_AT_POSITION ((off_t)-1) /* use and move the descriptor's file offset */
#define IO_UNCACHED    0x80        /* RWF_DONTCACHE, Linux 6.14: the headers may be older */

/* How long a loop retries, and what it has done so far. Used by one thread at a time. */
struct io {
	const volatile int
	    *cancel;    /* non-zero: an interrupted call fails with EINTR; NULL: retry it */
	int timeout_ms; /* longest wait for a descriptor that returns EAGAIN; <= 0: no limit */
	int flags;      /* RWF_… for preadv2(2) and pwritev2(2); 0: the plain calls */
	uint64_t calls; /* read and write calls made */
	unsigned waits; /* calls of io_wait_again since bytes moved last; 0 restarts the timeout */
	double idle_since; /* io_now() at the first of them */
	double idle;       /* seconds in io_wait_again so far */
	/* The peer of a TCP socket must move so many bytes per second, seen over timeout_ms; 0: any
	 * number. Since when, and how many it had moved by then. */
	unsigned least_rate;
	double rate_since;
	uint64_t rate_from;
};

bool io_cancelled(const struct io *io);

/* Reads once, at most n bytes, at offset `at`. Returns the count, 0 at the end, or -errno. */
ssize_t io_read(struct io *io, int fd, void *buf, size_t n, off_t at);

/* Writes n bytes at offset `at`. Returns 0 or -errno. In both cases *done is the number of bytes
 * written. After a short write, the write of the rest shows the reason (write(2), NOTES). */
int io_write_all(struct io *io, int fd, const void *buf, size_t n, off_t at, size_t *done);

/* Sets the size, also after a signal. Returns 0 or -errno. */
int io_truncate(int fd, off_t size);
/* Releases the blocks of [start, end). Returns false if the file system cannot. */
bool io_punch(int fd, off_t start, off_t end);

/* Makes [start, end) of a file read as zeros: punches a hole, or writes zeros. Returns 0 or
 * -errno. */
int io_zero(struct io *io, int fd, off_t start, off_t end);

/* Opens a directory again, to read its names from the start: after a seek to the start, some FUSE
 * file systems (sshfs) return none. Returns a descriptor or -errno. */
int io_reopen_directory(int fd);

/* close(2) reports failed writes on NFS and FUSE: closes a duplicate of fd. After EINTR the outcome
 * is unknown, so it is a failure too. Returns 0, or -errno with the call. */
int io_close_duplicate(int fd, struct failure *);
/* Was everything written that this descriptor wrote so far? flush: also what waits in the page
 * cache of NFS or FUSE, of which the next change of an attribute would take the error. */
int io_check_written(int fd, bool flush, struct failure *);

/* Flushes an open directory. Returns 0 or -errno. Some network file systems cannot: their server
 * does it at once, which counts as 0. */
int io_flush_directory(int fd);
/* The same, by a descriptor that may be O_PATH. */
int io_flush_place(int fd);

/* Returns the alignment in bytes that direct I/O needs on both files; 0: one does not support it.
 */
size_t io_direct_align(int a, int b);

/* Waits until poll(2) reports one of `events` on fd. Returns 0; -EINTR if cancelled; -ETIMEDOUT
 * after timeout_ms without a byte that a socket's peer acknowledged; or the -errno of poll(2). */
int io_wait(const struct io *io, int fd, short events);

/* io_wait after a call on fd failed with EAGAIN. The timeout runs from the first EAGAIN since
 * bytes moved: a descriptor may be reported ready and still return EAGAIN. Returns -EAGAIN at once
 * for a regular file or a block device: poll(2) always reports those ready. */
int io_wait_again(struct io *io, int fd, short events);

/* Returns page-aligned memory for n bytes, or NULL with errno. From 2 MiB on it is in huge pages if
 * the kernel has some (madvise(2), MADV_HUGEPAGE). io_free takes the same n. */
void *io_alloc(size_t n);
void io_free(void *p, size_t n);

/* Of proc.c, which the program shares with the library: symlinks, clocks, and what /proc and /sys
 * show. */

/* Reads what the symlink `name` in the open directory `dir` says, and sets *st to the stat of that
 * very symlink: its owner can exchange the name at any moment, so no other call may look the name
 * up again. Returns 0 or -errno; EINVAL, ENOENT: it is no symlink. */
int io_read_link(int dir, const char *name, char text[PATH_MAX], struct stat *st);
/* follow.c: opens the name in `dir`, and follows symlinks as the kernel does, but one name at a
 * time: `see` gets each one, and the directory that has it, and returns whether it is followed. The
 * flags are those of open(2). Returns a descriptor; -EPERM: one was not; or another -errno. */
typedef bool io_link(void *arg, int dir, const struct stat *link);
int io_walk(int dir, const char *name, int flags, io_link *see, void *arg);
/* As io_walk(), and sets *user to the first user, other than root and this one, who owns a symlink
 * on the way or can have moved it; 0: there is none. If there is one and the flags lack O_PATH,
 * returns -EPERM, and opens or creates nothing. */
#define IO_ANY_USER ((uid_t)-1) /* any user: several can write to the directory */
int io_open_link(int dir, const char *name, int flags, uid_t *user);

/* Reads a file of /proc or /sys as a string, whose last bytes are lost if there are `size` or more.
 * Returns false, and an empty string, if it cannot be read. */
bool io_read_text(const char *path, char *text, size_t size);

/* Returns CLOCK_MONOTONIC in seconds. */
double io_now(void);
/* Seconds that this thread has been on a CPU. */
double io_thread_seconds(void);
/* The time on CLOCK_MONOTONIC so many seconds from now: for pthread_cond_timedwait(3). */
struct timespec io_deadline(double seconds);
/* Seconds that this thread was ready to run, but had no CPU: the second number of schedstat, in
 * nanoseconds (Linux 2.6.12, CONFIG_SCHED_INFO). Negative: unknown. */
double io_runnable_seconds(void);

/* The open file as a path, /proc/self/fd/N: to open it again, or for a call that needs a path. */
struct io_path {
	char text[sizeof("/proc/self/fd/") + 11];
};
struct io_path io_proc_path(int fd);
/* For messages: the path of `name` in the open directory `dir`; of a path that is unknown or too
 * long only the name. */
void io_name_path(int dir, const char *name, char path[PATH_MAX]);
/* As chmod(2) and utimensat(2) of io_proc_path(fd), which O_PATH is enough for. Without /proc,
 * Linux 6.6 (fchmodat2) and 5.8 do the same. Return 0, or -1 with errno; ENOENT: there is no /proc.
 */
int io_chmod(int fd, mode_t mode);
int io_set_times(int fd, const struct timespec times[2]);

/* A line of /proc/self/mountinfo, without escapes: proc(5). Its texts are those of the list, until
 * the next line is read. */
struct mount {
	uint64_t id;
	dev_t dev;
	const char *root;  /* the directory of its file system that is mounted ... */
	const char *point; /* ... and where that is */
	const char *type;
	const char *options; /* of the file system, separated by commas */
};

/* The file stays open: poll(2) reports POLLPRI when a mount has changed since. */
struct mount_list {
	FILE *file; /* NULL: it cannot be read */
	char *line;
	size_t size;
};

bool mount_open(struct mount_list *);
bool mount_next(struct mount_list *, struct mount *); /* false: there are no more */
void mount_close(struct mount_list *);
/* The mount of an open file or directory, by its number; 0: it is unknown. */
uint64_t mount_id(int fd);
/* Opens the list, and reads it up to that mount. Returns false if that is unknown. mount_close()
 * follows in both cases. */
bool mount_find(struct mount_list *, int fd, struct mount *);

#endif
