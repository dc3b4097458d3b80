/* SPDX-License-Identifier: MIT
 * Files made, compared, looked into.
 */
#define _GNU_SOURCE
#include "files.h"
#include "part/part.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BLOCK 4096
#define PIECE ((size_t)256 << 10)

const char *const shape_names[SHAPES] = {"dense", "sparse", "unwritten"};

_Noreturn void need_failed(const char *what, const char *file, int line)
{
	fprintf(stderr, "# %s:%d: %s: %s\n", file, line, what, strerror(errno));
	abort();
}

/* The bytes at [8n, 8n + 8), as of a little-endian number. */
static uint64_t word_at(uint64_t n, unsigned seed)
{
	uint64_t x = (n + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 32;
	return htole64(x);
}

void fill(void *buf, size_t n, off_t at, unsigned seed)
{
	unsigned char *p = buf;
	while (n > 0) {
		const uint64_t word = word_at((uint64_t)at / 8, seed);
		const size_t from = (size_t)at % 8, now = n < 8 - from ? n : 8 - from;
		memcpy(p, (const unsigned char *)&word + from, now);
		p += now;
		at += (off_t)now;
		n -= now;
	}
}

static void put(int fd, off_t at, size_t n, unsigned seed)
{
	static char buf[PIECE];
	while (n > 0) {
		size_t now = n < sizeof(buf) ? n : sizeof(buf);
		fill(buf, now, at, seed);
		need(pwrite(fd, buf, now, at) == (ssize_t)now);
		at += (off_t)now;
		n -= now;
	}
}

void make_file(const char *name, off_t size, enum shape shape, unsigned seed)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	need(fd >= 0);
	if (shape == UNWRITTEN && size > 0)
		need(fallocate(fd, 0, 0, size) == 0);
	need(ftruncate(fd, size) == 0);
	for (off_t at = 0; shape != DENSE && at < size; at += BLOCK)
		if (at / BLOCK % 3 == 1)
			put(fd, at, size - at < BLOCK ? (size_t)(size - at) : BLOCK, seed);
	if (shape == DENSE)
		put(fd, 0, (size_t)size, seed);
	need(close(fd) == 0);
}

void write_at(const char *name, off_t at, size_t n, unsigned seed)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);
	need(fd >= 0);
	put(fd, at, n, seed);
	need(close(fd) == 0);
}

void make_text(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	need(close(fd) == 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void remove_all(const char *pattern)
{
	glob_t found;
	const int r = glob(pattern, GLOB_NOSORT, NULL, &found);
	need(r == 0 || r == GLOB_NOMATCH);
	for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
		need(nftw(found.gl_pathv[i], remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
	globfree(&found);
}

/* Where the bytes [start, end) of both begin to differ; end: nowhere. */
static off_t same_until(const char *a, const char *b, off_t start, off_t end)
{
	static char x[PIECE], y[PIECE];
	int fa = open(a, O_RDONLY | O_CLOEXEC), fb = open(b, O_RDONLY | O_CLOEXEC);
	ssize_t same = 1, got = 1;
	need(fa >= 0 && fb >= 0);
	for (; same == got && same > 0 && start < end; start += same) {
		size_t n = end - start < (off_t)PIECE ? (size_t)(end - start) : PIECE;
		got = pread(fa, x, n, start);
		ssize_t other = pread(fb, y, n, start);
		need(got >= 0 && other >= 0);
		ssize_t least = got < other ? got : other;
		same = memcmp(x, y, (size_t)least) == 0 ? least : 0;
		while (same < least && x[same] == y[same])
			same++;
	}
	close(fa);
	close(fb);
	return start;
}

bool same_range(const char *a, const char *b, off_t start, off_t end)
{
	return same_until(a, b, start, end) >= end;
}

off_t first_difference(const char *a, const char *b)
{
	off_t end = size_of(a) > size_of(b) ? size_of(a) : size_of(b);
	off_t same = same_until(a, b, 0, end);
	return same < end ? same : -1;
}

bool same_bytes(const char *a, const char *b)
{
	return size_of(a) == size_of(b) && same_range(a, b, 0, size_of(a));
}

off_t size_of(const char *name)
{
	struct stat st;
	need(stat(name, &st) == 0);
	return st.st_size;
}

bool exists(const char *name)
{
	struct stat st;
	return lstat(name, &st) == 0;
}

unsigned mode_of(const char *name)
{
	struct stat st;
	need(stat(name, &st) == 0);
	return st.st_mode & 07777;
}

/* user::rw-, user:1234:r--, group::r--, mask::r--, other::---, as linux/posix_acl_xattr.h has it.
 */
static const struct {
	uint32_t version;
	struct {
		uint16_t tag, permissions;
		uint32_t id;
	} entry[5];
} acl = {2, {{1, 6, ~0u}, {2, 4, 1234}, {4, 4, ~0u}, {16, 4, ~0u}, {32, 0, ~0u}}};

bool give_acl(const char *name)
{
	return setxattr(name, "system.posix_acl_access", &acl, sizeof(acl), 0) == 0;
}

bool has_acl(const char *name)
{
	char value[sizeof(acl) + 64];
	ssize_t n = getxattr(name, "system.posix_acl_access", value, sizeof(value));
	return n == sizeof(acl) && memcmp(value, &acl, sizeof(acl)) == 0;
}

int names_in(const char *dir)
{
	int n = 0;
	DIR *d = opendir(dir);
	need(d);
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

int open_descriptors(void)
{
	return names_in("/proc/self/fd") - 1; /* not the one that looks */
}

struct map {
	char text[16384];
	size_t used;
	const char *kind;
	off_t start, at;
};

/* The file is `kind` from map->at up to `end`. */
static void add(struct map *m, const char *kind, off_t end)
{
	if (end <= m->at)
		return;
	if (m->kind != kind) {
		m->start = m->at;
		m->kind = kind;
	} else { /* continues: the last word is written again */
		while (m->used > 0 && m->text[m->used - 1] != ' ')
			m->used--;
		m->used -= m->used > 0;
	}
	m->at = end;
	m->used += (size_t)snprintf(m->text + m->used, sizeof(m->text) - m->used, "%s%s:%lld",
				    m->used ? " " : "", kind, (long long)(end - m->start));
	need(m->used < sizeof(m->text));
}

static const char data[] = "data", hole[] = "hole", unwritten[] = "unwritten";

static void map_by_seek(struct map *m, int fd, off_t size)
{
	while (m->at < size) {
		off_t next = lseek(fd, m->at, SEEK_DATA);
		need(next >= 0 || errno == ENXIO);
		add(m, hole, next < 0 ? size : next);
		if (m->at < size)
			add(m, data, lseek(fd, m->at, SEEK_HOLE));
	}
}

/* Calls visit for each extent. False: the file system does not support this. */
static bool each_extent(int fd, void (*visit)(void *, const struct fiemap_extent *), void *arg)
{
	union {
		struct fiemap head;
		char room[sizeof(struct fiemap) + 64 * sizeof(struct fiemap_extent)];
	} x = {.head = {.fm_length = FIEMAP_MAX_OFFSET, .fm_flags = FIEMAP_FLAG_SYNC}};
	const struct fiemap_extent *extent = x.head.fm_extents;
	for (;;) {
		x.head.fm_extent_count = 64;
		x.head.fm_mapped_extents = 0;
		if (ioctl(fd, FS_IOC_FIEMAP, &x) < 0)
			return false;
		if (x.head.fm_mapped_extents == 0)
			return true;
		for (unsigned i = 0; i < x.head.fm_mapped_extents; i++)
			visit(arg, &extent[i]);
		const struct fiemap_extent *last = &extent[x.head.fm_mapped_extents - 1];
		if (last->fe_flags & FIEMAP_EXTENT_LAST)
			return true;
		x.head.fm_start = last->fe_logical + last->fe_length;
		x.head.fm_length = FIEMAP_MAX_OFFSET - x.head.fm_start;
	}
}

struct limited {
	struct map *map;
	off_t size;
};

static void add_extent(void *arg, const struct fiemap_extent *e)
{
	struct limited *l = arg;
	off_t start = (off_t)e->fe_logical, end = start + (off_t)e->fe_length;
	add(l->map, hole, start < l->size ? start : l->size);
	add(l->map, e->fe_flags & FIEMAP_EXTENT_UNWRITTEN ? unwritten : data,
	    end < l->size ? end : l->size);
}

const char *map_of(const char *name)
{
	static struct map maps[2];
	static int turn;
	struct map *m = &maps[turn++ % 2];
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct limited l = {m, size_of(name)};
	*m = (struct map){.text = ""};
	need(fd >= 0 && fsync(fd) == 0);
	if (each_extent(fd, add_extent, &l))
		add(m, hole, l.size);
	else
		map_by_seek(m, fd, l.size);
	close(fd);
	return m->text;
}

static void add_shared(void *arg, const struct fiemap_extent *e)
{
	if (e->fe_flags & FIEMAP_EXTENT_SHARED)
		*(off_t *)arg += (off_t)e->fe_length;
}

off_t shared_bytes(const char *name)
{
	off_t sum = 0;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && fsync(fd) == 0);
	each_extent(fd, add_shared, &sum);
	close(fd);
	return sum;
}

void make_part(const char *dir, const char *name, const char *src, off_t size, unsigned seed)
{
	struct part p;
	struct stat st;
	char path[PATH_MAX];
	int parent = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	need(parent >= 0 && stat(src, &st) == 0);
	part_init(&p, parent, name);
	need(part_make(&p) == 0);
	snprintf(path, sizeof(path), "%s/%s/" PART_DATA, dir, p.name);
	make_file(path, size, DENSE, seed);
	need(chmod(path, 0600) == 0);
	int data = open(path, O_RDWR | O_CLOEXEC);
	const struct journal_fact source = part_source(-1, &st);
	need(data >= 0 && part_describe(&p, name, &source, 0, data, 0644) == 0);
	need(part_publish(&p, &data) == 0);
	close(data);
	part_close(&p, false);
	close(parent);
}
