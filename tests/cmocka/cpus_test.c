/* SPDX-License-Identifier: MIT
 * The CPUs that a process may use, and threads that start on different ones.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "copy/copy.h"
#include "copy/move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((off_t)1 << 20)

static const struct quota {
	const char *cgroup; /* content of /proc/self/cgroup */
	const char *root, *a, *b;
	unsigned cpus;
} quotas[] = {
    {"0::/a/b\n", "max 100000\n", "max 100000\n", "max 100000\n", UINT_MAX},
    {"0::/a/b\n", "max 100000\n", "max 100000\n", "200000 100000\n", 2},
    {"0::/a/b\n", "max 100000\n", "max 100000\n", "199999 100000\n", 1},
    {"0::/a/b\n", "max 100000\n", "150000 50000\n", "400000 100000\n", 3},
    {"0::/a/b\n", "100000 100000\n", "max 100000\n", "400000 100000\n", 1},
    {"0::/a/b\n", "max 100000\n", "max 100000\n", "1000 100000\n", 1},
    {"0::/a\n", NULL, "250000 100000\n", "100000 100000\n", 2},
    {"0::/\n", "300000 100000\n", NULL, NULL, 3},
    {"4:cpu:/b\n0::/a\n", NULL, "200000 100000\n", "100000 100000\n", 2},
    {"4:cpu:/a\n", NULL, "200000 100000\n", NULL, UINT_MAX},
    {"0::/a/b\n", NULL, NULL, NULL, UINT_MAX},
    {"0::/a\n", NULL, "garbage\n", NULL, UINT_MAX},
    {"0::/a\n", NULL, "100000\n", NULL, UINT_MAX},
    {"0::/a\n", NULL, "9999999999999999 1\n", NULL, UINT_MAX},
};

static void make_limit(const char *path, const char *text)
{
	if (text)
		make_text(path, text);
}

static void quota_is_read(void **state)
{
	const struct quota *q = *state;
	need(mkdir("root", 0700) == 0 && mkdir("root/a", 0700) == 0 &&
	     mkdir("root/a/b", 0700) == 0);
	make_text("cgroup", q->cgroup);
	make_limit("root/cpu.max", q->root);
	make_limit("root/a/cpu.max", q->a);
	make_limit("root/a/b/cpu.max", q->b);
	assert_int_equal(cpus_quota("cgroup", "root"), q->cpus);
	assert_int_equal(cpus_quota("missing", "root"), UINT_MAX);
}

static void memory_limit_is_read(void **state)
{
	(void)state;
	need(mkdir("root", 0700) == 0 && mkdir("root/a", 0700) == 0);
	make_text("cgroup", "0::/a\n");
	make_text("root/a/memory.max", "max\n");
	assert_true(cpus_memory("cgroup", "root") == UINT64_MAX);
	make_text("root/memory.max", "134217728\n");
	assert_int_equal(cpus_memory("cgroup", "root"), 134217728);
	make_text("root/a/memory.max", "67108864\n");
	assert_int_equal(cpus_memory("cgroup", "root"), 67108864);
	make_text("root/a/memory.max", "7");
	assert_int_equal(cpus_memory("cgroup", "root"), 7);
}

/* Version 1 has a directory for each controller, and a line for each in the list of groups. */
static void limits_of_version_1_are_read(void **state)
{
	(void)state;
	need(mkdir("root", 0700) == 0 && mkdir("root/memory", 0700) == 0 &&
	     mkdir("root/memory/a", 0700) == 0 && mkdir("root/cpu", 0700) == 0 &&
	     mkdir("root/cpu/b", 0700) == 0);
	make_text("cgroup", "9:name=systemd:/\n4:memory:/a\n3:cpuset:/a\n1:cpuacct,cpu:/b\n0::/\n");
	make_text("root/memory/memory.limit_in_bytes", "9223372036854771712\n");
	assert_true(cpus_memory("cgroup", "root") == 9223372036854771712u);
	make_text("root/memory/a/memory.limit_in_bytes", "268435456\n");
	assert_int_equal(cpus_memory("cgroup", "root"), 268435456);
	make_text("root/memory.max", "134217728\n"); /* of both, the lower one */
	assert_int_equal(cpus_memory("cgroup", "root"), 134217728);
	assert_int_equal(cpus_quota("cgroup", "root"), UINT_MAX);
	make_text("root/cpu/cpu.cfs_quota_us", "-1\n");
	make_text("root/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpus_quota("cgroup", "root"), UINT_MAX);
	make_text("root/cpu/b/cpu.cfs_quota_us", "150000\n");
	assert_int_equal(cpus_quota("cgroup", "root"), UINT_MAX); /* its period is unknown */
	make_text("root/cpu/b/cpu.cfs_period_us", "50000\n");
	assert_int_equal(cpus_quota("cgroup", "root"), 3);
	make_text("root/cpu/cpu.cfs_quota_us", "200000\n");
	assert_int_equal(cpus_quota("cgroup", "root"), 2);
	make_text("cgroup", "1:cpuset:/b\n");
	assert_int_equal(cpus_quota("cgroup", "root"), UINT_MAX);
}

static cpu_set_t masks[2]; /* of the calls of pthread_setaffinity_np */
static int set;

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask)
{
	(void)thread;
	assert_int_equal(size, sizeof(*mask));
	if (set < 2)
		masks[set] = *mask;
	set++;
	return CPU_COUNT(mask) > 0 ? 0 : EINVAL;
}

static void *note_run(void *arg)
{
	*(bool *)arg = true;
	return NULL;
}

/* The new thread is moved away from the caller's CPU, and then allowed everywhere. */
static void new_thread_gets_another_cpu(void **state)
{
	(void)state;
	cpu_set_t all, missing;
	pthread_t thread;
	bool ran = false;
	need(sched_getaffinity(0, sizeof(all), &all) == 0);
	if (CPU_COUNT(&all) < 2)
		skip();
	set = 0;
	assert_int_equal(cpus_start_thread(&thread, note_run, &ran), 0);
	need(pthread_join(thread, NULL) == 0);
	assert_true(ran);
	assert_int_equal(set, 2);
	CPU_XOR(&missing, &all, &masks[0]);
	assert_int_equal(CPU_COUNT(&missing), 1);
	assert_true(CPU_EQUAL(&masks[1], &all));
}

/* A process that may use one CPU only leaves the thread there. */
static void only_cpu_is_shared(void **state)
{
	(void)state;
	cpu_set_t all, one;
	pthread_t thread;
	bool ran = false;
	need(sched_getaffinity(0, sizeof(all), &all) == 0);
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	need(sched_setaffinity(0, sizeof(one), &one) == 0);
	set = 0;
	int err = cpus_start_thread(&thread, note_run, &ran);
	need(sched_setaffinity(0, sizeof(all), &all) == 0);
	assert_int_equal(err, 0);
	need(pthread_join(thread, NULL) == 0);
	assert_true(ran);
	assert_int_equal(set, 1);
}

static void no_thread_no_affinity(void **state)
{
	(void)state;
	pthread_t thread;
	bool ran = false;
	set = 0;
	fault_set("pthread_create", 1, EAGAIN);
	fault_on();
	int err = cpus_start_thread(&thread, note_run, &ran);
	fault_off();
	assert_int_equal(err, EAGAIN);
	assert_int_equal(set, 0);
	assert_false(ran);
}

static void *use_stack(void *ran)
{
	volatile char stack[512 << 10];
	for (size_t i = 0; i < sizeof(stack); i += 4096)
		stack[i] = 1;
	*(bool *)ran = true;
	return NULL;
}

/* The default of musl. The attributes of a file take two buffers of 64 KiB. */
static void small_stack_is_enlarged(void **state)
{
	(void)state;
	pthread_attr_t attributes;
	pthread_t thread;
	size_t size;
	bool ran = false;
	need(pthread_attr_init(&attributes) == 0);
	need(pthread_attr_getstacksize(&attributes, &size) == 0);
	need(pthread_attr_setstacksize(&attributes, 128 << 10) == 0);
	need(pthread_setattr_default_np(&attributes) == 0);
	assert_int_equal(cpus_start_thread(&thread, use_stack, &ran), 0);
	need(pthread_join(thread, NULL) == 0);
	need(pthread_attr_setstacksize(&attributes, size) == 0);
	need(pthread_setattr_default_np(&attributes) == 0);
	pthread_attr_destroy(&attributes);
	assert_true(ran);
}

/* An engine whose first two pieces wait for each other, and the third one for the fourth, so that
 * both threads are at work. */
static unsigned calls;

static int copy_slow_start(struct transfer *t)
{
	unsigned n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
	if (n <= 2) {
		while (__atomic_load_n(&calls, __ATOMIC_SEQ_CST) < 2)
			sched_yield();
		usleep(20000);
	}
	while (n == 3 && __atomic_load_n(&calls, __ATOMIC_SEQ_CST) < 4)
		sched_yield();
	usleep(2000);
	t->offset = t->end;
	return 0;
}

/* The start of the threads and the first use of their buffers do not count. */
static void slow_start_is_left_out(void **state)
{
	(void)state;
	static const struct engine engine = {
	    .name = "slow", .positional = true, .copy = copy_slow_start};
	struct transfer t = {.end = 8 * MIB, .buffer_size = 512 << 10};
	calls = 0;
	double start = io_now();
	assert_int_equal(ranges_run(&engine, &t, 2, false, NULL), 0);
	double all = io_now() - start;
	assert_int_equal(t.offset, t.end);
	assert_int_equal(t.threads, 2);
	assert_int_equal(t.piece, 512 << 10);
	/* 16 pieces: two are the first ones, and the time ends when the last one is taken. */
	assert_in_range(t.steady_bytes, 2 * MIB, 13 * MIB / 2);
	assert_true(all >= 0.020);
	assert_true(t.steady_seconds <= all - 0.020);
}

/* One thread alone has nothing to wait for; a thread that never came to its turn leaves no time. */
static void missing_thread_leaves_no_time(void **state)
{
	(void)state;
	static const struct engine engine = {
	    .name = "slow", .positional = true, .copy = copy_slow_start};
	struct transfer t = {.end = 8 * MIB, .buffer_size = 512 << 10};
	calls = 4;
	fault_set("pthread_create", 1, EAGAIN);
	fault_on();
	int r = ranges_run(&engine, &t, 2, false, NULL);
	fault_off();
	assert_int_equal(r, 0);
	assert_int_equal(t.offset, t.end);
	assert_int_equal(t.threads, 1);
	assert_int_equal(t.steady_bytes, 0);
}

/* /proc/loadavg has decimal points in every locale. */
static void idle_is_known_with_decimal_commas(void **state)
{
	(void)state;
	if (!HAS_LOCALES || system("localedef -i de_DE -f UTF-8 ./comma 2>localedef.log") != 0 ||
	    setenv("LOCPATH", ".", 1) != 0 || !setlocale(LC_NUMERIC, "comma"))
		skip();
	assert_string_equal(localeconv()->decimal_point, ",");
	unsigned idle = cpus_idle();
	setlocale(LC_NUMERIC, "C");
	unsetenv("LOCPATH");
	assert_in_range(idle, 0, sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
	cases_enter("ext4");
	for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++)
		case_add(quota_is_read, &quotas[i], "cpu.max: row %zu", i + 1);
	case_add(memory_limit_is_read, NULL, "memory.max of the groups is read");
	case_add(limits_of_version_1_are_read, NULL, "the limits of cgroup version 1 are read");
	case_add(new_thread_gets_another_cpu, NULL, "a new thread gets another CPU");
	case_add(only_cpu_is_shared, NULL, "one CPU: threads share it");
	case_add(no_thread_no_affinity, NULL, "pthread_create fails: no affinity is set");
	case_add(small_stack_is_enlarged, NULL, "a small default stack is enlarged");
	case_add(slow_start_is_left_out, NULL, "steady time: without the start of the threads");
	case_add(missing_thread_leaves_no_time, NULL, "steady time: none if a thread is missing");
	case_add(idle_is_known_with_decimal_commas, NULL, "a decimal comma: the load is known");
	return cases_run("cpus");
}
