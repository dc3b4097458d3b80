/* SPDX-License-Identifier: MIT
 *
 * Which options exclude each other, or require one: one table for the library and the program. What
 * they demand of SRC, DST and the mode is in rules.c.
 */
#ifndef COPY_CONFLICTS_H
#define COPY_CONFLICTS_H

#include "fcopy.h"

/* An option that is given, or a value of one, or what is copied. */
enum given {
	GIVEN_NOTHING,
	/* struct fcopy_options */
	GIVEN_COUNT_BYTES,
	GIVEN_SIZE,
	GIVEN_BENCHMARK,
	GIVEN_FORCE,
	GIVEN_FSYNC,
	GIVEN_INPLACE,
	GIVEN_INPLACE_ALWAYS,
	GIVEN_JOB,
	GIVEN_NO_CACHE,
	GIVEN_NO_CLOBBER,
	GIVEN_NO_DIRECTORY,
	GIVEN_PREALLOCATE,
	GIVEN_PREALLOCATE_ALWAYS,
	GIVEN_PRESERVE,
	GIVEN_REFLINK,
	GIVEN_REFLINK_ALWAYS,
	GIVEN_RESUME,
	GIVEN_SHARD,
	GIVEN_SHARING_MODE, /* one that may share blocks of SRC */
	GIVEN_CLONING_MODE,
	GIVEN_SPARSE,
	GIVEN_SPARSE_ALWAYS,
	GIVEN_THREADS,
	GIVEN_TIMEOUT,
	GIVEN_VERIFY,
	/* struct fcopy_tree_options */
	GIVEN_ATTRIBUTES_ONLY,
	GIVEN_BACKUP,
	GIVEN_CHECKSUM,
	GIVEN_DELETE,
	GIVEN_DRY_RUN,
	GIVEN_EXCLUDE,
	GIVEN_FILES_FROM,
	GIVEN_KEEP_DIRECTORY_SYMLINK,
	GIVEN_KEEP_GOING,
	GIVEN_LINK,
	GIVEN_LINK_DEST,
	GIVEN_MAX_DELETE,
	GIVEN_MODIFY_WINDOW,
	GIVEN_ONE_FILE_SYSTEM,
	GIVEN_PARENTS,
	GIVEN_RECURSIVE,
	GIVEN_REMOVE_DESTINATION,
	GIVEN_SYMBOLIC_LINK,
	GIVEN_TARGET,
	GIVEN_UPDATE,
	GIVEN_UPDATE_BY_TIME, /* older or changed */
	GIVEN_UPDATE_CHANGED,
	GIVEN_UPDATE_NONE,
	/* What is copied, and how often. */
	GIVEN_TREE, /* by fcopy_tree() */
	GIVEN_SEVERAL,
	GIVEN_SERVES, /* by fcopy_serve() */
	GIVEN_TO_HTTP,
	GIVEN_TO_SOCKET,
	GIVEN_FROM_SOCKET,
	/* The program's own. */
	GIVEN_COPY_CONTENTS,
	GIVEN_JSON_LINES,
	GIVEN_KEEP_LISTENING,
	GIVEN_LOG_FILE,
	GIVEN_MAX_CLIENTS,
	GIVEN_MIRROR,
	GIVEN_NULL,
	GIVEN_PROGRESS,
	GIVEN_QUIET,
	GIVEN_RUNS,
	GIVEN_UPDATE_OPTION, /* also --update=all */
	GIVENS
};

struct given_set {
	bool has[GIVENS];
};

/* Adds what the options say; tree: NULL, or the options of fcopy_tree(). */
void given_add(struct given_set *, const struct fcopy_options *,
	       const struct fcopy_tree_options *tree);

/* Returns the name of the first option that cannot be combined with the others, and stores why in
 * *reason; NULL: there is none. */
const char *conflict_find(const struct given_set *, char reason[FCOPY_DETAIL_MAX]);
/* The name of the first option that has to be left out before `added` can be given; NULL: none. */
const char *conflict_with(const struct given_set *, enum given added);

#endif
