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

/* What SRC and DST are, for the rules. */

/* What SRC or DST is. A rule allows a set of these. */
enum end {
	END_PIPE = 1 << 0,     /* also a socket that is not a connection */
	END_SOCKET = 1 << 1,   /* connected, or will connect */
	END_LISTENER = 1 << 2, /* a socket that listens */
	END_DEVICE = 1 << 3,   /* character device */
	END_DISK = 1 << 4,     /* block device */
	END_OPEN = 1 << 5,     /* a regular file named by -, fd:N or /dev/fd/N: used only once */
	END_FILE = 1 << 6,     /* a regular file, or a name that does not exist */
	END_HTTP = 1 << 7,     /* a socket that listens for HTTP clients */
};

#define REGULAR (END_OPEN | END_FILE)
#define STREAM  (END_PIPE | END_SOCKET | END_LISTENER | END_HTTP)
#define ANY     ((1 << 8) - 1)

/* What SRC and DST may be, and once they are open, are: a set of enum end. */
unsigned ends_src(const struct request *);
unsigned ends_dst(const struct request *);

#endif
