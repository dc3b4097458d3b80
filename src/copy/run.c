/* SPDX-License-Identifier: MIT
 * A copy whose ends are open, up to the commit. After a failure abort removes what this run
 * created.
 */
#include "allocate.h"
#include "copy.h"
#include "endpoints/error.h"
#include "move.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Where the copy ends, even if the source is longer: after `count` bytes; or, if a copy of another
 * size than expected will fail, one byte after that size. */
static off_t find_limit(const struct fcopy_options *o)
{
	uint64_t limit = TRANSFER_TO_EOF;
	if (o->expected_size > 0 && o->strict && o->expected_size < limit)
		limit = o->expected_size + 1;
	if (o->count > 0 && o->count < limit)
		limit = o->count;
	return (off_t)limit;
}

/* The expected length in bytes; 0: unknown. */
static uint64_t expected_bytes(const struct copy *c)
{
	if (c->exact)
		return (uint64_t)(c->last - c->first + c->tail);
	if (c->src.positional && c->size > 0)
		return (uint64_t)(c->size - c->first);
	return c->options->expected_size ? c->options->expected_size : c->options->count;
}

static bool has_peer(mode_t type)
{
	return S_ISSOCK(type) || S_ISFIFO(type);
}

/* Checks the cancel flag for the last time before the destination changes. */
static int begin_writing(struct copy *c)
{
	int r = copy_check_cancelled(c);
	if (r < 0 || c->share)
		return r;
	c->report->in_place = S_ISREG(c->dst.st.st_mode) &&
			      endpoint_old(&c->dst) == OLD_OVERWRITTEN;
	c->report->atomic &= !c->report->in_place;
	return 0;
}

#define AHEAD_SIZE ((off_t)2 << 20) /* of a file that may be read ahead, at least */

/* Reads ahead if auto reads a file through the page cache. */
static void prepare_ahead(struct copy *c)
{
	if (c->mode->engine || c->options->no_cache || !c->src.positional ||
	    !S_ISREG(c->src.st.st_mode) || c->size < AHEAD_SIZE)
		return;
	c->ahead = (struct ahead){.most = c->read_ahead ? c->read_ahead : cpus_read_ahead(1)};
	c->all.ahead = &c->ahead;
	ahead_start(&c->ahead, 0);
}

/* Finds out how much will be copied. */
static void expect_size(struct copy *c)
{
	c->limit = c->share || c->exact ? c->last : find_limit(c->options);
	c->size = c->src.st.st_size < c->limit ? c->src.st.st_size : c->limit;
	c->report->expected = expected_bytes(c);
}

/* A head has promised so many bytes to the client, or the client to us. */
static int check_exact(struct copy *c)
{
	struct fcopy_report *r = c->report;
	if (c->exact && c->all.offset == c->last && c->src.ops->surplus &&
	    c->last == c->src.ops->length(&c->src) && c->src.ops->surplus(&c->src))
		return error_refuse(&r->error, c->src.path, EMSGSIZE,
				    "the client sent more bytes than it had announced",
				    FCOPY_ADVICE_NONE);
	if (!c->exact || c->all.offset == c->last)
		return 0;
	if (c->src.positional)
		return error_refuse(&r->error, c->src.path, EBUSY,
				    "became shorter while it was sent", FCOPY_ADVICE_NONE);
	snprintf(r->detail, sizeof(r->detail), "the upload ended after %ju of %ju bytes",
		 (uintmax_t)(c->all.offset - c->first), (uintmax_t)expected_bytes(c));
	return error_refuse(&r->error, c->src.path, EPIPE, r->detail, FCOPY_ADVICE_NONE);
}

#define LEAST_RATE 1024 /* bytes per second: a slower HTTP client only holds a place */

static unsigned least_rate(const struct fcopy_options *o)
{
	const uint64_t own = o->limit_rate / 4;
	return o->limit_rate && own < LEAST_RATE ? (unsigned)own : LEAST_RATE;
}

/* Copies the data and records the time. */
int copy_run_phase(struct copy *c)
{
	double start = c->many ? 0 : io_now();
	expect_size(c);
	c->monitor = (struct monitor){
	    .progress = copy_progress(c), .limit_rate = c->options->limit_rate, .start = start};
	c->all = (struct transfer){.src = c->src.fd,
				   .dst = c->dst.fd,
				   .src_positional = c->src.positional,
				   .dst_positional = c->dst.positional,
				   .offset = c->first,
				   .end = c->limit,
				   .fresh = copy_old(c) != OLD_OVERWRITTEN,
				   .exact = c->local && c->src.positional,
				   .size = S_ISREG(c->src.st.st_mode) ? c->src.st.st_size : 0,
				   .buffer_size = c->options->buffer_size ? c->options->buffer_size
									  : c->mode->buffer_size,
				   .sum = c->options->verify && !c->src.positional ? &c->sum : NULL,
				   .kept = &c->kept,
				   .monitor = c->shared ? c->shared : &c->monitor,
				   .io.cancel = c->options->cancel};
	const struct endpoint_ops *waits = c->src.ops->timeout_ms ? c->src.ops : c->dst.ops;
	if (waits->timeout_ms)
		c->all.io.timeout_ms = waits->timeout_ms(c->options);
	if (c->exact)
		c->all.io.least_rate = least_rate(c->options);
	if (c->began > 0 && (has_peer(c->src.st.st_mode) || has_peer(c->dst.st.st_mode)))
		c->report->seconds[FCOPY_PHASE_WAIT] = start - c->began;
	int r = 0;
	if (c->options->resume && !c->options->scratch) {
		r = verify_prefix(c);
		start = io_now();
	}
	if (!c->shared)
		copy_phase(c, FCOPY_PHASE_COPY, c->report->expected);
	if (copy_progress(c))
		__atomic_store_n(&c->options->progress->bytes, (uint64_t)(c->all.offset - c->first),
				 __ATOMIC_RELAXED);
	if (r == 0)
		r = begin_writing(c);
	prepare_ahead(c);
	if (r == 0 && (!c->exact || c->all.offset < c->last))
		r = plan_run(c);
	if (r == 0)
		r = check_exact(c);
	if (r == -EFBIG)
		space_explain_limit(c);
	c->report->preallocated = c->allocated > 0;
	c->report->bytes = (uint64_t)(c->all.offset - c->first);
	for (size_t i = 0; i < c->report->steps; i++)
		c->report->data += c->report->step[i].bytes;
	c->report->moved = c->shared ? c->report->data
				     : __atomic_load_n(&c->monitor.moved, __ATOMIC_RELAXED);
	if (!c->many) /* a shard runs this for each range */
		c->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	return r;
}

int copy_commit(struct copy *c)
{
	const double start = c->many ? 0 : io_now();
	copy_phase(c, FCOPY_PHASE_REPLACE, 0);
	const int held = copy_hold(c);
	int r = c->dst.ops->commit(&c->dst, &c->report->error);
	if (held >= 0)
		r = copy_look_again(c, held, r);
	enum endpoint_receipt receipt = c->dst.ops->receipt ? c->dst.ops->receipt(&c->dst)
							    : RECEIPT_NEVER;
	c->report->confirmed = receipt == RECEIPT_CONFIRMED;
	if (r == 0 && receipt == RECEIPT_MISSING && !c->served)
		copy_warn(c, c->dst.path, ENODATA,
			  "not confirmed: the peer has every byte, but may not have stored it",
			  FCOPY_ADVICE_NONE);
	if (!c->many)
		c->report->seconds[FCOPY_PHASE_REPLACE] = io_now() - start;
	return r;
}

/* Connects, or waits for the peer. Both ends are open, so little can fail afterwards. */
static int start_endpoint(struct copy *c, struct endpoint *e, char peer[FCOPY_ADDRESS_MAX])
{
	if (!e->ops->start)
		return 0;
	const char *address = endpoint_listens(e);
	if (address)
		copy_notify(c, FCOPY_EVENT_LISTENING, NULL, address);
	int r = e->ops->start(e, &c->report->error);
	if (!endpoint_listens(e))
		snprintf(peer, FCOPY_ADDRESS_MAX, "%s", e->ops->peer(e));
	return r;
}

static void notify_not_atomic(const struct copy *c)
{
	struct fcopy_error e;
	if (!c->dst.not_atomic)
		return;
	error_refuse(&e, c->dst.path, EOPNOTSUPP, c->dst.not_atomic, FCOPY_ADVICE_NONE);
	copy_notify(c, FCOPY_EVENT_NOT_ATOMIC, &e, NULL);
}

/* The first write or the truncation failed, and the source can be read again. */
static bool starts_over(struct copy *c)
{
	const struct fcopy_error *e = &c->report->error;
	bool writes = c->report->in_place && e->path == c->dst.path && e->call;
	bool first = c->all.offset == 0 || c->failed == STEP_TRUNCATE;
	return writes && first && S_ISREG(c->src.st.st_mode) && c->src.positional &&
	       c->dst.ops->start_over && c->dst.ops->start_over(&c->dst, e);
}

static int copy_and_settle(struct copy *c)
{
	int r = copy_run_phase(c);
	if (r == 0)
		r = copy_settle(c);
	if (r == 0) { /* also those that DST itself sent */
		c->report->bytes += (uint64_t)c->tail;
		c->report->data += (uint64_t)c->tail;
		c->report->moved += (uint64_t)c->tail;
	}
	return r;
}

/* SRC says how many bytes will come, and waits until it may send them. */
static int begin_upload(struct copy *c)
{
	const off_t length = c->src.ops->length(&c->src);
	const uint64_t count = c->options->count;
	c->exact = true;
	c->last = count > 0 && count < (uint64_t)length ? (off_t)count : length;
	expect_size(c);
	int r = c->options->force ? 0 : space_require(c);
	return r < 0 ? r : c->src.ops->proceed(&c->src, &c->report->error);
}

/* DST is complete: a peer that does not receive the confirmation is no failure of the copy. */
static void reply(struct copy *c, int outcome)
{
	c->report->skipped = outcome == RESULT_SKIPPED;
	int r = c->src.ops->reply ? c->src.ops->reply(&c->src, c->report) : 0;
	if (outcome == 0 && r < 0)
		copy_warn(c, c->src.path, -r, "the client may not know that its file was stored",
			  FCOPY_ADVICE_NONE);
}

static void discard_scratch(struct copy *c)
{
	double start = io_now(), cpu = io_thread_seconds();
	c->dst.ops->abort(&c->dst);
	c->report->seconds[FCOPY_PHASE_REMOVE] = io_now() - start;
	c->report->removal_cpu = io_thread_seconds() - cpu;
}

/* The copy was committed, or it failed. */
static void end_destination(struct copy *c, int r)
{
	const bool failed = r < 0 || r == RESULT_RIVAL;
	if (failed && c->resumes && (!c->intact || c->all.offset > 0))
		c->report->part_kept = c->dst.ops->keep_partial(&c->dst, c->all.offset);
	if (failed && c->dst.ops->release_blocks)
		c->dst.ops->release_blocks(&c->dst, c->allocated);
	if (c->options->scratch)
		discard_scratch(c);
	else if (r != 0)
		c->dst.ops->abort(&c->dst);
}

static void warn_about_doubt(const struct copy *c)
{
	const char *why = c->src.ops->doubt ? c->src.ops->doubt(&c->src) : NULL;
	if (why)
		copy_warn(c, c->src.path, EPROTO, why, FCOPY_ADVICE_NONE);
}

static int run_open_copy(struct copy *c)
{
	c->report->type = c->src.st.st_mode & S_IFMT;
	c->report->existed = endpoint_old_stat(&c->dst);
	/* Also in place the old file is whole until begin_writing. */
	c->report->not_atomic = c->dst.not_atomic;
	c->report->atomic = S_ISREG(c->dst.st.st_mode) && c->dst.positional;
	notify_not_atomic(c);
	expect_size(c); /* a sender that listens reports it */
	int r = start_endpoint(c, &c->src, c->report->src_peer);
	if (r == 0)
		r = start_endpoint(c, &c->dst, c->report->dst_peer);
	if (r == 0)
		warn_about_doubt(c);
	if (r == 0 && c->src.ops->length)
		r = begin_upload(c);
	/* The file is invisible until it is complete, so batch small reads. */
	if (r == 0 && c->src.ops->gather && c->dst.positional)
		c->src.ops->gather(&c->src);
	if (r == 0)
		r = copy_and_settle(c);
	if (r < 0 && starts_over(c)) {
		c->report->error = (struct fcopy_error){0};
		c->report->data = c->report->holes = c->report->steps = 0; /* of the first try */
		r = copy_and_settle(c);
	}
	if (r == 0 && !c->options->scratch)
		r = copy_commit(c);
	if (r != RESULT_TAKEN)
		end_destination(c, r);
	return r;
}

static int end_source(struct copy *c, int r)
{
	if (r == RESULT_TAKEN)
		return r;
	reply(c, r);
	if (r == 0)
		r = c->src.ops->commit(&c->src, &c->report->error);
	if (r != 0)
		c->src.ops->abort(&c->src);
	return r;
}

int copy_run(struct copy *c)
{
	return end_source(c, run_open_copy(c));
}

int copy_end(struct copy *c, int r)
{
	if (r == 0)
		r = copy_commit(c);
	if (r != RESULT_TAKEN)
		end_destination(c, r);
	return end_source(c, r);
}
