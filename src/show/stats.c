/* SPDX-License-Identifier: MIT
 * --stats: what time(1) prints, and what only the copy knows.
 */
#include "io/io.h"
#include "report.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define LABEL 17 /* columns of a label */
#define VALUE 10 /* ... and of a value with its unit */

#define WAIT_MIN 1e-3 /* seconds; opening a pipe whose other side is open takes less */

/* "128 ms" */
static struct text time_words(double seconds)
{
	struct text t = {0};
	text_duration(&t, (uint64_t)(seconds * 1e6 + 0.5));
	return t;
}

/* "  9.5 MiB/s"; nothing if no byte has moved, or no time has passed. */
static struct text rate_words(uint64_t bytes, double seconds)
{
	struct text t = {0};
	if (seconds <= 0 || bytes == 0)
		return t;
	text_add(&t, "  ");
	text_size(&t, (uint64_t)((double)bytes / seconds));
	text_add(&t, "/s");
	return t;
}

static void stats_print_row(const char *label, const char *value, const char *more, FILE *f)
{
	fprintf(f, "%-*s%*s%s\n", LABEL, label, VALUE, value, more);
}

/* With the exact number, unless three digits were exact already. */
static void print_size(const char *label, uint64_t bytes, const char *note, FILE *f)
{
	char more[96] = "";
	if (bytes >= 1000)
		snprintf(more, sizeof(more), "  %" PRIu64 " bytes", bytes);
	fprintf(f, "%-*s%*s%s%s\n", LABEL, label, VALUE, amount(bytes).text, more, note);
}

/* moved: bytes that took this time; 0: prints no rate. */
static void print_time(const char *label, double seconds, uint64_t moved, FILE *f)
{
	stats_print_row(label, time_words(seconds).at, rate_words(moved, seconds).at, f);
}

/* The parts of the real time. Without --verify, only the part that is resumed is compared. */
static void print_phases(const struct fcopy_report *r, bool verifies, FILE *f)
{
	static const char *const names[FCOPY_PHASES] = {
	    [FCOPY_PHASE_WAIT] = "  wait",       [FCOPY_PHASE_COPY] = "  copy",
	    [FCOPY_PHASE_FSYNC] = "  fsync",     [FCOPY_PHASE_VERIFY] = "  verify",
	    [FCOPY_PHASE_REPLACE] = "  replace", [FCOPY_PHASE_REMOVE] = "  remove"};
	for (int i = 0; i < FCOPY_PHASES; i++)
		if (r->seconds[i] > (i == FCOPY_PHASE_WAIT ? WAIT_MIN : 0))
			print_time(i == FCOPY_PHASE_VERIFY && !verifies ? "  compare" : names[i],
				   r->seconds[i], i == FCOPY_PHASE_COPY ? r->moved : 0, f);
}

static void print_cpu(const struct usage *u, FILE *f)
{
	print_time("user", u->user, 0, f);
	print_time("sys", u->sys, 0, f);
}

/* The peer of a Unix socket has no HOST:PORT: print the operand instead. */
static void print_peer(const struct summary *o, FILE *f)
{
	const struct fcopy_report *r = o->report;
	bool sent = r->error.err == 0 && cli_sends(o->cli);
	if (r->src_peer[0])
		fprintf(f, "%-*s%s\n", LABEL, "received from", r->src_peer);
	if (sent || r->dst_peer[0])
		fprintf(f, "%-*s%s%s\n", LABEL, "sent to",
			r->dst_peer[0] ? r->dst_peer : o->cli->dst,
			r->confirmed ? "" : "  not confirmed");
}

static void print_bytes(const struct fcopy_report *r, FILE *f)
{
	print_size("data", r->data, r->cloned ? ", shared with the source" : "", f);
	print_size("holes", r->holes, "", f);
	if (r->resumed > 0)
		print_size("resumed", r->resumed, "", f);
}

static void print_steps(const struct fcopy_report *r, FILE *f)
{
	if (r->steps > 0)
		fprintf(f, "\n%-*s%*s%*s%*s\n", LABEL, "engine", VALUE, "bytes", VALUE, "calls",
			VALUE, "time");
	for (size_t i = 0; i < r->steps; i++) {
		const struct fcopy_step *s = &r->step[i];
		fprintf(f, "%-*s%*s%*" PRIu64 "%*s\n", LABEL, s->engine, VALUE,
			amount(s->bytes).text, VALUE, s->calls, VALUE, time_words(s->seconds).at);
		if (s->refusal)
			fprintf(f, "  refused: %s: %s\n",
				s->refusal_call ? s->refusal_call : s->engine,
				strerror(s->refusal));
	}
}

static void print_resource_usage(const struct usage *u, FILE *f)
{
	fprintf(f, "\n%-*s%*ld voluntary, %ld involuntary\n", LABEL, "context switches", VALUE,
		u->voluntary, u->involuntary);
	fprintf(f, "%-*s%*ld minor, %ld major\n", LABEL, "page faults", VALUE, u->minor_faults,
		u->major_faults);
	stats_print_row("peak memory", amount(usage_peak_memory()).text, "", f);
}

/* A single file, and a tree of one, have no pool of threads. */
static void stats_print_threads(const struct fcopy_tree_report *r, FILE *f)
{
	if (r->threads_most == 0)
		return;
	fprintf(f, "%-*s%*u\n", LABEL, "threads", VALUE, r->threads_most);
	fprintf(f, "%-*s%*.1f%s%s\n", LABEL, "  on average", VALUE, r->threads_average,
		r->threads_reason ? "  " : "", r->threads_reason ? r->threads_reason : "");
}

/* What a tree consists of, and how fast it was copied: `seconds` is the real time. */
static void print_tree(const struct fcopy_tree_report *r, double seconds, FILE *f)
{
	const struct fcopy_count_row *row = fcopy_counts();
	const uint64_t n = tree_entries(r);
	fprintf(f, "%-*s%*" PRIu64 "  %" PRIu64 "/s\n", LABEL, "entries", VALUE, n,
		seconds > 0 ? (uint64_t)((double)n / seconds) : 0);
	for (int i = 0; i < FCOPY_COUNTS; i++) {
		const bool part = row[i].unit == FCOPY_UNIT_COPIES;
		if (row[i].unit != FCOPY_UNIT_BYTES && r->count[i] > 0)
			fprintf(f, "%s%-*s%*" PRIu64 "\n", part ? "  " : "", LABEL - 2 * part,
				row[i].label, VALUE, r->count[i]);
	}
	stats_print_threads(r, f);
}

void stats_print(const struct summary *o, FILE *f)
{
	const struct fcopy_report *r = o->report;
	print_time("real", o->usage.real, r->moved, f);
	print_phases(r, o->cli->copy.verify, f);
	print_cpu(&o->usage, f);
	if (o->tree)
		print_tree(o->tree, o->usage.real, f);
	print_bytes(r, f);
	print_peer(o, f);
	print_steps(r, f);
	print_resource_usage(&o->usage, f);
}

void stats_print_client(const struct summary *o, FILE *f)
{
	const struct fcopy_report *r = o->report;
	fprintf(f, "fcopy: client %s:%*s  real%*s  user%*s  sys%*s%s\n",
		r->dst_peer[0] ? r->dst_peer : o->cli->dst, /* as in print_peer */
		VALUE, amount(r->bytes).text, VALUE, time_words(o->usage.real).at, VALUE,
		time_words(o->usage.user).at, VALUE, time_words(o->usage.sys).at,
		rate_words(r->moved, o->usage.real).at);
}

void stats_print_server(const struct usage *u, FILE *f)
{
	print_time("real", u->real, 0, f);
	print_cpu(u, f);
	print_resource_usage(u, f);
}

/* getrusage(2) and /proc/self/status. */

static double timeval_seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* execve(2) resets VmHWM, but not ru_maxrss, which may be that of the shell that started fcopy. */
uint64_t usage_peak_memory(void)
{
	char text[4096];
	unsigned long kib;
	struct rusage r;
	const char *line = io_read_text("/proc/self/status", text, sizeof(text))
			       ? strstr(text, "VmHWM:")
			       : NULL;
	if (line && sscanf(line, "VmHWM: %lu", &kib) == 1 && kib > 0)
		return (uint64_t)kib * 1024;
	return getrusage(RUSAGE_SELF, &r) == 0 ? (uint64_t)r.ru_maxrss * 1024 : 0;
}

static struct usage read_usage(int whose, double real)
{
	struct rusage r;
	getrusage(whose, &r);
	return (struct usage){.real = real,
			      .user = timeval_seconds(&r.ru_utime),
			      .sys = timeval_seconds(&r.ru_stime),
			      .voluntary = r.ru_nvcsw,
			      .involuntary = r.ru_nivcsw,
			      .minor_faults = r.ru_minflt,
			      .major_faults = r.ru_majflt};
}

struct usage usage_now(void)
{
	return read_usage(RUSAGE_SELF, io_now());
}

struct usage usage_of_thread(double real)
{
	return read_usage(RUSAGE_THREAD, real);
}

struct usage usage_since(const struct usage *start)
{
	struct usage u = usage_now();
	u.real -= start->real;
	u.user -= start->user;
	u.sys -= start->sys;
	u.voluntary -= start->voluntary;
	u.involuntary -= start->involuntary;
	u.minor_faults -= start->minor_faults;
	u.major_faults -= start->major_faults;
	return u;
}
