/* SPDX-License-Identifier: MIT
 * Describes the outcome of a copy in words.
 */
#include "endpoints/error.h"
#include "report.h"
#include "show.h"
#include "sink.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

double ending_seconds(const struct fcopy_report *r)
{
	double seconds = 0;
	for (int i = FCOPY_PHASE_COPY; i < FCOPY_PHASES; i++)
		seconds += r->seconds[i];
	return seconds;
}

const char *ending_state(const struct cli *cli, const struct fcopy_report *r)
{
	static char text[80];
	const struct fcopy_options *o = &cli->copy;
	if (r->skipped)
		return "exists, skipped";
	if (cli_sends(cli))
		return r->confirmed ? "sent, confirmed" : "sent, not confirmed";
	/* The copy succeeded, so --fsync and --verify did what they promise. */
	bool shard = o->shard.count > 0;
	snprintf(text, sizeof(text), "%s%s%s%s", r->cloned ? "cloned" : "copied",
		 o->verify ? ", verified" : "", o->fsync || o->verify || shard ? ", flushed" : "",
		 !shard         ? ""
		 : r->committed ? ", committed"
				: ", " ENDING_NOT_COMMITTED);
	return text;
}

/* Adds the engines that moved bytes: "direct and readwrite in 2 threads". */
static void ending_engines(const struct fcopy_report *r, const char *between, struct text *t)
{
	for (size_t i = 0; i < r->steps; i++) {
		const struct fcopy_step *s = &r->step[i];
		if (s->bytes == 0)
			continue;
		text_add(t, between);
		text_add(t, s->engine);
		if (s->threads > 1) {
			text_add(t, " in ");
			text_number(t, s->threads);
			text_add(t, " threads");
		}
		between = " and ";
	}
}

FILE *ending_list(const struct cli *cli)
{
	static int mixes = -1;
	if (mixes < 0)
		mixes = (cli->json && !cli->json_file) || output_mixes(cli->dst);
	return mixes ? stderr : stdout;
}

void ending_summary(const struct cli *cli, const struct fcopy_report *r, FILE *f)
{
	struct text t = {0};
	const char *state = ending_state(cli, r), *more = strchr(state, ',');
	bool shard = cli->copy.shard.count > 0 && r->committed && r->steps == 0;
	if (r->skipped || shard) { /* another process did the work of the shard, perhaps earlier */
		print_on(f, "%s: %s", escaped(r->dst), r->skipped ? state : "committed");
		return;
	}
	if (r->cloned)
		text_add(&t, ", cloned");
	else
		ending_engines(r, ", ", &t);
	if (r->holes > 0)
		text_add(&t, ", "), text_size(&t, r->holes), text_add(&t, " of holes");
	if (r->resumed > 0)
		text_add(&t, ", "), text_size(&t, r->resumed), text_add(&t, " resumed");
	print_on(f, "%s -> %s: %s%s%s", escaped(cli->src), escaped(r->dst), amount(r->bytes).text,
		 t.at, more ? more : "");
}

/* The size in bytes of the file system in which the copy of the file would never fit; 0: it may fit
 * when space is freed. */
static uint64_t too_small(const struct fcopy_report *r)
{
	struct statvfs fs;
	char directory[PATH_MAX];
	if (r->error.err != ENOSPC || r->space_needed == 0 || !r->error.path ||
	    strlen(r->error.path) >= PATH_MAX)
		return 0;
	hint_directory(r->error.path, directory);
	if (statvfs(directory, &fs) < 0)
		return 0;
	const uint64_t all = (uint64_t)fs.f_blocks * fs.f_frsize;
	return all > 0 && all < r->space_needed ? all : 0;
}

/* Neither space nor another attempt helps. */
static void print_final(const struct cli *cli, const struct fcopy_report *r)
{
	const uint64_t size = too_small(r);
	if (size > 0)
		hint_printf("the copy does not fit: the file system has %s in all",
			    amount(size).text);
	if (error_classify(&r->error) == ERROR_ATTRIBUTE && cli->copy.preserve_required)
		hint_printf("to copy without that attribute, leave it out of --preserve");
	if (r->part_kept)
		hint_printf("to remove the unfinished copy: rm" GLUE "-r" GLUE "%s",
			    part_quoted(r->dst));
}

/* On a full disk, the same command would fail again. */
static void print_continue(const struct fcopy_report *r, bool full)
{
	if (!full)
		hint_printf("run the same command again to resume");
	else if (r->expected > r->bytes)
		hint_printf("make %s free, then run the same command again",
			    amount(r->expected - r->bytes).text);
	else
		hint_printf("free space, then run the same command again");
}

bool ending_may_resume(const struct cli *cli)
{
	return !cli->copy.resume && !conflict_with(&cli->given, GIVEN_RESUME);
}

/* It was removed. A stream cannot be read again. */
static bool could_resume(const struct cli *cli, const struct fcopy_report *r)
{
	struct stat st;
	return r->atomic && !r->part_kept && r->bytes > 0 && ending_may_resume(cli) &&
	       stat(cli->src, &st) == 0 && S_ISREG(st.st_mode);
}

/* One SRC that goes into a directory needs -t, because with --resume DST is the copy itself. */
static bool needs_target(const struct cli *cli)
{
	struct stat st;
	return cli->source_count == 1 && !cli->target && !cli->copy.no_directory && !cli->as_cp &&
	       stat(cli->dst, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The command with -t, which copies into DST. */
static void print_into(const struct cli *cli, const char *purpose, const char *resume)
{
	char *words = NULL;
	size_t size;
	FILE *f = open_memstream(&words, &size);
	for (int i = 0; f && i < cli->word_count; i++)
		fprintf(f, GLUE "%s", quoted(cli->words[i]));
	if (f && fclose(f) == 0)
		hint_printf("%s: fcopy%s%s" GLUE "-t" GLUE "%s%s" GLUE "%s", purpose, words, resume,
			    quoted(cli->dst), cli->src[0] == '-' ? GLUE "--" : "",
			    quoted(cli->src));
	free(words);
}

void ending_would_keep(const struct cli *cli)
{
	if (!needs_target(cli)) {
		hint_printf(HINT_WOULD_KEEP);
		return;
	}
	print_into(cli, "to keep an unfinished copy", GLUE "--resume");
}

void ending_into(const struct cli *cli)
{
	print_into(cli, "to copy into the directory", "");
}

void ending_stopped(const struct cli *cli, const struct fcopy_report *r, bool interrupted)
{
	struct text t = {0};
	bool looks = cli->voice.watched && r->bytes > 0;
	bool full = error_classify(&r->error) == ERROR_FULL && (r->atomic || r->in_place);
	bool committed = r->error.advice == FCOPY_ADVICE_FLUSH;
	/* What was received cannot be read again: what is left of it? */
	bool received = cli_receives(cli) && r->bytes > 0 && (r->atomic || r->in_place);
	if (!cli->voice.notes || committed ||
	    !(interrupted || r->part_kept || looks || full || received))
		return;
	if (r->bytes == 0)
		text_add(&t, "before the first byte");
	else if (r->expected >= r->bytes)
		text_add(&t, "at "), text_share_words(&t, r->bytes, r->expected);
	else
		text_add(&t, "at "), text_size(&t, r->bytes);
	const bool unchanged = !r->in_place && (r->atomic || r->part_kept);
	const char *state = r->in_place  ? r->bytes > 0 ? " is incomplete" : " may be incomplete"
			    : !unchanged ? ""
			    : r->existed ? " unchanged"
					 : " not created";
	note_printf("stopped %s%s%s%s%s%s", t.at, *state ? "; " : "", *state ? escaped(r->dst) : "",
		    state, r->part_kept ? "; kept as " : "",
		    r->part_kept ? part_escaped(r->dst) : "");
	if (hint_repeats(&r->error) || too_small(r) > 0)
		print_final(cli, r);
	else if (r->part_kept || (full && cli->copy.resume))
		print_continue(r, full);
	else if (could_resume(cli, r))
		ending_would_keep(cli);
}

void ending_shard(const struct cli *cli, const struct fcopy_error *e, const char *dst)
{
	const struct fcopy_shard *s = &cli->copy.shard;
	char part[PATH_MAX];
	struct stat st;
	/* EBUSY, EEXIST: another process copies, or the source has changed. */
	if (s->count == 0 || e->advice != FCOPY_ADVICE_NONE || e->err == EBUSY ||
	    e->err == EEXIST || dst[0] == '\0' || (!cli->voice.notes && e->err == EINTR))
		return;
	if (s->finish && e->err == ENODATA)
		hint_printf("run any share again");
	else if (part_path(dst, part) && lstat(part, &st) == 0)
		hint_printf("%sto give up, " HINT_SHARDS,
			    hint_repeats(e) ? "" : "run the same command again; ",
			    part_escaped(dst));
}

/* What became of each SRC: for the last messages, and for --json. */

static struct fcopy_operand *ended;
static size_t ended_count, ended_size;

void operands_note(const struct fcopy_operand *o)
{
	if (!list_grow(&ended, ended_count, &ended_size, sizeof(*ended)))
		return; /* best effort: the last messages lack it */
	struct fcopy_operand *to = &ended[ended_count++];
	*to = *o;
	to->dst = o->dst ? strdup(o->dst) : NULL;
	to->part = o->part ? strdup(o->part) : NULL;
}

const struct fcopy_operand *operands_ended(size_t *count)
{
	*count = ended_count;
	return ended;
}
