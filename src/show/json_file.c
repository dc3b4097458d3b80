/* SPDX-License-Identifier: MIT
 * --json=FILE. FILE must not be SRC or DST: it is truncated only after that has been checked.
 */
#include "json_file.h"
#include "output.h"
#include "report.h"
#include "show.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	const char *path;
	struct output file;
	FILE *stream; /* NULL: standard output */
	bool written; /* an object is in it */
	bool lost;    /* an object could not be written */
	bool created; /* the file was not there */
	bool refused; /* it is SRC or DST: nothing is written */
	bool linked;  /* standard output had a name at the start */
	int err;      /* errno of the first failed flush of the stream, or 0 */
} out;

static bool is_same_file(const char *path, const struct stat *st)
{
	struct stat other;
	return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

/* Does the operand name a descriptor of this file? dash: the descriptor that - stands for. */
static bool is_same_descriptor(const char *operand, int dash, const struct stat *st)
{
	struct stat other;
	int fd;
	fcopy_operand_kind(operand, dash, &fd);
	return fd >= 0 && fstat(fd, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* After a usage error no copy begins, and the library checks nothing: may this file be DST, or SRC?
 * Which operand is which is unknown, unless cli->dst is set. */
static bool is_operand(const struct cli *cli, const struct stat *st, bool or_source)
{
	if (!S_ISREG(st->st_mode) && !S_ISFIFO(st->st_mode) && !S_ISSOCK(st->st_mode))
		return false;
	for (size_t i = 0; i < cli->operands; i++) {
		const char *operand = cli->operand[i];
		bool may_be_dst = !cli->dst || operand == cli->dst;
		if (!may_be_dst && !or_source)
			continue;
		if (is_same_file(operand, st) ||
		    (may_be_dst && is_same_descriptor(operand, STDOUT_FILENO, st)) ||
		    (or_source && is_same_descriptor(operand, STDIN_FILENO, st)))
			return true;
	}
	return false;
}

bool json_file_mixes(const char *dst)
{
	struct stat st;
	int fd;
	enum fcopy_kind kind = fcopy_operand_kind(dst, STDOUT_FILENO, &fd);
	if (fd == STDOUT_FILENO)
		return true;
	if (fstat(STDOUT_FILENO, &st) < 0)
		return false;
	if (kind == FCOPY_KIND_PATH) /* a regular file is replaced, not written */
		return S_ISFIFO(st.st_mode) && is_same_file(dst, &st);
	return (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
	       is_same_descriptor(dst, STDOUT_FILENO, &st);
}

static int fail_to_open(const char *path, int err)
{
	message_error(&(struct fcopy_error){
	    .err = err, .call = "open", .path = path, .reason = out.file.reason});
	return EXIT_FAILED;
}

/* The object goes to standard output. */
static void share_output(struct cli *cli, bool usage_error, const struct stat *st)
{
	if (usage_error)
		cli->json &= !is_operand(cli, st, false);
	else if (cli->action == ACTION_COPY)
		cli_add_output(
		    cli, (struct fcopy_output){.fd = STDOUT_FILENO,
					       .option = "json",
					       .reason = "standard output receives the copy: use "
							 "--json=FILE"});
}

int json_file_open(struct cli *cli, bool usage_error)
{
	static char reason[FCOPY_PATH_MAX + 64];
	struct stat st = {0};
	const char *path = cli->json_file;
	const int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC;
	out.linked = fstat(STDOUT_FILENO, &st) == 0 && st.st_nlink > 0;
	if (cli->json && !path)
		share_output(cli, usage_error, &st);
	if (!cli->json || !path)
		return EXIT_DONE;
	int fd = output_find(&out.file, path);
	if (fd == 0)
		fd = output_open(&out.file, flags | O_EXCL);
	out.created = fd >= 0;
	if (fd == -EEXIST)
		fd = output_open(&out.file, flags);
	out.path = path;
	out.stream = fd < 0 || fstat(fd, &st) < 0 ? NULL : fdopen(fd, "w");
	if (!out.stream)
		return fail_to_open(path, fd < 0 ? -fd : errno);
	snprintf(reason, sizeof(reason), "%s is an operand, too: name another file", path);
	if (usage_error && is_operand(cli, &st, true)) {
		json_file_abandon();
		return message_option("json", "%s", reason);
	}
	cli_add_output(cli, (struct fcopy_output){
				.fd = fd, .not_source = true, .option = "json", .reason = reason});
	return EXIT_DONE;
}

void json_file_abandon(void)
{
	out.refused = true;
	if (!out.stream)
		return;
	if (out.created)
		output_remove(&out.file, fileno(out.stream));
	fclose(out.stream);
	out.stream = NULL;
}

static FILE *lose_object(const struct fcopy_error *e)
{
	message_error(e);
	out.lost = true;
	return NULL;
}

FILE *json_file_stream(const char *dst)
{
	struct stat st = {0};
	FILE *f = out.stream ? out.stream : stdout;
	if (out.refused)
		return NULL;
	bool regular = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);
	bool replaced = st.st_nlink == 0 && (out.stream || out.linked);
	/* DST may be a directory that the file is in. */
	bool copy = (regular || S_ISFIFO(st.st_mode)) && dst && is_same_file(dst, &st);
	if ((regular && replaced) || copy)
		return lose_object(
		    &(struct fcopy_error){.err = EEXIST,
					  .path = out.stream ? out.path : "standard output",
					  .reason = "is the copy: no JSON was written"});
	if (!out.stream)
		return stdout;
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

void json_file_flush(void)
{
	if (out.stream && fflush(out.stream) != 0 && out.err == 0)
		out.err = errno;
}

int json_file_close(const char **call)
{
	FILE *f = out.stream;
	if (!f)
		return 0;
	json_file_flush();
	out.stream = NULL;
	int lost = out.err ? out.err : ferror(f) ? EIO : 0;
	*call = lost ? "write" : "close";
	return fclose(f) != 0 && lost == 0 ? errno : lost;
}
