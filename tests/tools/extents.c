/* SPDX-License-Identifier: MIT
 *
 * extents [-s] FILE: prints the file's map, one KIND:BYTES a line, as mkextents takes it. KIND is
 * data, hole or unwritten, and with -s also shared; beyond is what is allocated past the end.
 * Where the file system has no FIEMAP, SEEK_DATA distinguishes data from holes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *last_kind;
static long long last_bytes;

/* Neighbours of one kind are printed as one. */
static void show(const char *kind, long long bytes)
{
	if (bytes == 0)
		return;
	if (last_kind && strcmp(kind, last_kind) != 0) {
		printf("%s:%lld\n", last_kind, last_bytes);
		last_bytes = 0;
	}
	last_kind = kind;
	last_bytes += bytes;
}

/* Shows [start, end), of which only what lies before size counts as the file's. */
static void show_extent(const char *kind, long long start, long long end, long long size)
{
	if (start < size)
		show(kind, (end < size ? end : size) - start);
}

static int map_by_seek(int fd, off_t size)
{
	off_t data, hole;

	for (off_t at = 0; at < size; at = hole) {
		data = lseek(fd, at, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			return -1;
		if (data < 0)
			data = size;
		show("hole", data - at);
		hole = data < size ? lseek(fd, data, SEEK_HOLE) : size;
		if (hole < 0)
			return -1;
		show("data", hole - data);
	}
	return 0;
}

static const char *kind_of(const struct fiemap_extent *extent, int shared)
{
	if (extent->fe_flags & FIEMAP_EXTENT_UNWRITTEN)
		return "unwritten";
	return shared && extent->fe_flags & FIEMAP_EXTENT_SHARED ? "shared" : "data";
}

/* Asks for one extent after the other: slow and simple. FIEMAP counts in whole blocks, the last of
 * which may reach beyond the end of the file. */
static int map_by_fiemap(int fd, const struct stat *st, int shared)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} ask = {.map = {.fm_flags = FIEMAP_FLAG_SYNC, .fm_extent_count = 1}};
	const struct fiemap_extent *extent = ask.map.fm_extents;
	long long at = 0, end, size = st->st_size;
	long long last_block = (size + st->st_blksize - 1) / st->st_blksize * st->st_blksize;

	for (;;) {
		ask.map.fm_start = at;
		ask.map.fm_length = FIEMAP_MAX_OFFSET - at;
		ask.map.fm_mapped_extents = 0;
		if (ioctl(fd, FS_IOC_FIEMAP, &ask) < 0)
			return -1;
		if (ask.map.fm_mapped_extents == 0)
			break;
		show_extent("hole", at, extent->fe_logical, size);
		end = extent->fe_logical + extent->fe_length;
		show_extent(kind_of(extent, shared), extent->fe_logical, end, size);
		if (end > last_block)
			show("beyond", end - last_block);
		at = end;
		if (extent->fe_flags & FIEMAP_EXTENT_LAST)
			break;
	}
	show_extent("hole", at, size, size);
	return 0;
}

int main(int argc, char **argv)
{
	int shared = argc == 3 && !strcmp(argv[1], "-s");
	struct stat st;
	int fd, ret;

	if (argc != 2 + shared) {
		fputs("usage: extents [-s] FILE\n", stderr);
		return 2;
	}
	fd = open(argv[1 + shared], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(argv[1 + shared]);
		return 1;
	}
	ret = map_by_fiemap(fd, &st, shared);
	if (ret < 0 && errno == EOPNOTSUPP)
		ret = map_by_seek(fd, st.st_size);
	if (ret < 0) {
		perror(argv[1 + shared]);
		return 1;
	}
	if (last_kind)
		printf("%s:%lld\n", last_kind, last_bytes);
	return 0;
}
