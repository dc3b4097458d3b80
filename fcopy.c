/* SPDX-License-Identifier: MIT
 *
 * fcopy SRC DST [MODE]: copies files and trees with the kernel mechanism of your choice.
 *
 * This file shows the whole program: options -> copy -> report -> exit status. The map:
 *
 *   include/fcopy.h   the public header of libfcopy
 *   src/cli/          what is typed: options and option_table, operands, filters, mode, attributes,
 *                     size, shard, suggest, help, standard (0 to 2 are open); start (of a tree),
 *                     benchmark, which runs all modes, and clean
 *   src/show/         what is printed: messages, errors, events, listening, progress, speed, line,
 *                     terminal, text, utf8, ending, usage, stats, tree_print, operands_ended, flood
 *                     (of warnings), hint, hint_cause, unwritten (data), unused (parts), advice,
 *                     wrap, entry_line, log, json, lines, json_file, output (what is written
 *                     besides the copy), patient (standard output waits for its reader),
 *                     report_json, the tables of a benchmark, signals (a copy ends by the first,
 *                     the program by the second)
 *   src/shard/        a copy by several processes: job (the protocol), enter, claims,
 *                     refuse; range, file; tree, list, buffer, known and read (the list of a tree),
 *                     entries, paths; finish, finish_links, finish_check and finish_run (the
 *                     commit); shard (fcopy_copy() and fcopy_tree())
 *   src/source/       reader (the only one of directories), names (all of a directory); filter
 *                     (which entries are copied: --exclude, patterns and lists), pattern
 *   src/tree/         several sources and trees; those that call come first: tree (each SRC in
 *                     turn), operands, single (no directory), parents; root (a directory),
 *                     finished (what --resume compares), rehearse (its walk), home (where a new
 *                     tree is built), commit;
 *                     walk (reads directories), census (for progress); entry (one name), update
 *                     (what a merge
 *                     leaves alone), seen and seen_again (what an option lets a copy replace),
 *                     enter (subdirectories), displace (backups), links, resume, link_dest,
 *                     hard_link, symbolic_link, special, attributes_only; directory (its
 *                     attributes), rivals and inodes (names that lead to one file in DST), aside
 *                     (where others can exchange names), prune (outdated entries), permissions (of
 *                     new directories), mirror and mirror_remove (what SRC lacks), flush, inside
 *                     (DST below SRC); pool, tuner and tuning (threads), helping (with large
 *                     files), opened (directories), record (of an unfinished tree); report
 *                     (failures and warnings), report_entry, report_sum (counts), entry_path
 *   src/copy/         policy: rules (what options demand) and ends (what SRC and DST are), copy
 *                     (opens), complete (--resume), run (up to the commit), settle (before the
 *                     commit), closed (after it), notify (warnings), plan (auto), cached and
 *                     measure (splice or threads), cpus, ask, modes, outcome (of
 *                     one entry; counts), step, extents, allocate,
 *                     space, stale, clean, ranges (threads), verify and compare, serve (many
 *                     clients)
 *   src/part/         what a copy is built in until its commit: private (a directory that only
 *                     this user can enter), remote (what other machines see of it), part and
 *                     part_open (DST.fcopy-part), journal, journal_read, left (by killed copies),
 *                     remove
 *   src/endpoints/    where bytes come from and go: operand (what SRC and DST are), path (splits
 *                     it), follow (symlinks), place (a name in a directory), replace, replaceable,
 *                     temporary and naming (an atomic file), storage (what it can rename
 *                     and keep: names, modes, owners, times),
 *                     exchange (a rename over one certain file), created (under its final name),
 *                     partial (--resume, and the part of shards), in_place, metadata (attributes of
 *                     SRC), keep (those of the file that is replaced), acl, equal; stream is the
 *                     table of operands that are not paths: descriptor, tcp, http; socket and
 *                     receipt (the peer's close); http_parse and http_date (requests),
 *                     http_response, http_room (clients that wait), http_upload, http_peer; file,
 *                     error, same (is SRC also DST?), identity
 *   src/engines/      mechanism: engine.h is the contract, engine.c the table, transfer what the
 *                     engines share; one engine per file (pieces belongs to direct); ahead (reads
 *                     ahead of a reader that waits)
 *   src/io/           the read and write loops, memory, io_uring, checksum, amount (of bytes, in
 *                     words); system (what each file system can do, by its type)
 *   src/man, dist/    the manual pages; completions, pkg-config, JSON schema, packages (.mk)
 *   tests/            check (real kernel), cmocka (faults), cli (the program), fuzz, long
 *                     (proofs), kernels (other kernels), tools
 *   bench/            benchmarks against other copiers, and their results
 *
 * .github/CONTRIBUTING.md says where an option, an engine, an endpoint, a warning and an exclude
 * rule belong.
 *
 * From argv to the first copy:
 *   1. main() calls options_parse(): getopt_long() by option_table fills struct cli; then
 *      operands_take() divides the operands by their text into SRC, DST and MODE.
 *   2. copy() calls fcopy_copy(), or copy_tree() calls fcopy_tree().
 *   3. operand_find_source() and operand_find_destination() make a struct operand of each: no
 *      function below splits a path, or looks DST up before the copy; rules_check() judges them.
 *   4. A file: operand_find_file() follows DST; source_open() and destination_open() open both,
 *      rules_check() sees what they are; copy_run().
 *   5. A tree, for each SRC: operand_find_copy() names the copy; root_copy() copies a directory,
 *      single_copy() anything else, as the one entry of a directory, by entry_copy().
 *
 * Calls go one way, and inside a room no file calls one that calls it (tests/rooms.sh):
 *   cli -> show -> shard -> tree -> copy -> {endpoints, engines} -> part -> source -> io
 */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "show/benchmark.h"
#include "show/ending.h"
#include "show/hint.h"
#include "show/json_file.h"
#include "show/lines.h"
#include "show/log.h"
#include "show/patient.h"
#include "show/report.h"
#include "show/show.h"
#include "show/signals.h"
#include "show/unused.h"
#include "show/unwritten.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Returns the errno of the first failed flush of stdout; errno is unreliable afterwards. */
static int flush_output(void)
{
	static int failure;
	output_flush(json_file_output()); /* it may be read while a server runs */
	if (fflush(stdout) != 0 && failure == 0)
		failure = errno;
	return failure ? failure : ferror(stdout) ? EIO : 0;
}

static bool was_usage(const struct fcopy_report *report)
{
	return report->error.unsuitable;
}

static void print_object(const struct summary *o)
{
	const char *option = o->report->error.option;
	if (option && strcmp(option, "json") == 0)
		json_file_abandon();
	FILE *f = o->cli->json ? json_file_stream() : NULL;
	if (f)
		report_json(o, f);
	flush_output();
}

static void print_report(const struct summary *o)
{
	if (o->cli->stats && !was_usage(o->report))
		stats_print(o, stderr);
	print_object(o);
}

/* Runs in the client's own thread. */
static void print_client_report(const struct cli *cli, const struct fcopy_report *report)
{
	const struct summary o = {cli, report, usage_of_thread(ending_seconds(report)),
				  report->error.err == EINTR ? signals_caught() : 0, NULL};
	flockfile(stdout);
	FILE *f = cli->json ? json_file_stream() : NULL;
	if (cli->stats)
		stats_print_client(&o, stderr);
	if (f)
		report_json(&o, f);
	flush_output();
	funlockfile(stdout);
}

static void on_event(void *user, const struct fcopy_event *event)
{
	const struct cli *cli = user;
	event_print(user, event);
	if (event->kind == FCOPY_EVENT_LISTENING && cli->keep_listening && cli->json)
		json_file_stream(); /* no object of an earlier run remains */
	if (event->kind == FCOPY_EVENT_CLIENT && cli->keep_listening)
		print_client_report(user, event->report);
}

static int serve_files(struct cli *cli, const volatile int *stop, struct fcopy_report *report)
{
	const struct fcopy_service service = {
	    .max_clients = cli->max_clients, .stop = stop, .once = !cli->keep_listening};
	const char *const *src = cli->served ? (const char *const *)cli->served : &cli->src;
	return fcopy_serve(src, cli->served ? cli->served_count : 1, cli->dst, &cli->copy, &service,
			   report);
}

static int serve(struct cli *cli, const volatile int *stop, struct fcopy_report *report)
{
	const struct usage start = usage_now();
	signal(SIGUSR1, SIG_IGN); /* a server has no single status line */
	int r = serve_files(cli, stop, report);
	const struct usage used = usage_since(&start);
	if (cli->stats && !was_usage(report))
		stats_print_server(&used, stderr);
	return r;
}

/* What the sums of a tree and the report of one file have in common. */
static void flatten(const struct fcopy_tree_report *tree, struct fcopy_report *r)
{
	uint64_t cloned = 0;
	for (size_t i = 0; i < tree->steps; i++)
		if (strcmp(tree->step[i].engine, "reflink") == 0)
			cloned += tree->step[i].bytes;
	r->error = tree->error;
	r->error.unsuitable &= tree_entries(tree) == 0; /* some operands were copied */
	r->committed = tree->committed;
	r->bytes = tree->count[FCOPY_COUNT_BYTES];
	r->data = tree->count[FCOPY_COUNT_DATA];
	r->holes = tree->count[FCOPY_COUNT_HOLES];
	r->moved = cloned < r->data ? r->data - cloned : 0;
	r->resumed = tree->count[FCOPY_COUNT_RESUMED];
	r->cloned = tree->count[FCOPY_COUNT_CLONED] > 0 && r->moved == 0;
	r->source_changed = tree->count[FCOPY_COUNT_CHANGED] > 0;
	r->not_atomic = tree->not_atomic;
	r->steps = tree->steps;
	memcpy(r->step, tree->step, sizeof(r->step));
	memcpy(r->seconds, tree->seconds, sizeof(r->seconds));
	memcpy(r->dst, tree->dst, sizeof(r->dst));
}

static int copy_tree(struct cli *cli, const struct usage *start)
{
	static struct fcopy_tree_report tree;
	static struct fcopy_report report;
	signals_catch_pipe();
	unused_print(cli);
	unwritten_begin(cli);
	cli->copy.progress = progress_start(cli);
	int r = tree_copy(cli, &tree);
	flatten(&tree, &report);
	__atomic_store_n(&cli->copy.progress->entries, tree_entries(&tree), __ATOMIC_RELAXED);
	progress_stop(&report);
	tree_print_end(cli, &tree, r < 0 && signals_caught() != 0);
	if (r == 0)
		unwritten_print(tree.dst, report.moved);
	log_end(cli, &report, &tree);
	if (cli->json_lines)
		lines_end();
	print_report(&(struct summary){cli, &report, usage_since(start),
				       r < 0 ? signals_caught() : 0, &tree});
	if (r == 0)
		return cli->declined ? EXIT_FAILED : EXIT_DONE; /* as cp */
	signals_reraise();
	return was_usage(&report) ? EXIT_USAGE : EXIT_FAILED;
}

static int copy(struct cli *cli, const struct usage *start)
{
	static volatile int cancel, stop;
	static struct fcopy_report report;
	cli->copy.cancel = &cancel;
	cli->copy.notify = on_event;
	cli->copy.user = cli;
	signals_catch(&cancel, cli->keep_listening ? &stop : NULL);
	if (cli->json_lines)
		lines_start(cli);
	if (cli_sends(cli))
		signals_ignore_pipe();
	if (cli->source_count > 0)
		return copy_tree(cli, start);
	int r;
	bool unread = false; /* DST is a pipe, and its reader has ended */
	if (cli->keep_listening) {
		r = serve(cli, &stop, &report);
		if (r < 0)
			print_object(&(struct summary){cli, &report, usage_since(start),
						       signals_caught(), NULL});
	} else {
		if (!cli_sends(cli))
			signals_note_pipe();
		unused_print(cli);
		unwritten_begin(cli);
		cli->copy.progress = progress_start(cli);
		r = cli->served ? serve_files(cli, NULL, &report)
				: fcopy_copy(cli->src, cli->dst, &cli->copy, &report);
		unread = r < 0 && report.error.err == EPIPE && signals_take_pipe();
		progress_stop(&report);
		log_end(cli, &report, NULL);
		if (cli->json_lines) {
			lines_file(cli, &report);
			lines_end();
		}
		if (cli->stats || cli->json)
			print_report(&(struct summary){cli, &report, usage_since(start),
						       r < 0 ? signals_caught() : 0, NULL});
	}
	if (r == 0) { /* a signal that came after the commit has nothing left to stop */
		if (cli->voice.all && !cli->keep_listening)
			ending_summary(cli, &report);
		if (cli->voice.notes && !cli->as_cp && !report.existed && hint_is_address(cli->dst))
			hint_new_file(cli->dst);
		unwritten_print(report.dst, report.moved);
		return EXIT_DONE;
	}
	if (!unread && (!signals_caught() || report.error.err != EINTR))
		message_failure(&report);
	if (!unread)
		hint_value(cli, &report.error);
	if (!unread && !cli->keep_listening)
		ending_stopped(cli, &report, signals_caught() != 0);
	ending_shard(cli, &report.error, report.dst);
	signals_reraise();
	return was_usage(&report) ? EXIT_USAGE : EXIT_FAILED;
}

static int benchmark(struct cli *cli, const struct usage *start)
{
	static struct fcopy_report report;
	if (benchmark_run(cli, &report) == 0)
		return EXIT_DONE;
	if (!signals_caught())
		benchmark_print_failure(&report);
	print_object(&(struct summary){cli, &report, usage_since(start), signals_caught(), NULL});
	signals_reraise();
	return was_usage(&report) ? EXIT_USAGE : EXIT_FAILED;
}

static int run_action(struct cli *cli, const struct usage *start)
{
	FILE *f;
	switch (cli->action) {
	case ACTION_LIST:
		if (cli->json && (f = json_file_stream()))
			list_json(f);
		if (!cli->json || cli->json_file)
			list_print();
		return EXIT_DONE;
	case ACTION_HELP: help_print(); return EXIT_DONE;
	case ACTION_VERSION: puts("fcopy " FCOPY_VERSION); return EXIT_DONE;
	case ACTION_BENCHMARK: return benchmark(cli, start);
	case ACTION_CLEAN: return clean_run(cli);
	default: return copy(cli, start);
	}
}

/* If the user asked for output, failing to write it is a failure: the first one is reported. */
static int check_output(const struct cli *cli, int status)
{
	struct output *const files[] = {json_file_output(), log_output()};
	struct fcopy_error e = {.err = lines_lost() ? lines_lost() : flush_output(),
				.call = "write",
				.path = "standard output"};
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		output_close(files[i]);
		if (e.err == 0)
			e = (struct fcopy_error){
			    .err = files[i]->err, .call = files[i]->call, .path = files[i]->path};
	}
	if (e.err != 0) {
		message_error(&e);
		return EXIT_FAILED;
	}
	bool failed = (cli->stats && ferror(stderr)) || json_file_is_lost();
	return failed && status == EXIT_DONE ? EXIT_FAILED : status;
}

/* Opens the outputs before anything is copied. Returns an exit status, after a message. */
static int open_outputs(struct cli *cli, int argc, char **argv, int status)
{
	const bool copies = status == EXIT_DONE && cli->action == ACTION_COPY;
	int opened = json_file_open(cli, status != EXIT_DONE);
	if (opened == EXIT_DONE && copies)
		opened = log_open(cli, argc, argv);
	if (opened == EXIT_DONE && copies)
		opened = output_claim_standard(cli);
	if (opened == EXIT_USAGE) { /* two outputs are one file, or one is an operand */
		json_file_abandon();
		output_abandon(log_output());
	}
	return opened;
}

static int run(int argc, char **argv)
{
	const struct usage start = {.real = usage_clock()};
	struct cli cli;
	standard_reserve();
	patient_begin();
	int status = options_parse(&cli, argc, argv);
	int opened = open_outputs(&cli, argc, argv, status);
	FILE *f;
	if (status == EXIT_DONE)
		status = opened == EXIT_DONE ? run_action(&cli, &start) : opened;
	else if (opened == EXIT_DONE && cli.json && (f = json_file_stream()))
		report_json_usage(message_last_usage(), f);
	status = check_output(&cli, status);
	return cli.as_cp && status == EXIT_USAGE ? EXIT_FAILED : status;
}

#define STACK ((size_t)1 << 20) /* paths and attributes of 64 KiB are on it */

struct invocation {
	int argc;
	char **argv;
	int status;
};

static void *run_invocation(void *arg)
{
	struct invocation *i = arg;
	i->status = run(i->argc, i->argv);
	return NULL;
}

/* The limit of the stack (ulimit -s) applies to this thread, and is the default of others. If it is
 * too low, another thread runs the command. */
int main(int argc, char **argv)
{
	struct invocation i = {argc, argv, EXIT_FAILED};
	struct rlimit limit;
	pthread_attr_t attributes;
	pthread_t thread;
	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK &&
	    pthread_attr_init(&attributes) == 0 &&
	    pthread_attr_setstacksize(&attributes, STACK) == 0 &&
	    pthread_setattr_default_np(&attributes) == 0 &&
	    pthread_create(&thread, &attributes, run_invocation, &i) == 0) {
		pthread_join(thread, NULL);
		return i.status;
	}
	return run(argc, argv);
}
