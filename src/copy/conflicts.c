/* SPDX-License-Identifier: MIT
 * Implements conflicts.h.
 */
#include "conflicts.h"

#include <stdio.h>
#include <string.h>

#define OTHERS 11 /* at most, in a row */

#define TREES "cannot be combined with several SRC, -r, -a, -t, -b, -u, -i, -l or -s"

/* The name of each, and what is said of another option that it excludes. */
static const struct {
	const char *name;
	const char *excludes; /* NULL: "cannot be combined with --NAME" */
} words[GIVENS] = {
    [GIVEN_COUNT_BYTES] = {"count", NULL},
    [GIVEN_SIZE] = {"size", NULL},
    [GIVEN_BENCHMARK] = {"benchmark", NULL},
    [GIVEN_FORCE] = {"force", NULL},
    [GIVEN_FSYNC] = {"fsync", NULL},
    [GIVEN_INPLACE] = {"inplace", NULL},
    [GIVEN_INPLACE_ALWAYS] = {"inplace", NULL},
    [GIVEN_JOB] = {"job", NULL},
    [GIVEN_NO_CACHE] = {"no-cache", NULL},
    [GIVEN_NO_CLOBBER] = {"no-clobber", NULL},
    [GIVEN_NO_DIRECTORY] = {"no-target-directory", NULL},
    [GIVEN_PREALLOCATE] = {"preallocate", NULL},
    [GIVEN_PREALLOCATE_ALWAYS] = {"preallocate", NULL},
    [GIVEN_PRESERVE] = {"preserve", NULL},
    [GIVEN_REFLINK] = {"reflink", NULL},
    [GIVEN_REFLINK_ALWAYS] = {"reflink", "cannot be combined with --reflink=always"},
    [GIVEN_RESUME] = {"resume", NULL},
    [GIVEN_SHARD] = {"shard", NULL},
    [GIVEN_SHARING_MODE] = {"mode", "cannot be combined with a clone or copy_file_range"},
    [GIVEN_CLONING_MODE] = {"mode", "cannot be combined with mode 8"},
    [GIVEN_SPARSE] = {"sparse", NULL},
    [GIVEN_SPARSE_ALWAYS] = {"sparse", "cannot be combined with --sparse=always"},
    [GIVEN_THREADS] = {"threads", NULL},
    [GIVEN_TIMEOUT] = {"timeout", NULL},
    [GIVEN_VERIFY] = {"verify", NULL},
    [GIVEN_ATTRIBUTES_ONLY] = {"attributes-only", NULL},
    [GIVEN_BACKUP] = {"backup", NULL},
    [GIVEN_CHECKSUM] = {"checksum", NULL},
    [GIVEN_DELETE] = {"delete", NULL},
    [GIVEN_DRY_RUN] = {"dry-run", NULL},
    [GIVEN_EXCLUDE] = {"exclude", NULL},
    [GIVEN_FILES_FROM] = {"files-from", NULL},
    [GIVEN_KEEP_DIRECTORY_SYMLINK] = {"keep-directory-symlink", NULL},
    [GIVEN_KEEP_GOING] = {"keep-going", NULL},
    [GIVEN_LINK] = {"link", NULL},
    [GIVEN_LINK_DEST] = {"link-dest", NULL},
    [GIVEN_MAX_DELETE] = {"max-delete", NULL},
    [GIVEN_MODIFY_WINDOW] = {"modify-window", NULL},
    [GIVEN_ONE_FILE_SYSTEM] = {"one-file-system", NULL},
    [GIVEN_PARENTS] = {"parents", NULL},
    [GIVEN_RECURSIVE] = {"recursive", "cannot be combined with -r or -a"},
    [GIVEN_REMOVE_DESTINATION] = {"remove-destination", NULL},
    [GIVEN_SYMBOLIC_LINK] = {"symbolic-link", NULL},
    [GIVEN_TARGET] = {"target-directory", "cannot be combined with -t"},
    [GIVEN_UPDATE] = {"update", NULL},
    [GIVEN_UPDATE_BY_TIME] = {"update", NULL},
    [GIVEN_UPDATE_CHANGED] = {"update", "cannot be combined with --update=changed"},
    [GIVEN_UPDATE_NONE] = {"update", "cannot be combined with --update=none"},
    [GIVEN_TREE] = {"recursive", TREES},
    [GIVEN_SEVERAL] = {"target-directory", "cannot be combined with several SRC"},
    [GIVEN_SERVES] = {"keep-listening", NULL},
    [GIVEN_TO_HTTP] = {NULL, "cannot be used if DST is http-listen:"},
    [GIVEN_TO_SOCKET] = {NULL, "cannot be used if DST is a socket"},
    [GIVEN_FROM_SOCKET] = {NULL, "cannot be used if SRC is a socket"},
    [GIVEN_COPY_CONTENTS] = {"copy-contents", NULL},
    [GIVEN_JSON_LINES] = {"json=lines", NULL},
    [GIVEN_KEEP_LISTENING] = {"keep-listening", NULL},
    [GIVEN_LOG_FILE] = {"log-file", NULL},
    [GIVEN_MAX_CLIENTS] = {"max-clients", NULL},
    [GIVEN_MIRROR] = {"mirror", NULL},
    [GIVEN_NULL] = {"null", NULL},
    [GIVEN_PROGRESS] = {"progress", NULL},
    [GIVEN_QUIET] = {"quiet", NULL},
    [GIVEN_RUNS] = {"runs", NULL},
    [GIVEN_UPDATE_OPTION] = {"update", NULL},
};

/* An option, and others: it needs one of them, or excludes all. */
struct conflict {
	enum given option, others[OTHERS];
	const char *why; /* the whole text, or what is added to that of the other option */
};

#define AGAIN   ": run the same command again"
#define NEEDS_R "requires -r or -a"

/* clang-format off */
static const struct conflict needs[] = {
    {GIVEN_KEEP_GOING, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_ONE_FILE_SYSTEM, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_KEEP_DIRECTORY_SYMLINK, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_DELETE, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_LINK_DEST, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_MAX_DELETE, {GIVEN_DELETE}, "requires --delete"},
    {GIVEN_CHECKSUM, {GIVEN_UPDATE_CHANGED}, "requires --update=changed or --mirror"},
    {GIVEN_MODIFY_WINDOW, {GIVEN_UPDATE_BY_TIME}, "requires --update=changed, --update=older or --mirror"},
    {GIVEN_EXCLUDE, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_FILES_FROM, {GIVEN_RECURSIVE}, NEEDS_R},
    {GIVEN_NULL, {GIVEN_FILES_FROM, GIVEN_EXCLUDE}, "requires --files-from or --exclude-from"},
    {GIVEN_MAX_CLIENTS, {GIVEN_SERVES}, "requires --keep-listening"},
    {GIVEN_RUNS, {GIVEN_BENCHMARK}, "requires --benchmark"},
    {GIVEN_TIMEOUT, {GIVEN_TO_SOCKET, GIVEN_FROM_SOCKET}, "requires a socket as SRC or DST"},
    {GIVEN_JOB, {GIVEN_SHARD}, "requires --shard"},
};

static const struct conflict excludes[] = {
    /* The program's own. */
    {GIVEN_PROGRESS, {GIVEN_QUIET, GIVEN_KEEP_LISTENING}, ""},
    {GIVEN_NO_DIRECTORY, {GIVEN_TARGET, GIVEN_SEVERAL}, ""},
    {GIVEN_KEEP_LISTENING, {GIVEN_TREE}, ""},
    {GIVEN_NO_CLOBBER, {GIVEN_DELETE}, "; to list changes (-n of rsync), use --dry-run"},
    {GIVEN_DELETE, {GIVEN_SEVERAL}, ""},
    {GIVEN_FILES_FROM, {GIVEN_DELETE}, ""},
    {GIVEN_COPY_CONTENTS, {GIVEN_RECURSIVE}, ": special files of a tree are not read"},
    {GIVEN_DRY_RUN, {GIVEN_KEEP_LISTENING}, ""},
    {GIVEN_MIRROR, {GIVEN_RESUME}, ": to begin or continue a new DST, use fcopy -aT --resume SRC DST"},
    {GIVEN_MIRROR, {GIVEN_SHARD}, ""},
    {GIVEN_UPDATE_OPTION, {GIVEN_NO_CLOBBER}, ""},
    {GIVEN_FILES_FROM, {GIVEN_SEVERAL}, ""},
    {GIVEN_JSON_LINES, {GIVEN_BENCHMARK, GIVEN_KEEP_LISTENING}, ""},
    {GIVEN_LOG_FILE, {GIVEN_KEEP_LISTENING}, ""},
    /* How the bytes are moved. */
    {GIVEN_REFLINK_ALWAYS, {GIVEN_SPARSE}, ": a clone keeps the holes of SRC"},
    {GIVEN_REFLINK_ALWAYS, {GIVEN_NO_CACHE}, ": a clone moves no bytes"},
    {GIVEN_PREALLOCATE_ALWAYS, {GIVEN_SPARSE_ALWAYS}, ": holes have no blocks"},
    {GIVEN_PREALLOCATE_ALWAYS, {GIVEN_SHARING_MODE}, ": DST may share blocks of SRC"},
    {GIVEN_INPLACE, {GIVEN_RESUME, GIVEN_NO_CLOBBER}, ""},
    /* Trees. */
    {GIVEN_SIZE, {GIVEN_TREE}, ""},
    {GIVEN_COUNT_BYTES, {GIVEN_TREE}, ""},
    {GIVEN_BENCHMARK, {GIVEN_TREE}, ""},
    {GIVEN_UPDATE, {GIVEN_RESUME}, AGAIN},
    {GIVEN_DELETE, {GIVEN_RESUME}, AGAIN},
    {GIVEN_DRY_RUN, {GIVEN_SHARD}, ""},
    {GIVEN_LINK_DEST, {GIVEN_SHARD, GIVEN_RESUME}, ""},
    {GIVEN_LINK, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST}, ""},
    {GIVEN_SYMBOLIC_LINK, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST, GIVEN_LINK, GIVEN_UPDATE_CHANGED}, ""},
    {GIVEN_ATTRIBUTES_ONLY, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST, GIVEN_LINK, GIVEN_FSYNC, GIVEN_VERIFY,
      GIVEN_UPDATE_CHANGED, GIVEN_SYMBOLIC_LINK, GIVEN_BACKUP, GIVEN_REMOVE_DESTINATION}, ""},
    {GIVEN_KEEP_DIRECTORY_SYMLINK, {GIVEN_SHARD, GIVEN_MIRROR, GIVEN_DELETE}, ""},
    {GIVEN_PARENTS, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST}, ""},
    {GIVEN_BACKUP, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_INPLACE_ALWAYS, GIVEN_NO_CLOBBER,
     GIVEN_UPDATE_NONE, GIVEN_MIRROR, GIVEN_DELETE}, ""},
    {GIVEN_REMOVE_DESTINATION, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_INPLACE_ALWAYS}, ""},
    {GIVEN_UPDATE, {GIVEN_SHARD}, ""},
    {GIVEN_DELETE, {GIVEN_SHARD}, ""},
    {GIVEN_EXCLUDE, {GIVEN_SHARD}, ""},
    {GIVEN_FILES_FROM, {GIVEN_SHARD}, ""},
    /* Sockets. */
    {GIVEN_SIZE, {GIVEN_TO_HTTP, GIVEN_SERVES}, ""},
    {GIVEN_PRESERVE, {GIVEN_TO_HTTP, GIVEN_SERVES}, ""},
    {GIVEN_INPLACE, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_FORCE, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_NO_CLOBBER, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_NO_DIRECTORY, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_PREALLOCATE, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_SPARSE, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_REFLINK, {GIVEN_TO_SOCKET}, ""},
    {GIVEN_THREADS, {GIVEN_TO_SOCKET, GIVEN_FROM_SOCKET}, ""},
    {GIVEN_SHARD, {GIVEN_TO_SOCKET, GIVEN_FROM_SOCKET}, ""},
    /* Shards. */
    {GIVEN_SHARD, {GIVEN_SEVERAL, GIVEN_TARGET, GIVEN_KEEP_GOING}, ""},
    {GIVEN_SHARD, {GIVEN_INPLACE}, ": DST must be whole or absent"},
    {GIVEN_SHARD, {GIVEN_RESUME}, ": run the same shard again"},
    {GIVEN_SHARD, {GIVEN_SIZE, GIVEN_COUNT_BYTES}, ""},
    {GIVEN_SHARD, {GIVEN_NO_CLOBBER}, ": another shard may create DST"},
    {GIVEN_SHARD, {GIVEN_BENCHMARK, GIVEN_SERVES}, ""},
    {GIVEN_SHARD, {GIVEN_REFLINK_ALWAYS, GIVEN_CLONING_MODE}, ": a share is not a whole file"},
};
/* clang-format on */

#define NEEDS    (sizeof(needs) / sizeof(*needs))
#define EXCLUDES (sizeof(excludes) / sizeof(*excludes))

static bool mode_runs(const struct fcopy_mode *mode, const char *engine)
{
	return mode && mode->engine && strcmp(mode->engine, engine) == 0;
}

static void add_copy(bool *has, const struct fcopy_options *o)
{
	const bool always = o->in_place == FCOPY_WHEN_ALWAYS,
		   clones = mode_runs(o->mode, "reflink");
	has[GIVEN_COUNT_BYTES] |= o->count > 0;
	has[GIVEN_SIZE] |= o->expected_size > 0;
	has[GIVEN_BENCHMARK] |= o->scratch;
	has[GIVEN_FORCE] |= o->force;
	has[GIVEN_FSYNC] |= o->fsync;
	has[GIVEN_INPLACE] |= always || o->in_place == FCOPY_WHEN_AUTO;
	has[GIVEN_INPLACE_ALWAYS] |= always;
	has[GIVEN_JOB] |= o->shard.job != NULL;
	has[GIVEN_NO_CACHE] |= o->no_cache;
	has[GIVEN_NO_CLOBBER] |= o->no_clobber;
	has[GIVEN_NO_DIRECTORY] |= o->no_directory;
	has[GIVEN_PREALLOCATE] |= o->preallocate != 0;
	has[GIVEN_PREALLOCATE_ALWAYS] |= o->preallocate == FCOPY_WHEN_ALWAYS;
	has[GIVEN_PRESERVE] |= o->preserve != 0;
	has[GIVEN_REFLINK] |= o->reflink != 0;
	has[GIVEN_REFLINK_ALWAYS] |= o->reflink == FCOPY_WHEN_ALWAYS;
	has[GIVEN_RESUME] |= o->resume;
	has[GIVEN_SHARD] |= o->shard.count > 0 || o->shard.finish;
	has[GIVEN_SHARING_MODE] |= clones || o->reflink == FCOPY_WHEN_ALWAYS ||
				   mode_runs(o->mode, "copy_file_range");
	has[GIVEN_CLONING_MODE] |= clones;
	has[GIVEN_SPARSE] |= o->sparse != 0;
	has[GIVEN_SPARSE_ALWAYS] |= o->sparse == FCOPY_WHEN_ALWAYS;
	has[GIVEN_THREADS] |= o->threads > 0;
	has[GIVEN_TIMEOUT] |= o->timeout_ms != 0;
	has[GIVEN_VERIFY] |= o->verify;
}

static void add_tree(bool *has, const struct fcopy_tree_options *t)
{
	has[GIVEN_ATTRIBUTES_ONLY] |= t->attributes_only;
	has[GIVEN_BACKUP] |= t->backup != 0;
	has[GIVEN_CHECKSUM] |= t->checksum;
	has[GIVEN_DELETE] |= t->delete_extra;
	has[GIVEN_DRY_RUN] |= t->dry_run;
	has[GIVEN_EXCLUDE] |= t->pattern_count > 0;
	has[GIVEN_FILES_FROM] |= t->files != NULL;
	has[GIVEN_KEEP_DIRECTORY_SYMLINK] |= t->keep_directory_symlink;
	has[GIVEN_KEEP_GOING] |= t->keep_going;
	has[GIVEN_LINK] |= t->link;
	has[GIVEN_LINK_DEST] |= t->link_dest != NULL;
	has[GIVEN_MAX_DELETE] |= t->max_delete != NULL;
	has[GIVEN_MODIFY_WINDOW] |= t->modify_window_ns != 0;
	has[GIVEN_ONE_FILE_SYSTEM] |= t->one_file_system;
	has[GIVEN_PARENTS] |= t->parents;
	has[GIVEN_RECURSIVE] |= t->recursive;
	has[GIVEN_REMOVE_DESTINATION] |= t->remove_destination;
	has[GIVEN_SYMBOLIC_LINK] |= t->symbolic_link;
	has[GIVEN_TARGET] |= t->into_directory;
	has[GIVEN_UPDATE] |= t->update != FCOPY_UPDATE_ALL;
	has[GIVEN_UPDATE_BY_TIME] |= t->update >= FCOPY_UPDATE_OLDER;
	has[GIVEN_UPDATE_CHANGED] |= t->update == FCOPY_UPDATE_CHANGED;
	has[GIVEN_UPDATE_NONE] |= t->update == FCOPY_UPDATE_NONE ||
				  t->update == FCOPY_UPDATE_NONE_FAIL;
}

void given_add(struct given_set *set, const struct fcopy_options *o,
	       const struct fcopy_tree_options *tree)
{
	add_copy(set->has, o);
	if (tree)
		add_tree(set->has, tree);
}

/* The first of the others that is given, or GIVEN_NOTHING. */
static enum given other_given(const struct conflict *c, const struct given_set *set)
{
	for (size_t i = 0; i < OTHERS && c->others[i]; i++)
		if (set->has[c->others[i]])
			return c->others[i];
	return GIVEN_NOTHING;
}

const char *conflict_find(const struct given_set *set, char reason[FCOPY_DETAIL_MAX])
{
	for (const struct conflict *c = needs; c < needs + NEEDS; c++)
		if (set->has[c->option] && !other_given(c, set)) {
			snprintf(reason, FCOPY_DETAIL_MAX, "%s", c->why);
			return words[c->option].name;
		}
	for (const struct conflict *c = excludes; c < excludes + EXCLUDES; c++) {
		const enum given other = set->has[c->option] ? other_given(c, set) : GIVEN_NOTHING;
		const char *text = words[other].excludes;
		if (!other)
			continue;
		snprintf(reason, FCOPY_DETAIL_MAX, "%s%s%s",
			 text ? text : "cannot be combined with --", text ? "" : words[other].name,
			 c->why);
		return words[c->option].name;
	}
	return NULL;
}

const char *conflict_with(const struct given_set *set, enum given added)
{
	struct given_set one = {.has[GIVEN_NOTHING] = false};
	one.has[added] = true;
	for (const struct conflict *c = excludes; c < excludes + EXCLUDES; c++) {
		const enum given other = c->option == added ? other_given(c, set)
					 : set->has[c->option] && other_given(c, &one)
					     ? c->option
					     : GIVEN_NOTHING;
		if (other)
			return words[other].name;
	}
	return NULL;
}
