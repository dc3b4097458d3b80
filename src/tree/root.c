/* SPDX-License-Identifier: MIT
 * The directory that an operand names: a new one is built under a temporary name and renamed, an
 * existing one is merged into.
 */
#include "root.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/replace.h"
#include "entry.h"
#include "io/hash.h"
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "report.h"
#include "rivals.h"
#include "spelling.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* In an append-only directory a temporary name could be neither renamed nor removed. */
static int root_check_parent(const struct building *r)
{
	struct statx sx;
	if (statx(r->to->place.dir, "", AT_EMPTY_PATH, STATX_MODE, &sx) < 0 ||
	    !(sx.stx_attributes & STATX_ATTR_APPEND))
		return 0; /* a failure shows when it is renamed */
	return root_refuse(r, EPERM, "cannot be renamed: its directory is append-only",
			   FCOPY_ADVICE_NONE);
}

/* Refuses a DST.fcopy-part of an earlier copy, unless it is to be resumed. */
static int root_check_part(struct building *r)
{
	const struct part_claim claim = home_claim(r, NULL);
	int result = root_check_part_source(r);
	if (result < 0 || claim.resumes)
		return result;
	return part_acquire(&r->part, &claim) == PART_FRESH ? 0 : home_fail_part(r);
}

/* With --inplace, or where directories cannot be renamed, the tree is built under its final name.
 * What is left of an unfinished one could not be resumed. */
static int root_check_storage(struct building *r)
{
	struct tree *t = r->tree;
	const bool always = in_place_always(&t->options->copy);
	const int dir = r->to->place.dir;
	if (t->options->copy.resume && system_is_rclone(dir))
		return root_refuse(r, EOPNOTSUPP, "cannot be resumed: " STORAGE_RENAMES_LATE,
				   FCOPY_ADVICE_NO_PART);
	if (!always && storage_can(t->known.storage, dir, STORAGE_RENAMES_DIRECTORIES)) {
		if (!t->options->copy.resume ||
		    storage_can(t->known.storage, dir, STORAGE_KEEPS_INODES))
			return 0;
		return root_refuse(r, EOPNOTSUPP,
				   "cannot be resumed: a renamed directory gets another inode "
				   "number here",
				   FCOPY_ADVICE_NO_PART);
	}
	if (t->options->copy.resume)
		return root_refuse(r, EOPNOTSUPP,
				   "cannot be resumed: directories cannot be renamed here",
				   FCOPY_ADVICE_NO_PART);
	r->slot.how = HOW_FINAL;
	report_not_atomic(t, r->to->path, always ? IN_PLACE_REASON : STORAGE_NO_RENAME);
	return 0;
}

/* Where another user could exchange the name since it was looked up, what was opened must be what
 * the operands were checked for. */
static int root_check_same(const struct building *r)
{
	const struct stat *st = &r->to->place.st;
	struct stat above, now;
	if (fstat(r->to->place.dir, &above) == 0 && !private_is_shared(&above))
		return 0;
	if (fstat(r->dst, &now) < 0)
		return root_fail(r, "fstat", errno);
	if (same_inode(&now, st))
		return 0;
	return root_refuse(r, ESTALE, "was moved or replaced by another process",
			   FCOPY_ADVICE_NONE);
}

static int root_refuse_other(const struct building *r)
{
	return tree_unsuitable(r->tree, (struct fcopy_error){.err = ENOTDIR,
							     .path = r->to->path,
							     .reason = r->to->place.symlink
									   ? SYMLINK_STAYS
									   : NO_DIRECTORY_HERE});
}

/* DST is a symlink, which options.keep_directory_symlink follows to a directory. */
static int root_open_symlink(struct building *r)
{
	struct stat st = {0};
	r->dst = directory_follow(r->to->place.dir, r->to->place.name, O_RDONLY);
	if (r->dst == -EPERM)
		return root_refuse(r, EPERM, SYMLINK_FOREIGN, FCOPY_ADVICE_NONE);
	if (r->dst == -ENOTDIR || r->dst == -ENOENT)
		return root_refuse_other(r);
	int result = r->dst < 0               ? root_fail(r, "open", -r->dst)
		     : fstat(r->dst, &st) < 0 ? root_fail(r, "open", errno)
					      : 0;
	if (result == 0 && same_inode(&st, &r->from->place.st))
		result = root_refuse(r, EINVAL, "is the source directory", FCOPY_ADVICE_USAGE);
	if (result == 0)
		result = root_check_inside(r, r->dst);
	if (result < 0 && r->dst >= 0)
		close(r->dst);
	return result;
}

static int root_open(struct building *r)
{
	const struct place *place = &r->to->place;
	const struct stat *st = &place->st;
	if (spelling_relates(r->tree, r->from->fd, &r->from->place.st, place))
		return root_refuse(r, EINVAL,
				   "is the source directory, in it or above it: their paths differ "
				   "in case, which is ignored here",
				   FCOPY_ADVICE_USAGE);
	/* With -x an existing directory counts, not its parent: it may be a mount point. */
	int result = place->exists && r->tree->options->one_file_system
			 ? 0
			 : root_check_inside(r, place->dir);
	if (result < 0)
		return result;
	if (!place->exists) {
		r->dst = -1;
		if (r->tree->options->dry_run) {
			const int err = place_access(place, ".", W_OK | X_OK);
			return err ? root_fail(r, "mkdir", err) : 0;
		}
		result = root_check_part(r);
		if (result == 0)
			result = root_check_parent(r);
		if (result == 0)
			result = root_check_storage(r);
		if (result < 0)
			return result;
		return home_open(r);
	}
	if (place->symlink && r->tree->options->keep_directory_symlink)
		return root_open_symlink(r);
	if (place->symlink || !S_ISDIR(st->st_mode))
		return root_refuse_other(r);
	if (same_inode(st, &r->from->place.st))
		return root_refuse(r, EINVAL, "is the source directory", FCOPY_ADVICE_USAGE);
	if (rivals_are_source(r->tree, st))
		return root_refuse(r, EINVAL, DECIDE_SOURCE, FCOPY_ADVICE_USAGE);
	if (r->tree->options->copy.resume && (result = finished_open(r, st)) != RESULT_MERGES)
		return result;
	r->dst = directory_open(r->tree, place->dir, place->name);
	if (r->dst < 0)
		return root_fail(r, "open", -r->dst);
	result = root_check_same(r);
	if (result == 0) /* the directory itself may be a bind mount */
		result = root_check_inside(r, r->dst);
	if (result < 0)
		close(r->dst);
	return result;
}

uint64_t root_options(const struct tree *t)
{
	const struct fcopy_tree_options *o = t->options;
	uint64_t hash = HASH_START;
	for (size_t i = 0; i < o->pattern_count; i++) {
		hash = hash_add(hash, o->patterns[i].include ? "+" : "-", 1);
		hash = hash_add(hash, o->patterns[i].text, strlen(o->patterns[i].text) + 1);
	}
	for (size_t i = 0; i < o->file_count; i++) /* in any order */
		hash += hash_add(HASH_START, o->files[i], strlen(o->files[i]) + 1);
	hash = o->pattern_count || o->files ? hash ^ o->files_recursive : 0;
	return (hash & ~(uint64_t)0x1ffffff) | (uint64_t)t->known.umask << 16 |
	       (uint64_t)o->one_file_system << 11 | (uint64_t)o->follow << 9 |
	       (uint64_t)o->hard_links << 8 | (uint64_t)o->copy.default_mode << 7 |
	       o->copy.preserve;
}

/* What is copied below the open directory, which the result holds. NULL after a failure, reported.
 */
static struct directory *root_begin(struct building *r)
{
	struct tree *t = r->tree;
	struct stat parent, was = {0};
	const bool merges = !root_is_new(r), resumes = r->resumes, fresh = !merges && !resumes;
	/* What is tried below, to see what the storage can, changes the times of the directory. */
	const bool seen = fstat(r->dst, &was) == 0;
	const struct ground ground = {
	    .fresh = fresh,
	    .exclusive = fresh,
	    .named = r->slot.how == HOW_FINAL,
	    .journal = resumes,
	    .foreign = merges,
	    .fixed_modes = merges && t->options->copy.preserve &&
			   !storage_can(t->known.storage, r->dst, STORAGE_CHANGES_MODES),
	    .flush = flush_find(t, r->dst, fresh),
	    .withheld = 0700 & (t->known.umask | ~permissions_left(t, r->dst))};
	struct directory *d = root_start(r, &ground);
	if (d && seen)
		d->was = was;
	if (d && t->root.inodes.within && r->part.fd >= 0 && fstat(r->part.fd, &parent) == 0) {
		t->root.inodes.part = inode_of(&parent);
	}
	if (d && fresh && tree_has_several(t)) /* a later operand may link to what is in it */
		d->known.shared = answer_of(fstat(r->to->place.dir, &parent) < 0 ||
					    private_is_shared(&parent));
	return d;
}

/* DST did not exist when it was looked up, and had no part when this run made one: another copy may
 * have committed in between. The new part excludes others from now on. *now: DST as it is. */
static bool root_is_overtaken(const struct building *r, struct operand *now)
{
	struct place *p = &now->place;
	if (!r->part.published || r->resumes || p->exists ||
	    fstatat(p->dir, p->name, &p->st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	p->exists = true;
	p->symlink = S_ISLNK(p->st.st_mode);
	return true;
}

static int root_open_as(struct building *r, struct tree *t, const struct operand *from,
			const struct operand *to)
{
	*r = (struct building){.tree = t, .from = from, .to = to};
	part_init(&r->part, to->place.dir, to->place.name);
	r->record = (struct record){.part = &r->part,
				    .name = to->place.name,
				    .source = part_source(from->fd, &from->place.st),
				    .numbers = system_numbers_last(from->fd),
				    .options = root_options(t)};
	return root_open(r);
}

int root_copy(struct tree *t, const struct operand *from, const struct operand *to)
{
	struct building r;
	struct operand now = *to;
	t->known.umask = temporary_umask();
	int result = root_open_as(&r, t, from, to);
	if (result == 0 && root_is_overtaken(&r, &now)) { /* once: DST exists now */
		commit_abort(&r);
		result = root_open_as(&r, t, from, &now);
	}
	if (result != 0)
		return result < 0 ? result : 0;
	if (t->options->dry_run)
		return root_rehearse(&r, FLUSH_NONE);
	r.record.data = r.dst;
	r.record.mode = r.mode;
	struct directory *d = root_begin(&r);
	if (!d) {
		commit_abort(&r);
		return -EIO;
	}
	double start = io_now();
	t->root.record = r.part.fd >= 0 && !r.committed ? &r.record : NULL;
	if (!r.committed)
		root_walk(&r, d);
	t->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	result = commit_end(&r, d);
	record_end(&r.record);
	directory_unref(d);
	return result;
}
