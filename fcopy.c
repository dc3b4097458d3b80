/* SPDX-License-Identifier: MIT
 *
 * fcopy SRC DST [MODE]: copies files and trees with the kernel mechanism of your choice.
 *
 * This file shows the whole program, which is the same for every command: options -> outputs open
 * -> sinks begin -> copy -> sinks end -> outputs close -> exit status. The map:
 *
 *   include/  fcopy.h, the public header of libfcopy
 *   src/
 *   cli/      what is typed: options, option_table; operands, filters, shard; value (sizes, words,
 *             attributes, modes); help; start (a tree, --clean); benchmark
 *   show/     what is printed: sinks pass each event to people (messages), lines (--json=lines),
 *             log (--log-file) and object (--json). For people: messages, hint, listening,
 *             progress, line, ending (of a file, of a SRC), stats, tree_print, left_print,
 *             benchmark. For all: say (text, names), text, json, output (files), patient (standard
 *             output waits for its reader), signals (the first ends a copy, the second fcopy)
 *   shard/    a copy by several processes: job (the protocol), claims (of chunks), refuse;
 *             shard_file; shard_tree, list (of a tree), chunk (its text), outline (as a tree),
 *             entries (for the walk), finish (the commit)
 *   tree/     several SRC, and trees. Each SRC: tree, operands, single (no directory), parents.
 *             Its directory: root, finished (is it complete?), home (where it is built), commit,
 *             inside (is DST below SRC?). Threads: walk, pool, threads, tuner, census (the total).
 *             An entry: entry, facts, update (is it equal?), regular, enter (a subdirectory),
 *             special, links, hard_link, preserve; displace (what it replaces), aside (made in
 *             private), rivals, namesakes, spelling, inodes; report, report_entry. Its end:
 *             directory, permissions, opened (descriptors). What SRC lacks: resume, prune (in a
 *             part); mirror, mirror_remove
 *   copy/     one file, and what a tree decides. May it be: conflicts, rules. One copy: copy
 *             (opens), run, settle (before and after the commit), notify (warnings), compare
 *             (--verify), clean, serve (clients). Its bytes: plan, allocate (extents, space),
 *             modes, mover (chooses an engine), move (runs it), ranges (threads). An entry:
 *             decide (is it copied, skipped, refused?), outcome
 *   endpoints/  SRC and DST: operand, place (a name), source, destination, same (is SRC DST?),
 *             error, classify (what a failure means). DST: slot, slot_commit, backup, replace,
 *             temporary, partial (in a part), in_place, storage (what it can do), case (names
 *             without it). Attributes: attributes, kept (of the old file), xattr, equal. Streams:
 *             socket, tcp; http, http_parse, http_response, http_room (clients), http_upload
 *   engines/  engine (the contract, the table), transfer (what they share), readwrite, sendfile,
 *             splice, copy_file_range, mmap, direct (with pieces.h), reflink
 *   part/     unfinished copies: private (a directory of one user), shared (names, locks), part
 *             (DST.fcopy-part), acquire, trust (whose is it?), journal, left (by kills), remove
 *   source/   reader (of directories), filter (--exclude, lists), pattern
 *   io/       io (reads, writes, memory), ring (io_uring), proc (/proc), follow (symlinks), system
 *             (kinds of file systems), words (of lines), hash, amount.h, libc (for musl)
 *   man/ dist/  manual pages; completions, pkg-config, JSON schema, packages
 *   tests/    check (real kernel), cmocka (faults), cli (the program), fuzz, long, kernels, tools
 *   bench/    benchmarks against other copiers, and their results
 *
 * .github/CONTRIBUTING.md explains the words of src, and says where an option, an engine, an
 * endpoint, a warning, an attribute and a count belong.
 *
 * From argv to the first copy:
 *   1. main() calls options_parse(): getopt_long() by option_table fills struct cli; then
 *      operands_take() divides the operands by their text into SRC, DST and MODE.
 *   2. run_command() calls run_action(): copy_file() calls fcopy_copy(), copy_tree() fcopy_tree().
 *   3. operand_find_source() and operand_find_destination() make a struct operand of each: no
 *      function below splits a path, or looks DST up before the copy; rules_check() judges them.
 *   4. A file: operand_find_file() follows DST; source_open(), decide(), destination_open();
 *      rules_check() sees what both are; copy_run().
 *   5. A tree, for each SRC: operand_find_copy() names the copy; root_copy() copies a directory,
 *      single_copy() anything else, as the one entry of a directory, by entry_copy().
 *
 * Calls go one way, and inside a room no file calls one that calls it (tests/rooms.sh):
 *   cli -> show -> shard -> tree -> copy -> {endpoints, engines} -> part -> source -> io
 */
#include "cli/cli.h"
#include "io/io.h"
#include "show/benchmark.h"
#include "show/patient.h"
#include "show/show.h"
#include "show/sink.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* What the sums of a tree and the report of one file have in common. */
static void report_tree(const struct fcopy_tree_report *tree, struct fcopy_report *r)
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

static int copy_tree(struct cli *cli, struct fcopy_report *report, struct summary *o)
{
	static struct fcopy_tree_report tree;
	int r = tree_copy(cli, &tree);
	report_tree(&tree, report);
	o->tree = &tree;
	return r;
}

static int serve_files(struct cli *cli, const volatile int *stop, struct fcopy_report *report)
{
	const struct fcopy_service service = {
	    .max_clients = cli->max_clients, .stop = stop, .once = !cli->keep_listening};
	const char *const *src = cli->served ? (const char *const *)cli->served : &cli->src;
	return fcopy_serve(src, cli->served ? cli->served_count : 1, cli->dst, &cli->copy, &service,
			   report);
}

static int copy_file(struct cli *cli, struct fcopy_report *report, struct summary *o)
{
	int r = fcopy_copy(cli->src, cli->dst, &cli->copy, report);
	o->unread = r < 0 && report->error.err == EPIPE && signals_take_pipe();
	return r;
}

/* The signals that end a copy. --clean, which waits for answers, ends at once. */
static void catch_signals(const struct cli *cli, volatile int *cancel, volatile int *stop)
{
	if (cli->action != ACTION_COPY && cli->action != ACTION_BENCHMARK)
		return;
	signals_catch(cancel, cli->keep_listening ? stop : NULL);
	if (cli->action == ACTION_BENCHMARK)
		return;
	if (cli_sends(cli))
		signals_ignore_pipe();
	else if (cli->source_count > 0)
		signals_catch_pipe();
	else
		signals_note_pipe();
}

/* Does what the command line asks for. Returns 0, or a negative number after a failure, which
 * *report describes. */
static int run_action(struct cli *cli, const volatile int *stop, struct fcopy_report *report,
		      struct summary *o)
{
	switch (cli->action) {
	case ACTION_COPY:
		return cli->source_count > 0                ? copy_tree(cli, report, o)
		       : cli->served || cli->keep_listening ? serve_files(cli, stop, report)
							    : copy_file(cli, report, o);
	case ACTION_BENCHMARK:
		o->benchmark = benchmark_run(cli, report);
		return o->benchmark ? 0 : -1;
	case ACTION_CLEAN: return clean_run(cli, &report->error);
	case ACTION_LIST: return 0; /* the sinks have the list */
	case ACTION_HELP:
	case ACTION_BRIEF_HELP: help_print(cli->action == ACTION_BRIEF_HELP); return 0;
	case ACTION_VERSION: puts("fcopy " FCOPY_VERSION); return 0;
	}
	return -1;
}

/* Every command: its outputs are open. Returns the exit status. */
static int run_command(struct cli *cli, const struct usage *start)
{
	static volatile int cancel, stop;
	static struct fcopy_report report;
	struct summary o = {.cli = cli, .report = &report};
	cli->copy.cancel = &cancel;
	cli->copy.notify = cli->action == ACTION_COPY ? sinks_event : NULL;
	cli->copy.user = cli;
	catch_signals(cli, &cancel, &stop);
	sinks_begin(cli);
	o.result = run_action(cli, &stop, &report, &o);
	if (cli->stats || cli->json)
		o.usage = usage_since(start);
	o.signal = o.result < 0 ? signals_caught() : 0;
	sinks_end(&o);
	if (o.result == 0)
		return cli->declined ? EXIT_FAILED : EXIT_DONE; /* as cp */
	signals_reraise();
	return report.error.unsuitable ? EXIT_USAGE : EXIT_FAILED;
}

static int run_program(int argc, char **argv)
{
	const struct usage start = {.real = io_now()};
	static struct cli cli; /* static: LeakSanitizer finds what it points to */
	standard_reserve();
	patient_begin();
	int status = options_parse(&cli, argc, argv);
	const int opened = sinks_open(&cli,
				      &(struct command_line){argc, argv, status != EXIT_DONE});
	if (opened == EXIT_DONE && status == EXIT_DONE)
		status = run_command(&cli, &start);
	else if (opened == EXIT_DONE)
		sinks_end(&(struct summary){.cli = &cli, .usage_error = message_last_usage()});
	else if (status == EXIT_DONE)
		status = opened;
	status = sinks_close(&cli, status);
	return cli.as_cp && status == EXIT_USAGE ? EXIT_FAILED : status;
}

#define STACK ((size_t)1 << 20) /* paths and attributes of 64 KiB are on it */

struct invocation {
	int argc;
	char **argv;
	int status;
	sigset_t blocked; /* by the caller of this program */
};

static void *run_invocation(void *arg)
{
	struct invocation *i = arg;
	pthread_sigmask(SIG_SETMASK, &i->blocked, NULL);
	i->status = run_program(i->argc, i->argv);
	return NULL;
}

/* Runs the command in a thread with a larger stack. This thread blocks all signals until it ends:
 * it would be the first to get one, which must interrupt the call for which the command waits.
 * Returns false if there is no such thread. */
static bool run_in_thread(struct invocation *i)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	if (pthread_attr_init(&attributes) != 0 ||
	    pthread_attr_setstacksize(&attributes, STACK) != 0 ||
	    pthread_setattr_default_np(&attributes) != 0)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &i->blocked);
	const bool started = pthread_create(&thread, &attributes, run_invocation, i) == 0;
	if (started)
		pthread_join(thread, NULL);
	pthread_sigmask(SIG_SETMASK, &i->blocked, NULL);
	return started;
}

/* The limit of the stack (ulimit -s) applies to this thread, and is the default of others. */
int main(int argc, char **argv)
{
	struct invocation i = {.argc = argc, .argv = argv, .status = EXIT_FAILED};
	struct rlimit limit;
	const bool small = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK;
	return small && run_in_thread(&i) ? i.status : run_program(argc, argv);
}
