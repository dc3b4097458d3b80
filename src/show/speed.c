/* SPDX-License-Identifier: MIT
 * The samples of the last seconds, in a ring.
 */
#include "speed.h"

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
} s;

uint64_t speed_rate(uint64_t bytes, uint64_t ms)
{
	return ms ? bytes / ms * 1000 + bytes % ms * 1000 / ms : 0;
}

/* The newest sample that is at least `ms` milliseconds old, or else the oldest one. */
static const struct sample *sample_before(uint64_t ms)
{
	const struct sample *newest = &s.sample[(s.samples - 1) % SAMPLES], *found = newest;
	for (unsigned i = 2; i <= s.samples && i < SAMPLES; i++) {
		found = &s.sample[(s.samples - i) % SAMPLES];
		if (newest->ms - found->ms >= ms)
			break;
	}
	return found;
}

static void take_sample(uint64_t since_ms, struct sample now)
{
	/* Just before it stores when the next phase began, the library clears `moved`. */
	if (s.samples == 0 || s.since_ms != since_ms ||
	    now.moved < s.sample[(s.samples - 1) % SAMPLES].moved) {
		s.since_ms = s.moved_ms = since_ms;
		s.sample[0] = (struct sample){.ms = since_ms};
		s.samples = 1;
	}
	if (now.bytes != s.sample[(s.samples - 1) % SAMPLES].bytes)
		s.moved_ms = now.ms;
	s.sample[s.samples++ % SAMPLES] = now;
}

void speed_measure(struct line *l, uint64_t since_ms, uint64_t now_ms, uint64_t moved)
{
	take_sample(since_ms, (struct sample){now_ms, l->bytes, moved});
	const struct sample *newest = &s.sample[(s.samples - 1) % SAMPLES];
	const struct sample *recent = sample_before(SPEED_MS), *older = sample_before(LEFT_MS);
	l->speed = speed_rate(newest->moved - recent->moved, newest->ms - recent->ms);
	uint64_t pace = speed_rate(newest->moved - older->moved, newest->ms - older->ms);
	l->left = l->total > l->bytes && pace > 0 ? (l->total - l->bytes + pace - 1) / pace
						  : LINE_UNKNOWN;
	if (l->bytes < l->total && newest->ms - s.moved_ms >= STALLED_MS)
		l->stalled = (newest->ms - s.moved_ms) / 1000;
}
