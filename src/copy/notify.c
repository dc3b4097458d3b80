/* SPDX-License-Identifier: MIT
 * What the caller learns of a running copy: events and progress.
 */
#include "copy.h"
#include "endpoints/error.h"

#include <errno.h>
#include <stdio.h>

void copy_notify(const struct copy *c, enum fcopy_event_kind kind, const struct fcopy_error *error,
		 const char *text)
{
	const struct fcopy_event event = {
	    .kind = kind, .report = c->report, .error = error, .text = text};
	if (c->options->notify)
		c->options->notify(c->options->user, &event);
}

void copy_warn(const struct copy *c, const char *path, int err, const char *reason,
	       enum fcopy_advice advice)
{
	struct fcopy_error e;
	error_refuse(&e, path, err, reason, advice);
	copy_notify(c, FCOPY_EVENT_WARNING, &e, NULL);
}

int copy_warn_or_fail(struct copy *c, int err, const char *reason)
{
	if (c->options->strict)
		return error_refuse(&c->report->error, c->src.path, err, reason, FCOPY_ADVICE_NONE);
	copy_warn(c, c->src.path, err, reason, FCOPY_ADVICE_NONE);
	return 0;
}

/* A truncated stream looks complete; only its expected size shows that it is not. */
int copy_check_size(struct copy *c, uint64_t bytes)
{
	struct fcopy_report *r = c->report;
	const struct fcopy_options *o = c->options;
	bool too_long = o->strict && o->expected_size > 0 && bytes > o->expected_size;
	bool is_short = !too_long && o->strict && bytes < o->count;
	uint64_t wanted = is_short ? o->count : o->expected_size;
	if (!is_short && (o->expected_size == 0 || o->expected_size == bytes))
		return 0;
	if (too_long) /* the copy stopped there */
		snprintf(r->detail, sizeof(r->detail), "has more than %ju byte%s",
			 (uintmax_t)wanted, wanted == 1 ? "" : "s");
	else
		snprintf(r->detail, sizeof(r->detail), "had %ju bytes, not %ju", (uintmax_t)bytes,
			 (uintmax_t)wanted);
	return copy_warn_or_fail(c, EINVAL, r->detail);
}

static void notify_phase(struct fcopy_progress *p, enum fcopy_phase phase)
{
	__atomic_store_n(&p->moved, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->phase, phase, __ATOMIC_RELAXED);
	__atomic_store_n(&p->since_ms, (uint64_t)(io_now() * 1e3), __ATOMIC_RELEASE);
}

void copy_phase(const struct copy *c, enum fcopy_phase phase, uint64_t total)
{
	struct fcopy_progress *p = c->options->progress;
	if (!p)
		return;
	__atomic_store_n(&p->bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total, total, __ATOMIC_RELAXED);
	notify_phase(p, phase);
}

/* Without wants_total, they are the caller's. */
static void notify_clear_totals(struct fcopy_progress *p)
{
	if (!p->wants_total)
		return;
	__atomic_store_n(&p->total, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total_entries, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total_is_final, 0, __ATOMIC_RELAXED);
}

void copy_tree_begin(struct fcopy_progress *p)
{
	if (!p)
		return;
	__atomic_store_n(&p->bytes, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->entries, 0, __ATOMIC_RELAXED);
	notify_clear_totals(p);
	__atomic_add_fetch(&p->file_version, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&p->file[0], '\0', __ATOMIC_RELAXED);
	__atomic_add_fetch(&p->file_version, 1, __ATOMIC_RELEASE);
	notify_phase(p, FCOPY_PHASE_COPY);
}

void copy_tree_phase(struct fcopy_progress *p, enum fcopy_phase phase)
{
	if (!p || __atomic_load_n(&p->phase, __ATOMIC_RELAXED) == (int)phase)
		return;
	notify_clear_totals(p);
	notify_phase(p, phase);
}
