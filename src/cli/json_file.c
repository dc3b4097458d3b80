/* SPDX-License-Identifier: MIT
 * --json=FILE. FILE must not be SRC or DST: it is truncated only after that has been checked.
 */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	const char *path;
	FILE *stream; /* NULL: standard output */
	bool written; /* an object is in it */
	bool lost;    /* an object could not be written to FILE */
} out;

static bool is_same_file(const char *path, const struct stat *st)
{
	struct stat other;
	return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* Any argument may be SRC or DST, also if the command line is invalid. */
static bool is_argument(const struct stat *st, int argc, char **argv)
{
	for (int i = 1; i < argc && S_ISREG(st->st_mode); i++)
		if (is_same_file(argv[i], st))
			return true;
	return false;
}

static int fail_to_open(const char *path, int err)
{
	message_error(&(struct fcopy_error){.err = err, .call = "open", .path = path});
	return EXIT_FAILED;
}

int json_file_open(const struct cli *cli, int argc, char **argv)
{
	struct stat st = {0};
	const char *path = cli->json_file;
	const int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC;
	if (!cli->json || !path || strcmp(path, "-") == 0)
		return EXIT_DONE;
	int fd = open(path, flags | O_EXCL, 0666);
	bool created = fd >= 0;
	if (fd < 0 && errno == EEXIST)
		fd = open(path, flags, 0666);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_to_open(path, errno);
	if (is_argument(&st, argc, argv)) {
		if (created)
			unlink(path);
		close(fd);
		return message_option("json", "%s is an operand, too: name another file", path);
	}
	out.path = path;
	out.stream = fdopen(fd, "w");
	return out.stream ? EXIT_DONE : fail_to_open(path, errno);
}

static FILE *lose_object(const struct fcopy_error *e)
{
	message_error(e);
	out.lost = true;
	return NULL;
}

FILE *json_file_stream(const char *dst)
{
	struct stat st;
	if (!out.stream)
		return stdout;
	bool regular = fstat(fileno(out.stream), &st) == 0 && S_ISREG(st.st_mode);
	/* DST may be a directory that the file is in. */
	if (regular && (st.st_nlink == 0 || (dst && is_same_file(dst, &st))))
		return lose_object(&(struct fcopy_error){
		    .err = EEXIST, .path = out.path, .reason = "is the copy: no JSON was written"});
	if (regular && !out.written && ftruncate(fileno(out.stream), 0) < 0)
		return lose_object(
		    &(struct fcopy_error){.err = errno, .call = "ftruncate", .path = out.path});
	out.written = true;
	return out.stream;
}

bool json_file_is_lost(void)
{
	return out.lost;
}

int json_file_close(void)
{
	FILE *f = out.stream;
	if (!f)
		return 0;
	out.stream = NULL;
	int lost = ferror(f) ? EIO : 0;
	return fclose(f) != 0 ? errno : lost;
}
