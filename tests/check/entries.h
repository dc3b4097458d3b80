/* SPDX-License-Identifier: MIT
 *
 * Entries in thought, for the tests of decide(): what SRC is, what has the name in DST, and
 * options.
 */
#ifndef ENTRIES_H
#define ENTRIES_H

#include "copy/decide.h"
#include "util.h"

enum kind { FILE_, SYMLINK, FIFO, DIRECTORY };
/* What has the name in DST. NEWER and EQUAL are not older than SRC. */
enum {
	ABSENT,
	OLDER,
	NEWER,
	EQUAL,
	OTHER_SIZE,
	TWO_NAMES,
	TO_FILE,
	DANGLING,
	FIFO_,
	DIRECTORY_,
	SAME_INODE,
	TO_SRC,
	OUTPUT,
	DSTS
};

extern const char *const dst_names[DSTS];
extern const struct fcopy_output written; /* of OUTPUT */

struct facts facts_of(enum kind src, int dst);
/* Can no copy of a file be written to what has the name? One that replaces it needs no directory.
 */
bool is_unusable(const struct ground *, const struct facts *, const struct fcopy_tree_options *);

/* One bit for each option. */
enum {
	LINKS = 1,
	SYMLINKS = 2,
	ATTRIBUTES = 4,
	BACKUP = 8,
	REMOVES = 16,
	ASKS = 32,
	FORCE = 64,
	NO_CLOBBER = 128,
	DELETES = 256,
	HARD_LINKS = 512,
	ALL_OPTIONS = 1024,
};
#define UPDATES (FCOPY_UPDATE_CHANGED + 1)

struct fcopy_tree_options options_of(unsigned bits, unsigned update);
/* For options.confirm. */
bool confirm(void *user, const char *dst);

#endif
