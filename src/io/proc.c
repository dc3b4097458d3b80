/* SPDX-License-Identifier: MIT
 * Implements the second half of io.h: symlinks, clocks, and what /proc and /sys show.
 */
#include "io.h"
#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* the same on every machine but Alpha */
#endif

bool io_read_text(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	io_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

int io_read_link(int dir, const char *name, char text[PATH_MAX], struct stat *st)
{
	const int link = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const ssize_t n = link < 0 || fstat(link, st) < 0
			      ? -1
			      : readlinkat(link, "", text, PATH_MAX - 1);
	const int err = n < 0 ? errno : 0;
	io_close(link);
	text[n > 0 ? n : 0] = '\0';
	return -err;
}

double io_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double io_thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct timespec io_deadline(double seconds)
{
	const double at = io_now() + seconds;
	const time_t whole = (time_t)at;
	return (struct timespec){.tv_sec = whole, .tv_nsec = (long)((at - (double)whole) * 1e9)};
}

double io_runnable_seconds(void)
{
	char text[96], *second;
	if (!io_read_text("/proc/thread-self/schedstat", text, sizeof(text)))
		return -1;
	strtoull(text, &second, 10);
	return (double)strtoull(second, NULL, 10) / 1e9;
}

struct io_path io_proc_path(int fd)
{
	struct io_path path;
	snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d", fd);
	return path;
}

void io_name_path(int dir, const char *name, char path[PATH_MAX])
{
	const ssize_t n = readlink(io_proc_path(dir).text, path, PATH_MAX - 1);
	const size_t used = n > 0 && (size_t)n + NAME_MAX + 2 < PATH_MAX ? (size_t)n : 0;
	snprintf(path + used, PATH_MAX - used, "%s%s", used > 0 ? "/" : "", name);
}

int io_chmod(int fd, mode_t mode)
{
	if (chmod(io_proc_path(fd).text, mode) == 0)
		return 0;
	if (errno != ENOENT)
		return -1;
	if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	errno = errno == ENOSYS ? ENOENT : errno;
	return -1;
}

int io_set_times(int fd, const struct timespec times[2])
{
	if (utimensat(AT_FDCWD, io_proc_path(fd).text, times, 0) == 0)
		return 0;
	if (errno != ENOENT)
		return -1;
	if (utimensat(fd, "", times, AT_EMPTY_PATH) == 0)
		return 0;
	errno = errno == EINVAL ? ENOENT : errno;
	return -1;
}

static void mount_unescape(char *text)
{
	bool wrong = false; /* the kernel writes none */
	words_name(text, strlen(text), text, &wrong);
}

/* ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELD]... - TYPE SOURCE OPTIONS */
static bool mount_parse(char *line, struct mount *m)
{
	char *field[5], *rest = line;
	unsigned major, minor;
	for (size_t i = 0; i < sizeof(field) / sizeof(*field); i++)
		field[i] = strsep(&rest, " ");
	rest = rest ? strstr(rest, " - ") : NULL;
	if (!rest || sscanf(field[2], "%u:%u", &major, &minor) != 2)
		return false;
	rest += strlen(" - ");
	*m = (struct mount){.id = strtoull(field[0], NULL, 10),
			    .dev = makedev(major, minor),
			    .root = field[3],
			    .point = field[4],
			    .type = strsep(&rest, " ")};
	(void)strsep(&rest, " ");
	m->options = rest ? strsep(&rest, "\n") : "";
	mount_unescape(field[3]);
	mount_unescape(field[4]);
	return true;
}

bool mount_open(struct mount_list *l)
{
	*l = (struct mount_list){.file = fopen("/proc/self/mountinfo", "re")};
	return l->file;
}

bool mount_next(struct mount_list *l, struct mount *m)
{
	while (l->file && getline(&l->line, &l->size, l->file) > 0)
		if (mount_parse(l->line, m))
			return true;
	return false;
}

void mount_close(struct mount_list *l)
{
	if (l->file)
		fclose(l->file);
	free(l->line);
	*l = (struct mount_list){.file = NULL};
}

uint64_t mount_id(int fd)
{
	struct statx sx;
	char path[40], text[256];
	unsigned id = 0;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &sx) == 0 && sx.stx_mask & STATX_MNT_ID)
		return sx.stx_mnt_id;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	const char *line = io_read_text(path, text, sizeof(text)) ? strstr(text, "mnt_id:") : NULL;
	return line && sscanf(line, "mnt_id: %u", &id) == 1 ? id : 0;
}

bool mount_find(struct mount_list *l, int fd, struct mount *m)
{
	const uint64_t id = mount_id(fd);
	*l = (struct mount_list){.file = NULL};
	if (id == 0 || !mount_open(l))
		return false;
	while (mount_next(l, m))
		if (m->id == id)
			return true;
	return false;
}
