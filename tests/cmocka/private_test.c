/* SPDX-License-Identifier: MIT
 * A private directory is made while calls fail, or while its name is given to something else.
 */
#define _GNU_SOURCE
#include "cases.h"
#include "io/libc.h"

#include "part/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A private directory that lacks rights of its owner at first: is made, or leaves nothing. */
static void once_private(void *arg)
{
	struct private_directory p;
	struct failure fail = {.call = NULL};
	unsigned *failures = arg;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	need(here >= 0);
	int before = open_descriptors();
	const mode_t mask = umask(0277);
	fault_on();
	int r = private_make(&p, here, &fail);
	fault_off();
	umask(mask);
	assert_true(r == 0 || r == -EIO);
	assert_int_equal(names_in("."), r == 0);
	if (r == 0) {
		assert_int_equal(mode_of(p.name) & 0777, 0700);
		private_end(&p);
	}
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(names_in("."), 0);
	close(here);
	*failures += r < 0;
}

static void sweep_private(void **state)
{
	unsigned failures = 0;
	fault_sweep(*state, EIO, once_private, &failures);
	assert_true(failures > 0);
}

/* NFS no longer knows the directory: another one is made, and nothing stays open. */
static void lock_is_stale(void **state)
{
	struct private_directory p;
	struct failure fail = {.call = NULL};
	(void)state;
	int here = open(".", O_RDONLY | O_DIRECTORY);
	need(here >= 0);
	int before = open_descriptors();
	fault_set("flock", 1, ESTALE);
	fault_on();
	int r = private_make(&p, here, &fail);
	fault_off();
	assert_true(fault_seen());
	assert_int_equal(r, 0);
	private_end(&p);
	assert_int_equal(open_descriptors(), before);
	close(here);
}

/* What the owner of the directory above gives the name of a new private directory. */

static void bring_file(const char *name)
{
	make_file(name, 5, DENSE, 1);
}

static void bring_symlink(const char *name)
{
	need(mkdir("target", 0700) == 0 && symlink("target", name) == 0);
}

static void bring_open(const char *name)
{
	need(mkdir(name, 0700) == 0 && chmod(name, 0755) == 0);
}

static void bring_without_write(const char *name)
{
	need(mkdir(name, 0500) == 0);
}

static void bring_full(const char *name)
{
	need(mkdir(name, 0700) == 0);
	need(chdir(name) == 0);
	make_file("file", 5, DENSE, 1);
	need(chdir("..") == 0);
}

/* Made before the test. */
static void bring_older(const char *name)
{
	need(rename("older", name) == 0);
}

static const struct replacement {
	const char *name;
	void (*bring)(const char *name);
} replacements[] = {
    {"a file", bring_file},
    {"a symlink to a directory", bring_symlink},
    {"a directory of mode 0755", bring_open},
    {"a directory of mode 0500", bring_without_write},
    {"a directory that has entries", bring_full},
    {"an older directory", bring_older},
};
#define REPLACEMENTS (sizeof(replacements) / sizeof(*replacements))

static const struct replacement *replacement;
static char replaced[TEMPORARY_SIZE];
static struct stat brought;

static void replace_private(void)
{
	DIR *d = opendir(".");
	need(d);
	for (const struct dirent *e; (e = readdir(d));)
		if (temporary_is_drawn(e->d_name))
			strcpy(replaced, e->d_name);
	closedir(d);
	need(rename(replaced, "moved") == 0);
	replacement->bring(replaced);
	need(lstat(replaced, &brought) == 0);
}

/* Makes "older", and waits until the clock by which directories get their time is past it. */
static void make_older(void)
{
	struct timespec now;
	struct statx sx;
	need(mkdir("older", 0700) == 0 && statx(AT_FDCWD, "older", 0, STATX_BTIME, &sx) == 0);
	do
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	while (now.tv_sec < sx.stx_btime.tv_sec ||
	       (now.tv_sec == sx.stx_btime.tv_sec && now.tv_nsec <= (long)sx.stx_btime.tv_nsec));
}

/* Another private directory is made, and what was brought stays as it is. */
static void once_replaced(void *arg)
{
	struct private_directory p;
	struct stat st;
	struct failure fail = {.call = NULL};
	replacement = arg;
	remove_all(".fcopy-*");
	remove_all("*");
	if (replacement->bring == bring_older)
		make_older();
	int here = open(".", O_RDONLY | O_DIRECTORY);
	need(here >= 0);
	int before = open_descriptors();
	fault_on();
	int r = private_make(&p, here, &fail);
	fault_off();
	assert_int_equal(r, 0);
	assert_true(private_has_name(p.fd, here, p.name));
	assert_true(private_has_name(p.lock, p.fd, PRIVATE_LOCK));
	private_end(&p);
	if (fault_seen()) {
		assert_string_not_equal(p.name, replaced);
		need(lstat(replaced, &st) == 0);
		assert_true(st.st_ino == brought.st_ino && st.st_mode == brought.st_mode);
		assert_int_equal(st.st_mtim.tv_nsec, brought.st_mtim.tv_nsec);
		assert_int_equal(names_in("moved"), 0);
	}
	assert_int_equal(open_descriptors(), before);
	close(here);
}

static void private_is_replaced(void **state)
{
	fault_before(replace_private);
	fault_sweep("openat64", 0, once_replaced, *state);
}

int main(void)
{
	cases_enter("tmpfs");
	case_add(sweep_private, "fstat64", "a private directory under a umask: fstat fails");
	case_add(sweep_private, "openat64", "a private directory under a umask: openat fails");
	case_add(sweep_private, "chmod", "a private directory under a umask: chmod fails");
	case_add(lock_is_stale, NULL, "the lock of a private directory is stale");
	for (size_t i = 0; i < REPLACEMENTS; i++)
		case_add(private_is_replaced, &replacements[i],
			 "a private directory is replaced by %s", replacements[i].name);
	return cases_run("private");
}
