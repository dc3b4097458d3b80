/* SPDX-License-Identifier: MIT
 * The counts of a tree.
 */
#include "report.h"

#include <string.h>

void report_add_steps(struct fcopy_tree_report *to, const struct fcopy_step *step, size_t n)
{
	for (; n > 0; n--, step++) {
		struct fcopy_step *s = to->step;
		while (s < to->step + to->steps && s->engine != step->engine)
			s++;
		if (s == to->step + to->steps)
			to->step[to->steps++] = (struct fcopy_step){.engine = step->engine};
		s->threads = step->threads > s->threads ? step->threads : s->threads;
		s->bytes += step->bytes;
		s->calls += step->calls;
		s->seconds += step->seconds;
		if (step->refusal) {
			s->refusal = step->refusal;
			s->refusal_call = step->refusal_call;
		}
	}
}

void report_add(struct fcopy_tree_report *to, const struct fcopy_tree_report *from)
{
	for (int i = 0; i < FCOPY_COUNTS; i++)
		to->count[i] += from->count[i];
	report_add_steps(to, from->step, from->steps);
}

/* Did the file system refuse FICLONE for all files, not only for this one? */
static bool refuses_clones(const struct fcopy_report *r)
{
	for (size_t i = 0; i < r->steps; i++)
		if (r->step[i].engine == engine_reflink.name)
			switch (r->step[i].refusal) {
			case EOPNOTSUPP:
			case ENOTTY:
			case ENOSYS:
			case EXDEV: return true;
			default: return false;
			}
	return false;
}

void report_file(struct worker *w, const struct stat *st, bool complete)
{
	const struct fcopy_report *r = &w->file;
	outcome_take(w->outcome, r, complete);
	report_add_steps(&w->sum, r->step, r->steps);
	if (!w->refuses_clones && refuses_clones(r)) {
		w->refuses_clones = true;
		w->no_clone = st->st_dev;
	}
}
