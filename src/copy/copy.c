/* SPDX-License-Identifier: MIT
 * A copy of one file: opens both ends.
 */
#include "copy.h"
#include "decide.h"
#include "endpoints/error.h"
#include "endpoints/same.h"
#include "endpoints/storage.h"
#include "notify.h"
#include "rules.h"

#include <errno.h>
#include <string.h>

_Static_assert(FCOPY_PATH_MAX >= PATH_MAX, "a path may not fit into the report");

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
	/* To open one FIFO as both would wait for a writer for ever. */
	if (r == 0 && S_ISFIFO(src->place.st.st_mode) && dst->kind == OPERAND_DEVICE)
		r = decide_copy(c, src, &src->place.st, dst);
	if (r == 0 && (r = source_open(&c->src, src, e)) < 0)
		c->report->dst[0] = '\0';
	if (r != 0)
		return r;
	source_hide_mode(&c->src.st, c->options);
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
	if (r != RESULT_SKIPPED || c->src.ops->commit(&c->src, c->options, e) < 0)
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
