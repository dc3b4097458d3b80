/* SPDX-License-Identifier: MIT
 *
 * Which options exclude each other, or require one: one table for the library and the program. What
 * they demand of SRC, DST and the mode is in rules.c.
 */
#ifndef COPY_CONFLICTS_H
#define COPY_CONFLICTS_H

#include "fcopy.h"

/* clang-format off */
/* What may be given: an option, or a value of one, or what is copied. X(GIVEN_…, the name of the
 * option, what is said of another one that it excludes, is it given?). NULL: "cannot be combined
 * with --NAME". */
#define GIVEN_BY_COPY(X) /* of struct fcopy_options *o */ \
	X(COUNT_BYTES, "count", NULL, o->count > 0) \
	X(SIZE, "size", NULL, o->expected_size > 0) \
	X(BENCHMARK, "benchmark", NULL, o->scratch) \
	X(FORCE, "force", NULL, o->force) \
	X(FSYNC, "fsync", NULL, o->fsync) \
	X(INPLACE, "inplace", NULL, \
	  o->in_place == FCOPY_WHEN_ALWAYS || o->in_place == FCOPY_WHEN_AUTO) \
	X(INPLACE_ALWAYS, "inplace", NULL, o->in_place == FCOPY_WHEN_ALWAYS) \
	X(JOB, "job", NULL, o->shard.job != NULL) \
	X(NO_CACHE, "no-cache", NULL, o->no_cache) \
	X(NO_CLOBBER, "no-clobber", NULL, o->no_clobber) \
	X(NO_DIRECTORY, "no-target-directory", NULL, o->no_directory) \
	X(PREALLOCATE, "preallocate", NULL, o->preallocate != 0) \
	X(PREALLOCATE_ALWAYS, "preallocate", NULL, o->preallocate == FCOPY_WHEN_ALWAYS) \
	X(PRESERVE, "preserve", NULL, o->preserve != 0) \
	X(REFLINK, "reflink", NULL, o->reflink != 0) \
	X(REFLINK_ALWAYS, "reflink", "cannot be combined with --reflink=always", \
	  o->reflink == FCOPY_WHEN_ALWAYS) \
	X(RESUME, "resume", NULL, o->resume) \
	X(SHARD, "shard", NULL, o->shard.count > 0 || o->shard.finish) \
	X(CLONING_MODE, "mode", "cannot be combined with mode 8", mode_uses(o->mode, "reflink")) \
	X(SHARING_MODE, "mode", "cannot be combined with a clone or copy_file_range", \
	  o->reflink == FCOPY_WHEN_ALWAYS || mode_uses(o->mode, "reflink") || mode_uses(o->mode, "copy_file_range")) \
	X(SPARSE, "sparse", NULL, o->sparse != 0) \
	X(SPARSE_ALWAYS, "sparse", "cannot be combined with --sparse=always", \
	  o->sparse == FCOPY_WHEN_ALWAYS) \
	X(THREADS, "threads", NULL, o->threads > 0) \
	X(TIMEOUT, "timeout", NULL, o->timeout_ms != 0) \
	X(VERIFY, "verify", NULL, o->verify)

#define GIVEN_BY_TREE(X) /* of struct fcopy_tree_options *t */ \
	X(ATTRIBUTES_ONLY, "attributes-only", NULL, t->attributes_only) \
	X(BACKUP, "backup", NULL, t->backup != 0) \
	X(CHECKSUM, "checksum", NULL, t->checksum) \
	X(DELETE, "delete", NULL, t->delete_extra) \
	X(DRY_RUN, "dry-run", NULL, t->dry_run) \
	X(EXCLUDE, "exclude", NULL, t->pattern_count > 0) \
	X(FILES_FROM, "files-from", NULL, t->files != NULL) \
	X(INTERACTIVE, "interactive", NULL, t->confirm != NULL) \
	X(KEEP_DIRECTORY_SYMLINK, "keep-directory-symlink", NULL, t->keep_directory_symlink) \
	X(KEEP_GOING, "keep-going", NULL, t->keep_going) \
	X(LINK, "link", NULL, t->link) \
	X(LINK_DEST, "link-dest", NULL, t->link_dest != NULL) \
	X(MAX_DELETE, "max-delete", NULL, t->max_delete != NULL) \
	X(MODIFY_WINDOW, "modify-window", NULL, t->modify_window_ns != 0) \
	X(NO_DEREFERENCE, "no-dereference", NULL, t->follow == FCOPY_FOLLOW_NEVER) \
	X(ONE_FILE_SYSTEM, "one-file-system", NULL, t->one_file_system) \
	X(PARENTS, "parents", NULL, t->parents) \
	X(RECURSIVE, "recursive", "cannot be combined with -r or -a", t->recursive) \
	X(REMOVE_DESTINATION, "remove-destination", NULL, t->remove_destination) \
	X(SYMBOLIC_LINK, "symbolic-link", NULL, t->symbolic_link) \
	X(TARGET, "target-directory", "cannot be combined with -t", t->into_directory) \
	X(UPDATE, "update", NULL, t->update != FCOPY_UPDATE_ALL) \
	X(UPDATE_BY_TIME, "update", NULL, t->update >= FCOPY_UPDATE_OLDER) \
	X(UPDATE_CHANGED, "update", "cannot be combined with --update=changed", \
	  t->update == FCOPY_UPDATE_CHANGED) \
	X(UPDATE_NONE, "update", "cannot be combined with --update=none", \
	  t->update == FCOPY_UPDATE_NONE || t->update == FCOPY_UPDATE_NONE_FAIL)

#define GIVEN_BY_CALLER(X) /* it says so: what is copied, and how often; the program's own */ \
	X(TREE, "recursive", "cannot be used for a tree") \
	X(SEVERAL, "target-directory", "cannot be combined with several SRC") \
	X(SERVES, "keep-listening", NULL) \
	X(TO_HTTP, NULL, "cannot be used if DST is http-listen:") \
	X(TO_SOCKET, NULL, "cannot be used if DST is a socket") \
	X(FROM_SOCKET, NULL, "cannot be used if SRC is a socket") \
	X(COPY_CONTENTS, "copy-contents", NULL) \
	X(JSON_LINES, "json=lines", NULL) \
	X(KEEP_LISTENING, "keep-listening", NULL) \
	X(LOG_FILE, "log-file", NULL) \
	X(MAX_CLIENTS, "max-clients", NULL) \
	X(MIRROR, "mirror", NULL) \
	X(NULL_BYTES, "null", NULL) \
	X(PROGRESS, "progress", NULL) \
	X(QUIET, "quiet", NULL) \
	X(RUNS, "runs", NULL) \
	X(UPDATE_OPTION, "update", NULL)
/* clang-format on */

#define GIVEN_NAME(name, ...) GIVEN_##name,

enum given {
	GIVEN_NOTHING,
	GIVEN_BY_COPY(GIVEN_NAME) GIVEN_BY_TREE(GIVEN_NAME) GIVEN_BY_CALLER(GIVEN_NAME) GIVENS
};

/* Is it a mode of only this engine? NULL is auto. */
bool mode_uses(const struct fcopy_mode *, const char *engine);

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
