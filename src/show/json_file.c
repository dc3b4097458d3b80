/* SPDX-License-Identifier: MIT
 * --json=FILE. FILE must not be SRC or DST: it is truncated only after that has been checked.
 */
#include "json_file.h"
#include "report.h"
#include "show.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct output file; /* not open: standard output */
	bool written;       /* an object is in it */
	bool lost;          /* an object could not be written */
	bool refused;       /* it is SRC or DST: nothing is written */
	bool linked;        /* standard output had a name at the start */
} out = {.file = {.option = "json", .dir = -1}};

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

int json_file_open(struct cli *cli, bool usage_error)
{
	struct stat st = {0};
	out.linked = fstat(STDOUT_FILENO, &st) == 0 && st.st_nlink > 0;
	if (!cli->json)
		return EXIT_DONE;
	if (!cli->json_file) {
		if (usage_error)
			cli->json &= !is_operand(cli, &st, false);
		else if (cli->action == ACTION_COPY)
			output_claim_object(cli);
		return EXIT_DONE;
	}
	out.file.path = cli->json_file;
	const int opened = output_open(&out.file, false);
	if (opened != EXIT_DONE)
		return opened;
	if (usage_error && fstat(fileno(out.file.f), &st) == 0 && is_operand(cli, &st, true)) {
		json_file_abandon();
		return message_option("json", "%s is an operand, too: name another file",
				      cli->json_file);
	}
	return output_claim(cli, &out.file);
}

void json_file_abandon(void)
{
	out.refused = true;
	output_abandon(&out.file);
}

static FILE *lose_object(const struct fcopy_error *e)
{
	message_error(e);
	out.lost = true;
	return NULL;
}

FILE *json_file_stream(void)
{
	struct stat st = {0};
	FILE *f = out.file.f;
	if (out.refused)
		return NULL;
	bool regular = fstat(f ? fileno(f) : STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
	if (regular && st.st_nlink == 0 && (f || out.linked))
		return lose_object(&(struct fcopy_error){
		    .err = ENOENT,
		    .path = f ? out.file.path : "standard output",
		    .reason = "was removed or replaced during the run: no JSON was written"});
	if (!f)
		return stdout;
	if (regular && !out.written && ftruncate(fileno(f), 0) < 0)
		return lose_object(&(struct fcopy_error){
		    .err = errno, .call = "ftruncate", .path = out.file.path});
	out.written = true;
	return f;
}

bool json_file_is_lost(void)
{
	return out.lost;
}

struct output *json_file_output(void)
{
	return &out.file;
}
