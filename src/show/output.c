/* SPDX-License-Identifier: MIT
 * The files that the program writes beside the copy: of --json, --log-file and others.
 */
#include "io/io.h"
#include "patient.h"
#include "show.h"
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct output output_standard = {.path = "standard output", .fd = STDOUT_FILENO, .dir = -1};

static const char *output_name(const struct output *o)
{
	const char *slash = strrchr(o->path, '/');
	return slash ? slash + 1 : o->path;
}

/* Finds the directory of the file. Returns 0 or -errno. */
static int output_find(struct output *o)
{
	char directory[PATH_MAX];
	const int length = (int)(output_name(o) - o->path);
	if (length >= PATH_MAX)
		return -ENAMETOOLONG;
	snprintf(directory, sizeof(directory), "%.*s", length ? length : 1, length ? o->path : ".");
	o->dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return o->dir < 0 ? -errno : 0;
}

/* Opens what the symlink says. */
static int output_follow(const struct output *o, int flags, const char **reason)
{
	uid_t user;
	const int fd = io_open_link(o->dir, output_name(o), flags, &user);
	if (user != 0)
		*reason = "is, or leads through, a symlink that another user made or can move";
	return fd;
}

static int output_open_name(const struct output *o, int flags, const char **reason)
{
	const int fd = openat(o->dir, output_name(o), flags | O_NOFOLLOW, 0666);
	if (fd >= 0)
		return fd;
	return errno == ELOOP ? output_follow(o, flags, reason) : -errno;
}

/* Opens without blocking, to refuse a FIFO of another user. One of root or of this user waits for a
 * reader. */
static int output_open_soon(const struct output *o, int flags, const char **reason)
{
	struct stat st;
	const int fd = output_open_name(o, flags | O_NONBLOCK, reason);
	const bool known = fd >= 0 ? fstat(fd, &st) == 0
				   : fd == -ENXIO && fstatat(o->dir, output_name(o), &st, 0) == 0;
	if (known && S_ISFIFO(st.st_mode) && io_is_foreign(&st)) {
		*reason = "is a FIFO of another user";
		io_close(fd);
		return -EPERM;
	}
	if (fd == -ENXIO && known && S_ISFIFO(st.st_mode))
		return output_open_name(o, flags, reason);
	if (fd >= 0)
		(void)!fcntl(fd, F_SETFL, flags & (O_APPEND | O_ACCMODE));
	return fd;
}

/* stdio keeps no errno, and musl no bytes that could not be written. */
static ssize_t output_write(void *output, const char *text, size_t n)
{
	struct output *o = output;
	if (patient_write(o->fd, text, n))
		return (ssize_t)n;
	output_fail(o, "write", errno);
	return PATIENT_FAILED;
}

static int output_close_file(void *output)
{
	const struct output *o = output;
	return close(o->fd);
}

/* Of fd, which it closes after a failure. Returns 0 or -errno. */
static int output_stream(struct output *o, int fd)
{
	const cookie_io_functions_t calls = {.write = output_write, .close = output_close_file};
	o->fd = fd;
	o->f = fopencookie(o, "w", calls);
	if (o->f)
		return 0;
	const int r = -errno;
	close(fd);
	return r;
}

int output_open(struct output *o, bool append)
{
	const int flags = O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC | (append ? O_APPEND : 0);
	const char *reason = NULL;
	o->dir = -1;
	int fd = output_find(o);
	if (fd == 0)
		fd = output_open_soon(o, flags | O_EXCL, &reason);
	o->created = fd >= 0;
	if (fd == -EEXIST)
		fd = output_open_soon(o, flags, &reason);
	const int r = fd < 0 ? fd : output_stream(o, fd);
	if (r == 0)
		return EXIT_DONE;
	message_error(
	    &(struct fcopy_error){.err = -r, .call = "open", .path = o->path, .reason = reason});
	return EXIT_FAILED;
}

static void output_end(struct output *o)
{
	io_close(o->dir);
	o->dir = -1;
	o->f = NULL;
}

void output_abandon(struct output *o)
{
	struct stat st, named;
	if (!o->f || o == &output_standard)
		return;
	if (o->created && fstat(o->fd, &st) == 0 &&
	    fstatat(o->dir, output_name(o), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    same_inode(&named, &st))
		unlinkat(o->dir, output_name(o), 0);
	fclose(o->f);
	output_end(o);
}

void output_fail(struct output *o, const char *call, int err)
{
	if (o->err)
		return;
	o->err = err;
	o->call = call;
}

void output_flush(struct output *o)
{
	if (o->f && fflush(o->f) != 0)
		output_fail(o, "write", errno);
}

void output_close(struct output *o)
{
	if (!o->f)
		return;
	output_flush(o);
	if (ferror(o->f) && o == &output_standard)
		output_fail(o, "write", patient_lost() ? patient_lost() : EIO);
	if (o == &output_standard)
		return;
	if (fclose(o->f) != 0)
		output_fail(o, "close", errno);
	output_end(o);
}

static const struct fcopy_output *output_claimed(const struct cli *cli, const struct stat *st)
{
	for (size_t i = 0; i < cli->copy.output_count; i++)
		if (cli->output[i].dev == st->st_dev && cli->output[i].ino == st->st_ino)
			return &cli->output[i];
	return NULL;
}

/* Only into such files can the copy and the program both write. */
static bool output_is_mixed(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode);
}

static void output_add(struct cli *cli, struct fcopy_output output, const struct stat *st)
{
	output.dev = st->st_dev;
	output.ino = st->st_ino;
	cli->copy.outputs = cli->output;
	cli->output[cli->copy.output_count++] = output;
}

int output_claim(struct cli *cli, const struct output *o)
{
	static char reason[2][FCOPY_PATH_MAX + 64], taken[2][64];
	const size_t n = cli->copy.output_count;
	struct stat st;
	if (!o->f || fstat(o->fd, &st) < 0 || !output_is_mixed(&st))
		return EXIT_DONE;
	const struct fcopy_output *other = output_claimed(cli, &st);
	if (other && S_ISREG(st.st_mode))
		return message_option(o->option, "%s %s", o->path, other->taken);
	snprintf(reason[n], sizeof(reason[n]), "%s is an operand, too: name another file", o->path);
	snprintf(taken[n], sizeof(taken[n]), "is the file of --%s: name another one", o->option);
	output_add(
	    cli,
	    (struct fcopy_output){
		.not_source = true, .option = o->option, .reason = reason[n], .taken = taken[n]},
	    &st);
	return EXIT_DONE;
}

void output_claim_object(struct cli *cli)
{
	struct stat st;
	if (fstat(STDOUT_FILENO, &st) < 0 || !output_is_mixed(&st))
		return;
	output_add(cli,
		   (struct fcopy_output){
		       .option = "json",
		       .reason = "standard output receives the copy: use --json=FILE",
		       .taken = "is standard output, which receives the object of --json"},
		   &st);
}

int output_claim_standard(struct cli *cli)
{
	static const char *const taken[] = {
	    [STDOUT_FILENO] = "is standard output: redirect that to another file",
	    [STDERR_FILENO] = "is standard error: redirect that to another file"};
	const bool lists = cli->voice.entries;
	/* The bytes of a stream follow each other, and are never replaced. */
	if (fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		return EXIT_DONE;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stat st;
		if ((fd == STDOUT_FILENO && !lists) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		const struct fcopy_output *other = output_claimed(cli, &st);
		const int flags = fcntl(fd, F_GETFL);
		const bool appends = flags >= 0 && flags & O_APPEND;
		if (!other)
			output_add(cli, (struct fcopy_output){.taken = taken[fd]}, &st);
		/* One open file has one offset: > out 2>&1. A log is appended to. */
		else if (other->not_source && !(appends && strcmp(other->option, "log-file") == 0))
			return message_option(other->option, "its file %s", taken[fd]);
	}
	return EXIT_DONE;
}

static bool is_same_file(const char *path, const struct stat *st)
{
	struct stat other;
	return stat(path, &other) == 0 && same_inode(&other, st);
}

/* Does the operand name a descriptor of this file? dash: the descriptor that - stands for. */
static bool is_same_descriptor(const char *operand, int dash, const struct stat *st)
{
	struct stat other;
	int fd;
	fcopy_operand_kind(operand, dash, &fd);
	return fd >= 0 && fstat(fd, &other) == 0 && same_inode(&other, st);
}

/* Which operand is which is unknown, unless cli->dst is set. */
bool output_is_operand(const struct cli *cli, const struct stat *st, bool or_source)
{
	if (!output_is_mixed(st))
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

bool output_mixes(const char *dst)
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
	return output_is_mixed(&st) && is_same_descriptor(dst, STDOUT_FILENO, &st);
}
