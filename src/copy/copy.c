/* SPDX-License-Identifier: MIT
 * A copy of one file: opens both ends. With --resume, an earlier run of the command may have
 * completed the copy: then nothing is written.
 */
#include "copy.h"
#include "decide.h"
#include "endpoints/case.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "endpoints/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

_Static_assert(FCOPY_PATH_MAX >= PATH_MAX, "a path may not fit into the report");

/* Opens DST if it is another file of the size of SRC, without other names. Returns a descriptor or
 * -1. */
static int complete_open(const struct copy *c, const struct operand *dst, struct stat *st)
{
	const struct fcopy_options *o = c->options;
	if (!o->resume || o->scratch || o->no_clobber || o->count > 0 || c->share ||
	    dst->kind != OPERAND_FILE || !S_ISREG(c->src.st.st_mode) || !c->src.positional ||
	    dst->place.st.st_size != c->src.st.st_size)
		return -1;
	int fd = openat(dst->place.dir, dst->place.name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1; /* the copy itself reports what is wrong */
	if (fstat(fd, st) == 0 && same_inode(st, &dst->place.st) &&
	    st->st_size == c->src.st.st_size && st->st_nlink == 1 && !same_inode(st, &c->src.st))
		return fd;
	close(fd);
	return -1;
}

/* Some file systems, such as procfs, report the size 0 of files that have content. */
static bool complete_is_empty(const struct copy *c)
{
	char byte;
	return c->src.st.st_size == 0 && pread(c->src.fd, &byte, 1, 0) == 0;
}

/* The earlier run may have been killed before it flushed the directory. */
static int complete_flush_name(struct copy *c, int place)
{
	const int r = io_flush_place(place);
	if (r == 0)
		return 0;
	error_operation(&c->report->error, "fsync of the directory", "fsync", c->dst.path, -r);
	c->report->error.advice = FCOPY_ADVICE_FLUSH;
	return r;
}

/* Options of this run may ask for attributes that the earlier one did not set. */
static int complete_accept(struct copy *c, const struct operand *dst)
{
	struct fcopy_report *report = c->report;
	report->bytes = report->expected = (uint64_t)c->src.st.st_size;
	report->existed = report->atomic = true;
	int r = copy_check_size(c, report->bytes);
	if (r == 0)
		r = copy_attributes(c, true, copy_lose_attribute);
	if (r == 0 && c->options->fsync)
		r = copy_flush(c, true);
	if (r == 0 && c->options->fsync)
		r = complete_flush_name(c, dst->place.dir);
	return r < 0 ? r : 1;
}

/* Has DST all bytes of the open SRC already, so that a copy with options.resume only has to set
 * attributes? Returns 1, 0, or -errno with the failure recorded. */
static int copy_complete(struct copy *c, const struct operand *dst)
{
	struct fcopy_report *report = c->report;
	const off_t size = c->src.st.st_size;
	struct stat st;
	bool cached;
	int fd = complete_open(c, dst, &st);
	if (fd < 0)
		return 0;
	source_adopt(&c->dst, fd, dst->path, &st);
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)size);
	off_t same = size > 0 ? compare_files(c, 0, size, c->options->fsync, false, &cached)
		     : complete_is_empty(c) ? 0
					    : -EIO; /* it is copied */
	report->seconds[FCOPY_PHASE_VERIFY] = io_now() - start;
	int r = same < 0 ? (int)same : same == size ? complete_accept(c, dst) : 0;
	c->dst.ops->abort(&c->dst);
	/* Only a cancellation ends the copy: what cannot be read is replaced. */
	if (same < 0 && same != -EINTR) {
		report->error = (struct fcopy_error){0};
		return 0;
	}
	if (r <= 0)
		return r;
	/* The earlier run may have been killed before it removed its part. */
	partial_remove(dst->place.dir, dst->place.name, c->src.fd, &c->src.st);
	stale_warn(dst->place.dir, c->options, report);
	report->resumed = report->bytes;
	copy_notify(c, FCOPY_EVENT_RESUME, NULL, NULL);
	return 1;
}

/* A file system that has O_TMPFILE is not searched: a killed copy leaves no name there, except in
 * the instant between linkat and rename. */
static void warn_about_stale_files(const struct copy *c)
{
	int dir;
	if (!c->options->scratch && c->dst.ops->leaves_name &&
	    c->dst.ops->leaves_name(&c->dst, &dir))
		stale_warn(dir, c->options, c->report);
}

/* What becomes of DST, which gets the bytes of src, whatever its type. Two nodes of one disk are
 * one file. A place that is no file at all is left to the open, unless it is kept, as with cp -n.
 * Returns 0, RESULT_SKIPPED, or -errno. */
static int decide_copy(const struct copy *c, const struct operand *from, const struct stat *src,
		       const struct operand *dst)
{
	static const struct ground ground = {.foreign = true, .single = true};
	const struct fcopy_tree_options o = {.copy = *c->options};
	const struct place *p = &dst->place;
	struct fcopy_error *e = &c->report->error;
	struct facts f = {.looked = true, .old = p->st};
	f.exists = dst->kind != OPERAND_STREAM && p->exists && !c->options->scratch &&
		   (dst->kind != OPERAND_FAILED || place_leads_nowhere(&dst->error) ||
		    (c->options->no_clobber && dst->error.err == EPERM) ||
		    (dst->error.err == EISDIR && dst->error.advice == FCOPY_ADVICE_NONE));
	f.old_output = f.exists ? same_output(c->options, &f.old) : NULL;
	f.src = same_file(src, &f.old) ? f.old : (struct stat){0};
	f.src.st_mode = S_IFREG;
	const struct decision d = decide(&ground, &f, &o);
	if (d.act != ACT_REFUSE)
		return d.act == ACT_SKIP ? RESULT_SKIPPED : 0;
	return d.pair ? same_refuse(from->path, dst->path, e)
		      : same_refuse_output(f.old_output, dst->path, e);
}

/* On FUSE, DST may be the open source under another spelling, with another inode number: gives it
 * that of the source, so that the look at DST finds one file. */
static void find_source(const struct copy *c, struct place *dst)
{
	const struct stat *src = &c->src.st;
	if (dst->dir >= 0 && dst->exists && !same_inode(src, &dst->st) &&
	    case_is_source(c->storage, c->src.fd, "", src->st_dev, dst->dir, dst->name,
			   dst->st.st_dev))
		dst->st.st_ino = src->st_ino;
}

static int open_and_run(struct copy *c, const struct operand *src, struct operand *dst,
			int (*shared)(struct copy *))
{
	struct fcopy_error *e = &c->report->error;
	struct request request = {.src = src, .dst = dst, .options = c->options};
	int r = rules_check(&request, e, c->report->detail);
	if (r < 0)
		return r;
	operand_find_file(dst, src, c->report->dst);
	r = c->options->force || c->options->scratch ? 0 : operand_check_device(dst, false, e);
	/* To open one FIFO as SRC and DST would block for ever. With -n and an existing DST, SRC is
	 * not needed. */
	if (r == 0 && S_ISFIFO(src->place.st.st_mode) &&
	    (dst->kind == OPERAND_DEVICE || c->options->no_clobber))
		r = decide_copy(c, src, &src->place.st, dst);
	if (r == 0 && (r = source_open(&c->src, src, c->options, e)) < 0) {
		c->report->dst[0] = '\0';
		if (e->advice == FCOPY_ADVICE_RECURSIVE && dst->kind == OPERAND_STREAM)
			e->advice = FCOPY_ADVICE_NONE; /* with -r, it is refused as well */
	}
	if (r != 0)
		return r;
	source_hide_mode(&c->src.st, c->options);
	find_source(c, &dst->place);
	r = copy_complete(c, dst);
	if (r != 0) {
		c->src.ops->abort(&c->src);
		return r < 0 ? r : 0;
	}
	r = decide_copy(c, src, &c->src.st, dst);
	if (r == 0)
		r = destination_open(&c->dst, dst, &c->src, c->options, c->storage, e);
	if (r == 0) {
		request.from = &c->src;
		request.to = &c->dst;
		r = rules_check(&request, e, c->report->detail);
		if (r < 0)
			c->dst.ops->abort(&c->dst);
	}
	if (r == 0 && shared)
		return shared(c);
	if (r == 0) {
		warn_about_stale_files(c);
		return copy_run(c);
	}
	/* Kept: no failure, and a socket of the caller stays usable. */
	if (r != RESULT_SKIPPED || !c->src.ops->commit || c->src.ops->commit(&c->src, e) < 0)
		c->src.ops->abort(&c->src);
	return r;
}

int copy_options(struct fcopy_options *own, const struct fcopy_options *passed, const char *dst,
		 struct fcopy_error *error)
{
	*own = (struct fcopy_options){.api = FCOPY_API};
	if (!passed)
		return 0;
	if (passed->api != FCOPY_API) /* the other members may have other offsets */
		return error_refuse(error, dst, EINVAL, "options.api is not FCOPY_API",
				    FCOPY_ADVICE_NONE);
	*own = *passed;
	return 0;
}

int copy_operands(const struct operand *src, struct operand *dst,
		  const struct fcopy_options *options, struct fcopy_report *report,
		  int (*shared)(struct copy *))
{
	struct fcopy_options own = *options;
	struct storage storage = STORAGE_INITIALIZER;
	struct copy c = {.options = &own, .report = report, .began = io_now(), .storage = &storage};
	memset(report, 0, sizeof(*report));
	c.share = shared;
	own.fsync |= own.verify || c.share;
	own.strict |= c.share; /* a source that changes must not be mixed */
	c.mode = c.options->mode ? c.options->mode : fcopy_modes();
	int r = open_and_run(&c, src, dst, shared);
	report->skipped = r == RESULT_SKIPPED;
	if (storage.left) {
		struct fcopy_error left;
		error_operation(&left, STORAGE_REMOVAL, "unlinkat", dst->path, storage.left);
		copy_notify(&c, FCOPY_EVENT_WARNING, &left, NULL);
	}
	return r < 0 ? -1 : 0;
}

int copy_paths(const char *src, const char *dst, const struct fcopy_options *options,
	       struct fcopy_report *report, int (*shared)(struct copy *))
{
	struct fcopy_options own;
	struct operand from, to;
	memset(report, 0, sizeof(*report));
	if (copy_options(&own, options, dst, &report->error) < 0)
		return -1;
	operand_find_source(&from, src, true);
	operand_find_destination(&to, dst, !own.no_directory);
	int r = copy_operands(&from, &to, &own, report, shared);
	operand_close(&to);
	return r;
}
