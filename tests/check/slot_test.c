/* SPDX-License-Identifier: MIT
 * How a name comes into being: a table of facts, what holds for every combination of them, and what
 * a slot leaves in its directory.
 */
#define _GNU_SOURCE
#include "util.h"

#include "endpoints/slot.h"
#include "io/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEVER  FCOPY_WHEN_NEVER
#define AUTO   FCOPY_WHEN_AUTO
#define ALWAYS FCOPY_WHEN_ALWAYS

/* The ways in the order in which they are chosen, each after the ones before were unfit. */
static const struct row {
	const char *name;
	struct slot_facts is;
	enum slot_how way[4];
} rows[] = {
    {"a new file", {.file = true, .in_place = NEVER}, {HOW_LINK, HOW_RENAME, HOW_FINAL}},
    {"a new file, --inplace=auto",
     {.file = true, .in_place = AUTO},
     {HOW_LINK, HOW_RENAME, HOW_FINAL}},
    {"a new file, --inplace", {.file = true, .in_place = ALWAYS}, {HOW_FINAL}},
    {"a file", {.file = true, .exists = true, .in_place = NEVER}, {HOW_LINK, HOW_RENAME}},
    {"a file, --inplace=auto",
     {.file = true, .exists = true, .in_place = AUTO},
     {HOW_LINK, HOW_RENAME, HOW_WRITE}},
    {"a file, --inplace", {.file = true, .exists = true, .in_place = ALWAYS}, {HOW_WRITE}},
    {"several names",
     {.file = true, .exists = true, .linked = true, .in_place = NEVER},
     {HOW_LINK, HOW_RENAME}},
    {"several names, --inplace=auto",
     {.file = true, .exists = true, .linked = true, .in_place = AUTO},
     {HOW_LINK, HOW_RENAME, HOW_SWAP}},
    {"several names, --inplace",
     {.file = true, .exists = true, .linked = true, .in_place = ALWAYS},
     {HOW_LINK, HOW_RENAME, HOW_SWAP}},
    {"displaced",
     {.file = true, .exists = true, .displaced = true, .in_place = NEVER},
     {HOW_LINK, HOW_RENAME}},
    {"displaced, --inplace=auto",
     {.file = true, .exists = true, .displaced = true, .in_place = AUTO},
     {HOW_LINK, HOW_RENAME, HOW_SWAP}},
    {"a device", {.file = true, .exists = true, .special = true, .in_place = NEVER}, {HOW_WRITE}},
    {"a device that is displaced",
     {.file = true, .exists = true, .special = true, .displaced = true, .in_place = NEVER},
     {HOW_LINK, HOW_RENAME}},
    {"a new file, --resume", {.file = true, .part = true, .in_place = NEVER}, {HOW_PART}},
    {"a file, --resume",
     {.file = true, .exists = true, .part = true, .in_place = NEVER},
     {HOW_PART}},
    {"a file, --resume --inplace=auto",
     {.file = true, .exists = true, .part = true, .in_place = AUTO},
     {HOW_PART, HOW_WRITE}},
    {"a device, --resume",
     {.file = true, .exists = true, .special = true, .part = true, .in_place = NEVER},
     {HOW_WRITE}},
    {"a scratch file", {.file = true, .scratch = true, .in_place = NEVER}, {HOW_LINK, HOW_RENAME}},
    {"a scratch file, --inplace",
     {.file = true, .scratch = true, .in_place = ALWAYS},
     {HOW_LINK, HOW_RENAME}},
    {"a scratch file, --resume",
     {.file = true, .scratch = true, .part = true, .in_place = NEVER},
     {HOW_LINK, HOW_RENAME}},
    {"a new symlink", {.in_place = NEVER}, {HOW_FINAL}},
    {"a symlink over a file", {.exists = true, .in_place = NEVER}, {HOW_RENAME}},
    {"a symlink over a file, --inplace=auto",
     {.exists = true, .in_place = AUTO},
     {HOW_RENAME, HOW_SWAP}},
    {"a new symlink, --inplace", {.in_place = ALWAYS}, {HOW_FINAL}},
    {"a symlink where names can be exchanged",
     {.foreign = true, .in_place = NEVER},
     {HOW_ASIDE, HOW_FINAL}},
    {"the same over a file",
     {.foreign = true, .exists = true, .in_place = NEVER},
     {HOW_ASIDE, HOW_RENAME}},
    {"the same, --inplace",
     {.foreign = true, .exists = true, .in_place = ALWAYS},
     {HOW_ASIDE, HOW_RENAME}},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

START_TEST(ways_are_those_of_the_table)
{
	const struct row *row = &rows[_i];
	struct slot_facts is = row->is;
	set_label("%s", row->name);
	for (unsigned i = 0; i < 4; i++) {
		const enum slot_how how = slot_choose(&is);
		check(how == row->way[i], "choice %u is %u and not %u", i, how, row->way[i]);
		is.unfit |= 1u << how;
		if (how == HOW_NONE)
			return;
	}
}
END_TEST

enum {
	FILE_ = 1,
	EXISTS = 2,
	SPECIAL = 4,
	DISPLACED = 8,
	LINKED = 16,
	FOREIGN = 32,
	PART = 64,
	SCRATCH = 128,
	ALL = 255
};

static void check_way(const struct slot_facts *is, enum slot_how how)
{
	const bool may_write = is->in_place != NEVER || is->special;
	check(!(is->unfit & 1u << how) || how == HOW_NONE, "unfit");
	check(how != HOW_FINAL || !is->exists, "a final name that exists");
	check(how != HOW_SWAP || (is->exists && is->in_place != NEVER), "swapped");
	check(how != HOW_WRITE || (is->exists && may_write), "written");
	/* What these names lead to may be the copy of another entry, or has to stay as a backup. */
	check(how != HOW_WRITE || !(is->displaced || is->linked), "overwritten");
	check(is->file || !(1u << how & (HOW(LINK) | HOW(PART) | HOW(WRITE))), "not a file");
	check(is->file || how != HOW_SWAP || !is->foreign, "a name that others can exchange");
	check(!is->file || how != HOW_ASIDE, "a file aside");
	check(!is->scratch || !is->file || how == HOW_NONE || how == HOW_LINK || how == HOW_RENAME,
	      "a scratch file with a name");
	check(!is->part || is->scratch || !is->file || (how != HOW_LINK && how != HOW_RENAME),
	      "a part elsewhere");
}

START_TEST(each_choice_ends_and_none_overwrites_what_must_stay)
{
	static const enum fcopy_when in_place[] = {NEVER, AUTO, ALWAYS};
	for (unsigned f = 0; f <= ALL; f++) {
		struct slot_facts is = {.file = f & FILE_,
					.exists = f & EXISTS,
					.special = f & SPECIAL && f & EXISTS,
					.displaced = f & DISPLACED && f & EXISTS,
					.linked = f & LINKED && f & EXISTS && !(f & SPECIAL),
					.foreign = f & FOREIGN,
					.part = f & PART,
					.scratch = f & SCRATCH,
					.in_place = in_place[_i]};
		set_label("facts %#x, in place %d", f, _i);
		enum slot_how how = slot_choose(&is);
		check(how != HOW_NONE, "no way at all");
		for (int tries = 0; how != HOW_NONE; tries++) {
			check_way(&is, how);
			check(tries < 4, "it does not end");
			is.unfit |= 1u << how;
			how = slot_choose(&is);
		}
	}
}
END_TEST

static int make_symlink(int dir, const char *name, void *target)
{
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}

static bool leads_to(const char *name, const char *target)
{
	char is[64];
	const ssize_t n = readlink(name, is, sizeof(is));
	return n == (ssize_t)strlen(target) && memcmp(is, target, (size_t)n) == 0;
}

static int refuse_to_make(int dir, const char *name, void *arg)
{
	(void)dir, (void)name, (void)arg;
	return -EMLINK;
}

static const struct making {
	const char *name;
	enum slot_how how;
	enum slot_over over;
	bool exists, exchanged; /* `name` is there before; another one has got it since */
	int result;
} makings[] = {
    {"new", HOW_FINAL, OVER_NOTHING, false, false, 0},
    {"new, drawn", HOW_RENAME, OVER_NOTHING, false, false, 0},
    {"new, aside", HOW_ASIDE, OVER_NOTHING, false, false, 0},
    {"taken, drawn", HOW_RENAME, OVER_NOTHING, true, false, RESULT_TAKEN},
    {"taken, aside", HOW_ASIDE, OVER_NOTHING, true, false, RESULT_TAKEN},
    {"replaced, drawn", HOW_RENAME, OVER_ANY, true, false, 0},
    {"replaced, aside", HOW_ASIDE, OVER_ANY, true, false, 0},
    {"found, drawn", HOW_RENAME, OVER_FOUND, true, false, 0},
    {"found, aside", HOW_ASIDE, OVER_FOUND, true, false, 0},
    {"found, swapped", HOW_SWAP, OVER_FOUND, true, false, 0},
    {"another one, drawn", HOW_RENAME, OVER_FOUND, true, true, RESULT_TAKEN},
    {"another one, aside", HOW_ASIDE, OVER_FOUND, true, true, RESULT_TAKEN},
};

/* After the end, the directory has the name and nothing else. */
START_TEST(a_slot_leaves_the_new_entry_or_the_old_one)
{
	const struct making *m = &makings[_i];
	char new[] = "new";
	struct failure fail;
	struct stat found;
	for (size_t i = 0; i < dir_count; i++) {
		enter(&dirs[i]);
		set_label("%s: %s", dirs[i].name, m->name);
		need(mkdir("d", 0755) == 0 && mkdir("aside", 0700) == 0);
		const int dir = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		const int aside = open("aside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (m->exists)
			need(symlink("old", "d/name") == 0 && lstat("d/name", &found) == 0);
		struct slot s = {
		    .how = m->how, .over = m->over, .found = m->exists ? &found : NULL};
		check(slot_make(&s, dir, "name", aside, make_symlink, new, "symlink", &fail) == 0,
		      "make");
		check(s.stage == SLOT_MADE, "made");
		if (m->exchanged)
			need(symlink("another", "d/x") == 0 && rename("d/x", "d/name") == 0);
		const int r = slot_commit(&s, dir, "name", &fail);
		check(r == m->result, "the commit returns %d", r);
		check(s.stage == (r == 0 ? SLOT_NAMED : SLOT_MADE), "stage");
		slot_drop(&s, dir, "name");
		check(leads_to("d/name", r == 0         ? "new"
					 : m->exchanged ? "another"
							: "old"),
		      "the name");
		check(names_in("d") == 1 && names_in("aside") == 0, "something is left");
		close(dir);
		close(aside);
		leave();
	}
}
END_TEST

/* A way that is given up, or fails, gives the old entry its name back. */
START_TEST(a_dropped_slot_leaves_the_old_entry)
{
	static const enum slot_how ways[] = {HOW_RENAME, HOW_ASIDE, HOW_SWAP};
	const enum slot_how how = ways[_i % 3];
	const bool fails = _i >= 3;
	char new[] = "new";
	struct failure fail;
	for (size_t i = 0; i < dir_count; i++) {
		enter(&dirs[i]);
		set_label("%s, way %u%s", dirs[i].name, how, fails ? ", which fails" : "");
		need(mkdir("d", 0755) == 0 && mkdir("aside", 0700) == 0);
		const int dir = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		const int aside = open("aside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		need(symlink("old", "d/name") == 0);
		struct slot s = {.how = how, .over = OVER_ANY};
		check(slot_make(&s, dir, "name", aside, fails ? refuse_to_make : make_symlink, new,
				"symlink", &fail) == (fails ? -EMLINK : 0),
		      "make");
		slot_drop(&s, dir, "name");
		check(s.stage == (fails ? SLOT_CHOSEN : SLOT_GONE), "stage");
		if (how == HOW_SWAP) /* slot.h: the state has no name */
			check(s.name[0] == '\0', "the drawn name stays");
		check(leads_to("d/name", "old"), "the name");
		check(names_in("d") == 1 && names_in("aside") == 0, "something is left");
		close(dir);
		close(aside);
		leave();
	}
}
END_TEST

/* The next name, as another entry has taken this one. */
static int choose_longer(struct backup *b, struct failure *fail)
{
	struct stat st;
	(void)fail;
	strcat(b->name, "~");
	b->met = lstat(b->arg, &st) == 0 ? st.st_ino : 0;
	return 0;
}

static int note_nothing(struct backup *b, const struct stat *st)
{
	return b && st ? 0 : -EINVAL;
}

static const struct backing {
	const char *name;
	enum slot_how how;
	bool older;     /* name~ is there, an older backup */
	bool taken;     /* ... but it is that of another entry, since name~ was chosen */
	bool exchanged; /* another entry has got the name since */
} backings[] = {
    {"drawn", HOW_RENAME, false, false, false},
    {"drawn, an older backup", HOW_RENAME, true, false, false},
    {"drawn, the name is taken", HOW_RENAME, true, true, false},
    {"drawn, another one", HOW_RENAME, false, false, true},
    {"drawn, another one, an older backup", HOW_RENAME, true, false, true},
    {"aside", HOW_ASIDE, false, false, false},
    {"aside, an older backup", HOW_ASIDE, true, false, false},
    {"aside, another one, an older backup", HOW_ASIDE, true, false, true},
    {"swapped", HOW_SWAP, false, false, false},
};

static void check_backing(const struct backing *k, int r)
{
	const char *old = k->exchanged ? "another" : "old",
		   *backup = k->taken ? "d/name~~" : "d/name~";
	const char *path = k->how == HOW_SWAP ? "d/name~~" : backup;
	check(r == (k->exchanged ? RESULT_TAKEN : 0), "the commit returns %d", r);
	check(leads_to("d/name", r == 0 ? "new" : old), "the name");
	check(r != 0 || leads_to(path, "old"), "the backup");
	check((r == 0 && !k->taken) || !k->older || leads_to("d/name~", "older"),
	      "the older backup");
	check(names_in("d") == 1 + (r == 0 || k->older) + k->taken, "something is left");
	check(names_in("aside") == 0, "something is left aside");
}

/* A commit replaces and keeps, or changes nothing. */
START_TEST(a_commit_makes_the_backup_or_changes_nothing)
{
	const struct backing *k = &backings[_i];
	char new[] = "new", longer[] = "d/name~~";
	struct failure fail;
	struct stat found, st;
	for (size_t i = 0; i < dir_count; i++) {
		enter(&dirs[i]);
		set_label("%s: %s", dirs[i].name, k->name);
		need(mkdir("d", 0755) == 0 && mkdir("aside", 0700) == 0);
		const int dir = open("d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		const int aside = open("aside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		need(symlink("old", "d/name") == 0 && lstat("d/name", &found) == 0);
		struct backup b = {
		    .name = "name~", .choose = choose_longer, .note = note_nothing, .arg = longer};
		if (k->older)
			need(symlink("older", "d/name~") == 0 && lstat("d/name~", &st) == 0);
		b.met = k->older && !k->taken ? st.st_ino : 0;
		struct slot s = {.how = k->how, .over = OVER_FOUND, .found = &found, .backup = &b};
		check(slot_make(&s, dir, "name", aside, make_symlink, new, "symlink", &fail) == 0,
		      "make");
		check(names_in("d") <= 2 + k->older, "a backup before the commit");
		if (k->exchanged)
			need(symlink("another", "d/x") == 0 && rename("d/x", "d/name") == 0);
		const int r = slot_commit(&s, dir, "name", &fail);
		slot_drop(&s, dir, "name");
		check_backing(k, r);
		close(dir);
		close(aside);
		leave();
	}
}
END_TEST

/* One file whose time changes at close(2) says more than others whose time does not. */
START_TEST(a_storage_remembers_what_close_does)
{
	struct storage storage = STORAGE_INITIALIZER, *s = &storage;
	check(storage_at_close(s, 7) == CLOSE_UNKNOWN, "known before");
	storage_note_close(s, 7, true);
	check(storage_at_close(s, 7) == CLOSE_KEEPS_TIMES, "kept");
	check(storage_at_close(s, 8) == CLOSE_UNKNOWN, "another device");
	storage_note_close(s, 7, false);
	check(storage_at_close(s, 7) == CLOSE_CHANGES_TIMES, "changed");
	storage_note_close(s, 7, true);
	check(storage_at_close(s, 7) == CLOSE_CHANGES_TIMES, "changed once");
}
END_TEST

/* A directory that is open as O_PATH cannot be asked; one of /proc has no such flag. */
START_TEST(a_directory_may_ignore_case_if_it_cannot_be_asked)
{
	static const struct {
		const char *path;
		int flags;
		bool folds;
	} asked[] = {{"/proc", O_RDONLY, false},
		     {"/proc", O_PATH, true},
		     {"d", O_RDONLY, false},
		     {"d", O_PATH, true}};
	enter(&dirs[0]);
	need(mkdir("d", 0755) == 0);
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		const int dir = open(asked[i].path, asked[i].flags | O_DIRECTORY | O_CLOEXEC);
		need(dir >= 0);
		check(system_folds(dir) == asked[i].folds, "%s, row %zu", asked[i].path, i);
		close(dir);
	}
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("slot");
	TCase *c = add_case(s, "slot");
	tcase_add_loop_test(c, ways_are_those_of_the_table, 0, (int)ROWS);
	tcase_add_loop_test(c, each_choice_ends_and_none_overwrites_what_must_stay, 0, 3);
	tcase_add_loop_test(c, a_slot_leaves_the_new_entry_or_the_old_one, 0,
			    (int)(sizeof(makings) / sizeof(*makings)));
	tcase_add_loop_test(c, a_dropped_slot_leaves_the_old_entry, 0, 6);
	tcase_add_loop_test(c, a_commit_makes_the_backup_or_changes_nothing, 0,
			    (int)(sizeof(backings) / sizeof(*backings)));
	tcase_add_test(c, a_storage_remembers_what_close_does);
	tcase_add_test(c, a_directory_may_ignore_case_if_it_cannot_be_asked);
	return run_suite(s);
}
