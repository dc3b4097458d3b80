/* SPDX-License-Identifier: MIT
 *
 * An unfinished tree: what its journal notes, and how --resume continues it.
 */
#ifndef TREE_RESUME_H
#define TREE_RESUME_H

#include "part/left.h"
#include "tree.h"

/* Is the file's copy in the part complete? Otherwise an old one is removed, unless the tree has
 * stopped: then it is unknown. */
bool resume_is_complete(struct worker *, const struct entry *, int fd, const struct stat *);
/* Does the journal of an earlier run say that the bytes of this file are on the storage? */
bool resume_is_flushed(const struct tree *, const struct entry *);
/* Have the two open files the same bytes? dst: the copy, of which only the storage is believed if
 * the copy has to be on it. */
bool resume_are_same_bytes(struct worker *, int fd, int dst, off_t size);
/* Has the copy of this entry the bytes of the open file? */
bool resume_has_same_bytes(struct worker *, const struct entry *, int fd, const struct stat *);

/* The earlier run may not have flushed the copy of this entry. If no syncfs(2) follows, flushes it.
 */
bool resume_flush(const struct worker *, const struct entry *);

/* What resume.c notes in the journal of a part. All of it is set before the walk, but for what
 * lines wait in: `aside` and its size, under the tree's lock; and buffer[], to which each thread
 * adds its last one when it ends. The first seven members are the header of a journal that does not
 * exist yet. */
struct record {
	struct part *part;
	const char *name; /* of DST */
	struct journal_fact source;
	uint64_t options;
	bool numbers; /* the inode numbers of SRC identify its files: system_numbers_last() */
	int data;     /* the open tree */
	mode_t mode;
	bool set_aside;
	int aside; /* an unnamed file; -1: there is none */
	size_t aside_size;
	unsigned buffers;
	struct record_buffer {
		char *data;
		size_t size;
	} buffer[FCOPY_THREADS_MAX]; /* the last ones of threads that have ended */
};

/* resume.c: notes that an entry's copy is complete; st: the source when it was opened. */
void record_add(struct worker *, const struct entry *, const struct stat *st);
/* With --resume, before a file of this size is read: writes lines that would wait for long. */
void record_before(struct worker *, off_t size);
/* Before the worker sleeps or helps: has it lines that would wait? Writes them. */
bool record_has_rest(const struct worker *);
void record_write_rest(struct worker *);
/* The worker has ended. */
void record_leave(struct worker *);
/* The tree is kept: the journal gets all lines. */
void record_keep(struct record *);
/* The tree has ended. */
void record_end(struct record *);

/* resume.c: removes from a destination directory what the source does not have. Reports a failure
 * if two copies have one name there, as on a file system that ignores case. */
void prune_directory(struct worker *, struct directory *);
/* Of the walk of a list: DOUBT_COMMIT unless the destination directory has the names that
 * the list has. Removes unfinished files of copies that were killed. */
void prune_check_list(struct worker *, struct directory *);

#endif
