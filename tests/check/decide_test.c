/* SPDX-License-Identifier: MIT
 * What becomes of an entry: a table of SRC, DST and options. decide_all_test.c tries all
 * combinations.
 */
#define _GNU_SOURCE
#include "entries.h"

#include <errno.h>
#include <string.h>

static const struct column {
	const char *name;
	struct fcopy_tree_options o;
} columns[] = {
    {"(none)", {.recursive = true}},
    {"-n", {.copy = {.no_clobber = true}}},
    {"-u", {.update = FCOPY_UPDATE_OLDER}},
    {"=none", {.update = FCOPY_UPDATE_NONE}},
    {"=fail", {.update = FCOPY_UPDATE_NONE_FAIL}},
    {"=changed", {.update = FCOPY_UPDATE_CHANGED}},
    {"--mirror", {.update = FCOPY_UPDATE_CHANGED, .delete_extra = true}},
    {"--delete", {.delete_extra = true}},
    {"-b", {.backup = FCOPY_BACKUP_SIMPLE}},
    {"-bf", {.backup = FCOPY_BACKUP_SIMPLE, .copy = {.force = true}}},
    {"--remove", {.remove_destination = true}},
    {"-i", {.confirm = confirm}},
    {"-l", {.link = true}},
    {"-lf", {.link = true, .copy = {.force = true}}},
    {"-s", {.symbolic_link = true}},
    {"-sf", {.symbolic_link = true, .copy = {.force = true}}},
    {"--attrib", {.attributes_only = true}},
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* The answers, one for each column. m: make; r: a link or a special file replaces what has the
 * name; c: a mirror clears it first. b, a: with a backup, after a question. =: leave; @: it is
 * there already; S: skip. Refused: X exists; D is a directory; I SRC itself, or what this run
 * writes; L a symlink; P not this type; U no file can be written to it; W written by this run. */
static const struct row {
	enum kind src;
	int dst;
	const char *answers;
} rows[] = {
    /*                      none -n -u =none =fail =changed --mirror --delete -b  -bf --remove -i -l
       -lf -s -sf --attrib */
    {FILE_, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {FILE_, OLDER,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, NEWER,
     "m    S  S  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, EQUAL,
     "m    S  S  S     X     =        =        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, OTHER_SIZE,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, TWO_NAMES,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, TO_FILE,
     "m    S  m  S     X     m        c        c        mb  mb  m        ma X  r   X  r   L"},
    {FILE_, DANGLING,
     "U    S  U  S     X     U        c        c        mb  mb  m        U  X  r   X  r   L"},
    {FILE_, FIFO_,
     "U    S  U  S     X     U        c        c        mb  mb  m        U  X  r   X  r   P"},
    {FILE_, DIRECTORY_,
     "U    S  U  S     X     U        c        c        U   U   U        U  X  D   X  D   D"},
    {FILE_, SAME_INODE,
     "I    S  S  S     X     =        =        I        mb  mb  m        I  @  @   I  I   I"},
    {FILE_, TO_SRC,
     "I    S  S  S     X     =        c        c        mb  mb  m        I  X  r   X  r   L"},
    {FILE_, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
    {SYMLINK, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {SYMLINK, OLDER,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {SYMLINK, NEWER,
     "r    S  S  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {SYMLINK, TWO_NAMES,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {SYMLINK, TO_FILE,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra X  r   X  r   r"},
    {SYMLINK, DANGLING,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra X  r   X  r   r"},
    {SYMLINK, FIFO_,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {SYMLINK, DIRECTORY_,
     "D    S  D  S     X     D        c        c        D   D   D        D  X  D   X  D   D"},
    {SYMLINK, SAME_INODE,
     "@    S  S  S     X     =        =        @        @   @   @        @  @  @   I  I   @"},
    {SYMLINK, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
    {FIFO, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {FIFO, OLDER,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {FIFO, NEWER,
     "r    S  S  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {FIFO, TWO_NAMES,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {FIFO, TO_FILE,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {FIFO, DANGLING,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra X  r   X  r   X"},
    {FIFO, FIFO_,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra X  r   X  r   r"},
    {FIFO, DIRECTORY_,
     "D    S  D  S     X     D        c        c        D   D   D        D  X  D   X  D   D"},
    {FIFO, SAME_INODE,
     "I    S  S  S     X     =        =        I        I   I   I        I  @  @   I  I   I"},
    {FIFO, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static void write_answer(char answer[4], const struct decision *d)
{
	static const char refused[] = {
	    [EEXIST] = 'X', [EISDIR] = 'D', [EINVAL] = 'I', [ELOOP] = 'L'};
	size_t n = 0;
	switch (d->act) {
	case ACT_MAKE: answer[n++] = d->clears ? 'c' : d->replaces ? 'r' : 'm'; break;
	case ACT_COMPARE: answer[n++] = '?'; break;
	case ACT_LEAVE: answer[n++] = '='; break;
	case ACT_SAME: answer[n++] = '@'; break;
	case ACT_EARLIER: answer[n++] = 'E'; break;
	case ACT_SKIP: answer[n++] = 'S'; break;
	case ACT_RIVAL: answer[n++] = 'R'; break;
	case ACT_REFUSE: {
		const bool type = d->reason && strcmp(d->reason, "is not a regular file") == 0;
		answer[n++] = d->place                        ? 'U'
			      : d->reason == written.taken    ? 'W'
			      : type && d->err == EINVAL      ? 'P'
			      : d->err < (int)sizeof(refused) ? refused[d->err]
							      : '!';
	} break;
	}
	if (d->act == ACT_MAKE && d->backup)
		answer[n++] = 'b';
	if (d->act == ACT_MAKE && d->asks)
		answer[n++] = 'a';
	answer[n] = '\0';
}

START_TEST(answers_are_those_of_the_table)
{
	const struct row *r = &rows[_i];
	struct facts f = facts_of(r->src, r->dst);
	const struct ground g = {.foreign = true};
	const char *at = r->answers;
	for (size_t i = 0; i < COLUMNS; i++) {
		char wanted[4], answer[4];
		int length = 0;
		need(sscanf(at, " %3s%n", wanted, &length) == 1);
		at += length;
		f.unusable = is_unusable(&g, &f, &columns[i].o);
		const struct decision d = decide(&g, &f, &columns[i].o);
		write_answer(answer, &d);
		set_label("%o over %s, %s", r->src, dst_names[r->dst], columns[i].name);
		check(strcmp(answer, wanted) == 0, "%s, not %s", answer, wanted);
	}
	check(at[strspn(at, " ")] == '\0', "more answers than columns: %s", at);
}
END_TEST

START_TEST(what_is_not_looked_at_is_made_and_what_cannot_be_seen_is_refused)
{
	static const int reported[] = {ELOOP, ENOTDIR, EACCES};
	const struct ground g = {.foreign = true};
	struct facts f = facts_of(FILE_, ABSENT);
	for (unsigned bits = 0; bits < ALL_OPTIONS; bits++)
		for (unsigned update = 0; update < UPDATES; update++) {
			const struct fcopy_tree_options o = options_of(bits, update);
			const bool sees = (o.confirm || o.backup) && !o.copy.no_clobber;
			set_label("options %#x, update %u", bits, update);
			f.looked = false;
			check(decide(&g, &f, &o).act == ACT_MAKE, "not made");
			f.looked = true;
			f.err = EIO;
			check((decide(&g, &f, &o).act == ACT_REFUSE) ==
				  (sees || o.update || o.delete_extra),
			      "EIO");
			for (size_t i = 0; i < sizeof(reported) / sizeof(*reported); i++) {
				f.err = reported[i];
				check((decide(&g, &f, &o).act == ACT_REFUSE) == sees, "errno %d",
				      f.err);
			}
		}
}
END_TEST

/* The answers with --link-dest if what has the name is not compared yet, is the earlier copy, or is
 * another file. E: find out whether it is the earlier copy; the rest as above. */
static const struct {
	enum kind src;
	int dst;
	struct fcopy_tree_options o;
	const char *answers;
} earlier_rows[] = {
    {FILE_, ABSENT, {.recursive = true}, "m m m"},
    {FILE_, OLDER, {.recursive = true}, "m m m"}, /* it has one name */
    {FILE_, TWO_NAMES, {.recursive = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.copy = {.no_clobber = true}}, "S S S"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_NEVER}}, "E @ m"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_AUTO}}, "m m m"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_ALWAYS}}, "m m m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_OLDER}, "E @ m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_NONE}, "S S S"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_NONE_FAIL}, "X X X"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_CHANGED}, "E @ m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_CHANGED, .delete_extra = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.delete_extra = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.backup = FCOPY_BACKUP_SIMPLE}, "E @ mb"},
    {FILE_, TWO_NAMES, {.remove_destination = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.confirm = confirm}, "E @ ma"},
    {FILE_, SAME_INODE, {.recursive = true}, "I I I"},
    {FILE_, TO_FILE, {.recursive = true}, "m m m"},
    {FILE_, TO_FILE, {.delete_extra = true}, "c c c"},
    {FILE_, DANGLING, {.recursive = true}, "U U U"},
    {FILE_, FIFO_, {.delete_extra = true}, "c c c"},
    {FILE_, DIRECTORY_, {.recursive = true}, "U U U"},
    {FILE_, OUTPUT, {.recursive = true}, "W W W"},
    {SYMLINK, TWO_NAMES, {.recursive = true}, "r r r"},
    {SYMLINK, SAME_INODE, {.recursive = true}, "@ @ @"},
    {FIFO, TWO_NAMES, {.recursive = true}, "r r r"},
};

START_TEST(what_link_dest_has_made_already_is_left)
{
	struct facts f = facts_of(earlier_rows[_i].src, earlier_rows[_i].dst);
	struct fcopy_tree_options o = earlier_rows[_i].o;
	struct ground g = {.foreign = true};
	const char *at = earlier_rows[_i].answers;
	o.link_dest = "earlier";
	f.unusable = is_unusable(&g, &f, &o);
	for (int known = EARLIER_UNKNOWN; known <= EARLIER_OTHER; known++) {
		char wanted[4], answer[4];
		int length = 0;
		need(sscanf(at, " %3s%n", wanted, &length) == 1);
		at += length;
		f.earlier = (unsigned)known;
		const struct decision d = decide(&g, &f, &o);
		write_answer(answer, &d);
		set_label("row %d, earlier %d", _i, known);
		check(strcmp(answer, wanted) == 0, "%s, not %s", answer, wanted);
	}
	f.earlier = EARLIER_SAME;
	g.exclusive = true;
	check(f.src.st_nlink > 1 || decide(&g, &f, &o).act != ACT_SAME, "in a new tree");
}
END_TEST

START_TEST(what_has_ended_is_committed_kept_or_removed)
{
	static const int results[] = {0, -EIO, -EEXIST, -ENOENT};
	for (unsigned bits = 0; bits < 256; bits++)
		for (size_t i = 0; i < 4; i++) {
			const struct end_facts f = {.stopped = bits & 1,
						    .failed = bits & 2,
						    .goes_on = bits & 4,
						    .fresh = bits & 8,
						    .committed = bits & 16,
						    .part = bits & 32,
						    .published = bits & 64,
						    .doubted = bits & 128,
						    .result = results[i]};
			const enum fate fate = decide_fate(&f);
			const bool ended = !f.stopped && (!f.failed || f.goes_on);
			set_label("facts %#x, result %d", bits, f.result);
			if (f.result < 0)
				check(fate != FATE_COMMIT, "no second commit");
			else
				check((fate == FATE_COMMIT) ==
					  (f.committed || ended || (!f.stopped && !f.fresh)),
				      "what is complete is committed");
			if (fate == FATE_COMMIT)
				continue;
			check((fate == FATE_STAY) == (f.committed || !f.fresh),
			      "what has its name is left");
			if (fate == FATE_STAY)
				continue;
			const bool sound = f.part && !f.doubted;
			check(fate != FATE_KEEP || sound, "only a sound part can be continued");
			if (sound && (f.published || (!f.stopped && f.result != -EEXIST)))
				check(fate == FATE_KEEP, "what was copied is kept");
			else
				check(fate == FATE_REMOVE, "nobody would find it");
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("decide");
	TCase *c = add_case(s, "decide");
	tcase_add_loop_test(c, answers_are_those_of_the_table, 0, ROWS);
	tcase_add_loop_test(c, what_link_dest_has_made_already_is_left, 0,
			    (int)(sizeof(earlier_rows) / sizeof(*earlier_rows)));
	tcase_add_test(c, what_has_ended_is_committed_kept_or_removed);
	tcase_add_test(c, what_is_not_looked_at_is_made_and_what_cannot_be_seen_is_refused);
	return run_suite(s);
}
