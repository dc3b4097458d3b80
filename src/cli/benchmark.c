/* SPDX-License-Identifier: MIT
 * The runs of --benchmark: a loop over the library. The modes take turns, so that other load on the
 * machine slows all of them alike.
 */
#include "show/benchmark.h"
#include "show/report.h"
#include "show/show.h"
#include "show/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The user's options that the mode supports. */
static struct fcopy_options usable_options(const struct cli *cli)
{
	struct fcopy_options o = cli->copy;
	const struct fcopy_mode *mode = o.mode;
	o.scratch = true;
	if (!(mode->takes & FCOPY_TAKES_BUFFER_SIZE))
		o.buffer_size = 0;
	if (!(mode->takes & FCOPY_TAKES_THREADS))
		o.threads = 0;
	if (!(mode->takes & FCOPY_TAKES_SPARSE))
		o.sparse = FCOPY_WHEN_DEFAULT;
	if (!(mode->takes & FCOPY_TAKES_REFLINK))
		o.reflink = FCOPY_WHEN_DEFAULT;
	/* The copy may share blocks of SRC. */
	if (mode_uses(mode, "reflink") || mode_uses(mode, "copy_file_range"))
		o.preallocate = FCOPY_WHEN_DEFAULT;
	o.no_cache &= (mode->takes & FCOPY_TAKES_NO_CACHE) != 0;
	return o;
}

/* Shows which run is in progress; a background job shows nothing. */
static void show_run(const struct cli *cli, int round, const struct fcopy_mode *mode)
{
	struct text t = {0};
	if (!cli->voice.watched || !terminal_moves_cursor() || !terminal_foreground(STDERR_FILENO))
		return;
	text_add(&t, "\r\033[J");
	if (mode) {
		struct text run = {0};
		text_add(&run, round < 0 ? "warming up" : "run ");
		if (round >= 0)
			text_number(&run, (uint64_t)round + 1);
		text_add(&run, ": ");
		text_add(&run, mode->name);
		/* Of a line that wraps, only the last row would be erased. */
		text_fit(&t, run.at, terminal_width(STDERR_FILENO) - 1, terminal_utf8());
	}
	text_write(&t, STDERR_FILENO);
}

/* Only now: a refused operand or a full disk leaves no table without rows. */
static void begin_table(struct benchmark *all)
{
	if (all->begun || !all->cli->voice.tables)
		return;
	show_run(all->cli, 0, NULL);
	benchmark_head(all);
	all->begun = true;
}

/* Fills in the report of one copy. Returns 0, or -1 after an error that is not a refusal: a refusal
 * only ends this contender's runs. */
static int run_once(struct benchmark *all, struct contender *c, int round,
		    struct fcopy_report *report)
{
	all->cli->copy.mode = c->mode;
	struct fcopy_options o = usable_options(all->cli);
	o.progress = progress_answer(all->cli);
	show_run(all->cli, round, c->mode);
	struct usage start = usage_now();
	int r = fcopy_copy(all->cli->src, all->cli->dst, &o, report);
	struct usage u = usage_since(&start);
	/* Exclude the removal of the scratch file: a real copy keeps its pages. */
	u.real -= report->seconds[FCOPY_PHASE_REMOVE];
	u.sys = u.sys > report->removal_cpu ? u.sys - report->removal_cpu : 0;
	c->holes = report->holes;
	if (r == 0 && round >= 0) {
		c->run[round] = (struct seconds){u.real, u.user, u.sys};
		contender_note(c, (unsigned)round, report);
	}
	if (r == 0) {
		begin_table(all);
		all->bytes = report->bytes;
		return 0;
	}
	c->refused = report->error.advice == FCOPY_ADVICE_AUTO;
	c->error = report->error;
	/* The next copy overwrites the report and the name in it. */
	c->error.path = all->cli->src;
	c->error.path2 = all->cli->dst;
	return c->refused ? 0 : -1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The median of the field at this offset in struct seconds. Leaves all of them in value, in
 * ascending order. */
static double median_time(const struct contender *c, unsigned runs, size_t field, double *value)
{
	for (unsigned i = 0; i < runs; i++)
		value[i] = *(const double *)((const char *)&c->run[i] + field);
	qsort(value, runs, sizeof(*value), by_value);
	return runs % 2 ? value[runs / 2] : (value[runs / 2 - 1] + value[runs / 2]) / 2;
}

static void benchmark_summarize(struct contender *c, unsigned runs)
{
	double value[BENCHMARK_RUNS_MAX] = {0};
	c->median.user = median_time(c, runs, offsetof(struct seconds, user), value);
	c->median.sys = median_time(c, runs, offsetof(struct seconds, sys), value);
	c->median.real = median_time(c, runs, offsetof(struct seconds, real), value);
	c->fastest = value[0];
	c->slowest = value[runs - 1];
}

static size_t common_divisor(size_t a, size_t b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* Steps of this width visit each of n in turn. Each round but the last takes another width, because
 * the mode that ran just before helps or harms the next one (after direct, no memory is warm).
 */
static size_t benchmark_stride(size_t n, unsigned round)
{
	size_t width = 1;
	while (round-- > 0)
		do
			width++;
		while (common_divisor(width, n) != 1);
	return width;
}

/* The last round goes through the modes in order, from mode 1 to auto: a row is complete then. */
static int run_rounds(struct benchmark *all, struct fcopy_report *report)
{
	const size_t n = all->contenders;
	for (int round = -1; round < (int)all->runs; round++)
		for (size_t i = 0; i < n; i++) {
			bool last = round == (int)all->runs - 1;
			size_t width = benchmark_stride(n, (all->runs - 1 - (unsigned)round) % n);
			struct contender *c = &all->contender[(i * width + last) % n];
			if (contender_ran(c) && run_once(all, c, round, report) < 0)
				return -1;
			if (!last)
				continue;
			if (contender_ran(c))
				benchmark_summarize(c, all->runs);
			if (all->cli->voice.tables) {
				show_run(all->cli, 0, NULL);
				benchmark_row(all, c);
			}
		}
	return 0;
}

const struct benchmark *benchmark_run(struct cli *cli, struct fcopy_report *report)
{
	static struct benchmark all;
	all.cli = cli;
	for (const struct fcopy_mode *m = fcopy_modes();
	     m->name && all.contenders < BENCHMARK_MODES; m++)
		all.contender[all.contenders++] = (struct contender){
		    .mode = m, .missing = fcopy_mode_missing(m)};
	all.runs = cli->runs ? cli->runs : BENCHMARK_RUNS;
	if (getloadavg(&all.load, 1) != 1)
		all.load = 0;
	int r = run_rounds(&all, report);
	show_run(cli, 0, NULL);
	return r < 0 ? NULL : &all;
}
