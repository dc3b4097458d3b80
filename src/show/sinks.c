/* SPDX-License-Identifier: MIT
 * Calls the sinks of a run.
 */
#include "report.h"
#include "show.h"
#include "sink.h"

#include <errno.h>
#include <string.h>

/* The order of a call to each: the object is the last thing that is written. They are opened in the
 * opposite order, because what people read may be in the file of another one. */
static struct sink *const sinks[] = {&people_sink, &lines_sink, &log_sink, &object_sink};

#define SINKS (sizeof(sinks) / sizeof(*sinks))

static bool sink_runs(const struct sink *s, const struct cli *cli)
{
	return !__atomic_load_n(&s->refused, __ATOMIC_RELAXED) &&
	       (!s->is_wanted || s->is_wanted(cli));
}

/* An output that is a file of the copy. */
static void refuse_output(const struct fcopy_error *e)
{
	for (size_t i = 0; e && e->option && i < SINKS; i++)
		if (sinks[i]->option && strcmp(sinks[i]->option, e->option) == 0)
			__atomic_store_n(&sinks[i]->refused, true, __ATOMIC_RELAXED);
}

static void abandon_refused(void)
{
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->refused && sinks[i]->output)
			output_abandon(sinks[i]->output);
}

int sinks_open(struct cli *cli, const struct command_line *line)
{
	int opened = EXIT_DONE;
	output_standard.f = stdout;
	for (size_t i = SINKS; i-- > 0 && opened == EXIT_DONE;)
		if (sinks[i]->open && sink_runs(sinks[i], cli))
			opened = sinks[i]->open(cli, line);
	/* Two outputs are one file, or one of them is an operand. */
	for (size_t i = 0; opened == EXIT_USAGE && i < SINKS; i++)
		sinks[i]->refused |= sinks[i]->option != NULL;
	abandon_refused();
	return opened;
}

void sinks_begin(struct cli *cli)
{
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->begin && sink_runs(sinks[i], cli))
			sinks[i]->begin(cli);
}

/* Each client of a server that goes on is a separate copy. */
static void end_client(const struct cli *cli, const struct fcopy_report *r)
{
	const struct summary o = {.cli = cli,
				  .report = r,
				  .result = r->error.err ? -1 : 0,
				  .usage = usage_of_thread(ending_seconds(r)),
				  .signal = r->error.err == EINTR ? signals_caught() : 0};
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->client && sink_runs(sinks[i], cli))
			sinks[i]->client(&o);
}

void sinks_event(void *user, const struct fcopy_event *event)
{
	const struct cli *cli = user;
	refuse_output(event->error);
	if (event->kind == FCOPY_EVENT_OPERAND)
		operands_note(event->operand);
	if (event->kind == FCOPY_EVENT_CLIENT)
		end_client(cli, event->report);
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->event && sink_runs(sinks[i], cli))
			sinks[i]->event(cli, event);
}

void sinks_left(void *user, const struct fcopy_left *left)
{
	const struct cli *cli = user;
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->left && sink_runs(sinks[i], cli))
			sinks[i]->left(cli, left);
}

void sinks_end(const struct summary *o)
{
	if (o->report)
		refuse_output(&o->report->error);
	for (size_t i = 0; i < SINKS; i++)
		if (sinks[i]->end && sink_runs(sinks[i], o->cli))
			sinks[i]->end(o);
	abandon_refused();
}

int sinks_close(const struct cli *cli, int status)
{
	const struct output *failed = NULL;
	for (size_t i = 0; i < SINKS; i++) {
		struct output *o = sinks[i]->output;
		if (!o)
			continue; /* it was not opened */
		output_close(o);
		if (o->err && (!failed || failed->reported))
			failed = o;
	}
	if (failed && !failed->reported) {
		message_error(&(struct fcopy_error){
		    .err = failed->err, .call = failed->call, .path = failed->path});
		return EXIT_FAILED;
	}
	/* Nobody reads a message that standard error is lost; --stats was asked for. */
	const bool lost = failed || (cli->stats && ferror(stderr));
	return lost && status == EXIT_DONE ? EXIT_FAILED : status;
}
