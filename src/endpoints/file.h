/* SPDX-License-Identifier: MIT
 *
 * What the kinds of files share: the place of DST, the temporary file, and the file that --resume
 * continues. Private to src/endpoints.
 */
#ifndef ENDPOINTS_FILE_H
#define ENDPOINTS_FILE_H

#include "endpoint.h"

/* What a file adds to its endpoint; file_state() is its initial value. It is stored in
 * endpoint.state. */
struct file {
	struct place place;
	int (*link)(const struct endpoint *, const char *name); /* NULL: temporary has a name */
	char temporary[NAME_MAX + 1]; /* its name in place.dir; empty: none */
	struct partial *partial;      /* --resume: temporary is in this part; NULL: in place.dir */
	bool keep_part;               /* abort keeps it, to be resumed */
	bool unfinished;              /* created under its final name: abort removes it */
	bool in_tree;                 /* opened by destination_open_in */
	bool replace_links;           /* also a file whose other names keep the old content */
	bool private;                 /* no other user can exchange the names in place.dir */
	struct storage *storage;      /* what is known about file systems; NULL: nothing */
	mode_t mode;                  /* a named temporary is 0600 until the commit */
	mode_t created_mode;          /* ... or whatever chmod cannot change later */
	int directory;                /* to be flushed at the commit, or -1 */
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

/* The parts of destination_open. replace_open leaves e's place open after a failure. */
int replace_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		 struct fcopy_error *);
int in_place_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		  struct fcopy_error *);
extern const struct endpoint_ops in_place_ops; /* both only close */
/* created.c: creates the file of e's place under its final name. Commit closes it and flushes the
 * directory, if that is open; abort removes it. reason: e->not_atomic. */
int created_open_final(struct endpoint *e, mode_t mode, const char *reason, struct fcopy_error *);
/* replace.c: the permissions that a new copy of this source gets, before the umask. */
mode_t replace_new_mode(const struct endpoint *src);

/* same.c: the same inode, or two device nodes of one disk. */
bool same_file(const struct stat *, const struct stat *);
/* Is the open file fd, whose fstat is *st, the source? Also recognises the source under another
 * inode number. Returns 1, 0, or -errno. */
int same_is_source(const struct endpoint *src, int fd, const struct stat *st);

/* in_place.c: the size of a block device, which stat does not report. Returns 0 or -errno. */
int device_size(int fd, off_t *size);

/* temporary_create creates an unnamed temporary file with `mode`. Returns 1 if the file system does
 * not support O_TMPFILE. Then temporary_create_named creates a file with a temporary name and mode
 * 0600, which gets file_of(e)->mode later; or, where chmod has no effect, with `mode`.
 * temporary_name gives the file its final name. All return 0, or -errno with the failed call in
 * *call; temporary_name also returns ENDPOINT_SKIPPED, and sets *call to NULL if another process
 * has exchanged the temporary name. */
int temporary_create(struct endpoint *e, mode_t mode, const char **call);
int temporary_create_named(struct endpoint *e, mode_t mode, const char **call);
/* Calls `make` with drawn names until one is free, which e's temporary name becomes. Returns what
 * it returned last; *call: `made`, or what failed before. */
int temporary_make_drawn(struct endpoint *e, int (*make)(const struct endpoint *, const char *name),
			 const char *made, const char **call);
/* naming.c */
int temporary_name(struct endpoint *e, bool no_clobber, const char **call);
/* Closes the file, and removes it if it has a temporary name, unless file_of(e)->keep_part. A
 * partial file has partial_drop. */
void temporary_drop(struct endpoint *e);
/* Creates a probe file with mode 0600 in *probe, whose fd is -1: its `place` has the name, or the
 * descriptor as `target`, and the stat, which shows the owner and mode of a new file.
 * temporary_drop removes it, also after a failure, which *call names. */
int temporary_open_probe(int dir, struct endpoint *probe, const char **call);

/* partial.c: opens or creates DST.fcopy-part/, and the file in it; it waits up to a second for the
 * lock. Returns 0, or -errno with the failure recorded. */
int partial_open(struct endpoint *e, const struct endpoint *src, mode_t mode,
		 const struct fcopy_options *, struct fcopy_error *);
/* The directory of e's temporary name. */
int partial_home(const struct endpoint *e);
/* The operations of struct endpoint_ops. */
off_t partial_begin(struct endpoint *e, off_t size);
void partial_note(struct endpoint *e, off_t from, off_t to);
bool partial_keep(struct endpoint *e, off_t size);
bool partial_is_named(const struct endpoint *e);
/* Closes the file and the part, which stays if file_of(e)->keep_part and it has not been committed.
 */
void partial_drop(struct endpoint *e);

/* replaceable.c: FCOPY_ADVICE_IN_PLACE_AUTO if that could succeed. */
enum fcopy_advice replace_in_place_advice(const struct endpoint *e);
/* Shards cannot write in place: removes that advice. Returns r. */
int replace_advise(const struct fcopy_options *, int r, struct fcopy_error *);
/* A named temporary file gets its owner last. Checks now, with a probe, that this will work. e->fd
 * is open or -1. Returns 0, or -errno with the failure recorded. */
int replace_check_owner(const struct endpoint *e, const struct fcopy_options *,
			struct fcopy_error *);

/* Give the open copy the owner and group, or the ACL and security label, of the old file. */
int metadata_keep_owner(const struct endpoint *e, const struct place *, bool force,
			struct fcopy_error *);
int metadata_keep_acl(const struct endpoint *e, const struct place *, bool force,
		      struct fcopy_error *);

#endif
