/* SPDX-License-Identifier: MIT
 *
 * Which engines copy the data, in which order.
 */
#ifndef COPY_PLAN_H
#define COPY_PLAN_H

#include "copy.h"

/* Copies all data, by the mode's engine or as auto decides. Returns 0, or -errno with the
 * failure recorded. */
int plan_run(struct copy *);

#endif
