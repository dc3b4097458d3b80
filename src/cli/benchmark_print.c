/* SPDX-License-Identifier: MIT
 * The result of --benchmark, for people and for programs.
 */
#define _GNU_SOURCE
#include "benchmark.h"
#include "json.h"
#include "text.h"

#include <string.h>
#include <unistd.h>

#define BAR 19 /* columns of the fastest mode's bar: the table fits into 80 */

/* The mode with the least, or the most, real time. One has run: auto is never refused. */
static const struct contender *extreme(const struct benchmark *all, bool slowest)
{
	const struct contender *best = &all->contender[0];
	for (size_t i = 0; i < all->contenders; i++) {
		const struct contender *c = &all->contender[i];
		if (contender_ran(c) && (c->median.real < best->median.real) != slowest &&
		    c->median.real != best->median.real)
			best = c;
	}
	return best;
}

static void add_time(struct text *t, double seconds)
{
	size_t start = t->length;
	text_duration(t, (uint64_t)(seconds * 1e6 + 0.5));
	text_align(t, start, 9);
}

static void add_bar(struct text *t, double share)
{
	bool blocks = terminal_utf8();
	int n = (int)(share * BAR + 0.5);
	for (int i = 0; i < n; i++)
		text_add(t, blocks ? "█" : "#");
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 1;
}

static void print_row(const struct benchmark *all, const struct contender *c, double fastest,
		      double slowest)
{
	struct text t = {0}, bar = {0};
	const char *reason = c->error.reason ? c->error.reason : strerror(c->error.err);
	const char *name = c->mode->name;
	bool lit = terminal_colour(STDOUT_FILENO) && c->median.real <= fastest;
	if (c->missing) {
		printf("%d %-15s  not here: %s\n", c->mode->number, name, c->missing);
	} else if (c->refused) {
		printf("%d %-15s  refused: %s: %s\n", c->mode->number, name,
		       c->error.call ? c->error.call : "fcopy", reason);
	} else {
		add_time(&t, c->median.real);
		add_time(&t, c->median.user);
		add_time(&t, c->median.sys);
		add_bar(&bar, ratio(fastest, c->median.real));
		double speed = ratio(slowest, c->median.real);
		printf("%s%d %-15s%s %6.2f %5.*fx  %s%s\n", lit ? "\033[1;32m" : "",
		       c->mode->number, name, t.at,
		       ratio((double)all->bytes / (1 << 30), c->median.real),
		       speed < 10    ? 2
		       : speed < 100 ? 1
				     : 0,
		       speed, bar.at, lit ? "\033[0m" : "");
	}
}

void benchmark_table(const struct benchmark *all)
{
	struct text best = {0}, chosen = {0};
	const struct contender *fastest = extreme(all, false), *automatic = &all->contender[0];
	double slowest = extreme(all, true)->median.real;
	printf("%-17s%9s%9s%9s %6s %6s\n", "mode", "real", "user", "sys", "GiB/s", "speed");
	for (size_t i = 0; i < all->contenders; i++)
		print_row(all, &all->contender[i], fastest->median.real, slowest);
	text_duration(&best, (uint64_t)(fastest->median.real * 1e6));
	text_duration(&chosen, (uint64_t)(automatic->median.real * 1e6));
	printf("\nFastest here: %d %s, %s; ", fastest->mode->number, fastest->mode->name, best.at);
	if (fastest == automatic)
		printf("it chose %s.\n", automatic->engine);
	else
		printf("auto chose %s, %s.\n", automatic->engine, chosen.at);
}

static void add_seconds(struct json *j, const struct seconds *s)
{
	json_seconds(j, "real", s->real);
	json_seconds(j, "user", s->user);
	json_seconds(j, "sys", s->sys);
}

static void add_contender(struct json *j, const struct contender *c)
{
	bool ran = contender_ran(c);
	json_open(j, NULL, '{');
	json_integer(j, "number", (uint64_t)c->mode->number);
	json_string(j, "mode", c->mode->name);
	json_string(j, "missing", c->missing);
	json_string(j, "refused_call", c->refused ? c->error.call : NULL);
	json_errno(j, "refused_errno", c->refused ? c->error.err : 0);
	json_string(j, "engine", ran ? c->engine : NULL);
	json_open(j, "rounds", '[');
	for (int i = 0; ran && i < BENCHMARK_ROUNDS; i++) {
		json_open(j, NULL, '{');
		add_seconds(j, &c->round[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	if (ran) {
		json_open(j, "median", '{');
		add_seconds(j, &c->median);
		json_close(j, '}');
	} else {
		json_string(j, "median", NULL);
	}
	json_close(j, '}');
}

void benchmark_json(const struct benchmark *all)
{
	struct json j = {.f = stdout};
	json_open(&j, NULL, '{');
	json_string(&j, "fcopy", FCOPY_VERSION);
	json_path(&j, "src", all->cli->src);
	json_path(&j, "dst", all->cli->dst);
	json_integer(&j, "bytes", all->bytes);
	json_open(&j, "modes", '[');
	for (size_t i = 0; i < all->contenders; i++)
		add_contender(&j, &all->contender[i]);
	json_close(&j, ']');
	json_string(&j, "fastest", extreme(all, false)->mode->name);
	json_string(&j, "auto_engine", all->contender[0].engine);
	json_close(&j, '}');
	fputc('\n', stdout);
}
