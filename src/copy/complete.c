/* SPDX-License-Identifier: MIT
 * --resume, where an earlier run of the command has completed the copy: nothing is written.
 */
#define _GNU_SOURCE
#include "compare.h"
#include "copy.h"
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "io/amount.h"
#include "io/io.h"
#include "notify.h"
#include "part/left.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Opens DST if it is another file of the size of SRC, without other names. Returns a descriptor or
 * -1. */
static int complete_open(const struct copy *c, const struct operand *dst, struct stat *st)
{
	const struct fcopy_options *o = c->options;
	if (!o->resume || o->scratch || o->no_clobber || o->count > 0 || c->share ||
	    dst->kind != OPERAND_FILE || !S_ISREG(c->src.st.st_mode) || !c->src.positional ||
	    dst->place.st.st_size != c->src.st.st_size)
		return -1;
	int fd = openat(dst->place.dir, dst->place.name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1; /* the copy itself reports what is wrong */
	if (fstat(fd, st) == 0 && same_inode(st, &dst->place.st) &&
	    st->st_size == c->src.st.st_size && st->st_nlink == 1 && !same_inode(st, &c->src.st))
		return fd;
	close(fd);
	return -1;
}

/* Some file systems, such as procfs, report the size 0 of files that have content. */
static bool complete_is_empty(const struct copy *c)
{
	char byte;
	return c->src.st.st_size == 0 && pread(c->src.fd, &byte, 1, 0) == 0;
}

static int complete_lose(void *copy, enum fcopy_attribute which, const struct fcopy_error *e)
{
	return copy_lose_attribute(copy, which, e);
}

/* Options of this run may ask for attributes that the earlier one did not set. */
static int complete_accept(struct copy *c)
{
	struct fcopy_report *report = c->report;
	report->bytes = report->expected = (uint64_t)c->src.st.st_size;
	report->existed = report->atomic = true;
	int r = copy_check_size(c, report->bytes);
	if (r == 0)
		r = copy_attributes(c, true, complete_lose);
	if (r == 0 && c->options->fsync)
		r = copy_flush(c, true);
	return r < 0 ? r : 1;
}

int copy_complete(struct copy *c, const struct operand *dst)
{
	struct fcopy_report *report = c->report;
	const off_t size = c->src.st.st_size;
	struct stat st;
	bool cached;
	int fd = complete_open(c, dst, &st);
	if (fd < 0)
		return 0;
	source_adopt(&c->dst, fd, dst->path, &st);
	double start = io_now();
	copy_phase(c, FCOPY_PHASE_VERIFY, (uint64_t)size);
	off_t same = size > 0 ? compare_files(c, 0, size, c->options->fsync, false, &cached)
		     : complete_is_empty(c) ? 0
					    : -EIO; /* it is copied */
	report->seconds[FCOPY_PHASE_VERIFY] = io_now() - start;
	int r = same < 0 ? (int)same : same == size ? complete_accept(c) : 0;
	c->dst.ops->abort(&c->dst);
	/* Only a cancellation ends the copy: what cannot be read is replaced. */
	if (same < 0 && same != -EINTR) {
		report->error = (struct fcopy_error){0};
		return 0;
	}
	if (r <= 0)
		return r;
	/* The earlier run may have been killed before it removed its part. */
	part_remove(dst->place.dir, dst->place.name, c->src.fd, &c->src.st);
	stale_warn(dst->place.dir, c->options, report);
	report->resumed = report->bytes;
	copy_notify(c, FCOPY_EVENT_RESUME, NULL, NULL);
	return 1;
}

/* Temporary files and unfinished trees that a killed copy left. A copy that writes under such a
 * name itself warns about those of the same user that are older than a day. It removes only what
 * has no bytes of a copy: another machine may be writing the rest. The receipts of shards that are
 * older than a day are removed, too. */

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
	    !same_inode(&named, &st) || !examine(dir, name, &st, &size, &dead))
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
