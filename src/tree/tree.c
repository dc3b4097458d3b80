/* SPDX-License-Identifier: MIT
 * The operands: what each SRC is, and how it is copied.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "rivals.h"
#include "root.h"
#include "source/filter.h"
#include "target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names that are made without a flush: only the endpoint of a regular file flushes it. */
static uint64_t count_unflushed(const struct fcopy_tree_report *r)
{
	return r->symlinks + r->specials + r->hard_links;
}

static uint64_t count_finished(const struct fcopy_tree_report *r)
{
	return r->files + r->kept + count_unflushed(r);
}

/* A file, symlink or special file, by way of a directory that holds only this one. */
static int copy_single(struct tree *t, const char *src, const struct target *target, bool follow)
{
	struct stat none = {0};
	struct fcopy_tree_report *report = t->report;
	char path[PATH_MAX], name[NAME_MAX + 1];
	size_t length;
	const char *last = place_last_component(src, &length);
	uint64_t failed = report->failed, vanished = report->vanished;
	uint64_t unflushed = count_unflushed(report), finished = count_finished(report);
	if (length > NAME_MAX)
		return tree_fail(t, "open", src, ENAMETOOLONG);
	memcpy(name, last, length);
	name[length] = '\0';
	struct directory *d = t->into;
	int fd = target_open_parent(src, path);
	int dst = d ? d->dst : fcntl(target->parent, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0 && dst >= 0 && !d)
		d = directory_new(NULL, "", fd, dst, &none);
	if (fd < 0 || !d) {
		int err = errno;
		if (fd >= 0)
			close(fd);
		if (!d && dst >= 0)
			close(dst);
		return fd < 0    ? tree_fail(t, "open", src, -fd)
		       : dst < 0 ? tree_fail(t, "fcntl(F_DUPFD)", target->path, err)
				 : tree_fail(t, "malloc", src, ENOMEM);
	}
	t->into = d;
	d->src = fd;
	d->src_path = path;
	d->dst_path = target->directory;
	t->atomic = t->single = true;
	t->resume = false;
	walk_entry(t,
		   &(struct entry){.dir = d, .name = name, .as = target->name, .follow = follow});
	t->single = false;
	if (report->vanished > vanished)
		tree_fail(t, "open", src, ENOENT);
	t->unflushed |= count_unflushed(report) > unflushed;
	/* A signal that came after the commit has nothing left to stop. */
	t->committed = report->failed == failed && count_finished(report) > finished;
	close(fd);
	d->src = -1;
	return t->committed ? 0 : -EIO;
}

static int copy_directory(struct tree *t, const char *src, const struct target *target, bool follow)
{
	struct operand o = {
	    .path = src, .parent = target->parent, .name = target->name, .dst = target->path};
	bool slash = src[strlen(src) - 1] == '/';
	o.src = open(src, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (follow || slash ? 0 : O_NOFOLLOW));
	if (o.src < 0)
		return tree_fail(t, "open", src, errno);
	if (fstat(o.src, &o.st) < 0) {
		close(o.src);
		return tree_fail(t, "fstat", src, errno);
	}
	source_hide_mode(&o.st, &t->options->copy);
	int r = t->shard ? shard_root_copy(t, &o) : root_copy(t, &o);
	close(o.src);
	return r;
}

/* A stream, or a device whose bytes are wanted. */
static int copy_stream(struct tree *t, const char *src, const char *dst)
{
	struct fcopy_report one;
	struct fcopy_options o = t->options->copy;
	if (o.mode && !(o.mode->takes & FCOPY_TAKES_THREADS))
		o.threads = 0; /* of the tree */
	if (t->options->dry_run)
		return tree_refuse(t, src, EINVAL, "--dry-run knows only files and directories",
				   FCOPY_ADVICE_USAGE);
	copy_tree_phase(o.progress, FCOPY_PHASE_WAIT);
	int r = fcopy_copy(src, dst, &o, &one);
	t->report->bytes += one.bytes;
	t->report->data += one.data;
	t->report->holes += one.holes;
	t->report->kept += one.kept;
	for (int i = 0; i < FCOPY_PHASES; i++)
		t->report->seconds[i] += one.seconds[i];
	t->report->files += r == 0 && !one.kept;
	if (one.atomic) /* only such a DST is unchanged after a failure */
		strcpy(t->report->dst, one.dst);
	t->committed = r == 0 && (!t->shard || one.committed);
	report_add_steps(t->report, one.step, one.steps);
	if (r < 0)
		report_operand(t, &one.error);
	return r;
}

/* A new tree is built under a temporary name on every file system. All operands have the same
 * parent, which is searched once; the directories below it are not. */
static void warn_about_stale(struct tree *t, int parent, mode_t mode)
{
	bool named = S_ISDIR(mode) || (!t->probed && temporary_is_named(parent));
	t->probed = true;
	if (!named || t->searched)
		return;
	t->searched = true;
	stale_warn(parent, &t->options->copy, NULL);
}

/* DST may be the copy itself, which shards have committed since: then a retry of one of them must
 * not make DST/basename(SRC). */
static int find_shared_copy(struct tree *t, struct target *target, const char *src, const char *dst,
			    const struct stat *st)
{
	struct target itself = {.parent = -1};
	size_t length;
	const char *last = place_last_component(dst, &length);
	if (operand_is_unnamed(last, length))
		return 0;
	int r = target_find(t, &itself, src, dst);
	if (r < 0) {
		close(target->parent);
		return r;
	}
	const struct operand o = {
	    .path = src, .st = *st, .parent = itself.parent, .name = itself.name, .dst = dst};
	r = shard_names_copy(t, &o);
	close(r > 0 ? target->parent : itself.parent);
	if (r > 0)
		*target = itself;
	else if (r < 0)
		close(target->parent);
	return r;
}

static int copy_operand(struct tree *t, const char *src, const char *dst, struct target *target)
{
	const struct fcopy_tree_options *o = t->options;
	bool follow = o->follow == FCOPY_FOLLOW_DEFAULT ? !o->recursive
							: o->follow != FCOPY_FOLLOW_NEVER;
	struct stat st;
	if (stream_names(src))
		return copy_stream(t, src, dst);
	if (fstatat(AT_FDCWD, src, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && lstat(src, &st) == 0
			   ? tree_refuse(t, src, ENOENT, "is a dangling symlink", FCOPY_ADVICE_NONE)
			   : tree_fail(t, "stat", src, errno);
	if (S_ISDIR(st.st_mode) && !o->recursive)
		return tree_refuse(t, src, EISDIR, "is a directory", FCOPY_ADVICE_RECURSIVE);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !o->recursive)
		return copy_stream(t, src, dst);
	if (t->shard && !S_ISDIR(st.st_mode))
		return S_ISREG(st.st_mode)
			   ? copy_stream(t, src, dst)
			   : tree_refuse(t, src, EINVAL,
					 "is neither a file nor a directory: it cannot be "
					 "copied in shards",
					 FCOPY_ADVICE_USAGE);
	if (!S_ISDIR(st.st_mode) && !target->into && dst[strlen(dst) - 1] == '/') {
		if (stat(dst, &st) == 0)
			return tree_fail(t, "open", dst, S_ISDIR(st.st_mode) ? EISDIR : ENOTDIR);
		return errno == ENOENT
			   ? tree_refuse(t, dst, ENOENT, "no such directory", FCOPY_ADVICE_NONE)
			   : tree_fail(t, "open", dst, errno);
	}
	int r = target_find(t, target, src, dst);
	if (r == 0 && t->shard && target->into)
		r = find_shared_copy(t, target, src, dst, &st);
	if (r < 0)
		return r;
	strcpy(t->report->dst, target->path);
	warn_about_stale(t, target->parent, st.st_mode);
	if (target_was_made(t, target))
		r = tree_refuse(t, target->path, EEXIST,
				"is the copy of another source: their names may differ in case",
				FCOPY_ADVICE_NONE);
	else
		r = S_ISDIR(st.st_mode) ? copy_directory(t, src, target, follow)
					: copy_single(t, src, target, follow);
	target_note_made(t, target);
	close(target->parent);
	return r;
}

static double sum_seconds(const struct fcopy_tree_report *r)
{
	double sum = 0;
	for (int i = 0; i < FCOPY_PHASES; i++)
		sum += r->seconds[i];
	return sum;
}

/* What took no other phase was the copy. */
static void copy_operand_timed(struct tree *t, const char *src, const char *dst,
			       struct target *target)
{
	double start = io_now(), before = sum_seconds(t->report);
	copy_operand(t, src, dst, target);
	double rest = io_now() - start - (sum_seconds(t->report) - before);
	t->report->seconds[FCOPY_PHASE_COPY] += rest > 0 ? rest : 0;
}

static void copy_operands(struct tree *t, const char *const *src, size_t n, const char *dst)
{
	struct fcopy_tree_report *report = t->report;
	struct target target = {.parent = -1};
	if (operands_check(t, src, n, dst) < 0 ||
	    operands_find_directory(t, n, dst, &target.into) < 0)
		return;
	size_t done = 0;
	report->committed = true;
	t->several = n > 1;
	t->operand = src;
	t->operands = n;
	for (; done < n && !tree_stopped(t); done++) {
		t->committed = false;
		copy_tree_phase(t->options->copy.progress, FCOPY_PHASE_COPY);
		copy_operand_timed(t, src[done], dst, &target);
		report->committed &= t->committed;
	}
	report->committed &= done == n;
	const char *call;
	bool flushes = t->unflushed && !t->options->dry_run &&
		       (report->committed || !tree_stopped(t));
	int r = flushes ? flush_singles(t, target.directory, &call) : 0;
	if (r < 0)
		tree_fail(t, call, dst, -r);
	if (t->stop && report->error.err == 0)
		tree_fail(t, NULL, dst, -t->stop);
	else if (!report->committed && tree_stopped(t) && report->error.err == 0)
		error_refuse(&report->error, dst, EINTR, "interrupted", FCOPY_ADVICE_NONE);
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

int fcopy_tree(const char *const *src, size_t n, const char *dst,
	       const struct fcopy_tree_options *options, struct fcopy_tree_report *report)
{
	struct fcopy_tree_options own = {.copy.api = FCOPY_API};
	struct tree t = {.options = &own,
			 .report = report,
			 .lock = PTHREAD_MUTEX_INITIALIZER,
			 .replacing = PTHREAD_MUTEX_INITIALIZER,
			 .storage = STORAGE_INITIALIZER};
	struct fcopy_options *o = &own.copy;
	memset(report, 0, sizeof(*report));
	if (copy_options(o, options ? &options->copy : NULL, dst, &report->error) < 0)
		return -1;
	if (options)
		own = *options;
	o->fsync |= o->verify;
	t.io.cancel = o->cancel;
	t.shard = o->shard.count > 0 || o->shard.finish ? &o->shard : NULL;
	t.threads = o->threads;
	t.monitor = (struct monitor){
	    .progress = o->progress, .limit_rate = o->limit_rate, .start = io_now()};
	copy_tree_begin(o->progress);
	if (tree_make_filter(&t) < 0)
		return -1;
	t.links = t.options->hard_links ? links_new() : NULL;
	t.made = inodes_new();
	if (!t.made || (t.options->hard_links && !t.links))
		tree_fail(&t, "malloc", dst, ENOMEM);
	else
		copy_operands(&t, src, n, dst);
	links_free(t.links);
	filter_free(t.filter);
	directory_unref(t.into);
	inodes_free(t.made);
	inodes_free(t.sources);
	return report->error.err ? -1 : 0;
}
