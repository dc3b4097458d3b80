/* SPDX-License-Identifier: MIT
 * What an unfinished copy is kept in: private directories.
 */
#define _GNU_SOURCE
#include "util.h"

#include "part/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static void begin(int i)
{
	enter(&dirs[i]);
	set_label("on %s", dirs[i].name);
}

static int open_here(void)
{
	int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	need(fd >= 0);
	return fd;
}

START_TEST(private_directory_is_closed_and_locked)
{
	begin(_i);
	struct private_directory p;
	struct stat st;
	const char *call;
	int here = open_here();
	check(private_make(&p, here, &call) == 0, "%s", call);
	need(fstat(p.fd, &st) == 0);
	check((st.st_mode & 0777) == 0700 && st.st_uid == geteuid(), "%o", st.st_mode);
	check(!p.exposed && temporary_is_drawn(p.name), "%s", p.name);
	check(private_has_name(p.fd, here, p.name), "no name");
	check(private_is_live(p.fd), "not locked");
	private_end(&p);
	check(names_in(".") == 0, "left behind");
	close(here);
	leave();
}
END_TEST

START_TEST(umask_that_withholds_rights_of_the_owner)
{
	begin(_i);
	struct private_directory p;
	struct stat st;
	const char *call;
	int here = open_here();
	mode_t old = umask(0777);
	int r = private_make(&p, here, &call);
	umask(old);
	check(r == 0, "%s: %d", call, r);
	need(fstat(p.fd, &st) == 0);
	check((st.st_mode & 0777) == 0700, "%o", st.st_mode);
	private_end(&p);
	check(names_in(".") == 0, "left behind");
	close(here);
	leave();
}
END_TEST

START_TEST(directory_that_is_not_empty_stays)
{
	begin(_i);
	struct private_directory p;
	const char *call;
	int here = open_here();
	need(private_make(&p, here, &call) == 0);
	need(mkdirat(p.fd, "data", 0700) == 0);
	int fd = openat(here, p.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	private_end(&p);
	check(names_in(".") == 1 && !private_is_live(fd), "removed or locked");
	check(private_is_empty(fd) == 0, "data was removed");
	need(unlinkat(fd, "data", AT_REMOVEDIR) == 0);
	check(private_is_empty(fd) == 1, "not empty");
	close(fd);
	close(here);
	leave();
}
END_TEST

START_TEST(other_directories_are_not_ours)
{
	begin(_i);
	struct stat st;
	bool exposed;
	int here = open_here();
	need(mkdir("open", 0700) == 0 && chmod("open", 0755) == 0 && stat("open", &st) == 0);
	check(!private_is_ours(here, &st, &exposed), "mode %o", st.st_mode);
	need(chmod("open", 0700) == 0 && stat("open", &st) == 0);
	check(private_is_ours(here, &st, &exposed) && !exposed, "mode %o", st.st_mode);
	st.st_uid++;
	check(!private_is_ours(here, &st, &exposed), "uid %u", st.st_uid);
	make_file("file", 0, DENSE, 1);
	need(stat("file", &st) == 0);
	check(!private_is_ours(here, &st, &exposed), "a file");
	close(here);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	Suite *s = suite_create("part");
	TCase *t = add_case(s, "private");
	int n = (int)dir_count;
	tcase_add_loop_test(t, private_directory_is_closed_and_locked, 0, n);
	tcase_add_loop_test(t, umask_that_withholds_rights_of_the_owner, 0, n);
	tcase_add_loop_test(t, directory_that_is_not_empty_stays, 0, n);
	tcase_add_loop_test(t, other_directories_are_not_ours, 0, n);
	return run_suite(s);
}
