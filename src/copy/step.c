/* SPDX-License-Identifier: MIT
 * Runs one engine in a copy and records what it did.
 */
#define _GNU_SOURCE
#include "step.h"
#include "notify.h"
#include "ranges.h"

#include <errno.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

/* The engine's step in the report: one for all its runs. */
static struct fcopy_step *find_step(struct fcopy_report *report, const char *engine)
{
	size_t i = 0;
	while (i < report->steps && strcmp(report->step[i].engine, engine) != 0)
		i++;
	if (i == report->steps) {
		report->steps++;
		report->step[i] = (struct fcopy_step){.engine = engine};
	}
	return &report->step[i];
}

/* The file that the failed call was about; NULL if it was about none or both. */
static const char *side_path(const struct copy *c, enum side side)
{
	return side == SIDE_SRC ? c->src.path : side == SIDE_DST ? c->dst.path : NULL;
}

/* EIO of a call on both files does not show whose storage failed: read a byte of the source at that
 * offset. */
static void find_side(const struct copy *c, struct transfer *t)
{
	char byte;
	if (t->side != SIDE_BOTH || !c->src.positional)
		return;
	ssize_t got = io_read(&t->io, t->src, &byte, 1, t->offset);
	t->side = got < 0 ? SIDE_SRC : SIDE_DST;
}

static void describe_error(const struct copy *c, const struct engine *engine,
			   const struct transfer *t, int err, struct fcopy_error *e)
{
	*e = (struct fcopy_error){.err = err,
				  .call = t->call,
				  .operation = t->operation,
				  .path = side_path(c, t->side),
				  .engine = engine->name};
	if (!t->call && err == ESPIPE)
		e->reason = "this mode needs a file: a stream has no offsets";
	if (!t->call && err == ENOSYS)
		e->reason = engine->probe(); /* no call was made: this build lacks the engine */
	if (!t->call && err == EBUSY)
		e->reason = "was truncated while it was copied";
	if (err == EOPNOTSUPP && t->io.flags) /* only uncached I/O sets any */
		e->advice = FCOPY_ADVICE_CACHE;
	if (!e->path) {
		e->path = c->src.path;
		e->path2 = c->dst.path;
	}
}

/* Files of hugetlbfs have no write(2): then no other mode helps. */
static bool accepts_writes(const struct copy *c)
{
	return !S_ISREG(c->dst.st.st_mode) || write(c->dst.fd, "", 0) == 0 || errno != EINVAL;
}

int step_refused(struct copy *c, const struct engine *engine, const struct transfer *t)
{
	describe_error(c, engine, t, t->refusal > 0 ? t->refusal : EOPNOTSUPP, &c->report->error);
	/* With EFBIG no other engine can help; and if auto was used, do not advise auto. */
	if (c->mode->engine && t->refusal != EFBIG && accepts_writes(c))
		c->report->error.advice = FCOPY_ADVICE_AUTO;
	if (!c->mode->engine && engine == &engine_reflink)
		c->report->error.advice = FCOPY_ADVICE_REFLINK;
	if (c->mode->engine && !t->call)
		c->report->error.option = "mode";
	return t->refusal > 0 ? -t->refusal : -EOPNOTSUPP; /* 0 would commit an incomplete copy */
}

/* An engine that the user selected has no next one: its refusal is the copy's failure. */
static bool has_next(const struct copy *c, const struct engine *engine)
{
	return !c->mode->engine &&
	       (engine != &engine_reflink || c->options->reflink != FCOPY_WHEN_ALWAYS);
}

bool step_flushes(const struct copy *c)
{
	return c->options->fsync || c->options->no_cache || copy_old(c) == OLD_REPLACED;
}

/* If the source was truncated during the copy, the engine may have written zeros for lost bytes.
 * Removes them from the finished prefix. Only the last call, or the last call of each thread, can
 * have written any: a further call would have reported the end. The copy fails if dst is a stream,
 * because sent bytes cannot be taken back. r is what the engine returned. Only a size that is lower
 * than before proves a truncation: files of procfs have more bytes than st_size. */
static int leave_out_zeros(struct copy *c, struct transfer *t, off_t from, int r)
{
	struct stat now = c->src.st;
	if (S_ISREG(now.st_mode) && fstat(t->src, &now) < 0)
		return r < 0 ? r : transfer_fail(t, "fstat", SIDE_SRC, -errno);
	off_t end = t->src_positional ? t->offset : lseek(t->src, 0, SEEK_CUR);
	if (!S_ISREG(now.st_mode) || now.st_size >= c->src.st.st_size || end <= now.st_size)
		return r;
	off_t most = (off_t)MAX(ENGINE_CHUNK, (uint64_t)t->buffer_size * MAX(t->threads, 1));
	t->offset = MAX(from, t->offset - MIN(most, end - now.st_size));
	c->needs_truncate = c->report->source_changed = true;
	return r < 0 || t->dst_positional ? r : transfer_fail(t, NULL, SIDE_SRC, -EBUSY);
}

/* threads: 0 runs the engine without ranges_run. 1 uses ranges_run, which also starts writeback.
 * Runs the engine in slices, and notes each complete one in the journal of DST.fcopy-part: a kill
 * costs one slice. A clone is one call. */
#define SLICE ((off_t)64 << 20)
static int run_noted(struct copy *c, const struct engine *engine, struct transfer *t,
		     unsigned threads)
{
	const off_t end = t->end;
	int r = 0;
	bool slices = c->resumes && engine != &engine_reflink;
	do {
		const off_t from = t->offset;
		if (slices && end - from > SLICE)
			t->end = from - from % SLICE + SLICE;
		r = threads > 0 ? ranges_run(engine, t, threads, step_flushes(c), c->helpers)
				: engine->copy(t);
		if (c->resumes && r == 0)
			c->dst.ops->note_partial(&c->dst, from, t->offset);
		if (t->offset < t->end)
			break;
		if (slices)
			t->end = end;
	} while (slices && r == 0 && t->offset < end && !t->ended);
	t->end = end;
	return r;
}

static int run_step(struct copy *c, const struct engine *engine, struct transfer *t,
		    unsigned threads)
{
	size_t engines = c->report->steps;
	struct fcopy_step *step = find_step(c->report, engine->name);
	uint64_t calls = t->io.calls;
	off_t from = t->offset;
	double start = io_now();
	t->call = t->operation = NULL; /* a previous engine may have set them */
	t->side = SIDE_NONE;
	t->refusal = 0;
	t->ended = false;
	if (c->report->steps > engines)
		copy_notify(c, FCOPY_EVENT_STEP, NULL, engine->name);
	int r = run_noted(c, engine, t, threads);
	if (engine->leaves_zeros || threads > 0) /* the source may be truncated under its readers */
		r = leave_out_zeros(c, t, from, r);
	const unsigned ran = threads > 0 ? t->threads : 1;
	step->seconds += io_now() - start;
	if (step->threads < ran)
		step->threads = ran;
	step->calls += t->io.calls - calls;
	if (t->offset > from) {
		step->bytes += (uint64_t)(t->offset - from);
		step->piece = threads > 0 ? t->piece : t->buffer_size;
	}
	if (r == 0 && engine == &engine_reflink)
		c->report->cloned = true;
	if (r == ENGINE_NEXT) {
		struct fcopy_error e;
		describe_error(c, engine, t, t->refusal, &e);
		step->refusal = t->refusal;
		step->refusal_call = t->call;
		if (has_next(c, engine))
			copy_notify(c, FCOPY_EVENT_REFUSAL, &e, NULL);
	} else if (r < 0) {
		if (r == -EIO)
			find_side(c, t);
		describe_error(c, engine, t, -r, &c->report->error);
	}
	return r;
}

int step_run(struct copy *c, const struct engine *engine, struct transfer *t)
{
	return run_step(c, engine, t, 0);
}

int step_run_threads(struct copy *c, const struct engine *engine, struct transfer *t,
		     unsigned threads)
{
	/* A piece past the prefix may be written when another one fails. */
	c->needs_truncate = true;
	return run_step(c, engine, t, threads);
}
