/* SPDX-License-Identifier: MIT
 * struct fcopy_progress while fcopy_tree() runs, and after it.
 */
#define _GNU_SOURCE
#include "util.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES   600000 /* of both sources */
#define ENTRIES 4      /* below both sources */

static struct fcopy_progress progress;
static uint64_t copied_since, last_entry, entries_seen, operands_seen;

static uint64_t now_ms(void)
{
	return (uint64_t)(io_now() * 1e3);
}

/* Runs for each entry during the copy, and takes some time. */
static void check_phase(void *user, const struct fcopy_event *event)
{
	const uint64_t *start = user;
	if (event->kind != FCOPY_EVENT_ENTRY)
		return;
	if (!event->entry->path) { /* the operand's own directory, after the commit */
		check(progress.phase == FCOPY_PHASE_FSYNC, "phase %d", progress.phase);
		operands_seen++;
		return;
	}
	copied_since = __atomic_load_n(&progress.since_ms, __ATOMIC_ACQUIRE);
	check(progress.phase == FCOPY_PHASE_COPY, "phase %d", progress.phase);
	check(copied_since >= *start, "phase since %ju, not %ju", (uintmax_t)copied_since,
	      (uintmax_t)*start);
	check(progress.total_entries == ENTRIES, "the caller's value is gone");
	usleep(5000);
	last_entry = now_ms();
	entries_seen++;
}

/* Copies two directories into a new one, twice: the second call gets the counters of the first. */
START_TEST(tree_counts_from_zero)
{
	const char *const src[] = {"a", "b"};
	uint64_t start;
	static struct fcopy_tree_report tree;
	enter(&dirs[0]);
	for (int i = 0; i < 2; i++) {
		need(mkdir(src[i], 0755) == 0 && chdir(src[i]) == 0);
		make_file("large", BYTES / 2 - 1, DENSE, 1);
		make_file("small", 1, DENSE, 1);
		need(chdir("..") == 0);
	}
	progress = (struct fcopy_progress){.bytes = 99,
					   .moved = 98,
					   .since_ms = 1,
					   .phase = FCOPY_PHASE_REMOVE,
					   .entries = 97,
					   .total_entries = ENTRIES,
					   .file = "old"};
	struct fcopy_tree_options o = {.recursive = true, .report_entries = true};
	o.copy = (struct fcopy_options){.api = FCOPY_API,
					.fsync = true,
					.reflink = FCOPY_WHEN_NEVER,
					.progress = &progress,
					.notify = check_phase,
					.user = &start};
	for (int call = 0; call < 2; call++) {
		const char *dst = call == 0 ? "first" : "second";
		need(mkdir(dst, 0755) == 0);
		entries_seen = operands_seen = 0;
		start = now_ms();
		check(fcopy_tree(src, 2, dst, &o, &tree) == 0, "%s", tree.error.call);
		check(entries_seen == ENTRIES, "%ju entries", (uintmax_t)entries_seen);
		check(operands_seen == 2, "%ju operands", (uintmax_t)operands_seen);
		check(progress.entries == entries_seen + operands_seen, "%ju counted",
		      (uintmax_t)progress.entries);
		check(progress.bytes == BYTES, "%ju bytes", (uintmax_t)progress.bytes);
		check(progress.file[0] == '\0' && progress.file_version % 2 == 0, "file %s",
		      progress.file);
		check(progress.phase == FCOPY_PHASE_FSYNC, "phase %d", progress.phase);
		check(progress.since_ms >= last_entry, "flushed since %ju, not %ju",
		      (uintmax_t)progress.since_ms, (uintmax_t)last_entry);
	}
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("progress");
	tcase_add_test(add_case(s, "progress"), tree_counts_from_zero);
	return run_suite(s);
}
