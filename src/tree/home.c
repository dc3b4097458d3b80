/* SPDX-License-Identifier: MIT
 * Where a new tree is built until its commit: as `data` in a private directory, which --resume
 * publishes as DST.fcopy-part; or, where directories cannot be moved to another one, beside its
 * final name; or under it.
 */
#include "directory.h"
#include "endpoints/replace.h"
#include "endpoints/slot.h"
#include "io/io.h"
#include "report.h"
#include "root.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int home_fail_part(const struct building *r)
{
	const struct part *p = &r->part;
	return p->reason ? root_refuse(r, p->err, p->reason, p->advice)
			 : root_fail(r, p->call, p->err);
}

struct part_claim home_claim(const struct building *r, const struct stat *committed)
{
	const struct fcopy_options *o = &r->tree->options->copy;
	return (struct part_claim){.dst = r->to->place.name,
				   .of = PART_OF_TREE,
				   .resumes = o->resume,
				   .options = r->record.options,
				   .committed = committed,
				   .cancel = o->cancel};
}

static void home_drop_part(struct building *r)
{
	const int result = part_close(&r->part, true);
	if (result < 0)
		commit_warn_left(r, r->part.name, -result);
}

static void home_in_part(struct building *r)
{
	r->slot.how = HOW_PART;
	r->slot.home = r->part.fd;
	strcpy(r->slot.name, PART_DATA);
}

static int home_find(struct building *r)
{
	int result;
	r->slot.home = r->to->place.dir;
	if (r->slot.how == HOW_FINAL)
		return 0;
	if (part_make(&r->part) < 0)
		return home_fail_part(r);
	result = part_can_move(&r->part);
	if (r->part.stuck[0])
		commit_warn_left(r, r->part.stuck, r->part.stuck_err);
	if (result == 0) {
		if (r->part.exposed)
			report_not_private(r->tree, r->to->path);
		home_in_part(r);
		return 0;
	}
	home_drop_part(r);
	if (r->tree->options->copy.resume)
		return home_fail_part(r);
	r->slot.how = HOW_RENAME;
	return 0;
}

/* With --resume the part is visible from the start, so that the next run finds it after a kill. */
static int home_publish(struct building *r)
{
	int result = part_describe(&r->part, r->to->place.name, &r->record.source,
				   r->record.options, r->dst, r->mode);
	if (result == 0)
		result = part_publish(&r->part, &r->dst);
	if (result == -EEXIST)
		return root_refuse(r, EBUSY, "another copy has just made its .fcopy-part",
				   FCOPY_ADVICE_NONE);
	return result < 0 ? home_fail_part(r) : 0;
}

/* A new tree that is being made. */
struct raising {
	mode_t mode, left; /* that it is made with, and what of it the umask and ACLs left */
	bool moves, hidden;
	struct failure fail;
};

static int home_make_directory(int dir, const char *name, void *arg)
{
	struct raising *x = arg;
	return private_make_directory(dir, name, x->mode, x->moves, !x->hidden, &x->left, &x->fail);
}

/* Outside a private directory the tree is closed to others from the start; the commit restores the
 * mode that the umask and default ACLs left. setgid stays: new files get the directory's group from
 * it. */
static int home_make(struct building *r, mode_t mode)
{
	const bool hidden = r->part.fd >= 0;
	struct stat st;
	const int home = r->slot.home;
	const bool moves = !hidden && fstat(home, &st) == 0 && private_is_shared(&st) &&
			   storage_can(r->tree->known.storage, home, STORAGE_RENAMES_DIRECTORIES);
	struct raising x = {.mode = (mode & 01777) | 0700, .moves = moves, .hidden = hidden};
	r->dst = slot_make(&r->slot, home, r->to->place.name, -1, home_make_directory, &x, "mkdir",
			   &x.fail);
	if (r->dst == -EEXIST && r->slot.how == HOW_FINAL)
		return root_refuse(r, EEXIST, "was created by another process", FCOPY_ADVICE_NONE);
	if (r->dst == -ESTALE && !hidden)
		return root_refuse(r, ESTALE, "another process has replaced the new directory",
				   FCOPY_ADVICE_NONE);
	if (r->dst < 0)
		return root_fail(r, x.fail.call, -r->dst);
	/* By its lock another copy sees that the tree is in use. */
	if (!hidden)
		(void)!flock(r->dst, LOCK_EX | LOCK_NB);
	r->mode = x.left & ~(0700 & ~mode);
	return 0;
}

static int home_create(struct building *r)
{
	int result = home_find(r);
	if (result < 0)
		return result;
	if ((result = home_make(r, r->from->place.st.st_mode)) < 0) {
		home_drop_part(r);
		return result;
	}
	if (r->tree->options->copy.resume && (result = home_publish(r)) < 0)
		commit_abort(r);
	return result;
}

/* Continues the open part. Its directory may have its final owner and mode already. */
static int home_continue(struct building *r)
{
	struct part *p = &r->part;
	struct stat st = {0};
	const mode_t mode = r->from->place.st.st_mode;
	r->dst = part_open_data(p, O_RDONLY | O_DIRECTORY);
	int result = r->dst < 0               ? root_fail(r, "open in its .fcopy-part", -r->dst)
		     : fstat(r->dst, &st) < 0 ? root_fail(r, "fstat", errno)
					      : 0;
	if (result < 0) {
		io_close(r->dst);
		part_close(p, false);
		return result;
	}
	(void)!permissions_set(r->dst, (st.st_mode & 07000) | 0700); /* storage may lack it */
	/* Of another source, or in another boot: every file is copied again. */
	if (!part_same_source(p, &r->record.source, r->record.options))
		journal_free(&p->journal);
	part_note_run(p, 0);
	home_in_part(r);
	r->slot.stage = SLOT_MADE;
	r->mode = temporary_mode(r->to->place.dir, mode & 01777, NULL) | (st.st_mode & S_ISGID);
	r->resumes = true;
	return 0;
}

int home_open(struct building *r)
{
	const struct part_claim claim = home_claim(r, NULL);
	const enum part_state state = claim.resumes ? part_acquire(&r->part, &claim) : PART_FRESH;
	return state == PART_FRESH       ? home_create(r)
	       : state == PART_CONTINUED ? home_continue(r)
					 : home_fail_part(r);
}

int home_open_committed(struct building *r, const struct stat *dst)
{
	struct stat st;
	const struct part_claim claim = home_claim(r, dst);
	const enum part_state state = part_acquire(&r->part, &claim);
	if (state != PART_COMMITTED)
		return state == PART_FRESH ? RESULT_EXISTS : home_fail_part(r);
	r->dst = openat(r->to->place.dir, r->to->place.name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r->dst >= 0 && fstat(r->dst, &st) == 0 && same_inode(&st, dst)) {
		r->committed = true;
		r->slot.how = HOW_FINAL;
		r->mode = r->part.journal.data.mode;
		return 0;
	}
	io_close(r->dst);
	part_close(&r->part, false);
	return RESULT_EXISTS;
}

int home_leave_committed(struct building *r)
{
	const struct fcopy_options *o = &r->tree->options->copy;
	int result = 0;
	if (!(o->preserve & FCOPY_ATTR_MODE) && (result = permissions_set(r->dst, r->mode)) < 0)
		result = permissions_are_fixed(-result) ? 0 : root_fail(r, "fchmod", -result);
	if (result == 0 && o->fsync)
		result = commit_flush_parent(r);
	close(r->dst);
	r->dst = -1;
	r->committed = false;
	r->slot.how = HOW_NONE;
	if (result == 0 && r->part.published)
		part_hide(&r->part);
	if (result == 0)
		home_drop_part(r);
	else
		part_close(&r->part, false);
	part_init(&r->part, r->to->place.dir, r->to->place.name);
	return result;
}
