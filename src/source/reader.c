/* SPDX-License-Identifier: MIT
 * Implements reader.h.
 */
#include "reader.h"
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t reader_fill(int fd, void *buffer, size_t size)
{
	ssize_t n = getdents64(fd, buffer, size);
	return n < 0 ? -errno : n;
}

struct reader reader_of(int fd, void *buffer, size_t size)
{
	return (struct reader){.fd = fd, .call = "getdents64", .buffer = buffer, .size = size};
}

struct reader reader_open(int directory, void *buffer, size_t size)
{
	struct reader r = reader_of(io_reopen_directory(directory), buffer, size);
	r.opened = r.fd >= 0;
	if (!r.opened) {
		r.call = "openat";
		r.error = r.fd;
	}
	return r;
}

const char *reader_next(struct reader *r)
{
	while (r->error == 0) {
		if (r->at == r->got) {
			ssize_t n = reader_fill(r->fd, r->buffer, r->size);
			if (n <= 0) {
				r->error = (int)n;
				return NULL;
			}
			r->got = (size_t)n;
			r->at = 0;
		}
		const struct dirent64 *d = (const void *)(r->buffer + r->at);
		r->at += d->d_reclen;
		r->type = d->d_type;
		if (!name_is_dot(d->d_name))
			return d->d_name;
	}
	return NULL;
}

int reader_close(struct reader *r)
{
	if (r->opened)
		close(r->fd);
	return r->error;
}

bool reader_lists(int dir, const char *name)
{
	_Alignas(8) char buffer[8192];
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	bool found = false;
	for (const char *other; !found && (other = reader_next(&r));)
		found = strcmp(other, name) == 0;
	reader_close(&r);
	return found;
}

/* The names in a directory, all at once. */

struct bytes {
	char *data;
	size_t used, size, count;
};

static bool names_add(struct bytes *b, const char *name)
{
	const size_t length = strlen(name) + 1;
	if (b->size - b->used < length) {
		const size_t size = 2 * (b->size + length);
		char *data = realloc(b->data, size);
		if (!data)
			return false;
		b->data = data;
		b->size = size;
	}
	memcpy(b->data + b->used, name, length);
	b->used += length;
	b->count++;
	return true;
}

static int names_collect(int fd, struct bytes *b, char *buffer, struct failure *fail)
{
	struct reader r = reader_open(fd, buffer, READER_SIZE);
	bool full = false;
	for (const char *name; !full && (name = reader_next(&r));)
		full = !names_add(b, name);
	fail_at(fail, full ? "malloc" : r.call);
	int result = reader_close(&r);
	return full ? -ENOMEM : result;
}

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int names_read(int fd, struct name_list *list, struct failure *fail)
{
	struct bytes b = {0};
	char *buffer = malloc(READER_SIZE);
	*list = (struct name_list){0};
	int r = buffer ? names_collect(fd, &b, buffer, fail) : fail_if(fail, -ENOMEM, "malloc");
	free(buffer);
	if (r == 0 && !(list->name = malloc((b.count + 1) * sizeof(*list->name))))
		r = fail_if(fail, -ENOMEM, "malloc");
	if (r < 0) {
		free(b.data);
		return r;
	}
	const char *name = b.data;
	for (size_t i = 0; i < b.count; i++, name += strlen(name) + 1)
		list->name[i] = name;
	list->bytes = b.data;
	list->count = b.count;
	qsort(list->name, list->count, sizeof(*list->name), names_compare);
	return 0;
}

void names_free(struct name_list *list)
{
	free(list->name);
	free(list->bytes);
	*list = (struct name_list){0};
}

bool names_have(const struct name_list *list, const char *name)
{
	return list->count > 0 &&
	       bsearch(&name, list->name, list->count, sizeof(*list->name), names_compare);
}

size_t names_from(const struct name_list *list, const char *text)
{
	size_t low = 0, high = list->count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (strcmp(list->name[middle], text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int reader_climb(int dir, bool (*visit)(const struct stat *, void *arg), void *arg,
		 struct failure *fail)
{
	struct stat st, below = {0};
	int r = -1, fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (r < 0) {
		if (fd < 0 || fstat(fd, &st) < 0) {
			r = fail_at(fail, fd < 0 ? "open" : "fstat");
			break;
		}
		if (same_inode(&st, &below))
			r = 0; /* the parent of / is / */
		else if (visit(&st, arg))
			r = 1;
		if (r >= 0)
			break;
		below = st;
		const int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		const int err = errno;
		close(fd);
		errno = err;
		fd = up;
	}
	io_close(fd);
	return r;
}
