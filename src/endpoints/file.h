/* SPDX-License-Identifier: MIT
 *
 * What a file as DST adds to its endpoint: its place, and the slot in which it comes into being.
 * Private to src/endpoints.
 */
#ifndef ENDPOINTS_FILE_H
#define ENDPOINTS_FILE_H

#include "endpoint.h"
#include "slot.h"

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

static inline bool file_has(const struct endpoint *e, unsigned flag)
{
	return file_of(e)->flags & flag;
}

#endif
