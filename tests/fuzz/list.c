/* SPDX-License-Identifier: MIT
 * The list of a tree that shards copy: the input is a chunk of it, as it is and with the right last
 * line. What is read must be inside the text.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include "io/io.h"
#include "shard/job.h"
#include "shard/shard_tree.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void every_byte(const char *text)
{
	MUST(text && text[0] && strlen(text) < (1 << 20));
}

static void check_entry(const struct line *e)
{
	MUST(strchr("edrl", e->kind));
	every_byte(e->dir);
	every_byte(e->entry.name);
	MUST(!strchr(e->entry.name, '/') && strcmp(e->entry.name, ".") != 0 &&
	     strcmp(e->entry.name, "..") != 0);
	if (e->kind == 'l')
		every_byte(e->from);
}

static int read_list(struct job *j, const void *text, size_t size, bool whole)
{
	struct chunk c;
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
	int fd = openat(j->part.fd, PART_SHARE "list.0", flags, 0600);
	MUST(fd >= 0 && write(fd, text, size) == (ssize_t)size);
	close(fd);
	*j->error = (struct fcopy_error){0};
	int r = chunk_read(j, 0, &c);
	MUST(r == -j->error->err && (r == 0 || j->error->operation || j->error->reason));
	for (size_t i = 0; r == 0 && i < c.count; i++)
		check_entry(&c.line[i]);
	MUST(r < 0 || whole || c.count <= size);
	chunk_free(&c);
	return r;
}

/* Adds the last line. */
static size_t seal(char *text, size_t used)
{
	const uint64_t hash = list_hash_text(text, used);
	size_t lines = 0;
	for (size_t i = 0; i < used; i++)
		lines += text[i] == '\n';
	return used + (size_t)sprintf(text + used, "end %zu %016" PRIx64 "\n", lines, hash);
}

/* The last line must be as the program wants it: nothing else would be reached. */
static void begin(struct job *j)
{
	char text[128] = "in .\ne 100644 1 0 5 1.0 2.1 a\\040b\nlink a\\040b c\n";
	j->part.fd = fuzz_directory();
	MUST(read_list(j, text, seal(text, strlen(text)), true) == 0);
}

void list_check(const uint8_t *data, size_t size)
{
	static char reason[128];
	static struct fcopy_error error;
	static struct job job = {.path = "list", .error = &error, .reason = reason, .parent = -1};
	if (!job.part.fd)
		begin(&job);
	char *whole = malloc(size + 64);
	size_t used = size;
	MUST(whole);
	if (size > 0)
		memcpy(whole, data, size);
	if (size > 0 && data[size - 1] != '\n')
		whole[used++] = '\n';
	read_list(&job, data, size, false);
	read_list(&job, whole, seal(whole, used), true);
	free(whole);
}
