/* SPDX-License-Identifier: MIT
 *
 * Does what mover.h chooses: runs one engine after the other over a range, and records what each
 * did.
 */
#ifndef COPY_MOVE_H
#define COPY_MOVE_H

#include "copy.h"

/* Moves the bytes of t, whose offset is the finished prefix afterwards. rest: up to the end of the
 * source. Returns 0: all are moved, or the source ended; -errno with the failure recorded; or, with
 * a mode that the user selected, ENGINE_NEXT. */
int move_range(struct copy *, struct transfer *t, bool rest);
/* Runs one engine over t. Returns what the engine returns; a failure is recorded in the report, a
 * refusal in its step. */
int move_by(struct copy *, const struct engine *, struct transfer *t);
/* Turns the refusal of the engine that t holds into the copy's failure. Returns -errno. */
int move_refused(struct copy *, const struct engine *, const struct transfer *t);
/* Where the size of a regular source is looked up again, unless the source ends before. */
off_t move_look_again_at(const struct copy *);

/* The buffer stays for the next piece, extent or file: to map and touch one costs more than to copy
 * a small file. Makes it at least this large. */
bool move_enlarge(struct copy *, size_t size);
void move_free(struct copy *); /* frees it, and what engines keep */

#endif
