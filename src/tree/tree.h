/* SPDX-License-Identifier: MIT
 *
 * Trees: directories are read, and their entries copied, by one pool of threads.
 *
 *   fcopy_tree -> root (temporary name), commit -> walk (reads directories) -> pool (threads)
 *                                                    |
 *                                                    v
 *               entry (one name) -> links, hard_link, directory, special, resume, copy
 *
 * No file calls one that calls it: an entry that is a directory becomes an item of the pool, which
 * calls walk.c by a pointer.
 *
 * The pool is a stack of items: "continue to read this directory" and "copy these names of this
 * directory". The thread that reads a directory fills one buffer of names, pushes the rest of the
 * directory, then the subdirectories, then the files on top of them. So files come first, then one
 * subdirectory after the other, and few directories are open at a time: about depth × threads.
 * Memory is bounded by one buffer of names for each of them.
 * A small directory belongs to the thread that entered it, unless another one is idle: two threads
 * that create files in one directory wait for its lock.
 * Besides the stack there are large files, whose ranges idle threads help to copy (pool.c).
 */
#ifndef TREE_TREE_H
#define TREE_TREE_H

#include "copy/decide.h"
#include "copy/move.h"
#include "copy/outcome.h"
#include "endpoints/attributes.h"
#include "endpoints/endpoint.h"
#include "endpoints/operand.h"
#include "endpoints/storage.h"
#include "io/hash.h"
#include "part/private.h"
#include "pool.h"
#include "source/reader.h"

#include <pthread.h>

struct tree;
struct waiter;
struct worker;

/* Which inode it is; dev 0: unknown. */
struct inode {
	dev_t dev;
	ino_t ino;
};

static inline struct inode inode_of(const struct stat *st)
{
	return (struct inode){st->st_dev, st->st_ino};
}

static inline bool inode_is(struct inode i, const struct stat *st)
{
	return i.dev == st->st_dev && i.ino == st->st_ino;
}

/* The answer to a question about a directory, which is asked when it is needed. */
enum answer { ANSWER_UNKNOWN, ANSWER_NO, ANSWER_YES };

static inline enum answer answer_of(bool yes)
{
	return yes ? ANSWER_YES : ANSWER_NO;
}

/* What the copy of a directory was when it was entered. */
enum directory_state {
	DIRECTORY_OLD,    /* it existed before the copy */
	DIRECTORY_NEW,    /* created by this copy */
	DIRECTORY_RESUMED /* created by an earlier run; may hold what the source lacks now */
};

/* How far the names of the source are read. */
enum directory_names {
	NAMES_LEFT, /* some may follow */
	NAMES_READ, /* all are known */
	NAMES_LOST, /* a failure, reported: some are unknown */
	NAMES_AWAY  /* a mount point that is not entered */
};

/* What is asked of dst once, when it is needed; atomic. */
struct directory_answers {
	enum answer shared; /* can another user rename what is in it? aside.c */
	enum answer moves;  /* can a directory be moved in it? aside.c */
	enum answer acl;    /* does it give an ACL to what is made in it? */
	enum answer fits;   /* was a file replaced in it, which allows that for each? never NO */
};

/* Whether a directory is open. opened.c, whose lock protects this, shows the states. */
struct opened_directory {
	struct directory *before, *after; /* in the list of open directories that are not in use */
	unsigned users;
	struct inode link;  /* which directory `link` was when it was closed; dev 0: none */
	struct identity id; /* of dst, when it was closed in a merge */
};

/* What namesakes.c has read of a directory. */
struct directory_rivals {
	struct name_list *there; /* what dst listed once; NULL: not needed yet; atomic */
	struct name_list
	    sought;      /* what src listed when another name of a copy was sought last ... */
	size_t searched; /* ... and how many names were looked at for that; under claims.searches */
};

/* A directory that is being copied. Its descriptors are open from opened_use() to opened_unuse();
 * those of the operand until it ends. */
struct directory {
	struct directory *parent; /* NULL: the operand itself */
	int src, dst;             /* dst -1: a dry run or a list, and DST lacks it */
	int link;                 /* of options.link_dest, or -1 */
	struct stat st;           /* of the source */
	struct stat was;          /* of dst, if it existed; st_nlink 0: it did not */
	struct inode dst_inode;   /* dev 0: unknown */
	enum directory_state state;
	enum directory_names names;
	bool failed; /* a failure of the directory itself was reported; atomic */
	bool grown;  /* OLD: more was done to its names than files replaced; atomic */
	/* May its owner, this user, look up and change the names in dst? DUE: not before
	 * admit_changes();
	 * GIVEN: until admit_end(). Atomic. */
	enum { ADMIT_NONE, ADMIT_DUE, ADMIT_GIVEN } admit;
	struct opened_directory opened;
	struct directory_answers known;
	struct directory_rivals rivals;
	struct listed *list; /* of a walk of a list: what it has of this directory, or NULL; and */
	struct listed *rest; /* ... the next name in it */
	unsigned present;    /* entries with a copy in dst (--resume); atomic */
	unsigned pending;    /* items and subdirectories that are not finished; atomic */
	unsigned references; /* children and hard links that need the names below; atomic */
	const char *src_path, *dst_path; /* of an operand: for messages */
	char name[];                     /* of a subdirectory: in its parent */
};

/* What getdents64(2) returned; freed with the last item that uses it. */
struct names {
	unsigned references; /* atomic */
	unsigned size;       /* bytes in data */
	_Alignas(8) char data[];
};

/* What a list has of one name. The walk of a list meets these in place of what the directories of
 * SRC have: other processes copy the rest. */
struct listed {
	const char *name;
	struct listed *next, *below; /* beside it; the first one in it, if it is a directory */
	struct stat st; /* what it must be; a directory whose st_ino is 0: of any attributes */
	uint64_t names; /* of a directory: the sum of hash_name() of what its copy must have */
	bool ended;     /* it is complete, and was reported */
	bool part;      /* only a part of the file is copied: the bytes must be the same */
	bool again;     /* it has perhaps failed: chmod(2) may have changed it since */
};

/* One name in a directory. */
struct entry {
	struct directory *dir;
	const char *name;      /* in dir->src */
	const char *as;        /* in dir->dst */
	unsigned char type;    /* d_type: only a hint */
	bool follow;           /* a symlink is copied as what it leads to */
	struct listed *listed; /* of a walk of a list; otherwise NULL */
};

/* The directory of its operand. */
static inline struct directory *entry_top(const struct entry *e)
{
	struct directory *d = e->dir;
	while (d->parent)
		d = d->parent;
	return d;
}

/* An entry for messages; "" is the directory itself. */
#define ENTRY(in, of)                                                                              \
	((const struct entry){.dir = (struct directory *)(in), .name = (of), .as = (of)})

/* Of spelling.c: hashes of a path without case, and of its source. path 0: of no interest. */
struct spelling {
	uint64_t path, source;
};

/* The entry at work: how far its copy is known. entry_copy() sets `entry` and `outcome`; the others
 * are those of this entry from the function on that finds them, which is called in this order. */
struct entry_work {
	const struct entry *entry; /* NULL: none */
	struct outcome outcome;
	struct place place;          /* its name in DST, once it was looked up ... */
	struct fcopy_error unusable; /* ... why no file can be written to that ... */
	struct facts facts;          /* ... and what follows from that and from SRC: */
	struct decision decision;    /* what is to be done with it */
	struct spelling spelling;    /* ... if that is not to leave it alone */
	struct displaced *displaced; /* ... and the backup of what it replaces */
	bool tracks;            /* another user may exchange its copy before a link to it is made */
	struct identity made;   /* ... so this is the copy; known: if it is tracked, or was left */
	struct timespec opened; /* with a record: when the source of the file was */
	struct waiter *waits;   /* other names of its inode, which are copied next */
};

/* What the copies of files need, one after the other. The buffer of `copy` stays from file to file.
 */
struct file_work {
	struct copy copy;
	struct fcopy_report report;
	struct helpers helpers; /* with a large file */
	struct helped helped;
	struct rivals rivals; /* in a merge */
};

/* What file systems have answered, of the last one that was asked. */
struct device_answer {
	dev_t dev;
	enum answer is; /* ANSWER_UNKNOWN: none was asked */
};

/* One thread. No other one uses it, except file.helped, which the lock of the pool guards. */
struct worker {
	struct tree *tree;
	unsigned number;              /* 0: the thread that called threads_run */
	struct fcopy_options options; /* of each file */
	struct entry_work work;
	struct file_work file;
	struct fcopy_tree_report sum; /* counts and steps only */
	struct {
		char *data;
		size_t size;
		double began; /* with --resume: io_now() at the first of them */
	} lines;              /* of resume.c: what the journal is to get */
	void *list;           /* of a shared copy: what it lists */
	struct {
		struct private_directory in;
		const struct directory *of; /* where it is; NULL: there is none */
	} aside;                            /* of aside.c */
	struct device_answer clones;        /* NO: FICLONE was refused for files of this device */
	struct device_answer local;         /* has the source SYSTEM_LOCAL? */
	unsigned left;                      /* names that it could share with other threads */
	struct item own;                    /* of pool.c: its next one; dir NULL: none */
	struct worker_time time;
};

/* Which directories of the operand at work are open: opened.c. `count` exceeds what it may be only
 * while all of them are in use, or have names left to be read. */
struct opened {
	pthread_mutex_t lock;
	struct directory *first, *last; /* open but not in use; first: for the longest time */
	unsigned long count;            /* of open ones below the operand's */
	unsigned long descriptors;      /* that were left when the operand was opened */
	unsigned threads;               /* how many have enough of them */
};

/* A copy that several processes make: what the room above adds to this one. */
struct shared_copy {
	/* Copies the directory that is open as from->fd. Returns 0 also if other processes have not
	 * finished; or -errno, reported. */
	int (*copy_root)(struct tree *, const struct operand *from, const struct operand *to);
	int (*copy_file)(struct copy *); /* of copy_operands() */
	/* With ground.lists: takes an entry that the walk has found; at the end of each worker. */
	int (*list)(struct worker *, const struct entry *, const struct stat *);
	void (*leave)(struct worker *);
};

/* Where the names of a walk come from, if not from the directories of SRC. */
struct batches {
	/* Returns the first of the next names in the operand's directory, or NULL at the end. Is
	 * called when a thread finds nothing else to do. */
	struct listed *(*next)(struct worker *);
	/* Copies an entry that is listed, by entry_copy() or otherwise. */
	void (*copy)(struct worker *, const struct entry *);
	/* Of entry_copy(): takes a regular file that is open, closes it and sets the outcome.
	 * false: it is copied as any other file. */
	bool (*take)(struct worker *, const struct entry *, int fd, const struct stat *);
};

/* What the marker of DST says of the files that are there: mirror.c. */
enum mirror_marker {
	MARKER_NONE,    /* there is none */
	MARKER_MADE,    /* this run has made it: what was there is on the storage */
	MARKER_LEFT,    /* an earlier run has, which may not have flushed what it wrote */
	MARKER_DOUBTED, /* the same, but power may have been cut since */
	MARKER_UNKNOWN  /* it cannot be read: as MARKER_DOUBTED, of all files, and it stays */
};

/* A merge that leaves equal entries alone, and perhaps removes others. The marker is open, and has
 * this run's shared lock, which shows that a run needs it, from MARKER_MADE to MARKER_DOUBTED.
 * `since` is set from MARKER_DOUBTED on. */
struct mirror {
	enum mirror_marker marker;
	int fd;               /* of the marker, or -1 */
	time_t since;         /* files that were written from then on are compared by their bytes */
	bool marker_stays;    /* something below DST could not be flushed; atomic */
	struct extra *extras; /* to be removed */
	uint64_t removed;     /* because their types differ, if there is a limit; atomic */
};

static inline bool mirror_doubts(const struct mirror *m)
{
	return m->marker >= MARKER_DOUBTED;
}

/* Can a power cut have lost blocks of this existing file? */
static inline bool mirror_doubts_file(const struct mirror *m, const struct stat *st)
{
	return mirror_doubts(m) && st->st_ctim.tv_sec >= m->since;
}

/* What a failure, or a change of SRC, says of all that was copied, not only of one entry. */
enum doubt {
	DOUBT_NONE,
	DOUBT_COMMIT, /* it may hold old copies of what SRC lacks, or other things than were listed,
		       * or SRC was replaced: a new tree gets no name, not even with --keep-going */
	DOUBT_PART    /* files that look complete may not be: a part is not continued, either */
};

/* Which inodes the walk of an operand must know again. */
struct root_inodes {
	struct inode src;  /* the source */
	struct inode dst;  /* the directory that is created or merged into */
	bool within;       /* dst is inside the source, which excludes it ... */
	struct inode part; /* ... and so is the part in which it is built, if it has one */
};

/* One operand: what its copy becomes, and what is known of both. report_operand_begin() clears it.
 */
struct root {
	const char *source;    /* this SRC; NULL: none is at work */
	struct ground ground;  /* set once, before the first entry */
	struct record *record; /* ... too; NULL: nothing is kept to be resumed */
	uint64_t failures;     /* of entries; atomic */
	enum doubt doubt;      /* atomic */
	bool last;             /* no operand follows */
	bool foreseen;         /* a dry run of --parents: the directory of the copy is missing */
	bool committed;
	bool existed;   /* DST was there */
	bool in_place;  /* DST was written in place, and may be incomplete */
	bool shared_by; /* ground.named: another process has made entries in it; atomic */
	bool landed;    /* DST is complete, but a flush after that failed */
	enum { COMPARES_NOTHING, COMPARES_BELOW, COMPARES_ALL } compares; /* is DST the copy? */
	struct root_inodes inodes;
};

/* A set of inodes: inodes.c. */

/* Takes 24 bytes, of which half are in use, for each 64 inodes whose numbers are close together, as
 * those of new files on a local disk are; nothing while it is empty. All functions but
 * inodes_free() are thread-safe. */
struct inodes {
	pthread_mutex_t lock;
	struct inodes_of {
		dev_t dev;
		struct table rows;
	} * of; /* by device number */
	size_t devices;
};

#define INODES_EMPTY                                                                               \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER                                                  \
	}

void inodes_free(struct inodes *);
/* Returns 1 if the inode was not in the set, 0 if it was, or -ENOMEM. */
int inodes_add(struct inodes *, const struct stat *);
void inodes_remove(struct inodes *, const struct stat *);
bool inodes_has(struct inodes *, const struct stat *);

/* Inodes of DST; KEPT, LEFT and REPLACED also have keys of names: namesakes_key(). */
enum set {
	SET_MADE,     /* of a merge: files that this run makes or replaces */
	SET_ENTERED,  /* the same for directories */
	SET_REACHED,  /* what an entry reaches by a symlink, or that may have other names in DST */
	SET_FOLLOWED, /* symlinks in DST by which entries reach their copies: they stay */
	SET_KEPT,     /* files that an entry of their name leaves as they are */
	SET_LEFT,     /* files that an entry leaves as they are, which reaches them by a symlink */
	SET_TAKEN,    /* files with several names, of which an entry takes one */
	SET_REPLACED, /* what entries take: an only name, or a symlink's target; else the name */
	SET_LINKED,   /* files of an earlier copy that this run gave a new name */
	SET_BACKUPS,  /* entries that got another name */
	SETS
};

/* Of rivals.c and displace.c. An inode stays in its set until the tree ends, unless its entry is
 * removed, or gets its name back: the numbers of directories are used again. */
struct claims {
	pthread_mutex_t lock;     /* rivals_lock() */
	pthread_mutex_t searches; /* of namesakes.c, one at a time, and of `spelled`; taken last */
	struct table spelled;     /* of spelling.c */
	struct inodes set[SETS];
};

#define CLAIMS_EMPTY                                                                               \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .searches = PTHREAD_MUTEX_INITIALIZER,          \
		.set = { [0 ... SETS - 1] = INODES_EMPTY }                                         \
	}

void claims_free(struct claims *);

/* What was typed: looked up once, before the first copy. */
struct operands {
	struct operand *src;
	size_t count; /* of SRC */
	struct operand dst;
	struct inodes inodes; /* of each SRC that exists */
	/* Was the directory in which all copies are made searched for what killed copies left?
	 * UNNAMED: files need no search, because they have no name until they are complete. */
	enum { PARENT_UNKNOWN, PARENT_UNNAMED, PARENT_SEARCHED } parent;
};

/* The operands that are no directories are entries of one directory, which exists only for them. It
 * is kept from one to the next, unless --parents leads elsewhere. */
struct singles {
	struct directory *dir;             /* NULL: there was none; hard links keep it open */
	char src[PATH_MAX], dst[PATH_MAX]; /* its paths, for the operand at work */
	bool flush_due;                    /* a link or a special file was made in it */
};

/* What is known of DST and of this process: asked once, and then only extended. */
struct known {
	struct storage *storage; /* what the file systems of DST can do */
	struct equal equal;      /* when a file of DST is equal to that of SRC */
	struct mounts *mounts;   /* of inside.c */
	mode_t umask;            /* set with the operand's directory */
	bool exposed;            /* report_not_private() has reported it; under tree.lock */
};

/* The share of a copy that several processes make. All zero: one process makes the copy. */
struct share {
	const struct shared_copy *by;
	void *state;                   /* of the room above, for the walk at work */
	const struct batches *batches; /* of the walk of a list; otherwise NULL */
	bool differs;                  /* an entry is not what was listed; atomic */
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the members are grouped by subject */
struct tree {
	const struct fcopy_tree_options *options;
	struct filter *filter; /* NULL: every entry is copied */
	struct operands *operands;
	struct fcopy_tree_report *report;
	pthread_mutex_t lock;   /* of report->error and of notify */
	int stop;               /* -errno: no entry is started any more; atomic */
	struct monitor monitor; /* of all files */
	struct root root;       /* the operand at work */
	struct singles singles;
	struct share share;
	struct known known;
	struct links *links; /* NULL: hard links become files of their own */
	struct claims claims;
	struct mirror mirror;
	struct mirror linked; /* of options.link_dest: what its marker says; no marker is open */
	struct pool pool;
	struct thread_times times;
	struct opened opened;
};

/* Several operands: an entry may be found twice. */
static inline bool tree_has_several(const struct tree *t)
{
	return t->operands->count > 1;
}

/* Has the caller cancelled the copy? */
static inline bool tree_is_cancelled(const struct tree *t)
{
	return io_cancelled(&(struct io){.cancel = t->options->copy.cancel});
}

static inline bool tree_removes(const struct tree *t)
{
	return decide_removes(&t->root.ground, t->options);
}

/* root.c: copies the directory that is open as from->fd, with its stat, to `to`. Returns 0, or
 * -errno with the failure reported. */
int root_copy(struct tree *, const struct operand *from, const struct operand *to);

/* tree.c: fcopy_tree(); shared: NULL if this process makes the whole copy. */
int tree_run(const char *const *src, size_t n, const char *dst, const struct fcopy_tree_options *,
	     struct fcopy_tree_report *, const struct shared_copy *shared);

#endif
