/* SPDX-License-Identifier: MIT
 * What becomes of the destination: new, replaced, refused. Nothing that was there is lost by a copy
 * that fails, and nothing else is left in the directory.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 10000

static void begin(int i)
{
	enter(&dirs[i]);
	set_label("on %s", dirs[i].name);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", 20000, DENSE, 2);
}

static int copy_to(const char *dst, struct fcopy_options o)
{
	o.api = FCOPY_API;
	return fcopy_copy("src", dst, &o, &report);
}

/* Refused with this errno, before anything was touched. */
static void refused(int r, int err, enum fcopy_advice advice)
{
	check(r == -1, "accepted");
	check(report.error.err == err, "%d, not %d", report.error.err, err);
	check(report.error.advice == advice, "%d, not %d", report.error.advice, advice);
	check(report.error.path && report.steps == 0, "%zu steps", report.steps);
}

/* The umask and the source's mode make a new file's mode; setuid and setgid are not copied. */
START_TEST(new_file)
{
	begin(_i);
	need(chmod("src", 06754) == 0);
	umask(027);
	check(copy_to("dst", (struct fcopy_options){0}) == 0, "%s", report.error.call);
	check(mode_of("dst") == 0750, "%o, not 750", mode_of("dst"));
	check(same_bytes("src", "dst"), "bytes differ");
	check(strcmp(report.dst, "dst") == 0, "%s, not dst", report.dst);
	check(names_in(".") == 3, "%d names, not 3", names_in("."));
	leave();
}
END_TEST

START_TEST(replaced_file)
{
	begin(_i);
	struct stat before, after;
	make_file("dst", 20000, DENSE, 2);
	need(chmod("dst", 06641) == 0);
	if (dirs[_i].acl)
		need(give_acl("dst"));
	if (geteuid() == 0)
		need(chown("dst", 1234, 4321) == 0);
	need(stat("dst", &before) == 0);
	check(copy_to("dst", (struct fcopy_options){.fsync = true}) == 0, "%s", report.error.call);
	need(stat("dst", &after) == 0);
	check(same_bytes("src", "dst"), "bytes differ");
	check(before.st_ino != after.st_ino, "written in place");
	mode_t mode = before.st_mode & ~06000u;
	check(after.st_mode == mode, "%o, not %o", after.st_mode, mode);
	check(before.st_uid == after.st_uid && before.st_gid == after.st_gid, "%u:%u, not %u:%u",
	      after.st_uid, after.st_gid, before.st_uid, before.st_gid);
	check(!dirs[_i].acl || has_acl("dst"), "ACL");
	check(names_in(".") == 3, "%d names, not 3", names_in("."));
	leave();
}
END_TEST

START_TEST(through_symlinks)
{
	begin(_i);
	struct stat st;
	need(mkdir("d", 0755) == 0 && mkdir("e", 0755) == 0);
	make_file("e/target", 20000, DENSE, 2);
	need(symlink("../e/target", "d/link") == 0 && symlink("d/link", "link") == 0);
	check(copy_to("link", (struct fcopy_options){0}) == 0, "%s", report.error.call);
	check(same_bytes("src", "e/target"), "bytes differ");
	check(lstat("link", &st) == 0 && S_ISLNK(st.st_mode), "the link is gone");
	check(lstat("d/link", &st) == 0 && S_ISLNK(st.st_mode), "the second link is gone");
	check(names_in("d") == 1 && names_in("e") == 1, "left something");
	need(symlink("nowhere", "dangling") == 0 && symlink("e", "dir") == 0);
	refused(copy_to("dangling", (struct fcopy_options){0}), ENOENT, FCOPY_ADVICE_REMOVE_LINK);
	check(!exists("nowhere"), "created");
	check(copy_to("dir", (struct fcopy_options){0}) == 0, "%s", report.error.call);
	check(strcmp(report.dst, "dir/src") == 0, "%s, not dir/src", report.dst);
	check(same_bytes("src", "e/src"), "bytes differ");
	need(symlink("loop", "loop") == 0);
	refused(copy_to("loop", (struct fcopy_options){0}), ELOOP, FCOPY_ADVICE_REMOVE_LOOP);
	leave();
}
END_TEST

START_TEST(into_a_directory)
{
	begin(_i);
	struct fcopy_options o = {.api = FCOPY_API};
	need(mkdir("d", 0755) == 0 && mkdir("d/old", 0755) == 0);
	check(copy_to("d", o) == 0 && same_bytes("src", "d/src"), "%s", report.error.call);
	check(strcmp(report.dst, "d/src") == 0, "%s, not d/src", report.dst);
	check(copy_to("d/", o) == 0, "%s", report.error.call);
	check(copy_to("d/.", o) == 0, "%s", report.error.call);
	check(strcmp(report.dst, "d/./src") == 0, "%s, not d/./src", report.dst);
	check(fcopy_copy("old", "d", &o, &report) == -1, "a directory was replaced");
	check(report.error.err == EISDIR, "%d, not %d", report.error.err, EISDIR);
	refused(copy_to("none/", o), ENOENT, FCOPY_ADVICE_NONE);
	refused(copy_to("old/", o), ENOTDIR, FCOPY_ADVICE_NONE);
	refused(copy_to("none/dst", o), ENOENT, FCOPY_ADVICE_NONE);
	refused(copy_to("", o), ENOENT, FCOPY_ADVICE_NONE);
	check(names_in("d") == 2, "%d names, not 2", names_in("d"));
	leave();
}
END_TEST

START_TEST(the_same_file)
{
	begin(_i);
	struct fcopy_options o = {.api = FCOPY_API,
				  .in_place = _i % 2 ? FCOPY_WHEN_ALWAYS : FCOPY_WHEN_NEVER,
				  .force = true};
	char fd_name[32];
	make_file("copy", SIZE, DENSE, 1);
	need(link("src", "hard") == 0 && symlink("src", "soft") == 0);
	refused(copy_to("src", o), EINVAL, FCOPY_ADVICE_NONE);
	refused(copy_to("hard", o), EINVAL, FCOPY_ADVICE_NONE);
	refused(copy_to("soft", o), EINVAL, FCOPY_ADVICE_NONE);
	refused(copy_to(".", o), EINVAL, FCOPY_ADVICE_NONE);
	int fd = open("src", O_WRONLY | O_APPEND | O_CLOEXEC);
	snprintf(fd_name, sizeof(fd_name), "/dev/fd/%d", fd);
	refused(copy_to(fd_name, o), EINVAL, FCOPY_ADVICE_NONE);
	close(fd);
	check(same_bytes("src", "copy"), "touched");
	leave();
}
END_TEST

START_TEST(hard_links)
{
	begin(_i);
	make_file("dst", 20000, DENSE, 2);
	need(link("dst", "other") == 0);
	refused(copy_to("dst", (struct fcopy_options){0}), EMLINK, FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	check(same_bytes("old", "dst"), "touched");
	check(copy_to("dst", (struct fcopy_options){.in_place = FCOPY_WHEN_ALWAYS}) == 0,
	      "in place");
	check(same_bytes("src", "dst") && same_bytes("src", "other"), "bytes differ");
	make_file("old", 20000, DENSE, 3);
	make_file("other", 20000, DENSE, 3);
	check(copy_to("dst", (struct fcopy_options){.force = true}) == 0, "forced");
	check(same_bytes("src", "dst") && same_bytes("old", "other"), "bytes differ");
	leave();
}
END_TEST

START_TEST(bad_sources)
{
	begin(_i);
	struct fcopy_options o = {.api = FCOPY_API};
	need(mkdir("d", 0755) == 0);
	refused(fcopy_copy("d", "dst", &o, &report), EISDIR, FCOPY_ADVICE_RECURSIVE);
	refused(fcopy_copy("none", "dst", &o, &report), ENOENT, FCOPY_ADVICE_NONE);
	refused(fcopy_copy("src/x", "dst", &o, &report), ENOTDIR, FCOPY_ADVICE_NONE);
	refused(fcopy_copy("/dev/fd/999", "dst", &o, &report), EBADF, FCOPY_ADVICE_NONE);
	refused(copy_to("/dev/fd/999", o), EBADF, FCOPY_ADVICE_NONE);
	check(!exists("dst"), "created");
	char name[PATH_MAX + 10];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	refused(copy_to(name, o), ENAMETOOLONG, FCOPY_ADVICE_NONE);
	name[NAME_MAX + 1] = '\0';
	refused(copy_to(name, o), ENAMETOOLONG, FCOPY_ADVICE_NONE);
	leave();
}
END_TEST

/* As another user, who may neither write the old file nor its directory. */
START_TEST(without_permission)
{
	begin(_i);
	struct fcopy_options o = {.api = FCOPY_API};
	make_file("dst", 20000, DENSE, 2);
	need(chmod("dst", 0444) == 0 && chmod(".", 0777) == 0);
	need(seteuid(1234) == 0);
	refused(copy_to("dst", o), EACCES, FCOPY_ADVICE_FORCE);
	check(same_bytes("old", "dst"), "touched");
	/* the owner cannot be given back, and force says to go on */
	o.force = true;
	check(copy_to("dst", o) == 0, "%s", report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	need(seteuid(0) == 0);
	make_file("mine", 20000, DENSE, 2);
	need(chmod("mine", 0666) == 0);
	need(seteuid(1234) == 0);
	o.force = false;
	check(copy_to("mine", o) == -1, "the owner was lost");
	check(report.error.advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE, "advice %d, not %d",
	      report.error.advice, FCOPY_ADVICE_IN_PLACE_OR_FORCE);
	check(same_bytes("old", "mine"), "touched");
	need(seteuid(0) == 0 && chmod(".", 0755) == 0 && seteuid(1234) == 0);
	check(copy_to("new", o) == -1 && report.error.err == EACCES, "%d, not %d", report.error.err,
	      EACCES);
	o.in_place = FCOPY_WHEN_ALWAYS;
	check(copy_to("mine", o) == 0, "%s", report.error.call);
	check(same_bytes("src", "mine"), "bytes differ");
	need(seteuid(0) == 0);
	check(names_in(".") == 4, "%d names, not 4", names_in("."));
	leave();
}
END_TEST

/* A file that is a mount point has a name that nobody can take away. */
START_TEST(onto_a_bind_mount)
{
	begin(_i);
	make_file("dst", 20000, DENSE, 2);
	make_file("below", 1, DENSE, 2);
	if (mount("dst", "below", "none", MS_BIND, NULL) < 0) {
		leave();
		skip_test("no bind mounts");
	}
	refused(copy_to("below", (struct fcopy_options){0}), EBUSY, FCOPY_ADVICE_IN_PLACE_AUTO);
	check(copy_to("below", (struct fcopy_options){.in_place = FCOPY_WHEN_ALWAYS}) == 0, "%s",
	      report.error.call);
	check(same_bytes("src", "dst"), "bytes differ");
	need(umount("below") == 0);
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	int n = (int)dir_count;
	Suite *s = suite_create("replace");
	TCase *c = add_case(s, "replace");
	tcase_add_loop_test(c, new_file, 0, n);
	tcase_add_loop_test(c, replaced_file, 0, n);
	tcase_add_loop_test(c, through_symlinks, 0, n);
	tcase_add_loop_test(c, into_a_directory, 0, n);
	tcase_add_loop_test(c, the_same_file, 0, n);
	tcase_add_loop_test(c, hard_links, 0, n);
	tcase_add_loop_test(c, bad_sources, 0, n);
	if (geteuid() == 0) {
		tcase_add_loop_test(c, without_permission, 0, n);
		tcase_add_loop_test(c, onto_a_bind_mount, 0, n);
	} else {
		left_out("owners, permissions and bind mounts: only root can set them up");
	}
	return run_suite(s);
}
