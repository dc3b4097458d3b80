/* SPDX-License-Identifier: MIT
 * Every call of a copy with a backup fails, at each time that it is made; or another process
 * replaces the entry just before, and then a call fails. Afterwards the entry has its name, or the
 * copy has it and the backup is there, also where a backup can only be a rename; and what the other
 * process wrote is there.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file or a symlink holds. Each has a length of its own. */
enum content { NEW = 1, OLD, OLDER, OTHER };

#define LENGTH(content) ((size_t)(content)*100)

static const struct scene {
	const char *name;
	bool link;   /* the entry is a symlink, and not a file */
	bool named;  /* there is no O_TMPFILE */
	bool shared; /* other users can write to the directory */
	bool plain;  /* rename(2) has no flags */
	bool alone;  /* there are no hard links */
} scenes[] = {{"a file", false, false, false, false, false},
	      {"a file with a named temporary", false, true, false, false, false},
	      {"a file in a shared directory", false, true, true, false, false},
	      {"a file where two names cannot be exchanged", false, false, false, true, false},
	      {"a file where a name can only be renamed", false, true, false, true, true},
	      {"a symlink", true, false, false, false, false},
	      {"a symlink in a shared directory", true, false, true, false, false},
	      {"a symlink where a name can only be renamed", true, false, false, true, true},
	      {"a symlink where two names cannot be exchanged", true, false, false, true, false}};

static const char *const calls[] = {"unlinkat", "linkat",     "renameat2", "renameat", "fstatat64",
				    "fstat64",  "fsync",      "close",     "openat64", "mkdirat",
				    "flock",    "llistxattr", "fchmod",    "getrandom"};
static const int errs[] = {EIO, EPERM};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct run {
	const struct scene *scene;
	int backup;
	const char *call;
	int err;
	bool raced; /* another process has replaced the entry */
} runs[COUNT(scenes) * 2];

static const struct run *now;

static void put(const char *name, enum content content)
{
	char target[LENGTH(OTHER) + 1] = "";
	unlink(name);
	if (now->scene->link) {
		memset(target, 't', LENGTH(content));
		need(symlink(target, name) == 0);
	} else {
		make_file(name, (off_t)LENGTH(content), DENSE, content);
	}
}

static bool holds(const char *name, enum content content)
{
	char bytes[LENGTH(OTHER)], want[LENGTH(OTHER)];
	struct stat st;
	if (lstat(name, &st) < 0 || (size_t)st.st_size != LENGTH(content) ||
	    S_ISLNK(st.st_mode) != now->scene->link)
		return false;
	if (now->scene->link)
		return true;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && read(fd, bytes, sizeof(bytes)) == (ssize_t)LENGTH(content));
	close(fd);
	fill(want, LENGTH(content), 0, content);
	return memcmp(bytes, want, LENGTH(content)) == 0;
}

/* Has any name of the directory, or of one below it, this content? */
static bool is_below(const char *dir, enum content content)
{
	char path[400];
	bool found = false;
	DIR *d = opendir(dir);
	need(d);
	for (const struct dirent *e; !found && (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		found = e->d_type == DT_DIR ? is_below(path, content) : holds(path, content);
	}
	closedir(d);
	return found;
}

static bool is_backed_up(enum content content)
{
	return holds("d/dst~", content) || holds("d/dst~~", content) ||
	       holds("d/dst.~1~", content) || holds("d/dst.~2~", content);
}

static void check(int r)
{
	const bool copied = holds("d/dst", NEW);
	if (r == 0 && !now->raced)
		assert_true(copied);
	assert_true(copied || holds("d/dst", now->raced ? OTHER : OLD));
	if (copied)
		assert_true(is_backed_up(now->raced ? OTHER : OLD));
	else if (now->backup == FCOPY_BACKUP_SIMPLE && !now->raced)
		assert_true(is_below("d", OLDER));
}

static void once(void *arg)
{
	static struct fcopy_tree_report report;
	static struct fcopy_tree_options options = {.copy.api = FCOPY_API};
	const char *const src = "src";
	now = arg;
	options.copy.fsync = strcmp(now->call, "fsync") == 0;
	options.backup = now->backup;
	options.follow = FCOPY_FOLLOW_NEVER;
	remove_all("d");
	need(mkdir("d", 0755) == 0);
	need(chmod("d", now->scene->shared ? 01777 : 0755) == 0);
	put("src", NEW);
	put("d/dst", OLD);
	if (now->backup == FCOPY_BACKUP_SIMPLE)
		put("d/dst~", OLDER);
	if (now->scene->named)
		fault_also("openat64 of O_TMPFILE", EOPNOTSUPP);
	if (now->scene->plain)
		fault_also("renameat2", EINVAL);
	if (now->scene->alone)
		fault_also("linkat", EPERM);
	fault_on();
	int r = fcopy_tree(&src, 1, "d/dst", &options, &report);
	fault_off();
	check(r);
}

/* Every call that the sweep is for, with each errno. */
static void for_each_call(struct run *run, void (*sweep)(struct run *))
{
	for (size_t i = 0; i < COUNT(calls); i++)
		for (size_t j = 0; j < COUNT(errs); j++) {
			run->call = calls[i];
			run->err = errs[j];
			sweep(run);
		}
}

/* How many names in the directory begin so? */
static int count_names(const char *start)
{
	int n = 0;
	DIR *d = opendir("d");
	need(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += strncmp(e->d_name, start, strlen(start)) == 0;
	closedir(d);
	return n;
}

static void sweep(struct run *run)
{
	for (int nth = 1; nth < 1000; nth++) {
		fault_set(run->call, nth, run->err);
		once(run);
		if (!fault_seen()) {
			assert_int_equal(count_names(".fcopy-"), 0);
			return;
		}
	}
	fail_msg("%s: no end of it", run->call);
}

static void call_fails(void **state)
{
	for_each_call(*state, sweep);
}

/* Each look-up fails: no backup is lost, and at most one is added. Without an exchange, the entry
 * moved away may keep one more name. */
static void look_ups_fail(void **state)
{
	struct run *run = *state;
	run->call = "fstatat64";
	run->err = EIO;
	for (int nth = 1; nth < 1000; nth++) {
		fault_set(run->call, FAULT_EVERY + nth, run->err);
		once(run);
		assert_in_range(count_names("dst"), 1, run->scene->plain ? 3 : 2);
		if (!fault_seen())
			return;
	}
	fail_msg("no end of it");
}

static struct run race;
static int race_nth;

/* The other process renames its file over the entry; from now on another call fails. */
static void replace_entry(void)
{
	put("other", OTHER);
	need(rename("other", "d/dst") == 0);
	race.raced = true;
	fault_before(NULL);
	fault_set(race.call, race_nth, race.err);
}

/* Just before each rename; then each call fails, once. */
static void sweep_raced(struct run *run)
{
	for (int at = 1; at < 100; at++) {
		bool failed = true;
		race.raced = true;
		for (race_nth = 1; failed && race.raced; race_nth++) {
			race = *run;
			fault_before(replace_entry);
			fault_set("renameat2", at, 0);
			once(&race);
			failed = fault_seen();
		}
		if (!race.raced)
			return;
	}
	fail_msg("%s: no end of it", run->call);
}

static void is_replaced(void **state)
{
	for_each_call(*state, sweep_raced);
}

int main(void)
{
	static const int kinds[] = {FCOPY_BACKUP_SIMPLE, FCOPY_BACKUP_NUMBERED};
	struct run *run = runs;
	cases_enter("ext4");
	for (size_t i = 0; i < COUNT(runs); i++, run++) {
		*run = (struct run){.scene = &scenes[i / 2], .backup = kinds[i % 2]};
		const char *kind = i % 2 ? "numbered" : "simple";
		case_add(call_fails, run, "%s backup of %s: each call fails", kind,
			 run->scene->name);
		if (!run->scene->alone) /* a rename needs a look-up there */
			case_add(look_ups_fail, run,
				 "%s backup of %s: no look-up works from one on", kind,
				 run->scene->name);
		case_add(is_replaced, run, "%s backup of %s that is replaced; then each call fails",
			 kind, run->scene->name);
	}
	return cases_run("backups");
}
