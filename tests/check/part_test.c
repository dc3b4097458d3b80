/* SPDX-License-Identifier: MIT
 * What an unfinished copy is kept in: private directories, parts and their journals.
 */
#define _GNU_SOURCE
#include "util.h"

#include "part/part.h"

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

/* The lock in the private directory `fd`. */
static bool is_locked(int fd)
{
	int lock = openat(fd, PRIVATE_LOCK, O_RDWR | O_CLOEXEC);
	const bool locked = lock >= 0 && private_flock(lock, LOCK_SH) == -EWOULDBLOCK;
	if (lock >= 0)
		close(lock);
	return locked;
}

START_TEST(private_directory_is_closed_and_locked)
{
	begin(_i);
	struct private_directory p;
	struct stat st;
	struct failure fail = {.call = ""};
	int here = open_here();
	check(private_make(&p, here, &fail) == 0, "%s", fail.call);
	need(fstat(p.fd, &st) == 0);
	check((st.st_mode & 0777) == 0700 && st.st_uid == geteuid(), "%o", st.st_mode);
	check(!p.exposed && temporary_is_drawn(p.name), "%s", p.name);
	check(private_has_name(p.fd, here, p.name), "no name");
	check(is_locked(p.fd), "not locked");
	private_end(&p);
	check(names_in(".") == 0, "a name remains");
	close(here);
	leave();
}
END_TEST

START_TEST(umask_that_withholds_rights_of_the_owner)
{
	begin(_i);
	struct private_directory p;
	struct stat st;
	struct failure fail = {.call = ""};
	int here = open_here();
	mode_t old = umask(0777);
	int r = private_make(&p, here, &fail);
	umask(old);
	check(r == 0, "%s: %d", fail.call, r);
	need(fstat(p.fd, &st) == 0);
	check((st.st_mode & 0777) == 0700, "%o", st.st_mode);
	private_end(&p);
	check(names_in(".") == 0, "a name remains");
	close(here);
	leave();
}
END_TEST

START_TEST(directory_that_is_not_empty_stays)
{
	begin(_i);
	struct private_directory p;
	struct failure fail = {.call = ""};
	int here = open_here();
	need(private_make(&p, here, &fail) == 0);
	need(mkdirat(p.fd, "data", 0700) == 0);
	int fd = openat(here, p.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	private_end(&p);
	check(names_in(".") == 1 && !is_locked(fd), "removed or locked");
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

static struct journal_fact entry_fact(const char *path)
{
	return (struct journal_fact){
	    .kind = JOURNAL_ENTRY,
	    .source = {.size = 12345, .mtime = {-5, 1}, .ctime = {1700000000, 999999999}},
	    .when = {1700000009, 0},
	    .text = path,
	    .size = strlen(path)};
}

START_TEST(line_is_read_as_it_was_written)
{
	char line[JOURNAL_LINE];
	struct journal_fact f, want = entry_fact("a b\\\n\x7f\xff");
	set_label("journal");
	size_t n = journal_format(&want, line);
	check(line[n - 1] == '\n' && memchr(line, '\n', n) == line + n - 1, "%zu", n);
	journal_parse(line, n - 1, &f);
	check(f.kind == JOURNAL_ENTRY && journal_same_source(&f.source, &want.source), "%d",
	      f.kind);
	check(f.when.tv_sec == 1700000009, "%jd", (intmax_t)f.when.tv_sec);
	check(f.size == 19 && memcmp(f.text, "a\\040b\\134\\012\\177\xff", 19) == 0, "%.*s",
	      (int)f.size, f.text);
	/* Each torn prefix and each flipped byte is noticed. */
	for (size_t i = 0; i < n - 1; i++) {
		journal_parse(line, i, &f);
		check(f.kind == JOURNAL_NOTHING, "%zu bytes", i);
		line[i] ^= 1;
		journal_parse(line, n - 1, &f);
		check(f.kind == JOURNAL_NOTHING, "byte %zu", i);
		line[i] ^= 1;
	}
}
END_TEST

/* What is not written, a null byte, is not read, though the checksum is right. */
START_TEST(boot_has_no_null_byte)
{
	const char texts[][40] = {"run 4d4a2f9e 77 1350000000.000000000",
				  "run 4d4a\0f9e 77 1350000000.000000000",
				  "run \0d4a2f9e 77 1350000000.000000000"};
	char line[JOURNAL_LINE];
	struct journal_fact f;
	const size_t n = strlen(texts[0]);
	set_label("journal");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		memcpy(line + JOURNAL_SEAL, texts[i], n);
		journal_seal(line, n);
		journal_parse(line, JOURNAL_SEAL + n, &f);
		check(f.kind == (i == 0 ? JOURNAL_RUN : JOURNAL_NOTHING), "text %zu: %d", i,
		      f.kind);
	}
}
END_TEST

START_TEST(longest_path_fits)
{
	char path[PATH_MAX], line[JOURNAL_LINE];
	struct journal_fact f;
	set_label("journal");
	memset(path, '\n', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	struct journal_fact want = entry_fact(path);
	size_t n = journal_format(&want, line);
	journal_parse(line, n - 1, &f);
	check(f.kind == JOURNAL_ENTRY && f.size == 4 * (sizeof(path) - 1), "%zu", f.size);
}
END_TEST

START_TEST(edit_within_two_seconds_may_be_invisible)
{
	struct journal_source s = {.mtime = {100, 0}, .ctime = {200, 0}};
	set_label("journal");
	check(journal_is_recent(&s, &(struct timespec){202, 0}), "202");
	check(!journal_is_recent(&s, &(struct timespec){203, 0}), "203");
	s.mtime.tv_sec = 300;
	check(journal_is_recent(&s, &(struct timespec){203, 0}), "mtime of the future");
}
END_TEST

static const char *why(const struct part *p)
{
	return p->reason ? p->reason : p->call ? p->call : "no reason";
}

/* A new part with `data`, a file of three bytes. */
static void begin_part(struct part *p, int here, struct stat *src)
{
	make_file("src", 3, DENSE, 1);
	need(stat("src", src) == 0);
	part_init(p, here, "dst");
	check(part_make(p) == 0, "%s", why(p));
	int data = openat(p->fd, PART_DATA, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	need(data >= 0 && write(data, "abc", 3) == 3);
	const struct journal_fact source = part_source(-1, src);
	check(part_describe(p, "dst", &source, 5, data, 0644) == 0, "%s", why(p));
	check(part_publish(p, &data) == 0, "%s", why(p));
	close(data);
}

static int reopen(struct part *p, int here)
{
	const struct part_claim claim = {
	    .dst = "dst", .of = PART_OF_FILE, .resumes = true, .options = 5};
	part_init(p, here, "dst");
	const enum part_state state = part_acquire(p, &claim);
	check(state != PART_FRESH, "not found");
	return state == PART_CONTINUED ? 0 : -p->err;
}

START_TEST(part_is_published_continued_and_retired)
{
	begin(_i);
	struct part p, second;
	struct stat src, st;
	int here = open_here();
	begin_part(&p, here, &src);
	check(names_in(".") == 2 && lstat("dst.fcopy-part", &st) == 0, "not published");
	check((st.st_mode & 0777) == 0700, "%o", st.st_mode);
	int r = reopen(&second, here);
	check(r == -EBUSY, "%s", why(&second));
	part_note(&p, &(struct journal_fact){.kind = JOURNAL_RANGE, .length = 2});
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	check(p.journal.prefix == 2 && p.journal.flushed_prefix == 0, "%jd",
	      (intmax_t)p.journal.prefix);
	const struct journal_fact source = part_source(-1, &src);
	check(part_same_source(&p, &source, 5) && !part_same_source(&p, &source, 4), "source");
	int data = part_open_data(&p, O_RDWR);
	need(data >= 0 && fstat(data, &st) == 0);
	check(part_is_data(&p, &st) && !part_is_data(&p, &src), "inode");
	close(data);
	/* The next run continues less. */
	part_note_run(&p, 1);
	part_note_flushed(&p);
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	check(p.journal.prefix == 1 && p.journal.flushed_prefix == 1, "%jd",
	      (intmax_t)p.journal.prefix);
	check(part_hide(&p) == 0 && !part_exists(&p), "still visible");
	need(unlinkat(p.fd, PART_DATA, 0) == 0);
	part_close(&p, true);
	check(names_in(".") == 1, "a name remains");
	close(here);
	leave();
}
END_TEST

/* What is done to a part, and whether it is still accepted. */
static void spoil_mode(void)
{
	need(chmod("dst.fcopy-part", 0750) == 0);
}
static void spoil_journal_mode(void)
{
	need(chmod("dst.fcopy-part/journal", 0620) == 0);
}
static void spoil_journal_link(void)
{
	need(link("dst.fcopy-part/journal", "other") == 0);
}
static void spoil_journal(void)
{
	need(unlink("dst.fcopy-part/journal") == 0);
}
static void spoil_lock(void)
{
	need(unlink("dst.fcopy-part/lock") == 0);
}
static void spoil_inode(void)
{
	need(rename("dst.fcopy-part", "moved") == 0 && mkdir("dst.fcopy-part", 0700) == 0);
	need(rename("moved/journal", "dst.fcopy-part/journal") == 0);
	need(rename("moved/lock", "dst.fcopy-part/lock") == 0);
}
static void spoil_header(void)
{
	need(truncate("dst.fcopy-part/journal", 20) == 0);
}
static void spoil_symlink(void)
{
	need(rename("dst.fcopy-part", "moved") == 0 && symlink("moved", "dst.fcopy-part") == 0);
}
static void spoil_file(void)
{
	need(rename("dst.fcopy-part", "moved") == 0);
	make_file("dst.fcopy-part", 3, DENSE, 1);
}
static void (*const spoils[])(void) = {spoil_mode,    spoil_journal_mode, spoil_journal_link,
				       spoil_journal, spoil_lock,         spoil_inode,
				       spoil_header,  spoil_symlink,      spoil_file};
#define SPOILS (int)(sizeof(spoils) / sizeof(*spoils))

START_TEST(part_that_others_could_have_made_is_refused)
{
	begin(_i / SPOILS);
	struct part p;
	struct stat src;
	int here = open_here();
	set_label("spoil %d on %s", _i % SPOILS, dirs[_i / SPOILS].name);
	begin_part(&p, here, &src);
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	part_close(&p, false);
	spoils[_i % SPOILS]();
	int names = names_in(".");
	check(reopen(&p, here) < 0 && p.reason, "accepted");
	check(p.fd < 0 && p.lock < 0 && p.log < 0 && names_in(".") == names, "changed");
	close(here);
	leave();
}
END_TEST

START_TEST(journal_of_a_tree_finds_the_last_line_of_a_path)
{
	begin(_i);
	struct part p;
	struct journal_fact f;
	struct stat src;
	char path[32];
	bool sure;
	int here = open_here();
	begin_part(&p, here, &src);
	for (int i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "d%d/f %d", i % 7, i);
		f = entry_fact(path);
		f.source.size = i;
		part_note(&p, &f);
	}
	part_note_flushed(&p);
	f = entry_fact("late");
	part_note(&p, &f);
	part_note_again(&p, "d0/f 7");
	need(write(p.log, "torn", 4) == 4);
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	check(journal_find(&p.journal, "d1/f 2996", false, &f, &sure) == (2996 % 7 == 1), "2996");
	for (int i = 8; i < 3000; i++) {
		snprintf(path, sizeof(path), "d%d/f %d", i % 7, i);
		check(journal_find(&p.journal, path, false, &f, &sure) && sure &&
			  f.source.size == i,
		      "%s", path);
	}
	check(!journal_find(&p.journal, "d0/f 7", false, &f, &sure), "copied again");
	check(journal_find(&p.journal, "late", false, &f, &sure), "late");
	check(sure == p.journal.current, "%d", sure);
	part_close(&p, false);
	close(here);
	leave();
}
END_TEST

/* Says whether the bytes of a path are on the storage, as far as the journal knows. */
static bool is_flushed(const struct part *p, const char *path)
{
	struct journal_fact f;
	bool sure;
	need(journal_find(&p->journal, path, true, &f, &sure));
	return sure;
}

START_TEST(flush_covers_what_its_own_run_has_written_since_one_failed)
{
	static const char *const paths[] = {"flushed", "killed", "lost", "last"};
	begin(_i);
	struct part p;
	struct journal_fact f[4];
	struct stat src;
	int here = open_here();
	for (int i = 0; i < 4; i++)
		f[i] = entry_fact(paths[i]);
	begin_part(&p, here, &src);
	part_note(&p, &f[0]);
	part_note_flushed(&p);
	part_note(&p, &f[1]);
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	part_note_run(&p, 0);
	part_note(&p, &f[2]);
	part_note_lost(&p);
	part_note(&p, &f[3]);
	part_note_flushed(&p);
	part_close(&p, false);
	check(reopen(&p, here) == 0, "%s", why(&p));
	for (int i = 0; i < 4; i++)
		check(is_flushed(&p, paths[i]) == (i == 0 || i == 3), "%s", paths[i]);
	part_close(&p, false);
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
	t = add_case(s, "journal");
	tcase_add_test(t, line_is_read_as_it_was_written);
	tcase_add_test(t, boot_has_no_null_byte);
	tcase_add_test(t, longest_path_fits);
	tcase_add_test(t, edit_within_two_seconds_may_be_invisible);
	t = add_case(s, "part");
	tcase_add_loop_test(t, part_is_published_continued_and_retired, 0, n);
	tcase_add_loop_test(t, part_that_others_could_have_made_is_refused, 0, n * SPOILS);
	tcase_add_loop_test(t, journal_of_a_tree_finds_the_last_line_of_a_path, 0, n);
	tcase_add_loop_test(t, flush_covers_what_its_own_run_has_written_since_one_failed, 0, n);
	return run_suite(s);
}
