/* SPDX-License-Identifier: MIT
 * The rounds of --benchmark: a loop over the library. The rounds are interleaved, so that whatever
 * else the machine does meets all modes alike.
 */
#include "benchmark.h"
#include "text.h"
#include "usage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The engine that moved most bytes. */
static const char *main_engine(const struct fcopy_report *r)
{
	const struct fcopy_step *best = &r->step[0];
	for (size_t i = 1; i < r->steps; i++)
		if (r->step[i].bytes > best->bytes)
			best = &r->step[i];
	return r->steps > 0 ? best->engine : "none";
}

/* The user's options, as far as they belong to this mode. */
static struct fcopy_options options_for(const struct cli *cli, const struct fcopy_mode *mode)
{
	struct fcopy_options o = cli->copy;
	o.mode = mode;
	o.scratch = true;
	if (!(mode->takes & FCOPY_TAKES_BUFFER_SIZE))
		o.buffer_size = 0;
	if (!(mode->takes & FCOPY_TAKES_THREADS))
		o.threads = 0;
	if (!(mode->takes & FCOPY_TAKES_SPARSE))
		o.sparse = FCOPY_WHEN_AUTO;
	if (!(mode->takes & FCOPY_TAKES_REFLINK))
		o.reflink = FCOPY_WHEN_AUTO;
	o.no_cache &= (mode->takes & FCOPY_TAKES_NO_CACHE) != 0;
	return o;
}

/* Says what is going on, to somebody who waits; a job in the background is to be quiet. */
static void show_round(const struct cli *cli, int round, const struct fcopy_mode *mode)
{
	struct text t = {0};
	if (cli->quiet || !isatty(STDERR_FILENO) || !terminal_foreground(STDERR_FILENO))
		return;
	text_add(&t, "\r\033[J");
	if (mode) {
		text_add(&t, round < 0 ? "warming up" : "round ");
		if (round >= 0)
			text_number(&t, (uint64_t)round + 1);
		text_add(&t, ": ");
		text_add(&t, mode->name);
	}
	text_write(&t, STDERR_FILENO);
}

/* Returns 0, or -1 with *error set: not a refusal, which only ends this contender's rounds. */
static int run_once(struct benchmark *all, struct contender *c, int round,
		    struct fcopy_error *error)
{
	static struct fcopy_report report;
	struct fcopy_options o = options_for(all->cli, c->mode);
	o.progress = progress_answer(all->cli);
	show_round(all->cli, round, c->mode);
	struct usage start = usage_now();
	int r = fcopy_copy(all->cli->src, all->cli->dst, &o, &report);
	struct usage u = usage_since(&start);
	c->engine = main_engine(&report);
	if (r == 0 && round >= 0)
		c->round[round] = (struct seconds){u.real, u.user, u.sys};
	if (r == 0) {
		all->bytes = report.bytes;
		return 0;
	}
	c->refused = report.error.advice == FCOPY_ADVICE_AUTO;
	c->error = report.error;
	/* The report, and the name in it, are another copy's next time. */
	c->error.path = all->cli->src;
	c->error.path2 = all->cli->dst;
	*error = report.error;
	return c->refused ? 0 : -1;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Of the field at this offset in struct seconds. */
static double median(const struct contender *c, size_t field)
{
	double value[BENCHMARK_ROUNDS];
	for (int i = 0; i < BENCHMARK_ROUNDS; i++)
		value[i] = *(const double *)((const char *)&c->round[i] + field);
	qsort(value, BENCHMARK_ROUNDS, sizeof(*value), by_value);
	return value[BENCHMARK_ROUNDS / 2];
}

static void find_medians(struct benchmark *all)
{
	for (size_t i = 0; i < all->contenders; i++) {
		struct contender *c = &all->contender[i];
		c->median = (struct seconds){median(c, offsetof(struct seconds, real)),
					     median(c, offsetof(struct seconds, user)),
					     median(c, offsetof(struct seconds, sys))};
	}
}

static size_t common_divisor(size_t a, size_t b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* Steps of this width visit each of n in turn: the round's is another one than those before. What
 * ran just before helps or harms the next mode (direct leaves no warm memory behind), so each
 * round gives it another predecessor. */
static size_t stride(size_t n, int round)
{
	size_t width = 1;
	while (round-- > 0)
		do
			width++;
		while (common_divisor(width, n) != 1);
	return width;
}

static int run_rounds(struct benchmark *all, struct fcopy_error *error)
{
	const size_t n = all->contenders;
	for (int round = -1; round < BENCHMARK_ROUNDS; round++)
		for (size_t i = 0; i < n; i++) {
			struct contender *c = &all->contender[i * stride(n, round) % n];
			if (contender_ran(c) && run_once(all, c, round, error) < 0)
				return -1;
		}
	return 0;
}

/* A stream would be empty from the second copy on. */
static bool is_stream(const char *path)
{
	struct stat st;
	if (fcopy_operand_kind(path, STDIN_FILENO, NULL) != FCOPY_KIND_PATH)
		return true;
	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode);
}

int benchmark_run(struct cli *cli)
{
	static volatile int cancel;
	static struct benchmark all;
	struct fcopy_error error;
	if (is_stream(cli->src))
		return message_usage(cli->src, "--benchmark copies a file that it can read again");
	all.cli = cli;
	cli->copy.cancel = &cancel;
	for (const struct fcopy_mode *m = fcopy_modes();
	     m->name && all.contenders < BENCHMARK_MODES; m++)
		all.contender[all.contenders++] = (struct contender){
		    .mode = m, .missing = fcopy_mode_missing(m)};
	signals_catch(&cancel, NULL);
	int r = run_rounds(&all, &error);
	show_round(cli, 0, NULL);
	signals_reraise();
	if (r < 0) {
		message_error(&error);
		return error.advice == FCOPY_ADVICE_USAGE ? EXIT_USAGE : EXIT_FAILED;
	}
	find_medians(&all);
	if (cli->json)
		benchmark_json(&all);
	else
		benchmark_table(&all);
	return EXIT_DONE;
}
