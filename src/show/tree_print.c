/* SPDX-License-Identifier: MIT
 * Messages about trees and several sources.
 */
#include "cli/cli.h"
#include "copy/outcome.h"
#include "endpoints/error.h"
#include "part/part.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOWN 20 /* failures, and operands, that are printed without -v */

#define ADVICE(advice) ((uint64_t)1 << (advice))

static uint64_t failures_seen;
static uint64_t advices; /* hints of the failures, which are printed once */
static bool disk_full;   /* which ends the copy */
static bool curable;     /* another attempt may succeed for one of them, at least */

/* As rsync(1) takes a relative DIR of --link-dest: in DST, which may not exist yet. Returns false
 * if that is no directory. */
static bool find_in_dst(const char *dir, const char *dst, char path[PATH_MAX])
{
	struct stat st;
	size_t n = strlen(dst);
	while (n > 1 && dst[n - 1] == '/')
		n--;
	while (n > 0 && strncmp(dir, "../", 3) == 0) {
		for (dir += 3; n > 0 && dst[n - 1] != '/';)
			n--;
		while (n > 1 && dst[n - 1] == '/')
			n--;
	}
	return snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, dst,
			n > 0 && dst[n - 1] != '/' ? "/" : "", dir) < PATH_MAX &&
	       stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* There is no directory of --link-dest. */
static bool hint_link_dest(const struct cli *cli, const struct fcopy_error *e)
{
	const char *dir = cli->tree.link_dest;
	char path[PATH_MAX];
	if (!dir || e->err != ENOENT || !e->call || strcmp(e->call, "open") != 0 || !e->path ||
	    strcmp(e->path, dir) != 0)
		return false;
	if (dir[0] != '/' && find_in_dst(dir, cli->dst, path))
		hint_printf("use --link-dest=%s: DIR is relative to the current directory",
			    quoted(path));
	else
		hint_printf("name an earlier copy%s, or leave out --link-dest",
			    dir[0] == '/' ? "" : ", relative to the current directory");
	return true;
}

void tree_failed(const struct cli *cli, const struct fcopy_error *e)
{
	if (cli->no_directory_reason && e->err == ENOENT && e->path &&
	    strcmp(e->path, cli->dst) == 0) {
		struct fcopy_error said = *e;
		said.reason = cli->no_directory_reason;
		message_text(&said);
		hint_value(cli, e);
	} else if (failures_seen++ < SHOWN || cli->voice.all) {
		message_text(e);
		static bool caused;
		if (hint_value(cli, e) || hint_link_dest(cli, e))
			caused = true;
		else if (e->advice == FCOPY_ADVICE_INTO)
			ending_into(cli);
		else if (hint_is_general(e->advice))
			advices |= ADVICE(e->advice);
		else if (e->advice == FCOPY_ADVICE_NONE)
			caused = caused || hint_cause(e);
		else
			hint_advice(e->advice, e->path);
	}
	disk_full |= error_classify(e) == ERROR_FULL;
	curable |= !hint_repeats(e);
}

/* A part can be resumed. Another name is that of a tree that could not be removed. */
static bool leaves_part(const struct fcopy_operand *o)
{
	return o->part && part_is_name(o->part);
}

/* What is in a part, or in a directory that was merged into: "3 entries (2.9 KiB)". */
struct contents {
	char text[AMOUNT_MAX + 40];
};

static struct contents contents_of(const struct fcopy_operand *o)
{
	const uint64_t *n = o->count, entries = outcome_sum(n, SUM_HELD);
	struct contents c;
	snprintf(c.text, sizeof(c.text), "%" PRIu64 " %s (%s)", entries,
		 entries == 1 ? "entry" : "entries",
		 amount(n[FCOPY_COUNT_BYTES] + n[FCOPY_COUNT_RESUMED]).text);
	return c;
}

static bool is_in_place(const struct fcopy_operand *o)
{
	return o->state == FCOPY_STATE_COMPLETE || o->state == FCOPY_STATE_SKIPPED;
}

/* Prints where an operand is that may be incomplete. before: what follows "fcopy: "; between: what
 * is after its name. */
static void print_state(const char *before, const struct fcopy_operand *o, const char *between)
{
	const char *dst = escaped(o->dst ? o->dst : o->src);
	switch (o->state) {
	case FCOPY_STATE_COMPLETE: note_printf("%s%s%sis complete", before, dst, between); break;
	case FCOPY_STATE_SKIPPED:
		note_printf("%s%s%sis complete except for %" PRIu64 " skipped", before, dst,
			    between, o->count[FCOPY_COUNT_SKIPPED]);
		break;
	case FCOPY_STATE_PART:
		note_printf("%s%s%s%s%s%s%s%s", before, dst, between,
			    o->existed ? "unchanged" : "not created",
			    o->part_is_tree ? "; " : "; kept as ", escaped(o->part),
			    o->part_is_tree ? " has " : "",
			    o->part_is_tree ? contents_of(o).text : "");
		break;
	case FCOPY_STATE_INCOMPLETE:
		note_printf("%s%s%sis incomplete%s%s%s", before, dst, between,
			    o->merged ? ": " : "", o->merged ? contents_of(o).text : "",
			    o->merged ? " copied" : "");
		break;
	case FCOPY_STATE_UNCHANGED:
		note_printf("%s%s%s%s", before, dst, between,
			    !o->dst      ? "not copied"
			    : o->existed ? "unchanged"
					 : "not created");
	}
}

static void print_kept(const struct fcopy_operand *o)
{
	const bool absent = o->dst && !o->existed && o->state == FCOPY_STATE_PART;
	message_printf("%s: kept, unfinished%s%s%s", escaped(o->part), absent ? "; " : "",
		       absent ? escaped(o->dst) : "", absent ? " not created" : "");
}

/* A tree that could not be removed. */
static void print_left(const struct fcopy_operand *o)
{
	message_printf("%s: could not be removed", escaped(o->part));
	hint_printf("remove it: rm" GLUE "-r" GLUE "%s", quoted(o->part));
}

/* One hint for all parts: how to complete them. */
static void print_hint(const struct cli *cli, bool failed)
{
	const struct fcopy_mode *mode = cli->copy.mode;
	const char *without = conflict_with(&cli->given, GIVEN_RESUME);
	if (failed && !curable && failures_seen > 0)
		hint_printf("to commit without the failed entries, run the command again with "
			    "%s--resume --keep-going%s%s",
			    without && cli->mirror ? "-aT " : "", without ? " instead of --" : "",
			    without ? without : "");
	else if (without) /* a mirror implies the other options */
		hint_printf(
		    "%s, then run the command again with %s--resume instead of --%s%s",
		    disk_full ? "free space" : "fix the cause", cli->mirror ? "-aT " : "", without,
		    failed ? "; to commit without the failed entries, add --keep-going" : "");
	else if (disk_full)
		hint_printf("free space, then run the command again with --resume");
	else if (advices & ADVICE(FCOPY_ADVICE_AUTO) && mode)
		hint_printf("run the command again with --resume, and without mode %d (%s)",
			    mode->number, mode->name);
	else if (!failed)
		hint_printf("run the %s", cli->copy.resume ? "same command again to resume"
							   : "command again with --resume");
	else
		hint_printf("fix the cause and run the command again with --resume%s; or commit "
			    "without the failed entries: --resume --keep-going",
			    cli->tree.files ? " and the same list of files" : "");
}

/* Each operand that is not in place; those that are not begun come last. */
static void print_operands(const struct cli *cli, const struct fcopy_operand *list, size_t begun)
{
	size_t complete = 0, printed = 0;
	for (size_t i = 0; i < begun; i++)
		complete += is_in_place(&list[i]);
	note_printf("stopped; copied %zu of %zu SRC to %s", complete, cli->source_count,
		    escaped(cli->dst));
	for (size_t i = 0; i < begun; i++)
		if (!is_in_place(&list[i]) && (printed++ < SHOWN || cli->voice.all))
			print_state("", &list[i], ": ");
	if (begun + 1 < cli->source_count)
		message_printf("not begun: %s and %zu more", escaped(cli->sources[begun]),
			       cli->source_count - begun - 1);
	else if (begun < cli->source_count)
		message_printf("not begun: %s", escaped(cli->sources[begun]));
}

/* A copy that was stopped and removed. */
static void print_would_keep(const struct cli *cli, const struct fcopy_tree_report *r)
{
	size_t n;
	const struct fcopy_operand *list = operands_ended(&n);
	if (!ending_may_resume(cli) || r->not_atomic)
		return;
	for (const struct fcopy_operand *o = list; o < list + n; o++)
		if (o->state == FCOPY_STATE_UNCHANGED && !o->part && o->dst && !o->existed) {
			ending_would_keep(cli);
			return;
		}
}

static void print_stopped(const struct cli *cli)
{
	size_t begun;
	const struct fcopy_operand *list = operands_ended(&begun);
	if (cli->source_count > 1)
		print_operands(cli, list, begun);
	else if (begun > 0)
		print_state("stopped; ", list, " ");
	else
		note_printf("stopped");
}

/* "2,310 after"; before: what separates it from another count. */
static void print_number(const char *before, uint64_t n, const char *after)
{
	char digits[32];
	const int length = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	fputs(before, stderr);
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			fputc(',', stderr);
		fputc(digits[i], stderr);
	}
	fprintf(stderr, " %s", after);
}

/* What DST cannot store, or this user may not set, and was not compared. */
static void print_not_compared(unsigned attributes)
{
	static const struct {
		enum fcopy_attribute attribute;
		const char *name;
	} names[] = {{FCOPY_ATTR_OWNERSHIP, "owners"},
		     {FCOPY_ATTR_TIMESTAMPS, "times of symlinks"},
		     {FCOPY_ATTR_MODE, "modes"},
		     {FCOPY_ATTR_XATTR, "ACLs or extended attributes"}};
	const char *before = geteuid() == 0
				 ? "; not compared, because DST cannot store them: "
				 : "; not compared, because DST cannot store them, or you may "
				   "not set them: ";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (attributes & names[i].attribute) {
			fprintf(stderr, "%s%s", before, names[i].name);
			before = ", ";
		}
}

/* Of a mirror or a snapshot, a merge that leaves entries alone, or a dry run. */
static void print_counts(const struct cli *cli, const struct fcopy_tree_report *r)
{
	const struct fcopy_tree_options *t = &cli->tree;
	const uint64_t *n = r->count, links = n[FCOPY_COUNT_HARD_LINKS];
	const bool dry = t->dry_run;
	const struct {
		uint64_t n;
		bool always; /* also 0 */
		const char *before, *done, *would;
	} rows[] = {
	    {outcome_sum(n, SUM_NAMES) - links, true, "", "copied", "would be copied"},
	    {n[FCOPY_COUNT_UNCHANGED], t->update || t->delete_extra, ", ", "unchanged",
	     "unchanged"},
	    {n[FCOPY_COUNT_REPAIRED], false, " (attributes of ", "repaired)", "would be repaired)"},
	    {links, t->link_dest, ", ", "linked", "would be linked"},
	    {n[FCOPY_COUNT_DELETED], t->delete_extra, ", ", "removed", "would be removed"},
	    {n[FCOPY_COUNT_SKIPPED], false, ", ", "skipped", "skipped"},
	    {n[FCOPY_COUNT_FAILED], false, ", ", "failed", "failed"},
	};
	fputs(dry ? "fcopy: dry run: " : "fcopy: ", stderr);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].always || rows[i].n > 0)
			print_number(rows[i].before, rows[i].n, dry ? rows[i].would : rows[i].done);
	print_not_compared(r->not_compared);
	fputc('\n', stderr);
}

/* A run that left most entries alone looks like one that copied them all again, or like one that
 * did nothing: so mirrors and snapshots say what they did. Not if nothing is in DST of what was
 * copied. */
static bool prints_counts(const struct cli *cli)
{
	const struct fcopy_tree_options *t = &cli->tree;
	size_t n;
	bool done = false;
	for (const struct fcopy_operand *o = operands_ended(&n), *end = o + n; o < end; o++)
		done |= o->committed || o->merged;
	if (t->dry_run)
		return cli->voice.notes;
	if (cli->as_cp)
		return false;
	if (t->delete_extra || t->link_dest)
		return cli->voice.notes && done;
	return t->update && cli->voice.counts;
}

/* With -vv. A single file, and a tree of one, have no pool of threads. */
static void tree_print_threads(const struct fcopy_tree_report *r)
{
	if (r->threads_most == 0)
		return;
	message_printf("threads: at most %u, on average %.1f%s%s", r->threads_most,
		       r->threads_average, r->threads_reason ? ": " : "",
		       r->threads_reason ? r->threads_reason : "");
}

/* Not even of a tree with failed entries. */
static bool keeps_no_part(const struct fcopy_tree_options *t)
{
	return t->link_dest || t->link || t->symbolic_link || t->attributes_only;
}

/* What is left of each operand, and what --keep-going committed. */
static void print_parts(const struct cli *cli, bool stopped)
{
	size_t n;
	bool parts = false, failed = false, removed = false;
	const struct fcopy_operand *list = operands_ended(&n);
	for (const struct fcopy_operand *o = list; o < list + n; o++) {
		if (leaves_part(o)) {
			parts = true;
			failed |= o->count[FCOPY_COUNT_FAILED] > 0 && o->part_is_tree;
			if (!stopped || o->state != FCOPY_STATE_PART)
				print_kept(o);
		} else if (o->part) {
			print_left(o);
		} else if (o->state == FCOPY_STATE_INCOMPLETE && o->committed) {
			const uint64_t n = o->count[FCOPY_COUNT_FAILED];
			message_printf("%s: committed despite %" PRIu64 " failure%s",
				       escaped(o->dst), n, n == 1 ? "" : "s");
		} else if (!stopped && o->state == FCOPY_STATE_UNCHANGED &&
			   o->count[FCOPY_COUNT_FAILED] > 0 && o->dst && !o->existed &&
			   keeps_no_part(&cli->tree)) {
			removed = cli->tree.recursive;
			message_printf("%s: not created", escaped(o->dst));
		}
	}
	for (int i = 0; i < 64; i++)
		if (advices & ADVICE(i) && !(parts && i == FCOPY_ADVICE_AUTO))
			hint_advice((enum fcopy_advice)i, NULL);
	if (parts)
		print_hint(cli, failed);
	else if (removed)
		hint_printf("%s the failed entries: --keep-going",
			    curable ? "fix the cause, or commit without" : "commit without");
}

static void print_failures(const struct cli *cli, uint64_t failed)
{
	if (failed > SHOWN && failures_seen > SHOWN && !cli->voice.all)
		note_printf("%" PRIu64 " entries failed; the first %d are listed above; %s", failed,
			    SHOWN,
			    cli->json ? "the JSON object has all" : "-v or --json lists all");
	else if (failed > 1)
		message_printf("%" PRIu64 " entries failed", failed);
}

void tree_print_end(const struct cli *cli, const struct fcopy_tree_report *report, bool interrupted)
{
	fflush(stdout); /* the lines of -v come first, also in one file */
	const struct voice *v = &cli->voice;
	const bool stopped = v->notes && (interrupted || (disk_full && !report->committed));
	flood_print();
	print_failures(cli, report->count[FCOPY_COUNT_FAILED]);
	if (stopped)
		print_stopped(cli);
	print_parts(cli, stopped);
	if (stopped)
		print_would_keep(cli, report);
	if (prints_counts(cli))
		print_counts(cli, report);
	if (v->steps && v->counts)
		tree_print_threads(report);
	if (v->all && cli->copy.shard.count > 0 && report->error.err == 0) {
		print_on(ending_list(cli), "%s: %s\n", escaped(report->dst),
			 report->committed ? "committed" : ENDING_NOT_COMMITTED);
	}
	if (report->error.err != 0)
		ending_shard(cli, &report->error, report->dst);
}

/* The line about an entry of a tree, for -v and for --log-file. */

bool entry_is_listed(const struct cli *cli, const struct fcopy_entry *e)
{
	switch (e->action) {
	case FCOPY_ACTION_COPIED:
	case FCOPY_ACTION_LINKED:
	case FCOPY_ACTION_SKIPPED:
	case FCOPY_ACTION_REPAIRED:
	case FCOPY_ACTION_DELETED: return true;
	case FCOPY_ACTION_UNCHANGED: /* nearly all entries of a mirror */
		return cli->tree.update != FCOPY_UPDATE_CHANGED || cli->voice.steps;
	default: return false;
	}
}

void entry_list(const struct cli *cli, const struct fcopy_entry *e, FILE *f)
{
	const bool dry = cli->tree.dry_run, removed = e->action == FCOPY_ACTION_DELETED;
	const bool skipped = e->action == FCOPY_ACTION_SKIPPED;
	const bool repaired = e->action == FCOPY_ACTION_REPAIRED;
	const bool linked = e->action == FCOPY_ACTION_LINKED;
	const bool left = skipped || repaired || e->action == FCOPY_ACTION_UNCHANGED;
	if (dry && !left)
		fputs(removed ? "would remove " : linked ? "would link " : "would copy ", f);
	else if (removed)
		fputs("removed ", f);
	if (!removed && !left) {
		print_escaped(f, e->operand);
		if (e->path) {
			fputs(e->operand[strlen(e->operand) - 1] == '/' ? "" : "/", f);
			print_escaped(f, e->path);
		}
		fputs(" -> ", f);
	}
	print_escaped(f, e->dst ? e->dst : "");
	if (left)
		fputs(skipped    ? ": exists, skipped"
		      : repaired ? dry ? ": attributes would be repaired" : ": attributes repaired"
		      : cli->copy.resume ? ": complete, unchanged"
					 : ": unchanged",
		      f);
	else if (linked && !dry)
		fputs(": linked", f);
}
