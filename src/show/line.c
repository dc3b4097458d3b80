/* SPDX-License-Identifier: MIT
 * Layout of the progress line:
 *
 *   disk.img  46% ████░░  237/512 MiB  60 MiB/s  0:05 left
 *
 * Fields get columns in the order of their importance; the bar gets the remaining columns.
 */
#include "text.h"

#include <string.h>

#define NAME_MIN  8   /* columns; a shorter name is left out */
#define NAME_MAX_ 40  /* a longer one is shortened */
#define BAR_MIN   3   /* columns; a shorter bar shows nothing */
#define BAR_MAX   250 /* of three bytes each they leave room in struct text for the rest */
#define NARROW    40  /* up to here one space separates the fields, then two */

/* In the order in which they stand in the line. */
enum field { NAME, STATE, PERCENT, BAR, ENTRIES, BYTES, SPEED, TIME, FIELDS };

/* In the order in which they get their place. */
static const enum field by_importance[] = {STATE, PERCENT, TIME, ENTRIES, NAME, SPEED, BYTES};

struct layout {
	const struct line *line;
	struct text field[FIELDS]; /* empty: left out */
	size_t columns[FIELDS];    /* that the field takes */
	size_t used, width, gap;
};

static bool line_has_total(const struct line *l)
{
	return !l->ended && (l->total > 0 || (l->total_entries > 0 && !l->at_least));
}

/* Of the bytes; if their total is unknown, of the entries. */
static uint64_t line_percent(const struct line *l)
{
	if (l->total == 0)
		return l->entries < l->total_entries ? l->entries * 100 / l->total_entries : 100;
	if (l->bytes >= l->total)
		return 100;
	return l->total > UINT64_MAX / 100 ? l->bytes / (l->total / 100)
					   : l->bytes * 100 / l->total;
}

static void line_write_time(const struct line *l, struct text *t)
{
	if (l->stalled > 0) {
		text_add(t, "stalled ");
		text_clock(t, l->stalled);
	} else if (!l->ended && l->left != LINE_UNKNOWN) {
		text_clock(t, l->left);
		text_add(t, " left");
	} else {
		text_clock(t, l->elapsed);
	}
}

static void line_write_fields(struct layout *o)
{
	const struct line *l = o->line;
	struct text *f = o->field;
	if (l->state)
		text_add(&f[STATE], l->state);
	if (line_has_total(l)) {
		text_number(&f[PERCENT], line_percent(l));
		text_add(&f[PERCENT], "%");
		text_align(&f[PERCENT], 0, o->width == LINE_PLAIN ? 0 : 3);
	}
	if (l->entries > 0) {
		const bool total = l->total_entries > l->entries && !l->ended;
		text_number(&f[ENTRIES], l->entries);
		if (total) {
			text_add(&f[ENTRIES], l->at_least ? " of at least " : " of ");
			text_number(&f[ENTRIES], l->total_entries);
		}
		text_add(&f[ENTRIES], !total && l->entries == 1 ? " entry" : " entries");
		if (l->entry_speed > 0) {
			text_add(&f[ENTRIES], ", ");
			text_number(&f[ENTRIES], l->entry_speed);
			text_add(&f[ENTRIES], "/s");
		}
	}
	if (l->total > 0 && !l->ended)
		text_share(&f[BYTES], l->bytes, l->total);
	else if (l->bytes > 0 || l->ended)
		text_size(&f[BYTES], l->bytes);
	if (l->speed > 0 && l->stalled == 0) {
		text_size(&f[SPEED], l->speed);
		text_add(&f[SPEED], "/s");
		text_align(&f[SPEED], 0, l->ended || o->width == LINE_PLAIN ? 0 : 9);
	}
	line_write_time(l, &f[TIME]);
	for (int i = 0; i < FIELDS; i++)
		o->columns[i] = f[i].length;
}

static bool takes_place(struct layout *o, size_t columns)
{
	size_t more = columns + (o->used > 0 ? o->gap : 0);
	if (columns == 0 || o->used + more > o->width)
		return false;
	o->used += more;
	return true;
}

/* Shortens the state to its first word, which is shown however narrow the line is. */
static size_t first_word(struct layout *o)
{
	struct text *state = &o->field[STATE];
	state->length = strcspn(state->at, " ,");
	state->at[state->length] = '\0';
	o->used += state->length;
	return state->length;
}

/* A wide terminal shows the whole name, a narrow one its two ends. */
static void place_name(struct layout *o)
{
	size_t whole = text_columns(o->line->name, o->line->blocks);
	size_t least = whole < NAME_MIN ? whole : NAME_MIN;
	if (takes_place(o, least))
		o->columns[NAME] = least;
}

/* The remaining columns go to the rest of the name first, then to the bar. */
static void share_the_rest(struct layout *o)
{
	const struct line *l = o->line;
	size_t whole = text_columns(l->name, l->blocks);
	size_t most = o->width == LINE_PLAIN || whole < NAME_MAX_ ? whole : NAME_MAX_;
	size_t spare = o->width > o->used ? o->width - o->used : 0;
	bool bar = line_has_total(l) && o->width != LINE_PLAIN;
	if (o->columns[NAME] > 0) {
		size_t more = most - o->columns[NAME];
		/* At most half of it, so that a bar is left. */
		size_t may = bar && spare / 2 >= 1 + BAR_MIN ? spare / 2 : spare;
		more = more < may ? more : may;
		o->columns[NAME] += more;
		spare -= more;
	}
	if (bar && spare >= 1 + BAR_MIN)
		o->columns[BAR] = spare - 1 < BAR_MAX ? spare - 1 : BAR_MAX;
	if (o->columns[NAME] > 0)
		text_fit(&o->field[NAME], l->name, o->columns[NAME], l->blocks);
}

static void line_add_bar(const struct line *l, size_t columns, struct text *t)
{
	size_t full = line_percent(l) * columns / 100;
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

void line_lay_out(const struct line *l, size_t width, struct text *t)
{
	struct layout o = {.line = l, .width = width, .gap = width < NARROW ? 1 : 2};
	const size_t start = t->length;
	line_write_fields(&o);
	for (size_t i = 0; i < sizeof(by_importance) / sizeof(*by_importance); i++) {
		enum field f = by_importance[i];
		if (f == NAME)
			place_name(&o);
		else if (!takes_place(&o, o.columns[f]))
			o.columns[f] = f == STATE ? first_word(&o) : 0;
	}
	share_the_rest(&o);
	for (int i = 0; i < FIELDS; i++) {
		if (o.columns[i] == 0)
			continue;
		if (t->length > start)
			text_spaces(t, i == BAR ? 1 : o.gap);
		if (i == BAR)
			line_add_bar(l, o.columns[BAR], t);
		else
			text_add(t, o.field[i].at);
	}
}

/* The samples of the last seconds, in a ring. */

#define SPEED_MS   1500  /* the current speed is measured over this time */
#define LEFT_MS    10000 /* the time left is predicted from the speed over this time */
#define STALLED_MS 5000  /* longer than a call that moves 16 MiB should take */
#define SAMPLES    128   /* more than are taken in LEFT_MS */

static struct {
	uint64_t since_ms; /* when the phase began */
	uint64_t moved_ms; /* when a byte moved last */
	struct sample {
		uint64_t ms, bytes, moved;
	} sample[SAMPLES];
	unsigned samples; /* taken in this phase */
} speed;

uint64_t speed_rate(uint64_t bytes, uint64_t ms)
{
	return ms ? bytes / ms * 1000 + bytes % ms * 1000 / ms : 0;
}

/* The newest sample that is at least `ms` milliseconds old, or else the oldest one. */
static const struct sample *sample_before(uint64_t ms)
{
	const struct sample *newest = &speed.sample[(speed.samples - 1) % SAMPLES], *found = newest;
	for (unsigned i = 2; i <= speed.samples && i < SAMPLES; i++) {
		found = &speed.sample[(speed.samples - i) % SAMPLES];
		if (newest->ms - found->ms >= ms)
			break;
	}
	return found;
}

static void take_sample(uint64_t since_ms, struct sample now)
{
	/* Just before it stores when the next phase began, the library clears `moved`. */
	if (speed.samples == 0 || speed.since_ms != since_ms ||
	    now.moved < speed.sample[(speed.samples - 1) % SAMPLES].moved) {
		speed.since_ms = speed.moved_ms = since_ms;
		speed.sample[0] = (struct sample){.ms = since_ms};
		speed.samples = 1;
	}
	if (now.bytes != speed.sample[(speed.samples - 1) % SAMPLES].bytes)
		speed.moved_ms = now.ms;
	speed.sample[speed.samples++ % SAMPLES] = now;
}

void speed_measure(struct line *l, uint64_t since_ms, uint64_t now_ms, uint64_t moved)
{
	take_sample(since_ms, (struct sample){now_ms, l->bytes, moved});
	const struct sample *newest = &speed.sample[(speed.samples - 1) % SAMPLES];
	const struct sample *recent = sample_before(SPEED_MS), *older = sample_before(LEFT_MS);
	l->speed = speed_rate(newest->moved - recent->moved, newest->ms - recent->ms);
	uint64_t pace = speed_rate(newest->moved - older->moved, newest->ms - older->ms);
	l->left = l->total > l->bytes && pace > 0 ? (l->total - l->bytes + pace - 1) / pace
						  : LINE_UNKNOWN;
	if (l->bytes < l->total && newest->ms - speed.moved_ms >= STALLED_MS)
		l->stalled = (newest->ms - speed.moved_ms) / 1000;
}
