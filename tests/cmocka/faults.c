/* SPDX-License-Identifier: MIT
 * Which call fails, when, and with what.
 */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <string.h>

#define ALSO 3

static struct {
	bool on;
	const char *call;
	int nth, err;
	int calls;
	bool seen;
	const char *also[ALSO];
	int also_err[ALSO];
	size_t most;
	void (*before_call)(void);
} fault;

void fault_set(const char *call, int nth, int err)
{
	fault.calls = 0;
	fault.seen = false;
	fault.nth = nth;
	fault.err = err;
	fault.call = call;
}

void fault_also(const char *call, int err)
{
	int i = 0;
	if (!call[0])
		memset(fault.also, 0, sizeof(fault.also));
	while (i < ALSO - 1 && fault.also[i] && strcmp(fault.also[i], call) != 0)
		i++;
	fault.also_err[i] = err;
	fault.also[i] = call;
}

void fault_before(void (*happens)(void))
{
	fault.before_call = happens;
}

void fault_short(size_t n)
{
	fault.most = n;
}

void fault_on(void)
{
	__atomic_store_n(&fault.on, true, __ATOMIC_SEQ_CST);
}

void fault_off(void)
{
	__atomic_store_n(&fault.on, false, __ATOMIC_SEQ_CST);
}

/* Threads of the test ask too. */
static bool is_on(void)
{
	return __atomic_load_n(&fault.on, __ATOMIC_SEQ_CST);
}

bool fault_seen(void)
{
	return fault.seen;
}

int fault_calls(void)
{
	return fault.calls;
}

void fault_clear(void)
{
	fault.call = NULL;
	memset(fault.also, 0, sizeof(fault.also));
	fault.before_call = NULL;
	fault.most = 0;
	fault.seen = false;
	fault_off();
}

int fault_sweep(const char *call, int err, void (*once)(void *arg), void *arg)
{
	for (int nth = 1; nth < 10000; nth++) {
		fault_set(call, nth, err);
		once(arg);
		if (fault.seen)
			continue;
		if (nth == 1)
			fail_msg("%s was never called", call);
		return nth - 1;
	}
	fail_msg("%s: no end of it", call);
	return 0;
}

bool fault_strikes(const char *call)
{
	if (!is_on())
		return false;
	int also = 0;
	while (also < ALSO && (!fault.also[also] || strcmp(call, fault.also[also]) != 0))
		also++;
	if (also < ALSO) {
		errno = fault.also_err[also];
		return true;
	}
	if (!fault.call || strcmp(call, fault.call) != 0)
		return false;
	int n = __atomic_add_fetch(&fault.calls, 1, __ATOMIC_SEQ_CST);
	bool now = fault.nth > FAULT_EVERY ? n >= fault.nth - FAULT_EVERY : n == fault.nth;
	if (!now)
		return false;
	__atomic_store_n(&fault.seen, true, __ATOMIC_SEQ_CST);
	if (fault.before_call) {
		fault_off();
		fault.before_call();
		fault_on();
		return false;
	}
	errno = fault.err;
	return true;
}

size_t fault_cut(size_t n)
{
	return is_on() && fault.most > 0 && n > fault.most ? fault.most : n;
}
