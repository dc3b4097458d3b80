/* SPDX-License-Identifier: MIT
 * What the runs of --benchmark show, as a table and as JSON.
 */
#include "benchmark.h"
#include "copy/outcome.h"
#include "endpoints/error.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

const struct fcopy_step *way_main_step(const struct way *w)
{
	return outcome_main_step(w->steps, w->step_count);
}

static bool ways_are_equal(const struct way *a, const struct way *b)
{
	const struct fcopy_step *x = way_main_step(a), *y = way_main_step(b);
	if (a->preallocated != b->preallocated || !x != !y)
		return false;
	return !x || (strcmp(x->engine, y->engine) == 0 && x->threads == y->threads &&
		      x->piece == y->piece);
}

void contender_note(struct contender *c, unsigned round, const struct fcopy_report *r)
{
	struct way w = {.step_count = r->steps, .preallocated = r->preallocated, .runs = 1};
	memcpy(w.steps, r->step, sizeof(w.steps));
	const struct fcopy_step *most = way_main_step(&w);
	c->engine[round] = most ? most->engine : NULL;
	size_t i = 0;
	while (i < c->ways && !ways_are_equal(&c->way[i], &w))
		i++;
	if (i < c->ways)
		c->way[i].runs++;
	else if (i < BENCHMARK_WAYS)
		c->way[c->ways++] = w;
}

const struct way *contender_usual_way(const struct contender *c)
{
	const struct way *usual = &c->way[0];
	for (size_t i = 1; i < c->ways; i++)
		if (c->way[i].runs > usual->runs)
			usual = &c->way[i];
	return usual;
}

const struct fcopy_mode *benchmark_auto_is(const struct benchmark *all)
{
	const struct way *usual = contender_usual_way(&all->contender[0]);
	const struct fcopy_step *s = way_main_step(usual);
	if (!s || s->bytes < all->bytes)
		return NULL;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		if (m->engine && strcmp(m->engine, s->engine) == 0 &&
		    m->threads == (s->threads > 1) &&
		    (!m->buffer_size || m->buffer_size == s->piece) &&
		    m->preallocates == usual->preallocated)
			return m;
	return NULL;
}

const struct contender *benchmark_fastest(const struct benchmark *all)
{
	const struct contender *best = &all->contender[0]; /* auto is never refused */
	for (size_t i = 1; i < all->contenders; i++) {
		const struct contender *c = &all->contender[i];
		if (contender_ran(c) && c->median.real < best->median.real)
			best = c;
	}
	return best;
}

/* The table of --benchmark, for a terminal of 40 columns or more. */

#define WIDE 80 /* columns: a wide row has 79, and the last column stays empty */
#define BAR  12

static bool is_wide(void)
{
	return terminal_width(STDOUT_FILENO) >= WIDE;
}

void benchmark_head(const struct benchmark *all)
{
	bool wide = is_wide();
	printf("%u run%s of each mode, in turn; load %.1f\n", all->runs, all->runs == 1 ? "" : "s",
	       all->load);
	printf("%-*s%*s%*s%*s%s%s%s\n", wide ? 17 : 7, "mode", wide ? 10 : 7, "median",
	       wide ? 18 : 10, "min-max", wide ? 10 : 7, "CPU", wide ? "  " : "   ",
	       terminal_utf8() ? "×" : "x", wide ? " mode 1" : "1");
	fflush(stdout);
}

static uint64_t benchmark_microseconds(double seconds)
{
	return (uint64_t)(seconds * 1e6 + 0.5);
}

static void benchmark_add_time(struct text *t, double seconds, size_t width)
{
	size_t start = t->length;
	text_duration_brief(t, benchmark_microseconds(seconds));
	text_align(t, start, width);
}

/* Both in the unit of the median: "580-620". */
static void add_range(struct text *t, const struct contender *c, size_t width)
{
	uint64_t scale = benchmark_microseconds(c->median.real);
	size_t start = t->length;
	text_duration_in_unit(t, benchmark_microseconds(c->fastest), scale);
	text_add(t, "-");
	text_duration_in_unit(t, benchmark_microseconds(c->slowest), scale);
	text_align(t, start, width);
}

/* A bar that is longer than that of mode 1 is cut: its last sign says so. */
static void benchmark_add_bar(struct text *t, double share)
{
	const int n = (int)(share * BAR + 0.5);
	for (int i = 0; i < n && i < BAR; i++)
		if (n > BAR && i == BAR - 1)
			text_add(t, terminal_utf8() ? "…" : "+");
		else
			text_add(t, terminal_utf8() ? "█" : "#");
}

static void print_refusal(const struct contender *c, bool wide)
{
	struct text t = {0}, fitted = {0};
	const char *reason = c->error.reason ? c->error.reason : strerror(c->error.err);
	text_add(&t, c->missing ? "unavailable: " : "refused: ");
	text_add(&t, c->missing ? c->missing : c->error.call ? c->error.call : "fcopy");
	text_add(&t, c->missing ? "" : ": ");
	text_add(&t, c->missing ? "" : reason);
	size_t width = terminal_width(STDOUT_FILENO);
	text_fit(&fitted, t.at, (width > 30 ? width : 30) - (wide ? 20 : 9), terminal_utf8());
	printf("%s%s\n", wide ? "  " : " ", fitted.at);
}

void benchmark_row(const struct benchmark *all, const struct contender *c)
{
	struct text t = {0};
	const struct contender *first = &all->contender[1];
	bool wide = is_wide(), compare = contender_ran(first) && c->median.real > 0;
	const char *name = wide || !c->mode->alias ? c->mode->name : c->mode->alias;
	printf("%d %-*s", c->mode->number, wide ? 15 : 5, name);
	if (!contender_ran(c)) {
		print_refusal(c, wide);
		fflush(stdout);
		return;
	}
	benchmark_add_time(&t, c->median.real, wide ? 10 : 7);
	add_range(&t, c, wide ? 18 : 10);
	benchmark_add_time(&t, c->median.user + c->median.sys, wide ? 10 : 7);
	printf("%s%*.2f", t.at, wide ? 10 : 5, compare ? c->median.real / first->median.real : 1);
	text_clear(&t);
	if (wide && compare)
		benchmark_add_bar(&t, c->median.real / first->median.real);
	printf("%s%s\n", t.length ? "  " : "", t.at);
	fflush(stdout);
}

/* "No clear winner: 2, 3 and 5 overlap (load 9.1)". */
static void print_winner(const struct benchmark *all)
{
	const struct contender *best = benchmark_fastest(all);
	size_t others = 0, named = 0;
	struct text t = {0};
	if (all->runs == 1) {
		puts("No winner: a single run proves nothing");
		return;
	}
	for (size_t i = 0; i < all->contenders; i++)
		others += contender_overlaps(&all->contender[i], best);
	if (others <= 1) {
		text_duration_brief(&t, benchmark_microseconds(best->median.real));
		printf("Fastest: %d %s, %s\n", best->mode->number, best->mode->name, t.at);
		return;
	}
	for (size_t i = 0; i < all->contenders; i++) {
		if (!contender_overlaps(&all->contender[i], best))
			continue;
		text_add(&t, named == 0 ? "" : named + 1 == others ? " and " : ", ");
		text_number(&t, (uint64_t)all->contender[i].mode->number);
		named++;
	}
	printf("No clear winner: %s overlap (load %.1f)\n", t.at, all->load);
}

/* "auto used readwrite, 1 MiB pieces, 2 threads, preallocated (as mode 7)". */
static void print_auto(const struct benchmark *all)
{
	const struct way *usual = contender_usual_way(&all->contender[0]);
	const struct fcopy_mode *same = benchmark_auto_is(all);
	const char *between = "auto used ";
	for (size_t i = 0; i < usual->step_count; i++) {
		const struct fcopy_step *s = &usual->steps[i];
		struct text t = {0};
		if (s->bytes == 0)
			continue;
		text_size(&t, s->piece);
		printf("%s%s", between, s->engine);
		if (s->piece > 0)
			printf(", %s pieces", t.at);
		if (s->threads > 1)
			printf(", %u threads", s->threads);
		between = " and ";
	}
	if (between[0] != ' ')
		fputs("auto moved no bytes", stdout);
	fputs(usual->preallocated ? ", preallocated" : "", stdout);
	if (same)
		printf(" (as mode %d)", same->number);
	if (usual->runs < all->runs)
		printf(" in %u of %u runs", usual->runs, all->runs);
	putchar('\n');
}

/* Otherwise auto would look fast, and the others slow. */
static void print_holes(const struct benchmark *all)
{
	const uint64_t holes = all->contender[0].holes;
	struct text t = {0};
	text_size(&t, holes);
	if (holes > 0)
		printf("auto left out %s of holes, which modes 1 to 7 write as zeros\n", t.at);
}

void benchmark_verdict(const struct benchmark *all)
{
	putchar('\n');
	print_winner(all);
	print_auto(all);
	print_holes(all);
}

void benchmark_print_failure(const struct fcopy_report *report)
{
	static char path[PATH_MAX + 32];
	static struct fcopy_report said;
	said = *report;
	struct fcopy_error *e = &said.error;
	const char **last = e->path2 ? &e->path2 : &e->path;
	if (error_classify(e) == ERROR_FULL && *last && strcmp(*last, report->dst) == 0) {
		snprintf(path, sizeof(path), "scratch file next to %s", report->dst);
		*last = path;
	}
	message_failure(&said);
}

/* The result of --benchmark for programs. */

static void add_seconds(struct json *j, const struct seconds *s)
{
	json_seconds(j, "real", s->real);
	json_seconds(j, "user", s->user);
	json_seconds(j, "sys", s->sys);
}

static void add_contender(struct json *j, const struct benchmark *all, const struct contender *c)
{
	bool ran = contender_ran(c);
	const struct fcopy_step *step = ran ? way_main_step(contender_usual_way(c)) : NULL;
	json_open(j, NULL, '{');
	json_integer(j, "number", (uint64_t)c->mode->number);
	json_string(j, "mode", c->mode->name);
	json_string(j, "missing", c->missing);
	json_string(j, "refused_call", c->refused ? c->error.call : NULL);
	json_errno(j, "refused_errno", c->refused ? c->error.err : 0);
	json_string(j, "engine", step ? step->engine : NULL);
	json_open(j, "runs", '[');
	for (unsigned i = 0; ran && i < all->runs; i++) {
		json_open(j, NULL, '{');
		add_seconds(j, &c->run[i]);
		json_string(j, "engine", c->engine[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (ran) {
		json_open(j, "median", '{');
		add_seconds(j, &c->median);
		json_close(j, '}');
		json_seconds(j, "min", c->fastest);
		json_seconds(j, "max", c->slowest);
	} else {
		json_null(j, "median");
		json_null(j, "min");
		json_null(j, "max");
	}
	json_close(j, '}');
}

void benchmark_json(const struct benchmark *all, FILE *f)
{
	struct json j;
	const struct contender *best = benchmark_fastest(all);
	const struct fcopy_mode *same = benchmark_auto_is(all);
	json_begin(&j, f);
	json_path(&j, "src", all->cli->src);
	json_path(&j, "dst", all->cli->dst);
	json_integer(&j, "bytes", all->bytes);
	json_seconds(&j, "load", all->load);
	json_open(&j, "modes", '[');
	for (size_t i = 0; i < all->contenders; i++)
		add_contender(&j, all, &all->contender[i]);
	json_close(&j, ']');
	json_string(&j, "fastest", best->mode->name);
	json_open(&j, "overlap", '[');
	for (size_t i = 0; i < all->contenders; i++)
		if (contender_overlaps(&all->contender[i], best))
			json_string(&j, NULL, all->contender[i].mode->name);
	json_close(&j, ']');
	json_string(&j, "auto_is", same ? same->name : NULL);
	json_end(&j);
}
