/* SPDX-License-Identifier: MIT
 * The DST.fcopy-part of shards, a file or directory under a name that other users can guess: check
 * it before its bytes are used. And what keeps --resume and shards apart.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Thread-safe, because the stream is read in one thread (readdir(3)). */
static const struct dirent *next_record(DIR *records)
{
	/* cppcheck-suppress readdirCalled */
	return readdir(records);
}

int part_refuse_shared(int dir, const char *name, const char *path, struct fcopy_error *error)
{
	char directory[NAME_MAX + 1];
	int n = snprintf(directory, sizeof(directory), "%s" RECORDS_SUFFIX, name);
	if (n >= (int)sizeof(directory))
		return 0;
	int fd = openat(dir, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	DIR *records = fd < 0 ? NULL : fdopendir(fd);
	if (!records) {
		int err = errno;
		if (fd >= 0)
			close(fd);
		return error_operation(error, "open of its .fcopy-shards", "openat", path, err);
	}
	const struct dirent *d;
	bool shared = false;
	while (!shared && (d = next_record(records)))
		shared = d->d_name[0] != '.' && strncmp(d->d_name, "receipt.", 8) != 0;
	closedir(records);
	return shared
		   ? error_refuse(error, path, EBUSY, "its .fcopy-part belongs to a copy in shards",
				  FCOPY_ADVICE_SHARDS)
		   : 0;
}

static int refuse_part(const struct endpoint *e, int err, const char *reason,
		       struct fcopy_error *error)
{
	return error_refuse(error, e->path, err, reason, FCOPY_ADVICE_REMOVE_PART);
}

int part_file_is_named(const struct endpoint *e)
{
	struct stat st, named;
	if (fstat(e->fd, &st) < 0 ||
	    fstatat(file_of(e)->place.dir, file_of(e)->temporary, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return named.st_dev == st.st_dev && named.st_ino == st.st_ino ? 0 : -ENOENT;
}

int part_fail_lock(const struct endpoint *e, int r, struct fcopy_error *error)
{
	if (r == -EWOULDBLOCK)
		return error_refuse(error, e->path, EBUSY, "another fcopy is using its .fcopy-part",
				    FCOPY_ADVICE_NONE);
	if (r == -EINTR)
		return error_refuse(error, e->path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	return error_operation(error, "lock of its .fcopy-part", "flock", e->path, -r);
}

/* Another user who owns the file may have it open for writing, and could still write to it when it
 * has become the copy. */
const char *part_unsafe_reason(int dir, const struct stat *st)
{
	struct stat new;
	if (st->st_uid == geteuid() && !(st->st_mode & 022))
		return NULL;
	bool probed = private_probe(dir, 0600, &new) == 0;
	if (st->st_uid != (probed ? new.st_uid : geteuid()))
		return "its .fcopy-part belongs to another user";
	if (st->st_mode & 022 & (probed ? ~new.st_mode : 022))
		return "its .fcopy-part is writable by others";
	return NULL;
}

int part_refuse_source(const struct endpoint *e, int fd, const struct endpoint *src,
		       struct fcopy_error *error)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : same_is_source(src, fd, &st);
	if (r < 0)
		return error_call(error, "fstat", e->path, -r);
	return r > 0 ? error_refuse(error, e->path, EBUSY, "its .fcopy-part is the source",
				    FCOPY_ADVICE_NONE)
		     : 0;
}

int part_check(const struct endpoint *e, struct fcopy_error *error)
{
	struct stat st;
	if (fstat(e->fd, &st) < 0)
		return error_call(error, "fstat", e->path, errno);
	if (!S_ISREG(st.st_mode))
		return refuse_part(e, EPERM, "its .fcopy-part is not a regular file", error);
	if (st.st_nlink != 1)
		return refuse_part(e, EPERM, "its .fcopy-part has other hard links", error);
	const char *reason = part_unsafe_reason(file_of(e)->place.dir, &st);
	return reason ? refuse_part(e, EPERM, reason, error) : 0;
}

void part_set_name(struct endpoint *e)
{
	part_make_name(file_of(e)->temporary, file_of(e)->place.name);
}
