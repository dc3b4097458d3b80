/* SPDX-License-Identifier: MIT
 * The operands: what each SRC is, and how it is copied.
 */
#include "copy/copy.h"
#include "directory.h"
#include "displace.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "entry.h"
#include "pool.h"
#include "report.h"
#include "root.h"
#include "source/filter.h"
#include "spelling.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tree_copy_directory(struct tree *t, struct operand *src, const struct operand *to)
{
	src->fd = open(src->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
				      (src->follow || src->slash ? 0 : O_NOFOLLOW));
	if (src->fd < 0)
		return tree_fail(t, "open", src->path, errno);
	int err = fstat(src->fd, &src->place.st) < 0 ? errno : 0;
	source_hide_mode(&src->place.st, &t->options->copy);
	int r = err           ? tree_fail(t, "fstat", src->path, err)
		: t->share.by ? t->share.by->copy_root(t, src, to)
			      : root_copy(t, src, to);
	close(src->fd);
	src->fd = -1;
	return r;
}

/* Did an earlier operand create what this one would replace? Then their names differ only in case,
 * unless they are hard links that an earlier copy kept. */
static bool tree_was_made(struct tree *t, const struct operand *src, const struct operand *to,
			  struct spelling *spelling)
{
	struct stat st;
	const bool links = t->links && src->place.st.st_nlink > 1 && src->kind != OPERAND_DIRECTORY;
	if (tree_has_several(t) && src->kind == OPERAND_DIRECTORY &&
	    spelling_meets_operand(t, &to->place, spelling))
		return true;
	return tree_has_several(t) && !t->options->copy.no_clobber &&
	       fstatat(to->place.dir, to->place.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       !(links && st.st_nlink > 1) && inodes_has(&t->claims.set[SET_MADE], &st);
}

/* Records an operand's copy for tree_was_made(). copied: SUM_NAMES before it. In a dry run the
 * old file has the name still; its other names stay when the copy replaces it. */
static void tree_note_made(struct tree *t, const struct operand *src, const struct operand *to,
			   uint64_t copied)
{
	const struct fcopy_tree_options *o = t->options;
	const bool keeps_bytes = o->attributes_only && src->kind == OPERAND_FILE;
	struct stat st;
	const bool replaces = o->dry_run && to->place.exists && !S_ISDIR(to->place.st.st_mode) &&
			      to->place.st.st_nlink > 1 &&
			      outcome_sum(t->report->count, SUM_NAMES) > copied && !keeps_bytes &&
			      !in_place_always(&o->copy);
	if (!replaces && tree_has_several(t) && t->root.committed &&
	    fstatat(to->place.dir, to->place.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    inodes_add(&t->claims.set[SET_MADE], &st) < 0)
		tree_stop(t, ENOMEM);
}

/* A new tree is built under a temporary name on every file system. All operands have the same
 * parent, which is searched once; the directories below it are not. */
static void tree_warn_about_stale(struct tree *t, int parent, mode_t mode)
{
	struct operands *o = t->operands;
	bool named = S_ISDIR(mode) || t->options->copy.resume ||
		     (o->parent == PARENT_UNKNOWN && temporary_is_named(parent));
	if (o->parent == PARENT_UNKNOWN)
		o->parent = PARENT_UNNAMED;
	/* The search also removes what is empty. */
	if (!named || o->parent == PARENT_SEARCHED || t->options->dry_run)
		return;
	o->parent = PARENT_SEARCHED;
	stale_warn(parent, &t->options->copy, NULL);
}

/* DST ends in a slash, but SRC is not a directory. */
static int tree_refuse_slash(struct tree *t)
{
	const struct operand *dst = &t->operands->dst;
	if (dst->kind == OPERAND_SYMLINK && dst->error.err == ELOOP)
		return report_operand(t, &dst->error);
	if (dst->kind == OPERAND_NEW || dst->kind == OPERAND_SYMLINK)
		return tree_unsuitable(t, NO_DIRECTORY(dst->path));
	const int err = dst->kind == OPERAND_DIRECTORY ? EISDIR : ENOTDIR;
	return tree_unsuitable(t,
			       (struct fcopy_error){.err = err, .call = "open", .path = dst->path});
}

/* Returns 0, or -errno if the operand, which is no stream, cannot be copied; reported. */
static int tree_check_operand(struct tree *t, const struct operand *src)
{
	const struct operand *dst = &t->operands->dst;
	const bool directory = src->kind == OPERAND_DIRECTORY;
	const struct operand *failed = src->kind == OPERAND_FAILED   ? src
				       : dst->kind == OPERAND_FAILED ? dst
								     : NULL;
	if (failed)
		return report_operand(t, &failed->error);
	if (directory && !t->options->recursive)
		return tree_unsuitable(t, (struct fcopy_error){.err = EISDIR,
							       .path = src->path,
							       .reason = "is a directory",
							       .advice = FCOPY_ADVICE_RECURSIVE});
	if (!directory && t->options->files)
		return tree_refuse(t, src->path, ENOTDIR,
				   "is not a directory, which --files-from requires",
				   FCOPY_ADVICE_USAGE);
	if (t->share.by && !directory && src->kind != OPERAND_FILE)
		return tree_refuse(
		    t, src->path, EINVAL,
		    "is neither a file nor a directory: it cannot be copied in shards",
		    FCOPY_ADVICE_USAGE);
	return !directory && dst->kind != OPERAND_INTO && dst->slash ? tree_refuse_slash(t) : 0;
}

/* Is it copied as fcopy_copy() does? A file with -P, too, if DST is no file: it is written there.
 */
static bool tree_is_copied_alone(const struct tree *t, const struct operand *src)
{
	const struct fcopy_tree_options *o = t->options;
	const enum operand_kind dst = t->operands->dst.kind;
	const bool written = dst == OPERAND_STREAM ||
			     (dst == OPERAND_DEVICE && o->follow == FCOPY_FOLLOW_NEVER);
	return src->kind == OPERAND_STREAM || (src->kind == OPERAND_DEVICE && !o->recursive) ||
	       (src->kind == OPERAND_FILE && (t->share.by || (written && !o->recursive)));
}

/* A new directory was not committed, and nothing says why: that must not look like success. */
static bool tree_is_lost(const struct tree *t, const struct operand *src, const struct operand *to)
{
	return src->kind == OPERAND_DIRECTORY && !to->place.exists && !t->share.by &&
	       !t->options->dry_run && !t->root.committed && !tree_stopped(t) &&
	       t->report->error.err == 0;
}

static int tree_copy_operand(struct tree *t, struct operand *src)
{
	struct operand to;
	struct fcopy_error error;
	struct parents parents = {.count = 0};
	struct spelling spelling = {.path = 0};
	char path[PATH_MAX], itself[PATH_MAX];
	if (tree_is_copied_alone(t, src))
		return single_copy_stream(t, src);
	int r = tree_check_operand(t, src);
	if (r < 0)
		return r;
	r = operand_find_copy(&to, &t->operands->dst, src, path, &error);
	if (r == 0 && src->kind != OPERAND_DIRECTORY && !t->options->copy.force)
		r = operand_check_device(&to, decide_replaces(t->options), &error);
	if (r < 0)
		report_operand(t, &error);
	else if (t->options->parents)
		r = parents_make(t, src, &to, itself, &parents);
	if (r < 0) {
		parents_end(t, &to, &parents);
		operand_close(&to);
		return r;
	}
	t->root.foreseen = parents.absent;
	strcpy(t->report->dst, to.path);
	t->root.existed = to.place.exists;
	const mode_t mode = src->place.st.st_mode;
	const uint64_t copied = outcome_sum(t->report->count, SUM_NAMES);
	if (!t->options->copy.resume)
		tree_warn_about_stale(t, to.place.dir, mode);
	if (tree_was_made(t, src, &to, &spelling))
		r = tree_refuse(t, to.path, EEXIST,
				"is the copy of another source: their names may differ in case",
				FCOPY_ADVICE_NONE);
	else
		r = src->kind == OPERAND_DIRECTORY ? tree_copy_directory(t, src, &to)
						   : single_copy(t, src, &to);
	if (tree_is_lost(t, src, &to))
		r = tree_refuse(t, to.path, EIO, "was not copied", FCOPY_ADVICE_NONE);
	if (t->options->copy.resume) /* the copy continues what was left of it */
		tree_warn_about_stale(t, to.place.dir, mode);
	tree_note_made(t, src, &to, copied);
	if (t->root.committed)
		spelling_note_operand(t, &spelling);
	parents_end(t, &to, &parents);
	operand_close(&to);
	return r;
}

static double tree_sum_seconds(const struct fcopy_tree_report *r)
{
	double sum = 0;
	for (int i = 0; i < FCOPY_PHASES; i++)
		sum += r->seconds[i];
	return sum;
}

/* What took no other phase was the copy. */
static void tree_copy_operand_timed(struct tree *t, struct operand *src)
{
	double start = io_now(), before = tree_sum_seconds(t->report);
	tree_copy_operand(t, src);
	double rest = io_now() - start - (tree_sum_seconds(t->report) - before);
	t->report->seconds[FCOPY_PHASE_COPY] += rest > 0 ? rest : 0;
}

static void tree_copy_sources(struct tree *t, const char *dst)
{
	struct fcopy_tree_report *report = t->report;
	const size_t n = t->operands->count;
	struct fcopy_tree_report before;
	size_t done = 0, last = n;
	bool some = false;
	while (last > 1 && t->operands->src[last - 1].covered)
		last--;
	report->committed = true;
	for (; done < n && !tree_stopped(t); done++) {
		report_operand_begin(t, t->operands->src[done].path, &before);
		copy_tree_phase(t->options->copy.progress, FCOPY_PHASE_COPY);
		t->root.last = done + 1 == last;
		if (t->operands->src[done].covered)
			t->root.committed = true;
		else
			tree_copy_operand_timed(t, &t->operands->src[done]);
		tuning_begin_operand(t);
		report->committed &= t->root.committed;
		some |= t->root.committed;
		report_operand_end(t, done, &before);
	}
	report->committed &= done == n;
	report->error.unsuitable &= !some; /* an empty directory that exists is in no count */
	struct failure fail;
	bool flushes = t->singles.flush_due && !t->options->dry_run &&
		       (report->committed || !tree_stopped(t));
	int r = flushes ? flush_singles(t, t->singles.dir->dst, &fail) : 0;
	if (r < 0)
		tree_fail(t, fail.call, dst, -r);
	if (t->stop && report->error.err == 0)
		tree_fail(t, NULL, dst, -t->stop);
	else if (!report->committed && tree_stopped(t) && report->error.err == 0)
		error_refuse(&report->error, dst, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	report->committed &= !t->options->dry_run;
}

static int tree_make_filter(struct tree *t)
{
	const struct fcopy_tree_options *o = t->options;
	size_t bad;
	int r = filter_new(&t->filter, o, &bad);
	if (r == -EINVAL)
		tree_refuse(t,
			    o->files && bad < o->file_count ? o->files[bad] : o->patterns[bad].text,
			    EINVAL, "names nothing below SRC", FCOPY_ADVICE_USAGE);
	else if (r < 0)
		tree_fail(t, "malloc", NULL, -r);
	return r;
}

static void tree_free(struct tree *t)
{
	filter_free(t->filter);
	links_free(t->links);
	mounts_free(t->known.mounts);
	directory_unref(t->singles.dir);
	claims_free(&t->claims);
	inodes_free(&t->operands->inodes);
	operand_close(&t->operands->dst);
	free(t->operands->src);
}

/* What an earlier run of the command has completed has the same bytes. */
static void tree_skip_complete(struct fcopy_tree_options *o)
{
	if (!o->copy.resume || o->copy.no_clobber)
		return;
	o->update = FCOPY_UPDATE_CHANGED;
	o->checksum = true;
}

int tree_run(const char *const *src, size_t n, const char *dst,
	     const struct fcopy_tree_options *options, struct fcopy_tree_report *report,
	     const struct shared_copy *shared)
{
	struct fcopy_tree_options own = {.copy.api = FCOPY_API};
	struct storage storage = STORAGE_INITIALIZER;
	struct operands operands = {.inodes = INODES_EMPTY, .dst.place = {.dir = -1, .target = -1}};
	struct tree t = {.options = &own,
			 .operands = &operands,
			 .report = report,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .known.storage = &storage,
			 .claims = CLAIMS_EMPTY,
			 .opened.lock = PTHREAD_MUTEX_INITIALIZER};
	struct fcopy_options *o = &own.copy;
	memset(report, 0, sizeof(*report));
	if (copy_options(o, options ? &options->copy : NULL, dst, &report->error) < 0)
		return -1;
	if (options)
		own = *options;
	o->fsync |= o->verify;
	t.known.equal = (struct equal){.storage = &storage,
				       .window_ns = own.modify_window_ns,
				       .root = geteuid() == 0,
				       .required = o->preserve_required,
				       .dry_run = own.dry_run};
	t.share.by = shared;
	t.monitor = (struct monitor){
	    .progress = o->progress, .limit_rate = o->limit_rate, .start = io_now()};
	copy_tree_begin(o->progress);
	tuning_begin_operand(&t);
	t.known.mounts = mounts_new();
	t.links = own.hard_links ? links_new() : NULL;
	if (!t.known.mounts || (own.hard_links && !t.links))
		tree_fail(&t, "malloc", dst, ENOMEM);
	else if (tree_make_filter(&t) == 0 && operands_find(&t, src, n, dst) == 0 &&
		 operands_check(&t) == 0) {
		tree_skip_complete(&own);
		own.keep_going |= own.delete_extra; /* a new DST lacks what failed, no more */
		tree_copy_sources(&t, dst);
	}
	report->not_compared = t.known.equal.left_out;
	if (storage.left) {
		struct fcopy_error left;
		error_operation(&left, STORAGE_REMOVAL, "unlinkat", dst, storage.left);
		report_operand_warning(&t, &left);
	}
	tree_free(&t);
	return report->error.err ? -1 : 0;
}
