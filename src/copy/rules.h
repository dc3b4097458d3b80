/* SPDX-License-Identifier: MIT
 *
 * What cannot be combined: options, mode, SRC and DST.
 */
#ifndef COPY_RULES_H
#define COPY_RULES_H

#include "copy.h"

/* What is to be copied, and how. */
struct request {
	const struct operand *src, *dst;
	const struct fcopy_options *options;
	const struct fcopy_tree_options *tree; /* fcopy_tree; NULL: one file */
	size_t sources;                        /* ... and how many it copies, one by one */
	bool serves;                           /* fcopy_serve */
	const struct endpoint *from, *to;      /* SRC and DST once both are open; NULL: before */
};

/* Refuses what cannot be combined: options, mode, SRC and DST. Returns 0, or -errno with
 * the refusal recorded; its reason may be stored in `detail`, which belongs to the report. */
int rules_check(const struct request *, struct fcopy_error *, char detail[FCOPY_DETAIL_MAX]);

#endif
