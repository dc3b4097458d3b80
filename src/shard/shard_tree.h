/* SPDX-License-Identifier: MIT
 *
 * A new tree that several processes copy.
 *
 *   shard_tree.c -+-> finish.c: the commit, by walks -+-> entries.c: the chunks, by walks
 *                 \-> list.c: the list, by a walk -----/         |
 *                                                               v
 *                          job.c, claims.c <-- chunk.c: the list as text, and as directories
 *
 * The list of a tree: what its chunks have.
 *
 *   in PATH                                      the directory of what follows; ".": the operand's
 *   e MODE LINKS SIZE INODE MTIME CTIME NAME     an entry
 *   d … UID GID ATIME 0 0 NAME                   a directory
 *   r … UID GID ATIME FIRST LAST NAME            the bytes [FIRST, LAST) of a large file
 *   link PATH NAME                               another name of the file that is copied as PATH
 *   end LINES HASH                               the last line: the file is whole
 */
#ifndef SHARD_TREE_H
#define SHARD_TREE_H

#include "io/hash.h"
#include "job.h"
#include "tree/root.h"

#define LIST_PATH ((size_t)32 << 10)   /* the longest path below the operand, with its 0 */
#define LIST_LINE (4 * LIST_PATH + 64) /* ... escaped, with what stands around it */

/* A line, except "in". */
struct line {
	struct listed entry;  /* first: see line_of() */
	struct listed **tail; /* of a directory: where the next name in it is added */
	struct work *of;      /* of entries.c */
	char kind; /* 0: a directory that is not listed in this chunk, but leads to others */
	const char *dir;
	char *from; /* of a link: the path of its copy; otherwise NULL */
	off_t first, last;
};

static inline struct line *line_of(const struct entry *e)
{
	return (struct line *)(void *)e->listed;
}

/* chunk.c: the text of a chunk that is being written. All zero: empty. */
struct chunk_text {
	unsigned thread; /* the number of its file until it is complete */
	char *text;
	size_t used, room;
	unsigned lines;
	uint64_t bytes;      /* of the files that are listed */
	char dir[LIST_PATH]; /* of the last line */
};
/* Adds a line of this kind; path: below the operand. Returns false without memory. */
bool chunk_add(struct chunk_text *, char kind, const char *path, const struct stat *, off_t first,
	       off_t last);
/* Adds a line: path is another name of the file that is copied as `first`. Returns false without
 * memory. */
bool chunk_add_link(struct chunk_text *, const char *first, const char *path);
/* Writes it to a new file of the part, flushes that, and empties it. Returns 0, or -errno with the
 * call. */
int chunk_write(const struct job *, struct chunk_text *, const char *name, struct failure *);

/* One that was read. */
struct chunk {
	unsigned number;
	char *text;
	struct line *line;
	size_t count;
};
/* Reads share.list.K, which must exist. Returns 0, or -errno, recorded. */
int chunk_read(const struct job *, unsigned number, struct chunk *);
void chunk_free(struct chunk *);
/* What identifies an entry, or a range of it: of its path alone, and with what it is. */
uint64_t list_hash_path(const char *path, off_t first);
uint64_t list_hash_entry(const char *path, char kind, off_t first, const struct stat *);
/* Of the lines of a file. */
uint64_t list_hash_text(const char *text, size_t size);
/* Of what a line names, the path below the operand. */
void list_path(const struct line *, char path[LIST_PATH]);

/* outline.c: lines as a tree of directories, as a walk needs them. All zero: empty. */
struct outline {
	struct line root;       /* the operand's directory */
	struct table directory; /* by the hash of its path */
	struct outlined *made;  /* ... and copied lines */
	size_t lines;           /* that were added; one of a directory that is listed twice */
};
/* The directory of this path below the operand, which is added with those above it if need be; ".":
 * the operand's. It is of any attributes as long as its line is not added. NULL: no memory. */
struct line *outline_open(struct outline *, const char *path);
/* Adds a line to its directory; that of a directory is copied. Returns false without memory. */
bool outline_add(struct outline *, struct line *);
/* Adds a copy of a line. Returns false without memory. */
bool outline_copy(struct outline *, const struct line *);
void outline_free(struct outline *); /* but for the lines that were added */

struct shard_tree;

/* list.c: of shared_copy. */
int list_add(struct worker *, const struct entry *, const struct stat *);
void list_leave(struct worker *);

/* Walks the source and writes the list. fd: of its claim, which the caller holds. Returns 0; or
 * -errno, reported or recorded in the job; t->share.differs: the source is not what is listed
 * already. */
int list_make(struct shard_tree *, int fd);
/* A sum of what a walk finds; writes nothing. */
int list_sum(struct shard_tree *, uint64_t *sum);

/* root.dst is open, and `ground` set, from the moment when data is
 * opened until this pass of the job ends. While a walk copies, the lock protects the job and
 * `working`. */
struct shard_tree {
	struct building root; /* root.dst: data, or -1 */
	struct job job;
	struct fcopy_error error; /* of the job; other failures are reported where they happen */
	char reason[128];
	pthread_mutex_t lock;
	struct ground ground;  /* of the walks that copy */
	struct lister *lister; /* of the walk that lists */
	int failed;            /* why the job ends in this pass, or 0; atomic */
	double asked;  /* io_now() when it was last tried to claim the list; under the lock */
	bool orphaned; /* the process that listed was killed before the end; atomic */
	struct work *working; /* chunks of entries.c that are not finished */
	struct inodes copies; /* those that the commit has found, if it looks at each ... */
	unsigned checked;     /* ... and of how many chunks it has */
};

/* entries.c: walks the operand's directory. With batches, it walks these, and before them what the
 * list has of the directory, unless that is NULL. Returns 0 or -errno, reported or recorded. */
int shard_walk(struct shard_tree *, const struct ground *, const struct batches *,
	       struct line *root);
/* The operand's directory, open; in DST only if it is to be copied, and not listed. NULL after a
 * failure, recorded. */
struct directory *shard_top(struct shard_tree *, bool lists);
void shard_top_free(struct directory *);
/* Copies chunks until none is free. Returns 0, or -errno, recorded in the job or reported. */
int entries_copy(struct shard_tree *);
/* Looks at each copy: is it there, and of its type and size? Returns 0, or -errno, recorded in the
 * job or reported. */
int entries_check(struct shard_tree *);

/* finish.c: all chunks are complete, and the part is locked: links, attributes and the rename.
 * Returns 0, RESULT_AGAIN or -errno as above. */
int finish_tree(struct shard_tree *);

#endif
