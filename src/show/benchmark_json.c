/* SPDX-License-Identifier: MIT
 * The result of --benchmark for programs.
 */
#include "benchmark.h"
#include "json.h"

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
		json_string(j, "median", NULL);
		json_string(j, "min", NULL);
		json_string(j, "max", NULL);
	}
	json_close(j, '}');
}

void benchmark_json(const struct benchmark *all, FILE *f)
{
	struct json j = {.f = f};
	const struct contender *best = benchmark_fastest(all);
	const struct fcopy_mode *same = benchmark_auto_is(all);
	json_open(&j, NULL, '{');
	json_string(&j, "fcopy", FCOPY_VERSION);
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
	json_close(&j, '}');
	fputc('\n', f);
}
