/* SPDX-License-Identifier: MIT
 *
 * fcopy SRC DST [MODE]: copies a file by the kernel mechanism of your choice.
 *
 * This file is the whole story: options -> copy -> report -> exit status. The map:
 *
 *   include/fcopy.h   libfcopy's public face
 *   src/cli/          talks to people: options, help, messages, progress, stats, json, benchmark
 *   src/tree/         several sources and trees: tree (operands), root (new or merged), pool,
 *                     directory, entry, links, special, resume, remove, report
 *   src/copy/         policy: rules (what options demand), copy (open to commit), settle (before
 *                     it), plan (auto), ask, modes, step, extents, allocate, ranges (threads),
 *                     verify and compare, serve (many clients)
 *   src/endpoints/    where bytes come from and go: place (names), replace and temporary (an atomic
 *                     file), part (--resume), in_place, stream, tcp, socket and receipt (its
 *                     peer's close), metadata, preserve
 *   src/engines/      mechanism: engine.h is the contract, engine.c the table, transfer what the
 *                     engines share; one engine per file (pieces belongs to direct)
 *   src/io/           the read and write loops, memory, io_uring
 *   src/man, dist/    the manual pages; completions, pkg-config, JSON schema, Debian packages
 *   tests/            check (real kernel), cmocka (faults), cli (the program), fuzz, long (proofs)
 *   bench/            what it costs, against whom, and the committed results
 *
 * Calls go one way: cli -> tree -> copy -> endpoints, engines -> io.
 */
#include "cli/benchmark.h"
#include "cli/cli.h"
#include "cli/report.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Writes out what stdout holds. Returns 0, or the errno of the first time that it could not: later
 * errno may be of anything, and of another thread. */
static int flush_output(void)
{
	static int failure;
	if (fflush(stdout) != 0 && failure == 0)
		failure = errno;
	return failure ? failure : ferror(stdout) ? EIO : 0;
}

static bool was_usage(const struct fcopy_report *report)
{
	return report->error.advice == FCOPY_ADVICE_USAGE;
}

static void tell(const struct outcome *o)
{
	if (o->cli->stats)
		stats_print(o, stderr);
	if (o->cli->json)
		report_json(o, report_stream(o->cli->dst));
	flush_output(); /* before a signal that was caught ends us */
}

/* In the client's own thread. */
static void tell_client(const struct cli *cli, const struct fcopy_report *report)
{
	double real = 0;
	for (int i = 0; i < FCOPY_PHASES; i++)
		real += report->seconds[i];
	const struct outcome o = {cli, report, usage_of_thread(real)};
	flockfile(stdout);
	if (cli->stats)
		stats_print_client(&o, stderr);
	if (cli->json)
		report_json(&o, stdout);
	flush_output();
	funlockfile(stdout);
}

static void on_event(void *user, const struct fcopy_event *event)
{
	message_event(user, event);
	if (event->kind == FCOPY_EVENT_CLIENT)
		tell_client(user, event->report);
}

static int serve(struct cli *cli, const volatile int *stop, struct fcopy_report *report)
{
	const struct usage start = usage_now();
	signal(SIGUSR1, SIG_IGN); /* a server has no one status to tell, and shall not die of it */
	int r = fcopy_serve(cli->src, cli->dst, &cli->copy, cli->max_clients, stop, report);
	const struct usage used = usage_since(&start);
	if (cli->stats && !was_usage(report))
		stats_print_server(&used, stderr);
	return r;
}

static int copy_tree(struct cli *cli)
{
	static struct fcopy_tree_report report;
	int r = tree_copy(cli, &report);
	if (r == 0)
		return EXIT_DONE;
	signals_obey();
	return report.error.advice == FCOPY_ADVICE_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int copy(struct cli *cli, const struct usage *start)
{
	static volatile int cancel, stop;
	static struct fcopy_report report;
	cli->copy.cancel = &cancel;
	cli->copy.notify = on_event;
	cli->copy.user = cli;
	signals_catch(&cancel, cli->keep_listening ? &stop : NULL);
	if (fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) >= FCOPY_KIND_SOCKET)
		signals_ignore_pipe();
	if (cli->source_count > 0)
		return copy_tree(cli);
	int r;
	if (cli->keep_listening) {
		r = serve(cli, &stop, &report);
	} else {
		cli->copy.progress = progress_start(cli);
		r = fcopy_copy(cli->src, cli->dst, &cli->copy, &report);
		progress_stop(&report);
		if ((cli->stats || cli->json) && !was_usage(&report))
			tell(&(struct outcome){cli, &report, usage_since(start)});
	}
	if (r == 0) /* a signal that came after the commit has nothing left to stop */
		return EXIT_DONE;
	signals_obey();
	message_error(&report.error);
	return was_usage(&report) ? EXIT_USAGE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const struct usage start = {.real = usage_clock()};
	struct cli cli;
	static char line[BUFSIZ];
	standard_reserve();
	setvbuf(stderr, line, _IOLBF, sizeof(line)); /* whole lines, also where others write too */
	int status = options_parse(&cli, argc, argv);
	if (status != EXIT_DONE)
		return status;
	switch (cli.action) {
	case ACTION_LIST: list_print(); break;
	case ACTION_HELP: help_print(); break;
	case ACTION_VERSION: puts("fcopy " FCOPY_VERSION); break;
	case ACTION_BENCHMARK: status = benchmark_run(&cli); break;
	case ACTION_COPY: status = copy(&cli, &start); break;
	}
	/* Where output was asked for, a full disk behind it is a failure. */
	int lost = flush_output();
	if (lost != 0) {
		message_error(
		    &(struct fcopy_error){.err = lost, .call = "write", .path = "standard output"});
		return EXIT_FAILED;
	}
	bool asked = cli.stats || (cli.json && cli.dst && report_stream(cli.dst) == stderr);
	return asked && ferror(stderr) && status == EXIT_DONE ? EXIT_FAILED : status;
}
