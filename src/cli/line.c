/* SPDX-License-Identifier: MIT
 * Layout of the progress line.
 */
#include "line.h"

#include <string.h>

#define BAR_LEAST 6   /* columns; a shorter bar shows nothing */
#define BAR_MOST  250 /* of three bytes each they leave room in struct text for the rest */

/* In the order in which they stand in the line. */
enum { PHASE, PERCENT, BAR, BYTES, CURRENT, AVERAGE, TIME, FIELDS };

/* In the order in which they get their place. */
static const int by_importance[] = {PERCENT, BYTES, TIME, PHASE, CURRENT, AVERAGE};

struct layout {
	struct text field[FIELDS]; /* empty: left out */
	struct text brief;         /* TIME in a narrow line */
	size_t columns;
};

static uint64_t percent(const struct line *l)
{
	if (l->total == 0)
		return 0;
	if (l->bytes >= l->total)
		return 100;
	return l->total > UINT64_MAX / 100 ? l->bytes / (l->total / 100)
					   : l->bytes * 100 / l->total;
}

static void add_rate(struct text *t, const char *before, uint64_t rate)
{
	text_clear(t);
	if (rate == 0)
		return;
	text_add(t, before);
	size_t start = t->length;
	text_size(t, rate);
	text_add(t, "/s");
	text_align(t, start, 10);
}

static void add_time(const struct line *l, struct text *t)
{
	bool left = !l->ended && l->total > l->bytes && l->average > 0;
	text_clock(t, left ? (l->total - l->bytes + l->average - 1) / l->average
			   : l->milliseconds / 1000);
	if (left)
		text_add(t, " left");
}

static void fill(const struct line *l, struct layout *out)
{
	for (int i = 0; i < FIELDS; i++)
		text_clear(&out->field[i]);
	text_add(&out->field[PHASE], l->phase);
	if (l->total > 0) {
		text_number(&out->field[PERCENT], percent(l));
		text_add(&out->field[PERCENT], "%");
		text_align(&out->field[PERCENT], 0, 4);
	}
	if (l->bytes > 0 || l->total > 0) {
		text_size(&out->field[BYTES], l->bytes);
		text_align(&out->field[BYTES], 0, 8);
	}
	add_rate(&out->field[CURRENT], "", l->ended ? 0 : l->current);
	add_rate(&out->field[AVERAGE], "avg ", l->average);
	add_time(l, &out->field[TIME]);
	text_clear(&out->brief);
	text_add(&out->brief, out->field[TIME].at);
	out->brief.at[strcspn(out->brief.at, " ")] = '\0';
	out->brief.length = strlen(out->brief.at);
}

static bool fits(struct layout *o, const struct text *field, size_t width)
{
	size_t more = field->length + (o->columns ? 1 : 0);
	if (field->length == 0 || o->columns + more > width)
		return false;
	o->columns += more;
	return true;
}

/* Leaves out what has no place. */
static void choose(struct layout *o, size_t width)
{
	for (size_t i = 0; i < sizeof(by_importance) / sizeof(*by_importance); i++) {
		struct text *field = &o->field[by_importance[i]];
		if (fits(o, field, width))
			continue;
		bool brief = field == &o->field[TIME] && fits(o, &o->brief, width);
		text_clear(field);
		if (brief)
			text_add(field, o->brief.at);
	}
}

static void add_bar(const struct line *l, size_t columns, struct text *t)
{
	size_t full = percent(l) * columns / 100;
	if (l->colour)
		text_add(t, "\033[32m");
	for (size_t i = 0; i < columns; i++) {
		if (i == full && l->colour)
			text_add(t, "\033[2m");
		text_add(t, l->blocks ? (i < full ? "█" : "░") : i < full ? "#" : ".");
	}
	if (l->colour)
		text_add(t, "\033[0m");
}

/* What the other fields leave of the line; 0: no bar. */
static size_t bar_columns(const struct line *l, size_t columns, size_t width)
{
	if (l->total == 0 || width == LINE_PLAIN || width < columns + 1 + BAR_LEAST)
		return 0;
	size_t left = width - columns - 1;
	return left < BAR_MOST ? left : BAR_MOST;
}

void line_lay_out(const struct line *l, size_t width, struct text *t)
{
	struct layout o = {.columns = 0};
	const size_t start = t->length;
	fill(l, &o);
	choose(&o, width);
	size_t bar = bar_columns(l, o.columns, width);
	for (int i = 0; i < FIELDS; i++) {
		if (i == BAR ? bar == 0 : o.field[i].length == 0)
			continue;
		if (t->length > start)
			text_add(t, " ");
		if (i == BAR)
			add_bar(l, bar, t);
		else
			text_add(t, o.field[i].at);
	}
}
