/* SPDX-License-Identifier: MIT
 *
 * An endpoint is what SRC or DST names: it opens, and at the end it commits or aborts. Commit makes
 * the destination real, abort leaves nothing of it; either one closes.
 */
#ifndef ENDPOINTS_ENDPOINT_H
#define ENDPOINTS_ENDPOINT_H

#include "fcopy.h"

#include <sys/stat.h>

struct endpoint;

struct endpoint_ops {
	/* 0, or -errno with the failure booked, and then abort is still to be called. */
	int (*commit)(struct endpoint *, const struct fcopy_options *, struct fcopy_error *);
	void (*abort)(struct endpoint *);
};

/* A name in a directory that is held open: later renames of its parents change nothing. */
struct place {
	int dir;                 /* AT_FDCWD, or a descriptor that place_close closes */
	int target;              /* O_PATH descriptor of what a symlink named, or -1 */
	char name[NAME_MAX + 1]; /* the last component: no slash, and no symlink at that time */
	bool exists;
	struct stat st; /* if it exists */
};

#define TEMPORARY_SIZE sizeof(".fcopy-0123456789abcdef")

struct endpoint {
	const struct endpoint_ops *ops;
	const char *path; /* for messages */
	int fd;           /* -1: closed */
	bool positional;  /* explicit offsets may be used, and nobody else moves the position */
	bool fresh;       /* an empty file that this run created and that replaces none */
	bool in_place;    /* an existing file: what is not written keeps its old bytes */
	struct stat st;   /* as it was when opened; of a new file only the type */

	/* of the replaced file only */
	struct place place;
	int (*link)(const struct endpoint *, const char *name); /* NULL: temporary has a name */
	char temporary[TEMPORARY_SIZE];                         /* in place.dir; empty: none */
	mode_t mode; /* for the named temporary, which is 0600 until the commit */
};

/* Each opener fills *e and returns 0, or books the failure and returns -errno, with nothing open.
 */

/* Opens SRC for reading. */
int source_open(struct endpoint *e, const char *path, struct fcopy_error *);

/* Opens DST as what it is: a file to replace, an existing inode to write into, a device or a
 * stream; resolved receives its name, DST or DST/basename(SRC). Refuses whatever can be known to
 * fail, and SRC itself, before anything is touched. */
int destination_open(struct endpoint *e, const char *path, const struct endpoint *src,
		     const struct fcopy_options *, char resolved[PATH_MAX], struct fcopy_error *);

/* The parts of destination_open. */
int replace_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		 struct fcopy_error *);
int in_place_open(struct endpoint *e, struct fcopy_error *);

/* The descriptor that a path such as -, /dev/stdin or /dev/fd/3 names (for - that is `dash`), or
 * -1: they are used at their own position and not opened anew. */
int stream_number(const char *path, int dash);
int stream_open(struct endpoint *e, const char *path, int number, struct fcopy_error *);

/* Finds the place that DST names: enters a directory, follows a symlink. src_path gives the name
 * inside a directory; NULL: SRC has none. */
int place_find(struct place *, const char *path, const char *src_path, char resolved[PATH_MAX],
	       struct fcopy_error *);
void place_close(struct place *);

/* Gives the file fd what the old one at `place` has: owner, group, ACL, security label, mode
 * without setuid and setgid. */
int metadata_keep(int fd, const struct place *, const char *path, bool force, struct fcopy_error *);

#endif
