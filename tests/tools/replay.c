/* SPDX-License-Identifier: MIT
 *
 * replay LOG                  prints a line for each entry of a log of dm-log-writes:
 *                             NUMBER [flush] [fua] [discard] [mark TEXT]
 * replay LOG DISK FROM TO [SEED]
 *                             performs the entries FROM to TO - 1 on DISK. With SEED, it loses half
 *                             of the writes, at random, as if they were still in the disk's cache
 *                             when the power was cut; but none with fua, which bypass that cache.
 *
 * The format is described in the kernel's Documentation/admin-guide/device-mapper/log-writes.rst
 * and at the top of drivers/md/dm-log-writes.c: a super block in the first sector, then for each
 * entry one sector that describes it, followed by its data. All numbers are little-endian.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x6a736677736872ULL
#define SECTOR                                                                                     \
	512 /* sector and nr_sectors of an entry count these, whatever the sector size is          \
	     */

enum { FLUSH = 1, FUA = 2, DISCARD = 4, MARK = 8 };

struct super {
	uint64_t magic, version, entries;
	uint32_t sector_size;
};

struct entry {
	uint64_t sector, sectors, flags; /* the first two count sectors of super.sector_size */
	uint64_t bytes;                  /* of a mark's text */
};

static void read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));
		if (n <= 0)
			err(1, "read of the log at %" PRIu64, offset);
		done += (size_t)n;
	}
}

static void write_at(int fd, const void *buffer, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, (const char *)buffer + done, size - done,
				   (off_t)(offset + done));
		if (n <= 0)
			err(1, "write at %" PRIu64, offset);
		done += (size_t)n;
	}
}

static void print_entry(uint64_t number, const struct entry *e, const char *text)
{
	printf("%" PRIu64 "%s%s%s", number, e->flags & FLUSH ? " flush" : "",
	       e->flags & FUA ? " fua" : "", e->flags & DISCARD ? " discard" : "");
	if (e->flags & MARK)
		printf(" mark %.*s", (int)e->bytes, text);
	putchar('\n');
}

/* Of a xorshift generator. */
static bool is_lost(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random >> 63;
}

/* A discarded range reads as zeros here; the device may return old bytes as well. */
static void perform(int log, int disk, const struct entry *e, uint64_t data, uint64_t size)
{
	static char buffer[1 << 20];
	uint64_t left = e->sectors * size, to = e->sector * size;
	while (left > 0) {
		size_t n = left < sizeof(buffer) ? (size_t)left : sizeof(buffer);
		if (e->flags & DISCARD)
			memset(buffer, 0, n);
		else
			read_at(log, buffer, n, data);
		write_at(disk, buffer, n, to);
		left -= n;
		to += n;
		data += n;
	}
}

int main(int argc, char **argv)
{
	struct super super;
	if (argc != 2 && argc != 5 && argc != 6)
		errx(2, "usage: replay LOG [DISK FROM TO [SEED]]");
	int log = open(argv[1], O_RDONLY | O_CLOEXEC);
	int disk = argc > 2 ? open(argv[2], O_WRONLY | O_CLOEXEC) : -1;
	if (log < 0 || (argc > 2 && disk < 0))
		err(1, "%s", log < 0 ? argv[1] : argv[2]);
	read_at(log, &super, sizeof(super), 0);
	if (le64toh(super.magic) != MAGIC || le64toh(super.version) != 1)
		errx(1, "%s: not a log of dm-log-writes", argv[1]);
	uint64_t entries = le64toh(super.entries), size = le32toh(super.sector_size);
	uint64_t from = argc > 2 ? strtoull(argv[3], NULL, 10) : 0;
	uint64_t to = argc > 2 ? strtoull(argv[4], NULL, 10) : entries;
	uint64_t random = argc == 6 ? 2 * strtoull(argv[5], NULL, 10) + 1
				    : 0; /* never 0 with SEED */
	for (int i = 0; i < 8; i++)
		is_lost(&random);
	if (from > to || to > entries)
		errx(2, "the log has %" PRIu64 " entries", entries);
	for (uint64_t i = 0, at = size; i < to; i++) {
		char sector[4096 + 1] = {0};
		struct entry e;
		read_at(log, sector, size < 4096 ? size : 4096, at);
		memcpy(&e, sector, sizeof(e));
		e = (struct entry){le64toh(e.sector), le64toh(e.sectors), le64toh(e.flags),
				   le64toh(e.bytes)};
		if (argc == 2)
			print_entry(i, &e, sector + sizeof(e));
		else if (i >= from && !(e.flags & MARK) &&
			 !(argc == 6 && !(e.flags & FUA) && is_lost(&random)))
			perform(log, disk, &e, at + size, size);
		at += size + (e.flags & (DISCARD | MARK) ? 0 : e.sectors * size);
	}
	return 0;
}
