/* SPDX-License-Identifier: MIT
 *
 * Trees: directories are read, and their entries copied, by one pool of threads.
 *
 *   fcopy_tree -> root (temporary name), commit -> walk (reads directories) -> pool (threads)
 *                                                    |
 *                                                    v
 *               entry (one name) -> links, hard_link, shard_entry, directory, special, resume, copy
 *
 * No file calls one that calls it: an entry that is a directory becomes an item of the pool, which
 * calls walk.c by a pointer.
 *
 * The pool is a stack of items: "continue to read this directory" and "copy these names of this
 * directory". The thread that reads a directory fills one buffer of names, pushes the rest of the
 * directory, then the subdirectories, then the files on top of them. So files come first, then one
 * subdirectory after the other, and few directories are open at a time: about depth × threads.
 * Memory is bounded by one buffer of names for each of them.
 */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include "copy/copy.h"
#include "endpoints/identity.h"
#include "endpoints/storage.h"
#include "part/private.h"
#include "source/names.h"
#include "tuner.h"

#include <pthread.h>

struct tree;
struct worker;

/* Can another user rename what is in a directory? See aside.c. LIKELY: if storage can rename. */
enum sharing { SHARING_UNKNOWN, SHARING_NONE, SHARING_LIKELY, SHARING_OTHERS };

/* A directory that is being copied. */
struct directory {
	struct directory *parent; /* NULL: the operand itself */
	int src, dst;             /* descriptors; open between opened_use() and opened_unuse() */
	int link;                 /* of options.link_dest, or -1 */
	struct stat st;           /* of the source */
	bool fresh;               /* created by this copy, or by the one that it resumes */
	bool resumed;             /* it may hold what the source does not have any more */
	bool unread;              /* its source was not read to the end */
	bool mounted;             /* a mount point that is not entered */
	bool failed;              /* a failure of the directory itself was reported; atomic */
	struct stat was;          /* of dst, if it existed; st_nlink 0: it did not */
	bool grown;               /* more was done to its names than files replaced; atomic */
	/* Of opened.c, whose lock protects them: */
	struct directory *before, *after; /* in the list of open directories that nobody uses */
	bool listed;                      /* ... it is in this list */
	bool has_dst;                     /* if it is closed: dst was open */
	bool known;                       /* dst_dev and dst_ino are the copy's */
	bool complete;                    /* all names were read */
	unsigned users;
	dev_t dst_dev;
	ino_t dst_ino;
	struct identity id;   /* of dst, when it is closed in a merge */
	enum sharing sharing; /* of dst */
	unsigned present;     /* entries with a copy in dst (--resume, last walk); atomic */
	uint64_t hash;        /* of its path below the operand, with a final slash; for shards */
	unsigned pending;     /* items and subdirectories that are not finished; atomic */
	unsigned references;  /* children and hard links that need the names below; atomic */
	const char *src_path, *dst_path; /* of an operand: for messages */
	char name[];                     /* of a subdirectory: in its parent */
};

/* FNV-1a of 64 bits, so that every build of fcopy shares a tree alike. */
#define HASH_START 0xcbf29ce484222325u
static inline uint64_t hash_add(uint64_t hash, const void *bytes, size_t n)
{
	for (const unsigned char *b = bytes; n > 0; n--, b++)
		hash = (hash ^ *b) * 0x100000001b3u;
	return hash;
}

/* What getdents64(2) returned; freed with the last item that uses it. */
struct names {
	unsigned references; /* atomic */
	unsigned size;       /* bytes in data */
	_Alignas(8) char data[];
};

/* Work for one thread. */
struct item {
	struct directory *dir;
	struct names *names;   /* NULL: continue to read the directory */
	unsigned first, count; /* offset of the first name, and how many names */
};

/* One name in a directory. */
struct entry {
	struct directory *dir;
	const char *name;   /* in dir->src */
	const char *as;     /* in dir->dst */
	unsigned char type; /* d_type: only a hint */
	bool follow;        /* a symlink is copied as what it leads to */
};

/* What was done with the entry at work. */
struct done {
	enum fcopy_action action;
	mode_t type; /* S_IFMT bits, or 0: unknown */
	uint64_t bytes;
	const char *engine;
};

struct worker {
	struct tree *tree;
	bool replaced;                /* the entry was there: its directory has no new name */
	const struct entry *entry;    /* the one at work; for messages */
	struct done done;             /* ... and what was done with it */
	struct fcopy_tree_report sum; /* counts and steps only */
	struct fcopy_options options; /* of each file */
	struct timespec opened;       /* when the source of the file was */
	char *record;                 /* of record.c */
	size_t recorded;              /* bytes in it */
	bool tracks; /* note the identity of the copy: another user may exchange it before a link */
	struct identity made;             /* ... here */
	struct private_directory aside;   /* of aside.c */
	const struct directory *aside_of; /* where it is; NULL: there is none */
	dev_t no_clone;                   /* FICLONE was refused for files of this file system */
	bool refuses_clones;
	dev_t asked_exact;       /* ask_is_exact() was asked for files of this file system ... */
	bool is_asked, is_exact; /* ... and its answer */
	struct copy copy;        /* its buffer stays from file to file */
	struct rivals rivals;    /* of the copy, in a merge */
	struct fcopy_report file;
	unsigned number;                 /* 0: the thread that called pool_run */
	struct worker_time {             /* of tuning.c */
		unsigned change;         /* pool.change since when it counts */
		struct tuner_report sum; /* since the last report */
		double began;            /* io_now() when the present entry began; 0: unknown */
		uint64_t bytes;          /* sum.bytes then */
		double reported;         /* io_now() at the last report */
		double cpu, runnable; /* the thread's seconds on a CPU and in its run queue then */
	} time;
};

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct item *stack;
	size_t used, size;
	pthread_cond_t needed; /* there is work for more threads */
	unsigned idle;         /* threads that may copy, but have nothing to do; changed under the
				* lock, read without it */
	unsigned asleep;       /* threads that may not copy now */
	unsigned active;       /* threads that may: those whose number is lower */
	unsigned workers;      /* all threads */
	unsigned joined;       /* threads that have a number */
	unsigned started;      /* threads in thread[] */
	bool done;             /* nothing is left and nobody works */
	bool tunes;            /* active follows the tuner */
	bool blind;            /* how long threads wait for a CPU is unknown; atomic */
	unsigned change;       /* how often active has changed; atomic */
	int descriptors;       /* RLIMIT_NOFILE */
	off_t read_ahead;      /* of each copy */
	double since;          /* io_now() at the last change */
	struct tuner tuner;
	pthread_t thread[FCOPY_THREADS_MAX];
	void (*run)(struct worker *, const struct item *);
};

/* Of opened.c. */
struct opened {
	pthread_mutex_t lock;
	struct directory *first, *last; /* open directories that nobody uses, as they were used */
	unsigned long count;            /* of open ones below the operand's */
	unsigned long descriptors;      /* that were left when the operand was opened */
	unsigned threads;               /* how many have enough of them */
};

enum walk {
	WALK_COPIES,
	WALK_FINISHES, /* the last walk of shards: checks the copies, and sets attributes */
	WALK_COMPARES, /* a late retry of a shard: looks at the source alone */
};

/* A merge that leaves equal entries alone, and perhaps removes others. */
struct mirror {
	int64_t window_ns; /* modification times that differ by this much are equal */
	bool root;         /* this process may set any owner */
	bool marked;       /* DST has the marker */
	bool doubted;      /* what was written since then may be lost: compare bytes */
	time_t doubted_since;
	struct extra *extras; /* to be removed */
	uint64_t removed;     /* because their types differ, if there is a limit; atomic */
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the members are grouped by subject */
struct tree {
	const struct fcopy_tree_options *options;
	struct filter *filter; /* NULL: every entry is copied */
	struct fcopy_tree_report *report;
	struct io io; /* the cancel flag */
	struct monitor monitor;
	unsigned threads;
	pthread_mutex_t lock; /* of report->error and of notify */
	int stop;             /* -errno: no entry is started any more; atomic */
	uint64_t failures;    /* of this operand; atomic */
	bool atomic;          /* files are replaced: DST existed */
	bool resume;          /* ... complete ones are skipped: DST.fcopy-part existed */
	bool doubtful; /* ... copies of an earlier run may be in it that the source lacks; atomic */
	bool single;   /* one file is an operand: it may have threads, and be resumed */
	bool last;     /* the last operand */
	bool several;  /* several operands: an entry may be found twice */
	bool flush_each;    /* durable, but syncfs(2) does not suffice: flush every entry */
	bool committed;     /* this operand */
	bool existed;       /* this operand: DST was there */
	bool merges;        /* this operand: DST was a directory */
	bool in_place;      /* this operand: DST was written in place, and may be incomplete */
	bool landed;        /* this operand: DST is complete, but a flush after that failed */
	const char *source; /* this SRC, or NULL */
	bool unflushed;     /* a single operand made a link or a special file */
	const struct fcopy_shard *shard; /* NULL: one process makes the copy */
	enum walk walk;
	uint64_t sum;           /* of what a shard sees of the source; atomic */
	bool differs;           /* a copy differs from what markers promise; atomic */
	bool stale, prunes;     /* names that the source lacks: found (atomic); may be removed */
	ino_t dst_ino;          /* the directory that is created or merged into */
	dev_t dst_dev, src_dev; /* src_dev: of the operand */
	mode_t umask, withheld; /* withheld: of S_IRWXU, from new directories */
	bool probed, searched;  /* for O_TMPFILE, and for what killed copies left */
	bool fixed_modes;       /* chmod has no effect in DST: directories get their mode at once */
	struct storage storage; /* what the file systems of DST can rename */
	struct links *links;
	struct operand *operand, destination;
	size_t operands;           /* of SRC */
	struct directory *singles; /* where operands that are files go: hard links keep it open */
	char singles_src[PATH_MAX], singles_dst[PATH_MAX]; /* its paths */
	struct record *record;                             /* NULL: nothing is kept to be resumed */
	struct inodes *made;       /* of a merge: inodes of DST that this run makes or replaces */
	struct inodes *entered;    /* the same for directories */
	struct inodes *sources;    /* the operands; NULL: not needed yet */
	pthread_mutex_t replacing; /* rivals_lock() */
	struct mirror mirror;
	struct pool pool;
	double pool_seconds, thread_seconds; /* in pool_run; the same times the active threads */
	struct opened opened;
};

/* pool.c: runs `run` for an item of root, whose `pending` is 1, and for each item that it pushes,
 * in tree->threads threads. Returns when nothing is left: after tree_stop, as soon as each thread
 * has finished its entry. */
void pool_run(struct tree *, struct directory *root,
	      void (*run)(struct worker *, const struct item *));
/* Adds an item. If there is no memory for it, stops the tree, and runs the item in this thread. */
void pool_push(struct worker *, struct item);
/* How many threads have nothing to do. */
unsigned pool_idle(const struct tree *);
/* Wakes idle threads after a series of pushes; one thread after one push. */
void pool_wake(struct tree *);
void pool_wake_one(struct tree *);
/* A worker for this thread, or NULL; and its end, which adds up what it did. */
struct worker *pool_join(struct tree *);
void pool_leave(struct worker *);
/* Passes to the tuner what this thread has done; may wake, start or stop threads. fd: a descriptor
 * that was opened lately, which shows how many are open. */
void pool_report(struct worker *, const struct tuner_report *, int fd);
/* Prepares worker->copy and worker->file for the next file. Returns the copy. */
struct copy *pool_start_copy(struct worker *);

/* census.c: starts to count the entries and bytes of a tree for options.progress, if the caller
 * wants that; stops it. NULL: nothing is counted. */
struct census;
struct census *census_start(const struct tree *, const struct directory *root);
void census_stop(struct census *);

/* tuning.c: called before and after each entry, and after the last one of an item; measures the
 * work and the waiting of this thread. */
void tuning_begin_entry(struct worker *);
void tuning_end_entry(struct worker *, int fd); /* fd: as in pool_report */
void tuning_end_item(struct worker *);

/* walk.c: copies everything below root, whose `pending` is 1, in tree->threads threads. */
void walk_tree(struct tree *, struct directory *root);
void walk_entry(struct tree *, const struct entry *); /* copies one entry in this thread */
/* Reports each name of options.files that root does not have. */
void walk_report_missing(struct tree *, struct directory *root);

/* directory.c */
struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *);
/* Notes the fstat of a merge's destination: which inode it is, and who can rename what is in it. */
void directory_note_inode(struct directory *, const struct stat *dst);
/* Sets the attributes of a complete directory. */
void directory_set_attributes(struct worker *, struct directory *);
/* Warns that a directory could not get its mode, which no option asked for. */
void directory_warn_mode(struct worker *, struct directory *, int err);
/* Gives dst, a file or directory, the attributes of src that are to be preserved. Returns 0, or
 * -errno if one is lost that is required; reported. */
int directory_preserve(struct worker *, const struct entry *, int src, int dst,
		       const struct stat *);
/* Reports that opened_use failed. */
void directory_report_lost(struct worker *, struct directory *, int err);
/* One item or subdirectory less: the last one sets the directory's attributes and closes it. */
void directory_release(struct worker *, struct directory *);
/* The memory, which outlives the descriptors. */
void directory_ref(struct directory *);
void directory_unref(struct directory *);
/* Opens the destination directory again, component by component from the operand's. Returns a
 * descriptor or -errno. */
int directory_reopen(const struct directory *);
/* enter.c: opens or creates a subdirectory; pushes what is in it. Takes fd. Returns 0 or -errno,
 * reported. */
int directory_enter(struct worker *, const struct entry *, int fd, const struct stat *);
/* Creates an empty directory with mode 0700, for a mount point that cannot be read. Returns 0 or
 * -errno, reported. */
int directory_make_mount_point(struct worker *, const struct entry *);

/* opened.c: opens a directory of the destination; as O_PATH if it cannot be read but searched, and
 * is neither flushed nor given attributes. Returns a descriptor, or -1 with errno. */
int directory_open(const struct tree *, int parent, const char *name);
/* For one walk below the operand's directory, which stays open. */
void opened_start(struct tree *, const struct directory *root);
/* A subdirectory was opened; until opened_use it may be closed again. */
void opened_add(struct tree *, struct directory *);
/* Opens it again if need be, and keeps it open until opened_unuse. Returns 0, -ESTALE if its name
 * is of another directory now, or -errno. */
int opened_use(struct tree *, struct directory *);
void opened_unuse(struct tree *, struct directory *);
/* Closes a subdirectory that is in use, for ever. */
void opened_end(struct tree *, struct directory *);
/* Should directories be read to their end, so that they can be closed? */
bool opened_are_many(struct tree *);
/* Which inode the directory in the destination is. Returns false if that is unknown. */
bool opened_identity(struct tree *, struct directory *, dev_t *, ino_t *);

/* entry.c: copies one name, whatever it is, and reports it. */
void entry_copy(struct worker *, const struct entry *);

/* special.c: a symlink, FIFO, socket or device. Returns 0 or -errno, reported. */
int special_copy(struct worker *, const struct entry *, const struct stat *);
/* Is the existing destination the source, or what the source leads to? A symlink that replaced it
 * would lead to itself, and its data would be lost. */
bool special_is_source(const struct entry *, const struct stat *);

/* links.c: hard links. */
struct links *links_new(void);
void links_free(struct links *);
/* What to do with an entry whose st_nlink is above 1. */
enum link_state {
	LINK_COPY,   /* copy it, then call links_done */
	LINK_MADE,   /* it is a link now */
	LINK_SAME,   /* it was one already */
	LINK_FAILED, /* it could not be linked; reported */
	LINK_TWICE,  /* its directory lists it twice */
	LINK_WAITS,  /* the thread that is copying the first name will copy this entry later */
};
/* May another name of this inode be in the tree? */
bool links_may_exist(const struct worker *, const struct stat *);
enum link_state links_claim(struct worker *, const struct entry *, const struct stat *);
/* The copy that LINK_COPY asked for is complete (0) or failed. Returns the names that waited for
 * it: the caller copies each like any entry, frees it, and releases its directory. */
struct waiter {
	struct waiter *next;
	struct directory *dir; /* held, and pending */
	char name[];
};
struct waiter *links_done(struct worker *, const struct entry *, const struct stat *, int result);

#define HARD_LINK_SAME 1 /* with options.update: it is that link already */
/* hard_link.c: gives a copy the entry's name, too. Returns 0, or -errno with the call: then the
 * entry has to be copied. -EEXIST: the link may not replace what is there. -ENOTUNIQ: that is the
 * copy of another entry. -ELOOP: one of the two names is a symlink of an existing tree, which a
 * copy follows. -ESTALE: another user may have given the copy's name to another inode. */
struct copied {
	struct directory *dir;
	const char *name;
	struct identity made;
};
int hard_link_make(struct worker *, const struct entry *, const struct stat *,
		   const struct copied *, const char **call);
/* options.link: makes the entry another name of the source, which is open as fd, or is no regular
 * file. Returns 0; 1 if it is one already; -EEXIST if it is kept; or -errno, reported. */
int hard_link_source(struct worker *, const struct entry *, int fd, const struct stat *);
/* symbolic_link.c: options.symbolic_link. Returns 0; -EEXIST if the entry of DST is kept; or
 * -errno, reported. */
int symbolic_link_make(struct worker *, const struct entry *, const struct stat *);
/* attributes_only.c: options.attributes_only, for a regular file that is open. Returns the same. */
int attributes_only(struct worker *, const struct entry *, int src, const struct stat *);
/* A copy would fail as well, or hide the failure. Any other errno means that this file or file
 * system cannot have the link: EMLINK, EPERM (vfat), EXDEV (a mount point in DST). */
bool hard_link_is_failure(int err);

/* report.c: failures, warnings and finished entries. All are serialised. */
/* What error.path is until report.c replaces it by the entry's whole path. */
extern const char entry_src[], entry_dst[];
void report_failure(struct worker *, const struct entry *, const struct fcopy_error *);
/* The same, for a failed call and for another reason. Both return -err. */
int report_call(struct worker *, const struct entry *, const char *call, const char *path, int err);
int report_refusal(struct worker *, const struct entry *, const char *path, int err,
		   const char *reason);
void report_warning(struct worker *, const struct entry *, const struct fcopy_error *);
/* The destination is written under its final name: reports the first one and the static reason. */
void report_not_atomic(struct tree *, const char *path, const char *reason);
/* Reports the failure of an operand, whose path is in the error. */
void report_operand(struct tree *, const struct fcopy_error *);
void report_operand_warning(struct tree *, const struct fcopy_error *);
/* Ends the copy early: err is ECANCELED, ENOSPC … */
void tree_stop(struct tree *, int err);
bool tree_stopped(const struct tree *);
/* For copy.notify of each file, with the worker as user. */
void report_event(void *worker, const struct fcopy_event *);
/* Announces a large file that takes long; NULL: it is done. */
void report_large(struct worker *, const struct entry *);
/* Adds what the report of a file says; its bytes only if the copy is complete. */
void report_file(struct worker *, const struct stat *, bool complete);
/* Adds a worker's counts and steps to the report. */
void report_add(struct fcopy_tree_report *, const struct fcopy_tree_report *);
void report_add_steps(struct fcopy_tree_report *, const struct fcopy_step *, size_t n);
/* Writes the entry's path of the source, or of the destination; only the end of a long one. */
void entry_path(const struct entry *, bool src, char *path, size_t size);
/* The same below the operand, as filters know it. Returns false if its start was cut off. */
bool entry_path_below(const struct entry *, char *path, size_t size);

/* report_entry.c: for callers that want each entry, and for each SRC. */
/* Calls the caller's notify; the lock is held, or no other thread runs. */
void report_notify(const struct tree *, const struct fcopy_event *);
/* Sends what w->done says of the entry, which was counted. */
void report_entry(struct worker *, const struct entry *);
/* An entry of DST was removed, or would be; counted. */
void report_deleted(struct worker *, const struct entry *);
/* A directory is finished: counts and sends it, unless its own failure was reported. */
void report_directory(struct worker *, struct directory *);
/* Sends an entry that failed, or the directory itself if the name is empty; the lock is held. */
void report_failed_entry(struct worker *, const struct entry *, const struct fcopy_error *);
/* Sends the SRC itself: a stream, the directory that is in place now, or a failure. done NULL only
 * with an error. The lock is held, or no other thread runs. */
void report_operand_entry(struct tree *, const struct done *, const char *dst,
			  const struct fcopy_error *);
/* The engine that moved most of the bytes, or NULL. */
const char *report_engine(const struct fcopy_step *, size_t n);
/* Before and after the copy of one SRC: keeps the counts of the SRCs before it, and sends
 * FCOPY_EVENT_OPERAND. */
void report_operand_begin(struct tree *, const char *src, struct fcopy_tree_report *before);
void report_operand_end(struct tree *, size_t index, const struct fcopy_tree_report *before);

#define NO_DIRECTORY(path_of_dst)                                                                  \
	((struct fcopy_error){.err = ENOENT, .path = (path_of_dst), .reason = "no such directory"})

/* Report a failure of an operand, and return -err. */
int tree_fail(struct tree *, const char *call, const char *path, int err);
int tree_refuse(struct tree *, const char *path, int err, const char *reason, enum fcopy_advice);
/* The same for one that follows from what SRC and DST are. */
int tree_unsuitable(struct tree *, struct fcopy_error);

/* operands.c: looks all operands up: t->operand, t->operands and t->destination. Returns 0, or
 * -errno, reported. */
int operands_find(struct tree *, const char *const *src, size_t n, const char *dst);
/* Checks operands and options before anything is created. Returns 0, or -errno, reported. */
int operands_check(struct tree *);

/* flush.c: must the copy below this directory be flushed entry by entry to be durable? */
bool flush_needs_each(const struct tree *, int dst);
/* Flushes a complete directory below the operand's if so, and a file system that is mounted there.
 * Returns 0 or -errno with the call. */
int flush_directory(struct tree *, struct directory *, const char **call);
/* Flushes the rest when everything below the operand's directory is complete. Returns 0 or -errno
 * with the call. */
int flush_tree(const struct tree *, int fd, const char **call);
/* Writes back what is cached of a file system, as far as syncfs(2) does. Returns 0 or -errno. */
int flush_page_cache(int fd);
/* Flushes the links and special files that single operands made in this directory, a descriptor.
 * Returns 0 or -errno with the call. */
int flush_singles(struct tree *, int directory, const char **call);

/* root.c: copies the directory that is open as from->fd, with its stat, to `to`. Returns 0, or
 * -errno with the failure reported. */
int root_copy(struct tree *, const struct operand *from, const struct operand *to);

/* shard_entry.c: does this shard copy it, or its range? Returns 0: yes; -EALREADY: no, the last
 * walk also checks its copy; or -errno, reported. Adds *sum to tree->sum. */
int shard_claim(struct worker *, const struct entry *, uint64_t *sum);
/* Is the file shared by ranges? Copies this shard's range; takes fd. Returns 0 or -errno. */
bool shard_is_large(const struct worker *, const struct stat *);
int shard_copy_range(struct worker *, const struct entry *, int fd, const struct stat *);

#endif
