/* SPDX-License-Identifier: MIT
 * Removes from a part what its source does not have any more.
 */
#include "directory.h"
#include "io/hash.h"
#include "report.h"
#include "resume.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>

static bool prune_has(int dir, const char *name)
{
	struct stat st;
	return dir >= 0 && (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT);
}

static void prune_remove(struct worker *w, const struct directory *d, const char *name)
{
	const int r = remove_entry(d->dst, name);
	if (r < 0)
		report_call(w, &ENTRY(d, name), "remove", entry_dst, -r);
}

static void prune_doubt_tree(const struct worker *w)
{
	__atomic_store_n(&w->tree->root.doubt, DOUBT_COMMIT, __ATOMIC_RELAXED);
}

/* A directory without a name lists nothing, whatever the source has under its name now. If the
 * source lacks the name, its parent directory removes the copy. */
static bool prune_may_compare(struct worker *w, struct directory *d)
{
	const struct entry e = ENTRY(d, "");
	const int err = -opened_check_name(w->tree, d);
	if (err == 0)
		return true;
	if (opened_is_lacking(w->tree, d))
		return false;
	if (opened_is_gone(err))
		report_refusal(w, &e, entry_src, err,
			       "was moved, replaced or removed during the copy: an earlier copy of "
			       "what it had may be in the part");
	else
		report_call(w, &e, "stat", entry_src, err);
	prune_doubt_tree(w);
	return false;
}

static void prune_doubt(struct worker *w, const struct directory *d)
{
	report_refusal(
	    w, &ENTRY(d, ""), entry_src, EBUSY,
	    "got an entry during the copy; the part has an earlier copy under that name");
	prune_doubt_tree(w);
}

static bool prune_has_failures(const struct worker *w)
{
	return __atomic_load_n(&w->tree->root.failures, __ATOMIC_RELAXED) > 0;
}

/* Each name was looked for once: the source may have got it just before, and lost another one. Its
 * times show it. Then it is unknown which copies in the part are of this run. */
static bool prune_may_be_old(const struct worker *w, const struct directory *d, size_t listed)
{
	struct stat now;
	const struct stat *then = &d->st;
	return d->state == DIRECTORY_RESUMED && listed > d->present && !prune_has_failures(w) &&
	       (fstat(d->src, &now) < 0 || !same_mtime(&now, then) || !same_ctime(&now, then));
}

/* Removes what dst lists and the source lacks; src -1: it is as if it were empty. Returns 0, or
 * -errno with the side that could not be read. */
static int prune_names(struct worker *w, struct directory *d, int src, const struct name_list *dst,
		       const char **side)
{
	const bool journal = w->tree->root.ground.journal;
	struct name_list names = {0};
	size_t kept = 0;  /* names of dst that src has */
	size_t found = 0; /* names of src that dst has, perhaps in another case */
	for (size_t i = 0; i < dst->count; i++)
		kept += prune_has(src, dst->name[i]);
	/* No entry failed, so the source has got a name since it was read: that copy is old. */
	if (journal && kept > d->present && !prune_has_failures(w))
		prune_doubt(w, d);
	if (kept == dst->count && dst->count >= d->present)
		return 0;
	const int r = src < 0 ? 0 : names_read(src, &names, NULL);
	*side = entry_src;
	if (r < 0 && r != -ENOENT) /* ENOENT: it was removed since it was opened */
		return r;
	for (size_t i = 0; i < names.count; i++)
		found += prune_has(d->dst, names.name[i]);
	names_free(&names);
	if (found > kept)
		report_refusal(w, &ENTRY(d, ""), entry_dst, EEXIST,
			       "entry names in it differ from SRC, perhaps only by case");
	for (size_t i = 0; i < dst->count && found <= kept; i++)
		if (!prune_has(src, dst->name[i]))
			prune_remove(w, d, dst->name[i]);
	if (journal && src >= 0 && prune_may_be_old(w, d, dst->count))
		prune_doubt(w, d);
	return 0;
}

void prune_directory(struct worker *w, struct directory *d)
{
	/* With one_file_system, nothing below a mount point is copied. */
	const bool mounted = w->tree->options->one_file_system &&
			     d->st.st_dev != w->tree->root.inodes.src.dev;
	struct name_list dst = {0};
	const char *side = entry_dst;
	/* Then it is unknown which copies of an earlier run are outdated: not even --keep-going
	 * may commit them. */
	if (d->names == NAMES_LOST && d->state == DIRECTORY_RESUMED && !mounted) {
		prune_doubt_tree(w);
		return;
	}
	if (!mounted && !prune_may_compare(w, d))
		return;
	int r = names_read(d->dst, &dst, NULL);
	if (r == 0)
		r = prune_names(w, d, mounted ? -1 : d->src, &dst, &side);
	if (r < 0)
		report_call(w, &ENTRY(d, ""), "getdents64", side, -r);
	names_free(&dst);
}

void prune_check_list(struct worker *w, struct directory *d)
{
	_Alignas(8) char buffer[8192];
	struct reader r = reader_of(d->dst, buffer, sizeof(buffer)); /* nobody has read from it */
	uint64_t sum = 0;   /* of the hashes of all names */
	uint64_t whole = 0; /* ... without those of unfinished files */
	for (const char *name; (name = reader_next(&r));) {
		sum += hash_name(name);
		whole += temporary_is_drawn(name) ? 0 : hash_name(name);
	}
	if (r.error == 0 && sum != d->list->names && whole == d->list->names) {
		r = reader_open(d->dst, buffer, sizeof(buffer));
		for (const char *name; (name = reader_next(&r));)
			if (temporary_is_drawn(name))
				prune_remove(w, d, name);
		reader_close(&r);
	}
	if (r.error < 0)
		report_call(w, &ENTRY(d, ""), "getdents64", entry_dst, -r.error);
	else if (sum != d->list->names && whole != d->list->names)
		prune_doubt_tree(w);
}
