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
};

extern struct dir dirs[DIRS_MAX];
extern size_t dir_count;

extern const off_t sizes[]; /* 0, 1, the edges of blocks and buffers, 1 MiB + 7 */
#define SIZES 9

/* Reads FCOPY_TEST_DIR (a list with colons; without it: the working directory) and asks each file
 * system once. To be called first. */
void dirs_find(void);

/* Tells that something is not tested, and why. */
void left_out(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Can engine run within d at all? */
bool engine_runs(const struct engine *, const struct dir *);
/* Can the mode? */
bool mode_runs(const struct fcopy_mode *, const struct dir *);

/* Makes a fresh directory the working directory. leave removes it, and fails the test if a
 * descriptor has leaked meanwhile. */
void enter(const struct dir *);
void leave(void);

/* What the assertions' messages begin with. */
extern char label[256];
void set_label(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define check(x, ...)                                                                              \
	do {                                                                                       \
		char detail[PATH_MAX + 256];                                                       \
		snprintf(detail, sizeof(detail), "" __VA_ARGS__);                                  \
		ck_assert_msg(x, "%s: %s; %s", label, #x, detail);                                 \
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

#endif
