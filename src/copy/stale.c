/* SPDX-License-Identifier: MIT
 * Temporary files and unfinished trees that a killed copy left. A copy that writes under such a
 * name itself warns about those of the same user that are older than a day. It removes only what
 * has no bytes of a copy: another machine may be writing the rest. The receipts of shards that are
 * older than a day are removed, too.
 */
#define _GNU_SOURCE
#include "stale.h"
#include "endpoints/error.h"
#include "io/amount.h"
#include "part/left.h"
#include "source/reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAY          86400L
#define NAMES_MAX    4096  /* are read: a directory may be huge, and its server far away */
#define ENTRIES_MAX  10000 /* of one unfinished tree are measured */
#define WARNINGS_MAX 8

/* Whose is it, and how large? Returns false if a copy on this machine uses it: the mtime of a
 * directory does not change when files below it are written. */
static bool examine(int dir, const char *name, const struct stat *st, struct left_size *size,
		    bool *dead)
{
	struct left l;
	const bool found = part_examine(&l, dir, name, false), live = l.state == FCOPY_LEFT_LIVE;
	*dead = l.state == FCOPY_LEFT_DEAD;
	if (S_ISREG(st->st_mode))
		size->bytes = (uint64_t)st->st_size;
	else if (found && !live && l.part.fd >= 0)
		left_measure(l.part.fd, size);
	else
		size->partial = true;
	left_close(&l);
	return found && !live;
}

/* Returns false if there is nothing to warn about. directory: the path of dir. */
static bool warn_about(int dir, const char *directory, const char *name,
		       const struct fcopy_options *o, const struct fcopy_report *report)
{
	char path[PATH_MAX], reason[128], bytes[AMOUNT_MAX];
	struct stat st, named;
	struct left_size size = {.entries = ENTRIES_MAX};
	struct fcopy_error e;
	bool dead;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != geteuid() ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return false;
	time_t age = time(NULL) - st.st_mtime;
	int n = snprintf(path, sizeof(path), "%s/%s", directory, name);
	/* The user may remove what the path leads to: it must be this file. */
	if (!o->notify || age < DAY || n >= PATH_MAX || lstat(path, &named) < 0 ||
	    named.st_dev != st.st_dev || named.st_ino != st.st_ino ||
	    !examine(dir, name, &st, &size, &dead))
		return false;
	amount_write(bytes, size.bytes);
	const enum fcopy_advice advice = !S_ISDIR(st.st_mode) ? FCOPY_ADVICE_REMOVE_FILE
					 : dead               ? FCOPY_ADVICE_CLEAN
							      : FCOPY_ADVICE_REMOVE_TREE;
	snprintf(reason, sizeof(reason), "left by an interrupted copy (%s%s, %ju day%s old)",
		 size.partial ? "more than " : "", bytes, (uintmax_t)(age / DAY),
		 age < 2 * DAY ? "" : "s");
	error_refuse(&e, path, EEXIST, reason, advice);
	o->notify(o->user, &(struct fcopy_event){
			       .kind = FCOPY_EVENT_WARNING, .report = report, .error = &e});
	return true;
}

/* Without /proc, the empty path, where nothing is found. */
static void find_path(int dir, char path[PATH_MAX])
{
	const ssize_t n = readlink(io_proc_path(dir).text, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
}

void stale_warn_name(int dir, const char *name, const struct fcopy_options *o)
{
	char directory[PATH_MAX];
	if (!temporary_is_drawn(name) || left_sweep(dir, name, 0))
		return;
	find_path(dir, directory);
	(void)warn_about(dir, directory, name, o, NULL);
}

void stale_warn(int dir, const struct fcopy_options *o, const struct fcopy_report *report)
{
	_Alignas(8) char buffer[READER_SIZE];
	char directory[PATH_MAX];
	unsigned names = 0, warnings = 0;
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	if (r.fd < 0)
		return;
	find_path(r.fd, directory);
	for (const char *name;
	     names < NAMES_MAX && warnings < WARNINGS_MAX && (name = reader_next(&r)); names++)
		if (part_is_name(name))
			left_sweep(r.fd, name, DAY);
		else if (temporary_is_drawn(name) && !left_sweep(r.fd, name, 0))
			warnings += warn_about(r.fd, directory, name, o, report);
	reader_close(&r);
}
