/* SPDX-License-Identifier: MIT
 * Messages about trees and several sources.
 */
#include "cli.h"
#include "ending.h"
#include "errors.h"
#include "report.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define SHOWN 20 /* failures that are printed */

static uint64_t failures_printed;
static struct errors failures; /* with --json: all of them */
static bool disk_full;         /* for files, which ends the copy; not only for attributes */

void tree_failed(const struct cli *cli, const struct fcopy_error *e)
{
	if (failures_printed++ < SHOWN)
		message_error(e);
	if ((e->err == ENOSPC || e->err == EDQUOT) && !(e->call && strstr(e->call, "xattr")))
		disk_full = true;
	if (cli->json)
		errors_add(&failures, e);
}

void tree_add_failures(struct json *j)
{
	errors_write(&failures, j, "failures");
}

/* Every open directory takes two descriptors; most systems set the soft limit to 1024. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static bool is_directory(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* A kept part can be resumed. A temporary name is a tree that could not be removed. */
static bool keeps_part(const struct fcopy_tree_report *r)
{
	static const char suffix[] = ".fcopy-part";
	size_t length = strlen(r->part), n = sizeof(suffix) - 1;
	return length > n && strcmp(r->part + length - n, suffix) == 0;
}

static void print_part(const struct fcopy_tree_report *r)
{
	bool part = keeps_part(r), tree = is_directory(r->part);
	fputs("fcopy: ", stderr);
	message_print(r->part);
	fputs(part ? ": kept, unfinished\n" : ": not removed, incomplete\n", stderr);
	if (part && (r->failed == 0 || !tree))
		fputs("fcopy: hint: run the command again with --resume\n", stderr);
	else if (part)
		fputs("fcopy: hint: fix the cause and run the command again with --resume; or "
		      "commit without the failed entries: --resume --keep-going\n",
		      stderr);
}

/* What has become of the last DST. If there are several, it can be complete or not begun. */
static void print_destination(const struct cli *cli, const struct fcopy_tree_report *r)
{
	struct stat st;
	const char *state = is_directory(r->dst)      ? " is incomplete"
			    : cli->source_count > 1   ? NULL
			    : lstat(r->dst, &st) == 0 ? " unchanged"
						      : " not created";
	if (!state)
		return;
	fputs("; ", stderr);
	message_print(r->dst);
	fputs(state, stderr);
}

/* A failure can leave an entry without a copy, or only without an attribute or a flush. */
static void print_kept_going(const struct cli *cli, const struct fcopy_tree_report *r)
{
	fputs("fcopy: ", stderr);
	if (cli->source_count == 1) {
		message_print(r->dst);
		fputs(": ", stderr);
	}
	fprintf(stderr, "committed despite %" PRIu64 " failure%s\n", r->failed,
		r->failed == 1 ? "" : "s");
}

static void print_stopped(const struct cli *cli, const struct fcopy_tree_report *r)
{
	struct text size = {0};
	text_size_brief(&size, r->bytes);
	const uint64_t n = tree_entries(r);
	fprintf(stderr, "fcopy: stopped after %" PRIu64 " %s, %s", n, n == 1 ? "entry" : "entries",
		size.at);
	if (keeps_part(r)) {
		fputs("; kept as ", stderr);
		message_print(r->part);
		fputs("; run the same command to resume", stderr);
	} else if (r->dst[0]) {
		print_destination(cli, r);
	}
	fputc('\n', stderr);
}

/* Of a merge that leaves entries alone, or of a dry run. */
static void print_counts(const struct cli *cli, const struct fcopy_tree_report *r)
{
	const uint64_t copied = r->files + r->symlinks + r->specials + r->hard_links;
	const char *dry = cli->tree.dry_run ? "dry run: " : "";
	fprintf(stderr, "fcopy: %s%" PRIu64 " unchanged, %" PRIu64 " copied, %" PRIu64 " deleted\n",
		dry, r->unchanged + r->kept, copied, r->deleted);
}

void tree_print_end(const struct cli *cli, const struct fcopy_tree_report *report, bool interrupted)
{
	if (report->failed > SHOWN)
		fprintf(stderr, "fcopy: %" PRIu64 " entries failed; these are the first %d\n",
			report->failed, SHOWN);
	else if (report->failed > 1)
		fprintf(stderr, "fcopy: %" PRIu64 " entries failed\n", report->failed);
	bool stopped = interrupted || (disk_full && !report->committed);
	if (stopped && !cli->quiet)
		print_stopped(cli, report);
	if (report->part[0] && !(stopped && keeps_part(report)))
		print_part(report);
	if (cli->tree.keep_going && report->committed && report->failed > 0 && !cli->quiet)
		print_kept_going(cli, report);
	if (cli->tree.dry_run || (cli->tree.update && (cli->verbose > 0 || cli->progress)))
		print_counts(cli, report);
	if (report->error.err != 0)
		ending_shard(cli, &report->error, report->dst);
}

int tree_copy(struct cli *cli, struct fcopy_tree_report *report)
{
	raise_descriptor_limit();
	cli->tree.copy = cli->copy;
	cli->tree.report_entries = cli->verbose > 0 || cli->tree.dry_run;
	return fcopy_tree((const char *const *)cli->sources, cli->source_count, cli->dst,
			  &cli->tree, report);
}
