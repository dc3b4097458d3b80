/* SPDX-License-Identifier: MIT
 *
 * The engine contract. An engine is one kernel mechanism that moves a range of bytes between two
 * descriptors. It opens no file, closes none that the caller opened, prints nothing, never exits,
 * and calls no other engine. A new engine is one file, its declaration here, and its row in
 * engine.c.
 */
#ifndef ENGINES_ENGINE_H
#define ENGINES_ENGINE_H

#include "transfer.h"

struct engine {
	const char *name;
	/* Several threads may copy ranges of one file: the engine uses explicit offsets on both
	 * sides and changes nothing else of the descriptors. */
	bool positional;
	/* The engine writes from the source's pages. If the source is truncated during the copy,
	 * the kernel may write zeros for the bytes that are gone. */
	bool leaves_zeros;
	/* Copies [offset, end) of the transfer, whose offset is the end of the finished prefix
	 * afterwards, whatever is returned, and nothing is in flight any more:
	 *   0            the range is done, or the source ended
	 *   ENGINE_NEXT  unsupported for this pair of descriptors; another engine may continue at
	 *                offset; call, side and refusal (never 0) say why
	 *   -errno       a real failure; call and side name what failed */
	int (*copy)(struct transfer *);
	/* Returns why the running kernel or this build lacks the engine, as a static string, or
	 * NULL. The pointer is NULL if the engine is always there. */
	const char *(*probe)(void);
};

extern const struct engine engine_readwrite, engine_sendfile, engine_splice, engine_copy_file_range,
    engine_mmap, engine_direct, engine_reflink;

/* All engines; NULL ends the table. */
extern const struct engine *const engine_table[];

/* Frees what transfers with this t->kept have left there, and sets it to NULL. */
void engine_free_kept(struct kept **);

/* Returns the engine of that name, or NULL. */
const struct engine *engine_find(const char *name);

#endif
