/* SPDX-License-Identifier: MIT
 * What the runs of --benchmark show.
 */
#include "benchmark.h"

#include <string.h>

const struct fcopy_step *way_main_step(const struct way *w)
{
	const struct fcopy_step *best = NULL;
	for (size_t i = 0; i < w->step_count; i++)
		if (w->steps[i].bytes > (best ? best->bytes : 0))
			best = &w->steps[i];
	return best;
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
