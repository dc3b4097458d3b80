/* SPDX-License-Identifier: MIT
 * One pair from open to commit. Whatever fails on the way, abort leaves nothing of it.
 */
#include "copy.h"
#include "io/error.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void copy_notify(const struct copy *c, enum fcopy_event_kind kind, const struct fcopy_error *error,
		 const char *text)
{
	const struct fcopy_event event = {kind, c->report, error, text};
	if (c->options->notify)
		c->options->notify(c->options->user, &event);
}

void copy_phase(const struct copy *c, enum fcopy_phase phase, uint64_t total)
{
	struct fcopy_progress *p = c->options->progress;
	if (!p)
		return;
	__atomic_store_n(&p->bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total, total, __ATOMIC_RELAXED);
	__atomic_store_n(&p->phase, phase, __ATOMIC_RELAXED);
}

/* Moves the bytes, and notes how long that took. */
static int move(struct copy *c)
{
	double start = io_now();
	c->monitor = (struct monitor){
	    .progress = c->options->progress, .limit_rate = c->options->limit_rate, .start = start};
	c->all = (struct transfer){.src = c->src.fd,
				   .dst = c->dst.fd,
				   .src_positional = c->src.positional,
				   .dst_positional = c->dst.positional,
				   .end = TRANSFER_TO_EOF,
				   .buffer_size = c->options->buffer_size ? c->options->buffer_size
									  : c->mode->buffer_size,
				   .monitor = &c->monitor,
				   .io.cancel = c->options->cancel};
	if (c->src.socket || c->dst.socket)
		c->all.io.timeout_ms = socket_timeout_ms(c->options);
	copy_phase(c, FCOPY_PHASE_COPY,
		   S_ISREG(c->src.st.st_mode) ? (uint64_t)c->src.st.st_size : 0);
	int r = c->options->resume && !c->options->scratch ? verify_prefix(c) : 0;
	if (r == 0)
		r = plan_run(c);
	c->report->bytes = (uint64_t)c->all.offset;
	for (size_t i = 0; i < c->report->steps; i++)
		c->report->data += c->report->step[i].bytes;
	c->report->seconds[FCOPY_PHASE_COPY] = io_now() - start;
	return r;
}

/* Something is wrong with the source: a warning, unless the caller is strict. */
static int object(struct copy *c, int err, const char *reason)
{
	struct fcopy_error e;
	error_refuse(&e, c->src.path, err, reason, FCOPY_ADVICE_NONE);
	if (!c->options->strict) {
		copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
		return 0;
	}
	c->report->error = e;
	return -err;
}

/* Did the source stay what it was? Nobody can promise more than that its stat says so. */
static int check_source(struct copy *c)
{
	struct stat now;
	const struct stat *then = &c->src.st;
	if (!S_ISREG(then->st_mode))
		return 0;
	if (fstat(c->src.fd, &now) < 0)
		return error_call(&c->report->error, "fstat", c->src.path, errno);
	if (now.st_size == then->st_size && now.st_ino == then->st_ino &&
	    now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == then->st_mtim.tv_nsec)
		return 0;
	c->report->source_changed = true;
	return object(c, EBUSY, "changed while it was copied");
}

/* A stream that was cut short looks whole, but not to somebody who knows its size. */
static int check_size(struct copy *c)
{
	struct fcopy_report *r = c->report;
	if (c->options->size == 0 || c->options->size == r->bytes)
		return 0;
	snprintf(r->detail, sizeof(r->detail), "had %ju bytes, not %ju", (uintmax_t)r->bytes,
		 (uintmax_t)c->options->size);
	return object(c, EINVAL, r->detail);
}

#define AHEAD_MOST ((off_t)8 << 30) /* XFS_MAX_BMBT_EXTLEN, in blocks of 4 KiB */

/* Cuts what lies beyond the finished prefix: blocks allocated, old bytes, a padded last block. Not
 * when there is nothing: XFS writes the whole file out before it sets a size, even the same. */
static int trim(struct copy *c)
{
	struct stat st;
	if (fstat(c->dst.fd, &st) < 0)
		return error_call(&c->report->error, "fstat", c->dst.path, errno);
	if (st.st_size == c->all.offset && c->allocated <= c->all.offset) {
		/* XFS keeps what it allocated ahead of the last write for a file that knew
		 * fallocate. */
		if (c->allocated > 0)
			io_punch(c->dst.fd, c->all.offset, c->all.offset + AHEAD_MOST);
		return 0;
	}
	while (ftruncate(c->dst.fd, c->all.offset) < 0)
		if (errno != EINTR || io_cancelled(&c->all.io))
			return error_call(&c->report->error, "ftruncate", c->dst.path, errno);
	return 0;
}

/* An error of fsync is final: the next one would claim success (the kernel reports it once). */
static int flush(struct copy *c)
{
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_FLUSH, 0);
	/* fdatasync leaves out owner, mode and attributes where it can (fsync(2)). */
	bool all = c->options->preserve != 0 || c->dst.mode;
	int r = (all ? fsync(c->dst.fd) : fdatasync(c->dst.fd)) < 0 ? -errno : 0;
	c->report->seconds[FCOPY_PHASE_FLUSH] = io_now() - start;
	if (r < 0)
		return error_call(&c->report->error, all ? "fsync" : "fdatasync", c->dst.path, -r);
	if (c->options->no_cache && c->dst.positional)
		posix_fadvise(c->dst.fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

/* In this order, because chown clears setuid and capabilities, and an ACL changes the mode. A loss
 * is a warning, unless the caller insists. */
static int preserve(struct copy *c)
{
	static const enum fcopy_attribute order[] = {FCOPY_TIMESTAMPS, FCOPY_OWNERSHIP, FCOPY_XATTR,
						     FCOPY_MODE};
	bool told = false;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		struct fcopy_error e;
		if (!(c->options->preserve & order[i]) ||
		    preserve_one(&c->src, &c->dst, order[i], &e) == 0)
			continue;
		if (c->options->preserve_required & order[i]) {
			c->report->error = e;
			return -e.err;
		}
		if (e.call || !told) /* that one of them is no file holds for all */
			copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
		told |= !e.call;
	}
	return 0;
}

static int cancelled(struct copy *c)
{
	if (!io_cancelled(&c->all.io))
		return 0;
	return error_refuse(&c->report->error, c->dst.path, EINTR, "interrupted",
			    FCOPY_ADVICE_NONE);
}

/* A producer that failed at once looks like a stream without bytes: no reason to lose a file. */
static int check_empty(struct copy *c)
{
	mode_t from = c->src.st.st_mode;
	const struct place *old = &c->dst.place;
	bool loses = old->exists && S_ISREG(old->st.st_mode) && old->st.st_size > 0;
	if (!S_ISFIFO(from) && !S_ISSOCK(from))
		return 0;
	if (c->all.offset > 0 || !loses || c->options->force)
		return 0;
	return error_refuse(&c->report->error, c->dst.path, ENODATA,
			    "is kept: the stream that was to replace it had no bytes",
			    FCOPY_ADVICE_FORCE);
}

/* Everything between the last byte and the name. */
static int settle(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	int r = check_source(c);
	if (r == 0)
		r = check_empty(c);
	if (r == 0)
		r = check_size(c);
	if (r == 0 && S_ISREG(c->dst.st.st_mode) && c->dst.positional &&
	    (c->untidy || c->dst.in_place))
		r = trim(c);
	if (r == 0 && c->dst.ops->finish)
		r = c->dst.ops->finish(&c->dst, o, &c->report->error);
	if (r == 0)
		r = preserve(c);
	if (r == 0 && (o->fsync || o->verify || o->no_cache))
		r = flush(c);
	if (r == 0 && o->verify)
		r = verify_copy(c);
	return r < 0 ? r : cancelled(c);
}

static int commit(struct copy *c)
{
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_COMMIT, 0);
	int r = c->dst.ops->commit(&c->dst, c->options, &c->report->error);
	c->report->confirmed = c->dst.confirmed;
	if (r == 0 && c->dst.socket && !c->dst.confirmed && !c->served) {
		struct fcopy_error e;
		error_refuse(&e, c->dst.path, ENODATA,
			     "not confirmed: the peer has every byte, and gave no receipt",
			     FCOPY_ADVICE_NONE);
		copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
	}
	c->report->seconds[FCOPY_PHASE_COMMIT] = io_now() - start;
	return r;
}

/* Both ends are open: now the peers may come. */
static int start(struct copy *c, struct endpoint *e, char peer[FCOPY_ADDRESS_MAX])
{
	if (!e->ops->start)
		return 0;
	if (e->listening)
		copy_notify(c, FCOPY_EVENT_LISTENING, NULL, e->address);
	int r = e->ops->start(e, c->options, &c->report->error);
	if (!e->listening)
		memcpy(peer, e->address, sizeof(e->address));
	return r;
}

/* With its good bytes, and with the mode by which the next try knows it. */
static void leave_part(struct copy *c)
{
	if (ftruncate(c->dst.fd, c->all.offset) < 0)
		c->dst.keep_part = false; /* what cannot be cut is no use */
	(void)!fchmod(c->dst.fd, 0600);
}

static int run(struct copy *c)
{
	int r = start(c, &c->src, c->report->src_peer);
	if (r == 0)
		r = start(c, &c->dst, c->report->dst_peer);
	/* Nobody sees the bytes of a file before it has them all. */
	if (r == 0 && c->src.socket && c->dst.positional)
		socket_gather(&c->src);
	if (r == 0)
		r = move(c);
	if (r == 0)
		r = settle(c);
	if (r == 0 && !c->options->scratch)
		r = commit(c);
	else if (r < 0 && c->resumes && c->dst.temporary[0])
		leave_part(c);
	else if (r < 0 && c->dst.in_place)
		allocate_give_back(c);
	if (r < 0 || c->options->scratch)
		c->dst.ops->abort(&c->dst);
	return r;
}

int copy_run(struct copy *c)
{
	int r = run(c);
	if (r == 0)
		r = c->src.ops->commit(&c->src, c->options, &c->report->error);
	if (r < 0)
		c->src.ops->abort(&c->src);
	return r;
}

static int open_and_run(struct copy *c, const char *src, const char *dst)
{
	struct fcopy_error *e = &c->report->error;
	int r = copy_possible(src, dst, c->options, e);
	if (r == 0)
		r = source_open(&c->src, src, e);
	if (r < 0)
		return r;
	r = destination_open(&c->dst, dst, &c->src, c->options, c->report->dst, e);
	if (r == 0)
		return copy_run(c);
	c->src.ops->abort(&c->src);
	return r;
}

int fcopy_copy(const char *src, const char *dst, const struct fcopy_options *options,
	       struct fcopy_report *report)
{
	static const struct fcopy_options defaults;
	struct copy c = {.options = options ? options : &defaults, .report = report};
	memset(report, 0, sizeof(*report));
	c.mode = c.options->mode ? c.options->mode : fcopy_modes();
	int r = open_and_run(&c, src, dst);
	if (r == -EEXIST && c.options->no_clobber) {
		report->error = (struct fcopy_error){0};
		report->kept = true;
		r = 0;
	}
	return r < 0 ? -1 : 0;
}
