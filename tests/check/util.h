/* SPDX-License-Identifier: MIT
 *
 * What the libcheck programs share: the directories to test in and what their file systems can do,
 * a fresh directory for each test, engines and copies run with a label for messages.
 */
#ifndef UTIL_H
#define UTIL_H

#include "files.h"

#include "copy/copy.h"

#include <check.h>

#define DIRS_MAX 8

struct dir {
	const char *path;
	const char *name;                /* the last part of the path: names the file system */
	bool fallocate, reflink, direct; /* what the kernel says that it can do here */
	bool acl, holes;
	bool dontcache; /* RWF_DONTCACHE: reads and writes that leave nothing in the page cache */
};

extern struct dir dirs[DIRS_MAX];
extern size_t dir_count;

extern const off_t sizes[]; /* 0, 1, the edges of blocks and buffers, 1 MiB + 7 */
#define SIZES 9

/* Reads FCOPY_TEST_DIR (a list with colons; without it: the working directory), asks each file
 * system once, and sets the tables below. Call it first. */
void dirs_find(void);

/* The tables that tests loop over, set by dirs_find. */
#define TABLE_MAX 32
extern int mode_count; /* entries of fcopy_modes() */
/* All modes but reflink, which moves no bytes: it has no rate, no middle and no buffer. */
extern const struct fcopy_mode *moving_modes[TABLE_MAX];
extern int moving_count;
extern const struct engine *engines[TABLE_MAX]; /* each engine that a mode names, once */
extern int engine_count;

/* Reports before the tests run that something is not tested, and why. run.sh counts it as skipped.
 */
void left_out(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends a test that cannot run here; run.sh counts it as skipped, not as passed. libcheck itself
 * knows no skip. Ask by plain system calls (struct dir), never by the code under test. */
#define skip_test(...)                                                                             \
	do {                                                                                       \
		report_skip(__func__, __VA_ARGS__);                                                \
		return;                                                                            \
	} while (0)
void report_skip(const char *test, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Can engine run within d? The kernel is asked, not the engine. */
bool engine_runs(const struct engine *, const struct dir *);
/* Can the mode? */
bool mode_runs(const struct fcopy_mode *, const struct dir *);

/* Can d have a file of this shape? An empty one has but one shape. */
static inline bool has_shape(const struct dir *d, enum shape shape, off_t size)
{
	return shape == DENSE || (size > 0 && (shape != UNWRITTEN || d->fallocate));
}

/* Makes a fresh directory the working directory. leave removes it, and fails the test if a
 * descriptor has leaked. */
void enter(const struct dir *);
void leave(void);

/* What the assertions' messages begin with. A test that crashes prints it, too. */
extern char label[256];
void set_label(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As ck_assert_msg, which costs more: it notes each check that passes. */
#define check(x, ...)                                                                              \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			char detail[PATH_MAX + 256];                                               \
			snprintf(detail, sizeof(detail), "" __VA_ARGS__);                          \
			ck_abort_msg("%s: %s; %s", label, #x, detail);                             \
		}                                                                                  \
	} while (0)

/* Files opened and made into a transfer over the whole source; transfer_done closes them. */
struct transfer transfer_of(const char *src, const char *dst);
void transfer_done(struct transfer *);

/* fcopy_copy by the mode of that name; the report is for the test to look at. */
extern struct fcopy_report report;
int copy_by(const char *mode, const char *src, const char *dst, struct fcopy_options options);

/* Runs the suite: TAP on standard output. Returns main's exit status. */
int run_suite(Suite *);

/* A suite's test case with room for slow machines. */
TCase *add_case(Suite *, const char *name);

/* The value of options.reflink with which this mode makes no clone. */
static inline enum fcopy_when no_clone(const struct fcopy_mode *m)
{
	return m->takes & FCOPY_TAKES_REFLINK ? FCOPY_WHEN_NEVER : FCOPY_WHEN_DEFAULT;
}

#endif
