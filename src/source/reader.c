/* SPDX-License-Identifier: MIT
 * Implements reader.h.
 */
#define _GNU_SOURCE
#include "reader.h"
#include "io/io.h"

#include <dirent.h>
#include <errno.h>
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
