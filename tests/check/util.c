/* SPDX-License-Identifier: MIT
 * What the libcheck programs share.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct dir dirs[DIRS_MAX];
size_t dir_count;
const off_t sizes[SIZES] = {0, 1, 4095, 4096, 4097, 8191, 8192, 8193, (1 << 20) + 7};
char label[256];
struct fcopy_report report;
int mode_count, moving_count, engine_count;
const struct fcopy_mode *moving_modes[TABLE_MAX];
const struct engine *engines[TABLE_MAX];

#define ASK_DONTCACHE 0x80 /* RWF_DONTCACHE, Linux 6.14 */

static char here[PATH_MAX]; /* the directory that leave removes */
static int descriptors;     /* how many were open when it was entered */

void left_out(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	printf("# left out: ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

void report_skip(const char *test, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	/* libcheck calls the function of test x x_fn. */
	printf("# skip: %.*s: ", (int)(strlen(test) - strlen("_fn")), test);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
}

void set_label(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(label, sizeof(label), format, args);
	va_end(args);
}

static struct sigaction before_crash;

/* libcheck reports a crash by its signal alone: print which case it was. run.sh prints lines that
 * contain ERROR. */
static void print_crash(int number)
{
	static const char before[] = "# ERROR: crashed: ", after[] = "\n";
	(void)!write(STDOUT_FILENO, before, sizeof(before) - 1);
	(void)!write(STDOUT_FILENO, label, strlen(label));
	(void)!write(STDOUT_FILENO, after, sizeof(after) - 1);
	sigaction(number, &before_crash, NULL); /* on return the same instruction faults again */
}

static void remove_here(void)
{
	need(chdir("/") == 0);
	remove_all(here);
}

/* Asks by the plain system calls, so that a broken engine is not taken for a poor file system. */
static void ask(struct dir *d)
{
	enter(d);
	make_file("a", 65536, DENSE, 1);
	make_file("b", 0, DENSE, 1);
	int a = open("a", O_RDWR | O_CLOEXEC), b = open("b", O_RDWR | O_CLOEXEC);
	need(a >= 0 && b >= 0);
	d->fallocate = fallocate(b, FALLOC_FL_KEEP_SIZE, 0, 65536) == 0;
	d->reflink = ioctl(b, FICLONE, a) == 0;
	d->acl = give_acl("a") && has_acl("a");
	need(ftruncate(b, 0) == 0 && ftruncate(b, 1 << 20) == 0);
	d->holes = lseek(b, 0, SEEK_DATA) < 0 && errno == ENXIO;
	struct statx sx;
	bool known = statx(a, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
		     sx.stx_mask & STATX_DIOALIGN;
	d->direct = fcntl(a, F_SETFL, O_RDWR | O_DIRECT) == 0 &&
		    !(known && sx.stx_dio_offset_align == 0);
	char byte = 0;
	struct iovec v = {&byte, 1};
	d->dontcache = preadv2(a, &v, 1, 0, ASK_DONTCACHE) == 1 &&
		       pwritev2(b, &v, 1, 0, ASK_DONTCACHE) == 1;
	close(a);
	close(b);
	remove_here();
}

static void list_modes(void)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++, mode_count++) {
		const struct engine *e = m->engine ? engine_find(m->engine) : NULL;
		int i = 0;
		need(mode_count < TABLE_MAX && (e || !m->engine));
		if (e != &engine_reflink)
			moving_modes[moving_count++] = m;
		while (i < engine_count && engines[i] != e)
			i++;
		if (e && i == engine_count)
			engines[engine_count++] = e;
	}
}

void dirs_find(void)
{
	static char list[PATH_MAX * 2];
	const char *given = getenv("FCOPY_TEST_DIR");
	char cwd[PATH_MAX];
	const struct sigaction crash = {.sa_handler = print_crash};
	need(sigaction(SIGSEGV, &crash, &before_crash) == 0);
	need(getcwd(cwd, sizeof(cwd)));
	list_modes();
	snprintf(list, sizeof(list), "%s", given && *given ? given : cwd);
	char *rest = list, *path;
	while (dir_count < DIRS_MAX && (path = strsep(&rest, ":"))) {
		struct dir *d = &dirs[dir_count++];
		d->path = path;
		d->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
		ask(d);
	}
}

/* The build and the kernel have io_uring, and no sandbox refuses it. */
static bool has_io_uring(void)
{
#ifdef HAVE_LIBURING
	struct io_uring_params params = {0};
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	return fd >= 0 && close(fd) == 0;
#else
	return false;
#endif
}

bool engine_runs(const struct engine *e, const struct dir *d)
{
	if (e == &engine_reflink)
		return d->reflink;
	return e != &engine_direct || (d->direct && has_io_uring());
}

bool mode_runs(const struct fcopy_mode *m, const struct dir *d)
{
	return !m->engine || engine_runs(engine_find(m->engine), d);
}

void enter(const struct dir *d)
{
	descriptors = open_descriptors();
	snprintf(here, sizeof(here), "%s/t.XXXXXX", d->path);
	need(mkdtemp(here));
	need(chdir(here) == 0);
}

void leave(void)
{
	int now = open_descriptors();
	ck_assert_msg(now == descriptors, "%s: %d descriptors, not %d: a leak", label, now,
		      descriptors);
	remove_here();
}

struct transfer transfer_of(const char *src, const char *dst)
{
	struct transfer t = {.src = open(src, O_RDONLY | O_CLOEXEC),
			     .dst = open(dst, O_RDWR | O_CREAT | O_CLOEXEC, 0644),
			     .src_positional = true,
			     .dst_positional = true,
			     .end = TRANSFER_TO_EOF};
	need(t.src >= 0 && t.dst >= 0);
	return t;
}

void transfer_done(struct transfer *t)
{
	need(close(t->src) == 0);
	need(close(t->dst) == 0);
}

int copy_by(const char *mode, const char *src, const char *dst, struct fcopy_options options)
{
	options.api = FCOPY_API;
	options.mode = fcopy_mode_find(mode);
	need(options.mode);
	return fcopy_copy(src, dst, &options, &report);
}

TCase *add_case(Suite *s, const char *name)
{
	TCase *c = tcase_create(name);
	tcase_set_timeout(c, 120);
	suite_add_tcase(s, c);
	return c;
}

int run_suite(Suite *s)
{
	SRunner *runner = srunner_create(s);
	srunner_set_tap(runner, "-");
	srunner_run_all(runner, CK_SILENT);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
