/* SPDX-License-Identifier: MIT
 *
 * What a file adds to its endpoint: the place of DST, the temporary file, and the file that
 * --resume continues. Private to src/endpoints.
 */
#ifndef ENDPOINTS_FILE_H
#define ENDPOINTS_FILE_H

#include "endpoint.h"

/* Stored in endpoint.state; file_state() is its initial value. */
struct file {
	struct place place;
	int (*link)(const struct endpoint *, const char *name); /* NULL: temporary has a name */
	bool listed;                  /* ... where listxattr(2) names all attributes */
	char temporary[NAME_MAX + 1]; /* its name in place.dir; empty: none */
	struct partial *partial;      /* --resume: temporary is in this part; NULL: in place.dir */
	bool keep_part;               /* abort keeps it, to be resumed */
	bool unfinished;              /* created under its final name: abort removes it */
	bool in_tree;                 /* one of several copies */
	bool replace_links;           /* also a file whose other names keep the old content */
	bool replace_read_only;       /* also a file of this user that is read-only */
	bool admitted;                /* rehearsed: place.dir may be written to */
	bool displaces;               /* an old entry gives the new file nothing: not in place */
	bool exact;                   /* the commit replaces only what place.st is of, or nothing */
	bool hands_out; /* ... or hands out what it replaces, as `handed` in place.dir */
	char handed[TEMPORARY_SIZE];
	bool fits;               /* place.dir is neither append-only nor sticky */
	bool private;            /* no other user can exchange the names in place.dir */
	struct storage *storage; /* what is known about file systems; NULL: nothing */
	mode_t mode;             /* a named temporary is 0600 until the commit */
	mode_t created_mode;     /* ... or whatever chmod cannot change later */
	int directory;           /* to be flushed at the commit, or -1 */
} __attribute__((may_alias));
_Static_assert(sizeof(struct file) <= ENDPOINT_STATE, "increase ENDPOINT_STATE");

#define file_of(e)                                                                                 \
	_Generic((e), const struct endpoint *                                                      \
		 : (const struct file *)(const void *)(e)->state, default                          \
		 : (struct file *)(void *)(e)->state)

static inline struct file file_state(void)
{
	return (struct file){.place = {.dir = -1, .target = -1}, .directory = -1};
}

#endif
