/* SPDX-License-Identifier: MIT
 * What the runs of --benchmark show.
 */
#include "benchmark.h"

#include <string.h>

const struct fcopy_step *contender_main_step(const struct contender *c)
{
	const struct fcopy_step *best = NULL;
	for (size_t i = 0; i < c->step_count; i++)
		if (c->steps[i].bytes > (best ? best->bytes : 0))
			best = &c->steps[i];
	return best;
}

const struct fcopy_mode *benchmark_auto_is(const struct benchmark *all)
{
	const struct contender *c = &all->contender[0];
	const struct fcopy_step *s = contender_main_step(c);
	if (!s || s->bytes < all->bytes)
		return NULL;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		if (m->engine && strcmp(m->engine, s->engine) == 0 &&
		    m->threads == (s->threads > 1) &&
		    (!m->buffer_size || m->buffer_size == s->piece) &&
		    m->preallocates == c->preallocated)
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
