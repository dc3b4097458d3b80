/* SPDX-License-Identifier: MIT
 *
 * fcopy SRC DST [MODE]: copies files and trees with the kernel mechanism of your choice.
 *
 * This file shows the whole program, which is the same for every command: options -> outputs open
 * -> sinks begin -> copy -> sinks end -> outputs close -> exit status. The map:
 *
 *   include/fcopy.h   the public header of libfcopy
 *   src/cli/          what is typed: options and option_table, operands (SRC, DST, MODE; words that
 *                     were meant as a value), filters, value (sizes, words, attributes, modes),
 *                     shard, help; start (of a tree, of --clean) and benchmark, which runs all
 *                     modes
 *   src/show/         what is printed, through sinks: people (messages, lists), lines
 *                     (--json=lines), log (--log-file), object (--json); what they print:
 *                     messages, hint, listening, progress, line, ending (of a file, in words; what
 *                     became of each SRC), stats, tree_print, left_print (what copies leave),
 *                     benchmark; by say (text for people, names in it), json, text; output (their
 *                     files), patient (standard output waits for its reader), signals (a copy ends
 *                     by the first, the program by the second)
 *   src/shard/        a copy by several processes: job (the protocol), claims (of chunks), refuse;
 *                     shard_file; shard_tree, list (of a tree), chunk (its text), entries (batches
 *                     for the walk of src/tree), finish (the commit)
 *   src/source/       reader (of directories, and climbs to those above); filter (which entries are
 *                     copied: --exclude, patterns and lists; paths), pattern
 *   src/tree/         several sources and trees; those that call come first: tree (each SRC in
 *                     turn), operands, single (no directory), parents; root (a directory),
 *                     finished (what --resume compares), home (where a new tree is built), commit,
 *                     inside (DST below SRC); walk (reads directories), threads and tuner (how
 *                     many), census (for progress), pool (of work); entry (one name), regular (a
 *                     file), facts (what is known of it), update (is it equal, and gets
 *                     attributes), enter (subdirectories), displace (backups, other types), links,
 *                     hard_link, special (all that is not copied), resume, prune (outdated
 *                     entries); directory (its end), permissions, opened (descriptors); rivals and
 *                     inodes (names that lead to one file in DST), aside (where others can exchange
 *                     names), mirror and mirror_remove (what SRC lacks); report, report_entry
 *   src/copy/         policy: conflicts (options that exclude each other), rules (what options
 *                     demand of SRC, DST and the mode), copy (opens; --resume of what is
 *                     complete), run (up to the commit), settle (before and after the commit),
 *                     notify (warnings), plan (clones, extents, and what follows), mover (chooses
 *                     what moves the next bytes), move (runs it), ranges (threads), modes, decide
 *                     (what becomes of an entry; ground: what is true of one SRC and of its copy's
 *                     place), outcome (of one entry; counts), allocate (extents, space), clean,
 *                     compare (--verify), serve (many clients)
 *   src/part/         what a copy is built in until its commit: private (a directory that only
 *                     this user can enter), shared (names and locks), part (DST.fcopy-part),
 *                     acquire (continue it or begin), trust (whose is it?), journal, left (by
 *                     killed copies: part_examine), remove
 *   src/endpoints/    where bytes come from and go: operand (what SRC and DST are), place (a name
 *                     in a directory), source (opens SRC, and operands that are not paths),
 *                     destination (opens DST, and ends it), slot and slot_commit (how a name comes
 *                     into being), backup (of what a commit replaces), replace and temporary (an
 *                     atomic file), partial (--resume, and the part of shards), in_place, storage
 *                     (what it can rename and keep: names, modes, owners, times), attributes (of
 *                     SRC, and of the file that is replaced), xattr, equal; socket, tcp, http,
 *                     http_parse (requests), http_response, http_room (clients), http_upload;
 *                     error, classify (what a failure means), same (is SRC also DST?)
 *   src/engines/      mechanism: engine.h is the contract, engine.c the table, transfer what the
 *                     engines share; one engine per file (pieces.h belongs to direct)
 *   src/io/           result (of functions, beside -errno); the read and write loops, memory, times
 *                     of files, symlinks; proc (what /proc shows: mounts, paths of open files);
 *                     io_uring, hash (also a checksum, and a table of hashes), words (of lines),
 *                     amount (of bytes, in words); system (what each file system can do, by its
 *                     type); libc (what musl lacks)
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
	const struct usage start = {.real = usage_clock()};
	struct cli cli;
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

/* Runs the command in a thread with a larger stack. Meanwhile this thread blocks all signals: it
 * would be the first to get one, which must interrupt the call for which the command waits. Returns
 * false if there is no such thread. */
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
