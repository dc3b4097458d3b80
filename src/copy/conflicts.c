/* SPDX-License-Identifier: MIT
 * Implements conflicts.h.
 */
#include "conflicts.h"

#include <stdio.h>
#include <string.h>

#define OTHERS 14 /* at most, in a row */

/* The name of each, and what is said of another option that it excludes. */
static const struct {
	const char *name, *excludes;
} words[GIVENS] = {
#define WORDS(given, name, excludes, ...) [GIVEN_##given] = {name, excludes},
    GIVEN_BY_COPY(WORDS) GIVEN_BY_TREE(WORDS) GIVEN_BY_CALLER(WORDS)};

/* An option, and others: it needs one of them, or excludes all. */
struct conflict {
	enum given option, others[OTHERS];
	const char *why; /* the whole text, or what is added to that of the other option */
};

#define AGAIN   ": run the same command again"
#define NEEDS_R "requires -r or -a"

/* Each of them alone makes fcopy(1) copy a tree. */
#define TREES                                                                                      \
	GIVEN_SEVERAL, GIVEN_RECURSIVE, GIVEN_TARGET, GIVEN_BACKUP, GIVEN_UPDATE,                  \
	    GIVEN_INTERACTIVE, GIVEN_LINK, GIVEN_SYMBOLIC_LINK, GIVEN_DRY_RUN, GIVEN_PARENTS,      \
	    GIVEN_REMOVE_DESTINATION, GIVEN_ATTRIBUTES_ONLY, GIVEN_NO_DEREFERENCE, GIVEN_TREE

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
    {GIVEN_NULL_BYTES, {GIVEN_FILES_FROM, GIVEN_EXCLUDE}, "requires --files-from or --exclude-from"},
    {GIVEN_MAX_CLIENTS, {GIVEN_SERVES}, "requires --keep-listening"},
    {GIVEN_RUNS, {GIVEN_BENCHMARK}, "requires --benchmark"},
    {GIVEN_TIMEOUT, {GIVEN_TO_SOCKET, GIVEN_FROM_SOCKET}, "requires a socket as SRC or DST"},
    {GIVEN_JOB, {GIVEN_SHARD}, "requires --shard"},
};

static const struct conflict excludes[] = {
    /* The program's own. */
    {GIVEN_PROGRESS, {GIVEN_QUIET, GIVEN_KEEP_LISTENING}, ""},
    {GIVEN_NO_DIRECTORY, {GIVEN_TARGET, GIVEN_SEVERAL}, ""},
    {GIVEN_KEEP_LISTENING, {TREES}, ""},
    {GIVEN_NO_CLOBBER, {GIVEN_DELETE}, "; to list changes (-n of rsync), use --dry-run"},
    {GIVEN_DELETE, {GIVEN_SEVERAL}, ""},
    {GIVEN_FILES_FROM, {GIVEN_DELETE}, ""},
    {GIVEN_COPY_CONTENTS, {GIVEN_RECURSIVE}, ": special files of a tree are not read"},
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
    {GIVEN_SIZE, {TREES}, ""},
    {GIVEN_COUNT_BYTES, {TREES}, ""},
    {GIVEN_BENCHMARK, {TREES}, ""},
    {GIVEN_UPDATE, {GIVEN_RESUME}, AGAIN},
    {GIVEN_DELETE, {GIVEN_RESUME}, AGAIN},
    {GIVEN_DRY_RUN, {GIVEN_SHARD}, ""},
    {GIVEN_LINK_DEST, {GIVEN_SHARD, GIVEN_RESUME}, ""},
    {GIVEN_LINK, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST}, ""},
    {GIVEN_SYMBOLIC_LINK, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST, GIVEN_LINK, GIVEN_UPDATE_CHANGED}, ""},
    {GIVEN_ATTRIBUTES_ONLY, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST, GIVEN_LINK, GIVEN_FSYNC, GIVEN_VERIFY,
      GIVEN_UPDATE_CHANGED, GIVEN_SYMBOLIC_LINK, GIVEN_BACKUP, GIVEN_REMOVE_DESTINATION}, ""},
    {GIVEN_KEEP_DIRECTORY_SYMLINK, {GIVEN_SHARD, GIVEN_MIRROR, GIVEN_DELETE}, ""},
    {GIVEN_PARENTS, {GIVEN_SHARD, GIVEN_RESUME, GIVEN_LINK_DEST, GIVEN_MIRROR, GIVEN_NO_DIRECTORY}, ""},
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

bool mode_uses(const struct fcopy_mode *mode, const char *engine)
{
	return mode && mode->engine && strcmp(mode->engine, engine) == 0;
}

void given_add(struct given_set *set, const struct fcopy_options *o,
	       const struct fcopy_tree_options *t)
{
#define ADD(given, name, excludes, is_given) set->has[GIVEN_##given] |= (is_given);
	GIVEN_BY_COPY(ADD)
	if (t) {
		GIVEN_BY_TREE(ADD)
	}
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
