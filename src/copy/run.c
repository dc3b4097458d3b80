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

static bool run_has_peer(mode_t type)
{
	return S_ISSOCK(type) || S_ISFIFO(type);
}

#define AHEAD_SIZE ((off_t)2 << 20) /* of a file that may be read ahead, at least */

/* Reads ahead if auto reads a file through the page cache. */
static void run_read_ahead(struct copy *c)
{
	if (c->mode->engine || c->options->no_cache || !c->src.positional ||
	    !S_ISREG(c->src.st.st_mode))
		return;
	c->ahead = (struct ahead){.most = c->read_ahead ? c->read_ahead : cpus_read_ahead(1)};
	c->all.ahead = &c->ahead;
	ahead_start(&c->ahead, 0);
}

/* Finds out how much will be copied. Even if the source is longer, the copy ends after `count`
 * bytes; or, if a copy of another size than expected will fail, one byte after that size. */
static void run_expect_size(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	uint64_t limit = TRANSFER_TO_EOF;
	if (o->expected_size > 0 && o->strict && o->expected_size < limit)
		limit = o->expected_size + 1;
	if (o->count > 0 && o->count < limit)
		limit = o->count;
	c->limit = c->share || c->exact ? c->last : (off_t)limit;
	c->size = c->src.st.st_size < c->limit ? c->src.st.st_size : c->limit;
	if (c->exact)
		c->report->expected = (uint64_t)(c->last - c->first + c->tail);
	else if (c->src.positional && c->size > 0)
		c->report->expected = (uint64_t)(c->size - c->first);
	else
		c->report->expected = o->expected_size ? o->expected_size : o->count;
}

/* A head has promised so many bytes to the client, or the client to us. */
static int run_check_exact(struct copy *c)
{
	struct fcopy_report *r = c->report;
	if (c->all.offset == c->last && c->src.ops->surplus &&
	    c->last == c->src.ops->length(&c->src) && c->src.ops->surplus(&c->src))
		return error_refuse(&r->error, c->src.path, EMSGSIZE,
				    "the client sent more bytes than it had announced",
				    FCOPY_ADVICE_NONE);
	if (c->all.offset == c->last)
		return 0;
	if (c->src.positional)
		return error_refuse(&r->error, c->src.path, EBUSY,
				    "became shorter while it was sent", FCOPY_ADVICE_NONE);
	snprintf(r->detail, sizeof(r->detail), "the upload ended after %ju of %ju bytes",
		 (uintmax_t)(c->all.offset - c->first), (uintmax_t)r->expected);
	return error_refuse(&r->error, c->src.path, EPIPE, r->detail, FCOPY_ADVICE_NONE);
}

#define LEAST_RATE 1024 /* bytes per second: a slower HTTP client only holds a place */

static unsigned run_least_rate(const struct fcopy_options *o)
{
	const uint64_t own = o->limit_rate / 4;
	return o->limit_rate && own < LEAST_RATE ? (unsigned)own : LEAST_RATE;
}

/* Before the first byte is moved. */
static void run_prepare(struct copy *c, double start)
{
	const struct fcopy_options *o = c->options;
	const struct endpoint_ops *waits = c->src.ops->timeout_ms ? c->src.ops : c->dst.ops;
	c->monitor = (struct monitor){.progress = c->shared ? NULL : o->progress,
				      .limit_rate = o->limit_rate,
				      .start = start};
	c->all = (struct transfer){.src = c->src.fd,
				   .dst = c->dst.fd,
				   .src_positional = c->src.positional,
				   .dst_positional = c->dst.positional,
				   .offset = c->first,
				   .end = c->limit,
				   .fresh = copy_old(c) != OLD_OVERWRITTEN,
				   .exact = c->local && c->src.positional,
				   .size = S_ISREG(c->src.st.st_mode) ? c->src.st.st_size : 0,
				   .buffer_size = o->buffer_size ? o->buffer_size
								 : c->mode->buffer_size,
				   .sum = o->verify && !c->src.positional ? &c->sum : NULL,
				   .kept = &c->kept,
				   .monitor = c->shared ? c->shared : &c->monitor,
				   .io.cancel = o->cancel};
	if (waits->timeout_ms)
		c->all.io.timeout_ms = waits->timeout_ms(o);
	if (c->exact)
		c->all.io.least_rate = run_least_rate(o);
}

/* Asked before the first write, which clears capabilities, and unless root writes also setuid and
 * setgid bits. Root takes those that SRC lacks: its bytes must not run with the rights of the old
 * file. open(2) may have cleared bits that the name showed; but if the owner is another one, it is
 * another file. */
static void run_note_held(struct copy *c)
{
	const bool files = S_ISREG(c->dst.st.st_mode) && S_ISREG(c->src.st.st_mode);
	struct stat now, was;
	c->held.known = true;
	if (!files || !c->options->preserve || !c->dst.old_stat || fstat(c->dst.fd, &now) < 0)
		return;
	was = *c->dst.old_stat;
	if (now.st_uid != was.st_uid || now.st_gid != was.st_gid)
		was = now;
	c->held = attributes_hold(c->src.fd, &c->src.st, c->dst.fd, &was);
	const mode_t keeps = 01777 | (c->src.st.st_mode & c->held.bits);
	if (c->options->preserve & FCOPY_ATTR_MODE && now.st_mode & 07777 & ~keeps)
		(void)!fchmod(c->dst.fd, now.st_mode & keeps);
}

/* Copies the data and records the time. */
int copy_run_phase(struct copy *c)
{
	struct fcopy_report *report = c->report;
	double start = c->many ? 0 : io_now();
	run_expect_size(c);
	run_prepare(c, start);
	if (c->began > 0 && (run_has_peer(c->src.st.st_mode) || run_has_peer(c->dst.st.st_mode)))
		report->seconds[FCOPY_PHASE_WAIT] = start - c->began;
	int r = 0;
	if (c->options->resume && !c->options->scratch) {
		r = verify_prefix(c);
		start = io_now();
	}
	if (c->monitor.progress) {
		copy_phase(c, FCOPY_PHASE_COPY, report->expected);
		__atomic_store_n(&c->monitor.progress->bytes, (uint64_t)(c->all.offset - c->first),
				 __ATOMIC_RELAXED);
	}
	if (r == 0) /* for the last time before DST changes */
		r = copy_check_cancelled(c);
	if (r == 0 && !c->share) {
		report->in_place = S_ISREG(c->dst.st.st_mode) && c->dst.old == OLD_OVERWRITTEN;
		report->atomic &= !report->in_place;
	}
	if (r == 0 && c->dst.old == OLD_OVERWRITTEN && !c->held.known)
		run_note_held(c);
	if (c->size >= AHEAD_SIZE)
		run_read_ahead(c);
	if (r == 0 && (!c->exact || c->all.offset < c->last))
		r = plan_run(c);
	if (!c->many)
		move_free(c);
	if (r == 0 && c->exact)
		r = run_check_exact(c);
	if (r == -EFBIG)
		space_explain_limit(c);
	report->preallocated = c->allocated > 0;
	report->bytes = (uint64_t)(c->all.offset - c->first);
	for (size_t i = 0; i < report->steps; i++)
		report->data += report->step[i].bytes;
	report->moved = c->shared ? report->data
				  : __atomic_load_n(&c->monitor.moved, __ATOMIC_RELAXED);
	if (!c->many) /* a shard runs this for each range */
		report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	return r;
}

int copy_commit(struct copy *c)
{
	const double start = c->many ? 0 : io_now();
	const int held = c->stored.st_nlink > 0 ? copy_hold(c) : -1;
	if (!c->many)
		copy_phase(c, FCOPY_PHASE_REPLACE, 0);
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

/* SRC says how many bytes will come, and waits until it may send them. */
static int run_begin_upload(struct copy *c)
{
	const off_t length = c->src.ops->length(&c->src);
	const uint64_t count = c->options->count;
	c->exact = true;
	c->last = count > 0 && count < (uint64_t)length ? (off_t)count : length;
	run_expect_size(c);
	int r = c->options->force ? 0 : space_require(c);
	return r < 0 ? r : c->src.ops->proceed(&c->src, &c->report->error);
}

static int run_start_peer(struct copy *c, struct endpoint *e, char peer[FCOPY_ADDRESS_MAX])
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

/* Connects, or waits for the peers. Both ends are open, so little can fail afterwards. */
static int run_start_peers(struct copy *c)
{
	run_expect_size(c); /* a sender that listens reports it */
	int r = run_start_peer(c, &c->src, c->report->src_peer);
	if (r == 0)
		r = run_start_peer(c, &c->dst, c->report->dst_peer);
	const char *doubt = r == 0 && c->src.ops->doubt ? c->src.ops->doubt(&c->src) : NULL;
	if (doubt)
		copy_warn(c, c->src.path, EPROTO, doubt, FCOPY_ADVICE_NONE);
	if (r == 0 && c->src.ops->length)
		r = run_begin_upload(c);
	/* The file is invisible until it is complete, so batch small reads. */
	if (r == 0 && c->src.ops->gather && c->dst.positional)
		c->src.ops->gather(&c->src);
	return r;
}

static void run_notify_visible(const struct copy *c)
{
	struct fcopy_error e;
	error_refuse(&e, c->dst.path, EOPNOTSUPP, c->dst.visible, FCOPY_ADVICE_NONE);
	copy_notify(c, FCOPY_EVENT_NOT_ATOMIC, &e, NULL);
}

/* The first write or the truncation failed, and the source can be read again. */
static bool run_starts_over(struct copy *c)
{
	const struct fcopy_error *e = &c->report->error;
	bool writes = c->report->in_place && e->path == c->dst.path && e->call;
	bool first = c->all.offset == 0 || c->failed == STEP_TRUNCATE;
	return writes && first && S_ISREG(c->src.st.st_mode) && c->src.positional &&
	       c->dst.ops->start_over && c->dst.ops->start_over(&c->dst, e);
}

static int run_and_settle(struct copy *c)
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

int copy_run(struct copy *c)
{
	struct fcopy_report *report = c->report;
	int r = 0;
	report->type = c->src.st.st_mode & S_IFMT;
	report->existed = c->dst.old_stat;
	/* Also in place the old file is whole until the first write. */
	report->not_atomic = c->dst.visible;
	report->atomic = S_ISREG(c->dst.st.st_mode) && c->dst.positional;
	if (c->dst.visible)
		run_notify_visible(c);
	if (c->src.ops->start || c->dst.ops->start)
		r = run_start_peers(c);
	if (r == 0)
		r = run_and_settle(c);
	if (r < 0 && run_starts_over(c)) {
		report->error = (struct fcopy_error){0};
		report->data = report->holes = report->steps = 0; /* of the first try */
		r = run_and_settle(c);
	}
	return copy_end(c, r);
}

static void run_discard_scratch(struct copy *c)
{
	double start = io_now(), cpu = io_thread_seconds();
	c->dst.ops->abort(&c->dst);
	c->report->seconds[FCOPY_PHASE_REMOVE] = io_now() - start;
	c->report->removal_cpu = io_thread_seconds() - cpu;
}

/* The failed call on DST, or on both files; NULL: none has failed. */
static const struct fcopy_error *run_failure_of_destination(const struct copy *c)
{
	const struct fcopy_error *e = &c->report->error;
	return e->call && e->err != EINTR && (e->path != c->src.path || e->path2) ? e : NULL;
}

/* DST gets nothing of the copy, or has no name. */
static void run_abort_destination(struct copy *c, int r)
{
	const bool failed = r < 0 || r == RESULT_RIVAL;
	if (failed && c->resumes && (!c->intact || c->all.offset > 0))
		c->report->part_kept = c->dst.ops->keep_partial(&c->dst, c->all.offset,
								run_failure_of_destination(c));
	if (failed && c->dst.ops->release_blocks)
		c->dst.ops->release_blocks(&c->dst, c->allocated);
	if (c->options->scratch)
		run_discard_scratch(c);
	else
		c->dst.ops->abort(&c->dst);
}

/* DST is complete: a peer that does not receive the confirmation is no failure of the copy. */
static void run_reply(struct copy *c, int outcome)
{
	c->report->skipped = outcome == RESULT_SKIPPED;
	int r = c->src.ops->reply(&c->src, c->report);
	if (outcome == 0 && r < 0)
		copy_warn(c, c->src.path, -r, "the client may not know that its file was stored",
			  FCOPY_ADVICE_NONE);
}

int copy_end(struct copy *c, int r)
{
	if (r == 0 && !c->options->scratch)
		r = copy_commit(c);
	if (r == RESULT_TAKEN)
		return r;
	if (r != 0 || c->options->scratch)
		run_abort_destination(c, r);
	if (c->src.ops->reply)
		run_reply(c, r);
	const bool commits = r == 0 && c->src.ops->commit;
	if (commits)
		r = c->src.ops->commit(&c->src, &c->report->error);
	if (!commits || r != 0)
		c->src.ops->abort(&c->src);
	return r;
}
