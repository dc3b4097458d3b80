/* SPDX-License-Identifier: MIT
 *
 * DST.fcopy-part/ of a file: with --resume, and of shards.
 */
#ifndef ENDPOINTS_PARTIAL_H
#define ENDPOINTS_PARTIAL_H

#include "endpoint.h"

/* Opens or creates DST.fcopy-part/, and the file in it; waits up to a second for the lock. Returns
 * 0, or -errno with the failure recorded. */
int partial_open(struct endpoint *e, const struct endpoint *src, mode_t mode,
		 const struct fcopy_options *, struct fcopy_error *);
/* The operations of struct endpoint_ops. partial_begin returns -1 if e has no part. */
off_t partial_begin(struct endpoint *e, off_t size);
void partial_note(struct endpoint *e, off_t from, off_t to);
bool partial_keep(struct endpoint *e, off_t size);
bool partial_is_named(const struct endpoint *e);
/* Closes the file and the part, which stays if file_of(e)->keep_part and it has not been committed.
 */
void partial_drop(struct endpoint *e);

/* part_close, with warnings about what it could not write or remove. */
void partial_close(struct part *, bool remove, const struct fcopy_options *);
/* Removes name.fcopy-part in this directory, if it is the unfinished copy of a file. */
void part_remove(int dir, const char *name);
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
