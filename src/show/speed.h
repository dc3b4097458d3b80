/* SPDX-License-Identifier: MIT
 *
 * The current speed of a copy and the time left, from samples of its counters.
 */
#ifndef SHOW_SPEED_H
#define SHOW_SPEED_H

#include "line.h"

/* Bytes a second; 0 if no time has passed. */
uint64_t speed_rate(uint64_t bytes, uint64_t ms);

/* Takes a sample of line->bytes and of `moved`, and stores speed, left and stalled in *line. A new
 * since_ms, when the phase began, discards the samples of the last phase. Used by one thread. */
void speed_measure(struct line *line, uint64_t since_ms, uint64_t now_ms, uint64_t moved);

#endif
