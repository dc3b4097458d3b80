/* SPDX-License-Identifier: MIT
 *
 * How a file comes into being at DST: as a temporary file or a part that replaces DST when it is
 * complete, or in place.
 */
#ifndef ENDPOINTS_REPLACE_H
#define ENDPOINTS_REPLACE_H

#include "endpoint.h"
#include "part/part.h"
#include "slot.h"

/* What a file as DST adds to its endpoint: its place, and the slot in which it comes into being. */

/* Stored in endpoint.state; file_state() is its initial value. `partial` is set exactly while a
 * slot of HOW_PART is MADE; only then keep_part means something. `mode` counts for HOW_RENAME and
 * HOW_PART of a place that does not exist, created_mode for HOW_RENAME. `directory` is open with
 * options.fsync, from before the first change until the file is named or dropped; never of
 * HOW_WRITE. */
struct file {
	struct place place; /* `exists`: the copy keeps the attributes of what is there */
	struct slot slot;
	unsigned flags; /* DESTINATION_* of the caller, and DIRECTORY_FITS once it is seen */
	bool local;     /* the kernel itself stores the file: listxattr(2) lists all */
	bool keep_part; /* abort keeps the part, to be resumed */
	struct partial *partial; /* the open part, or NULL */
	mode_t mode;             /* that the file gets at the commit: until then it is 0600 ... */
	mode_t created_mode;     /* ... or has this one, which chmod cannot change later */
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

static inline bool file_is_shard(const struct endpoint *e)
{
	return e->options->shard.count > 0;
}

static inline bool file_has(const struct endpoint *e, unsigned flag)
{
	return file_of(e)->flags & flag;
}

/* Temporary files: HOW_LINK and HOW_RENAME. */

/* Do new files in this directory need a temporary name, because O_TMPFILE is unsupported? */
bool temporary_is_named(int dir);
mode_t temporary_umask(void); /* of this process; 077 if it is unknown */
/* The mode that the kernel gives a file that is created in `dir` with `mode`. The storage, or NULL,
 * remembers the umask. */
mode_t temporary_mode(int dir, mode_t mode, struct storage *);
/* A slot_maker: creates a file. mode: points to its mode_t. Returns a descriptor or -errno. */
int temporary_make(int dir, const char *name, void *mode);
/* temporary_create creates an unnamed temporary file with `mode`. Returns RESULT_UNFIT without
 * O_TMPFILE. temporary_create_named creates a file with a temporary name and mode 0600, which gets
 * file_of(e)->mode later; or, where chmod has no effect, with `mode`. Both return 0, or -errno with
 * the call. */
int temporary_create(struct endpoint *e, mode_t mode, struct failure *);
int temporary_create_named(struct endpoint *e, mode_t mode, struct failure *);
/* Closes the file, and removes it if it has a temporary name. A part has partial_drop. */
void temporary_drop(struct endpoint *e);
/* Creates a probe file with mode 0600 in *probe, whose fd is -1: its `place` has the name, or the
 * descriptor as `target`, and the stat, which shows the owner and mode of a new file.
 * temporary_drop removes it, also after a failure. */
int temporary_open_probe(int dir, struct endpoint *probe, struct failure *);

/* Can an existing file be replaced? */

/* Refuses an existing file that cannot be replaced. replace_open calls it, unless options.shard is
 * set: then the caller opens the part, too. */
int replace_check(struct endpoint *e, struct fcopy_error *);

/* Shards cannot write in place: removes that advice. Returns r. */
int replace_advise(const struct endpoint *, int r, struct fcopy_error *);
/* A named temporary file gets its owner last. Checks now, with a probe, that this will work. e->fd
 * is open or -1. Returns 0, or -errno with the failure recorded. */
int replace_check_owner(const struct endpoint *e, struct fcopy_error *);

/* Opens the file of e's slot. Returns 0, RESULT_UNFIT, or -errno with the failure recorded. */
int replace_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *);
/* Gives a named temporary file owner and mode, now that it is complete. Earlier, other users could
 * have opened it. Returns RESULT_CHANGED, or -errno with the failure recorded. */
int replace_finish(struct endpoint *e, struct fcopy_error *);
/* Gives the file its name: the commit of struct endpoint_ops. */
int replace_commit(struct endpoint *e, struct fcopy_error *);
/* The permissions that a new copy of this source gets, before the umask. */
mode_t replace_new_mode(const struct endpoint *src);

/* HOW_WRITE: an existing inode that is written into, a file or a device. */

/* FCOPY_ADVICE_IN_PLACE_AUTO if that could succeed. */
enum fcopy_advice in_place_advice(const struct endpoint *e);
/* Opens the file or device of e's place. Returns 0, or -errno with the failure recorded. */
int in_place_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *);
/* Would in_place_open() refuse the device? Writes nothing. Returns 0 or -errno. */
int in_place_rehearse(struct endpoint *e, const struct stat *src, struct fcopy_error *);
/* The operations of struct endpoint_ops. */
void in_place_release_blocks(const struct endpoint *e, off_t allocated);
bool in_place_start_over(struct endpoint *e, const struct fcopy_error *);

/* The size of a block device, which stat does not report. Returns 0 or -errno. */
int device_size(int fd, off_t *size);

/* DST.fcopy-part/ of a file: with --resume, and of shards. */

/* Opens or creates DST.fcopy-part/, and the file in it; waits up to a second for the lock. Returns
 * 0, or -errno with the failure recorded. */
int partial_open(struct endpoint *e, const struct endpoint *src, mode_t mode, struct fcopy_error *);
/* The operations of struct endpoint_ops. partial_begin returns -1 if e has no part. */
off_t partial_begin(struct endpoint *e, off_t size);
int partial_note(struct endpoint *e, off_t from, off_t to);
bool partial_keep(struct endpoint *e, off_t size, const struct fcopy_error *);
bool partial_is_named(const struct endpoint *e);
/* Closes the file and the part, which stays if file_of(e)->keep_part and it has not been committed.
 */
void partial_drop(struct endpoint *e);

/* part_close, with warnings about what it could not write or remove. */
void partial_close(struct part *, bool remove, const struct fcopy_options *);
/* Removes name.fcopy-part in this directory, if it is the unfinished copy of this file: src is its
 * descriptor, or -1. That of another source belongs to another command. */
void partial_remove(int dir, const char *name, int src, const struct stat *);
/* A part that shards write to together. Each returns 0, or -errno with the failure recorded.
 * destination_check_part refuses a part that is the source. destination_share makes the open part's
 * data the file that *e will commit; destination_unshare closes it, and reports what close(2) does.
 * destination_new_mode: that the copy gets, unless DST exists. */
int destination_check_part(const struct endpoint *e, const struct part *,
			   const struct endpoint *src, struct fcopy_error *);
int destination_share(struct endpoint *e, struct part *, struct fcopy_error *);
int destination_unshare(struct endpoint *e, struct fcopy_error *);
mode_t destination_new_mode(const struct endpoint *e);

#endif
