/* SPDX-License-Identifier: MIT
 * Implements move.h.
 */
#include "move.h"
#include "allocate.h"
#include "endpoints/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

/* The engine's step in the report: one for all its runs. */
static struct fcopy_step *move_find_step(struct fcopy_report *report, const char *engine)
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
	if (!t->call && err == ESPIPE) {
		e->reason = "this mode needs a file: a stream has no offsets";
		if (S_ISREG(c->src.st.st_mode) && S_ISREG(c->dst.st.st_mode))
			error_unsuitable(e); /* a file, but as a stream */
	}
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

int move_refused(struct copy *c, const struct engine *engine, const struct transfer *t)
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

static bool move_flushes(const struct copy *c)
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

#define SLICE ((off_t)64 << 20)

/* Runs the engine in slices, and notes each complete one in the journal of DST.fcopy-part: a kill
 * costs one slice. A clone is one call. */
static int move_noted(struct copy *c, const struct engine *engine, struct transfer *t,
		      unsigned threads)
{
	const off_t end = t->end;
	const bool slices = c->resumes && engine != &engine_reflink;
	const struct helpers *helpers = c->facts.helped ? c->helpers : NULL;
	int r;
	do {
		const off_t from = t->offset;
		t->end = slices && end - from > SLICE ? from - from % SLICE + SLICE : end;
		r = threads > 0 ? ranges_run(engine, t, threads, move_flushes(c), helpers)
				: engine->copy(t);
		int lost = c->resumes && r == 0 ? c->dst.ops->note_partial(&c->dst, from, t->offset)
						: 0;
		if (lost < 0)
			r = transfer_fail(t, "fdatasync", SIDE_DST, lost);
	} while (slices && r == 0 && t->offset == t->end && t->offset < end && !t->ended);
	return r;
}

int move_by(struct copy *c, const struct engine *engine, struct transfer *t, unsigned threads)
{
	size_t engines = c->report->steps;
	struct fcopy_step *step = move_find_step(c->report, engine->name);
	uint64_t calls = t->io.calls;
	off_t from = t->offset;
	double start = io_now();
	t->call = t->operation = NULL; /* a previous engine may have set them */
	t->side = SIDE_NONE;
	t->refusal = 0;
	t->ended = false;
	if (c->report->steps > engines && !c->many)
		copy_notify(c, FCOPY_EVENT_STEP, NULL, engine->name);
	int r = move_noted(c, engine, t, threads);
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
	if (r == RESULT_NEXT) {
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

static void free_buffer(struct copy *c)
{
	io_free(c->buffer, c->buffer_size);
	c->buffer = NULL;
	c->buffer_size = 0;
}

void move_free(struct copy *c)
{
	free_buffer(c);
	engine_free_kept(&c->kept);
}

bool move_enlarge(struct copy *c, size_t size)
{
	if (c->buffer_size >= size)
		return true;
	free_buffer(c);
	c->buffer = io_alloc(size);
	c->buffer_size = c->buffer ? size : 0;
	return c->buffer;
}

/* Runs an engine in a buffer for each thread. threads: 0 for the engine alone. */
static int move_buffered(struct copy *c, const struct engine *engine, struct transfer *t,
			 unsigned threads)
{
	const size_t size = t->buffer_size;
	if (threads > SIZE_MAX / size || (threads > 1 && !move_enlarge(c, threads * size)))
		threads = 1; /* no memory for all of them */
	if (!move_enlarge(c, size))
		return error_call(&c->report->error, "mmap", c->dst.path, errno);
	t->buffer = c->buffer;
	return move_by(c, engine, t, threads);
}

static const struct engine *engine_of(const struct copy *c, enum mover kind)
{
	switch (kind) {
	case MOVER_MODE: return engine_find(c->mode->engine);
	case MOVER_DIRECT: return &engine_direct;
	case MOVER_REMOTE: return &engine_copy_file_range;
	case MOVER_SPLICE: return &engine_splice;
	case MOVER_SENDFILE: return &engine_sendfile;
	default: return &engine_readwrite;
	}
}

#define GROWTH_STEP ((off_t)1 << 20) /* a multiple of what direct I/O aligns to */

off_t move_look_again_at(const struct copy *c)
{
	const off_t size = c->src.st.st_size;
	if (!S_ISREG(c->src.st.st_mode) || size == 0 || size > c->limit - 2 * GROWTH_STEP)
		return c->limit;
	return (size + 2 * GROWTH_STEP - 1) / GROWTH_STEP * GROWTH_STEP;
}

static int move_once(struct copy *c, struct transfer *t, const struct move *m)
{
	const struct engine *engine = engine_of(c, m->kind);
	t->end = t->offset + m->size;
	t->buffer = NULL;
	t->buffer_size = m->buffer ? m->buffer : c->facts.mode_buffer; /* of splice: of its pipe */
	/* A piece past the prefix may be written when another one fails. */
	c->needs_truncate |= m->threads > 0 || m->kind == MOVER_DIRECT;
	if (m->allocate)
		allocate_ahead(c, t->offset, t->end);
	/* Direct I/O reads until the end of the file, which alone may be unaligned. */
	if (m->kind == MOVER_DIRECT && t->end == c->size)
		t->end = move_look_again_at(c);
	if (engine == &engine_readwrite && m->buffer > 0)
		return move_buffered(c, engine, t, m->threads);
	return move_by(c, engine, t, m->threads);
}

/* A refusal holds for the whole file. With --no-cache, readwrite then uses uncached I/O
 * (RWF_DONTCACHE), and fails if the file system does not support it. */
static void note_refusal(struct copy *c, struct transfer *t, enum mover kind)
{
	mover_note_refusal(&c->seen, kind);
	if (kind == MOVER_DIRECT && c->options->no_cache)
		t->io.flags = c->all.io.flags = IO_UNCACHED;
}

/* Waits for the device until it has the data before `at`, so that the progress follows the device.
 * Like fsync, a wait that fails means that data is lost: a later fsync need not report it again.
 * Some file systems lack the call. */
static int wait_for_device(struct copy *c, off_t at)
{
	const off_t from = MAX(c->first, at - MOVER_FLUSHED_SIZE);
	if (!c->facts.paced || at <= from)
		return 0;
	if (sync_file_range(c->dst.fd, from, at - from,
			    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
				SYNC_FILE_RANGE_WAIT_AFTER) == 0 ||
	    errno == ESPIPE || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
		return 0;
	return error_call(&c->report->error, "sync_file_range", c->dst.path, errno);
}

/* What a trial has shown, for -vv. */
static void notify_trial(const struct copy *c, unsigned threads)
{
	char text[96];
	const double gib = 1024.0 * 1024 * 1024;
	snprintf(text, sizeof(text), "a trial: %.2f s per GiB by splice, %.2f s in %u threads",
		 c->seen.cost[WAY_SPLICE] * gib, c->seen.cost[WAY_THREADS] * gib, threads);
	copy_notify(c, FCOPY_EVENT_PLAN, NULL, text);
}

/* A piece took so many seconds: what follows from that. Starts writeback of what is complete while
 * the rest is copied; sync_file_range(2) leaves an error to fsync. */
static int move_end_piece(struct copy *c, const struct transfer *t, const struct move *m,
			  off_t from, double seconds)
{
	const off_t bytes = t->offset - from;
	const unsigned threads = c->seen.threads;
	double cost = seconds / (double)bytes;
	if (m->threads > 0 && t->steady_bytes > 0)
		cost = t->steady_seconds / (double)t->steady_bytes;
	if (m->busy && !c->seen.busy)
		copy_notify(c, FCOPY_EVENT_PLAN, NULL,
			    "no trial now: fewer than two CPUs are idle");
	mover_note(&c->seen, m, bytes, cost);
	if (m->trial && c->seen.pieces == 0)
		notify_trial(c, threads);
	if (c->facts.may_wait && c->ahead.window > 0 && !c->seen.waits)
		mover_note_waiting(&c->seen, cpus_memory(CPUS_CGROUP, CPUS_CGROUP_ROOT) / 4);
	if (bytes > 0 && move_flushes(c))
		sync_file_range(c->dst.fd, from, bytes, SYNC_FILE_RANGE_WRITE);
	return wait_for_device(c, from);
}

static struct mover_now look_now(const struct copy *c, const struct mover_range *x)
{
	const bool helped = c->facts.helped;
	return (struct mover_now){
	    .idle_cpus = mover_asks(&c->facts, &c->seen, x) ? cpus_idle() : 0,
	    .idle_threads = helped && __atomic_load_n(c->helpers->idle, __ATOMIC_RELAXED) > 0,
	    .waits = c->ahead.window > 0};
}

int move_range(struct copy *c, struct transfer *t, off_t end, bool rest)
{
	const off_t start = t->offset;
	off_t to = start;
	int r = RESULT_NEXT;
	while (r == RESULT_NEXT || (r == 0 && t->offset == to && t->offset < end)) {
		const off_t from = t->offset;
		const struct mover_range x = {rest, from == c->first, end - start, end - from};
		const struct mover_now now = look_now(c, &x);
		const struct move m = mover_next(&c->facts, &c->seen, &x, &now);
		const double began = m.piece ? io_now() : 0;
		to = from + m.size;
		r = move_once(c, t, &m);
		if (m.piece) {
			int ended = move_end_piece(c, t, &m, from, io_now() - began);
			if (r >= 0 &&
			    ended < 0) /* reported only once, so no other engine may go on */
				r = ended;
		}
		if (r == RESULT_NEXT && m.kind == MOVER_MODE)
			break;
		if (r == RESULT_NEXT)
			note_refusal(c, t, m.kind);
	}
	return r;
}
