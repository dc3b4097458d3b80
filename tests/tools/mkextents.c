/* SPDX-License-Identifier: MIT
 *
 * mkextents FILE SEED [KIND:BYTES…]: makes FILE of these runs, end to end. KIND is data (random
 * bytes by SEED, flushed to the disk), dirty (the same, still in the cache), zeros (written zeros),
 * hole, or unwritten (fallocated; a hole where the file system cannot).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state;

/* xorshift64: bytes that no file system can compress or share. */
static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int put(int fd, off_t at, off_t bytes, int random)
{
	static uint64_t buf[1 << 13];

	while (bytes > 0) {
		size_t piece = bytes < (off_t)sizeof(buf) ? (size_t)bytes : sizeof(buf);
		ssize_t n;

		for (size_t i = 0; i < sizeof(buf) / sizeof(*buf); i++)
			buf[i] = random ? next_random() : 0;
		n = pwrite(fd, buf, piece, at);
		if (n < 0)
			return -1;
		at += n;
		bytes -= n;
	}
	return 0;
}

/* pass 0 makes what has to be on the disk, pass 1 what has to stay in the cache. */
static int make(int fd, off_t at, const char *kind, off_t bytes, int pass)
{
	if (!strcmp(kind, "data"))
		return pass == 0 ? put(fd, at, bytes, 1) : 0;
	if (!strcmp(kind, "zeros"))
		return pass == 0 ? put(fd, at, bytes, 0) : 0;
	if (!strcmp(kind, "dirty"))
		return pass == 1 ? put(fd, at, bytes, 1) : 0;
	if (!strcmp(kind, "hole"))
		return 0;
	if (!strcmp(kind, "unwritten")) {
		if (pass == 1 || fallocate(fd, 0, at, bytes) == 0 || errno == EOPNOTSUPP)
			return 0;
		return -1;
	}
	errno = EINVAL;
	return -1;
}

int main(int argc, char **argv)
{
	off_t at = 0;
	int fd;

	if (argc < 3) {
		fputs("usage: mkextents FILE SEED [KIND:BYTES…]\n", stderr);
		return 2;
	}
	/* xorshift never leaves zero. */
	state = strtoull(argv[2], NULL, 10) + 0x9e3779b97f4a7c15;
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0666);
	if (fd < 0)
		goto fail;
	for (int pass = 0; pass < 2; pass++) {
		at = 0;
		for (int i = 3; i < argc; i++) {
			char kind[16];
			long long bytes;

			if (sscanf(argv[i], "%15[a-z]:%lld", kind, &bytes) != 2) {
				errno = EINVAL;
				goto fail;
			}
			if (make(fd, at, kind, bytes, pass) < 0)
				goto fail;
			at += bytes;
		}
		/* The flush of pass 0 comes after the size: pass 1 alone leaves dirty pages. */
		if (pass == 0 && (ftruncate(fd, at) < 0 || fsync(fd) < 0))
			goto fail;
	}
	return 0;
fail:
	perror(argv[1]);
	return 1;
}
