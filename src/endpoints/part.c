/* SPDX-License-Identifier: MIT
 * DST.fcopy-part: --resume writes the copy to this file and keeps it after an interruption. Other
 * users can guess the name, so check the file before its bytes are used.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"
#include "io/io.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TRIES 8 /* each fails if another copy commits the part first */

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

/* A part that was killed after it got the mode of a read-only file can only be read: part_claim
 * opens it for writing once its bytes are known. */
static int open_or_create(struct endpoint *e, bool *created)
{
	int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	e->fd = openat(file_of(e)->place.dir, file_of(e)->temporary,
		       O_RDWR | flags | O_CREAT | O_EXCL, 0600);
	*created = e->fd >= 0;
	if (*created || errno != EEXIST)
		return e->fd < 0 ? -errno : 0;
	e->fd = openat(file_of(e)->place.dir, file_of(e)->temporary, O_RDWR | flags);
	if (e->fd < 0 && errno == EACCES)
		e->fd = openat(file_of(e)->place.dir, file_of(e)->temporary, O_RDONLY | flags);
	return e->fd < 0 ? -errno : 0;
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
		return error_refuse(error, e->path, EBUSY, "another copy writes its .fcopy-part",
				    FCOPY_ADVICE_NONE);
	if (r == -EINTR)
		return error_refuse(error, e->path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	return error_operation(error, "lock of its .fcopy-part", "flock", e->path, -r);
}

/* Two resumed copies at once would write into the same part: the lock prevents that. Returns
 * -ENOENT if another copy renamed this file to DST before this one had the lock. */
static int lock_part(const struct endpoint *e, const volatile int *cancel,
		     struct fcopy_error *error)
{
	int r = private_take_lock(e->fd, LOCK_EX, cancel);
	if (r < 0)
		return part_fail_lock(e, r, error);
	r = part_file_is_named(e);
	return r < 0 ? error_operation(error, "stat of its .fcopy-part", "fstat", e->path, -r) : 0;
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

static int open_and_check(struct endpoint *e, const struct endpoint *src,
			  const volatile int *cancel, struct fcopy_error *error)
{
	struct stat st;
	bool created;
	int r = open_or_create(e, &created);
	if (r < 0) {
		bool there = fstatat(file_of(e)->place.dir, file_of(e)->temporary, &st,
				     AT_SYMLINK_NOFOLLOW) == 0;
		error_operation(error, "open of its .fcopy-part", "openat", e->path, -r);
		if (there && (r == -ELOOP || r == -EISDIR || r == -EACCES))
			error->advice = FCOPY_ADVICE_REMOVE_PART;
		return r;
	}
	r = lock_part(e, cancel, error);
	if (r == 0) /* no shard has the lock now */
		r = part_refuse_shared(file_of(e)->place.dir, file_of(e)->place.name, e->path,
				       error);
	if (r == 0 && (r = part_file_is_named(e)) < 0) /* shards could commit it until now */
		error_operation(error, "stat of its .fcopy-part", "fstat", e->path, -r);
	if (r == 0 && !created)
		r = part_refuse_source(e, e->fd, src, error);
	if (r == 0 && !created)
		r = part_check(e, error);
	file_of(e)->keep_part = !created; /* until part_claim accepts it */
	if (r == 0)
		return 0;
	/* Keep the file if another copy may have its lock by now, or if shards will use it. */
	if (created && r != -EBUSY && r != -EINTR && r != -ENOENT)
		unlinkat(file_of(e)->place.dir, file_of(e)->temporary, 0);
	endpoint_close(e);
	return r;
}

bool part_set_name(struct endpoint *e)
{
	struct file *f = file_of(e);
	int n = snprintf(f->temporary, sizeof(f->temporary), "%s" PART_SUFFIX, f->place.name);
	return n < (int)sizeof(f->temporary);
}

int part_open_file(struct endpoint *e, const struct endpoint *src, mode_t mode,
		   const volatile int *cancel, struct fcopy_error *error)
{
	file_of(e)->mode = temporary_mode(file_of(e)->place.dir, mode);
	int r = part_set_name(e) ? -ENOENT
				 : error_operation(error, "open of its .fcopy-part", "openat",
						   e->path, ENAMETOOLONG);
	for (int tries = 0; r == -ENOENT && tries < TRIES; tries++) {
		*error = (struct fcopy_error){0};
		r = open_and_check(e, src, cancel, error);
	}
	if (r < 0)
		file_of(e)->temporary[0] = '\0';
	return r;
}

void part_remove(int dir, const char *name)
{
	struct stat st;
	struct fcopy_error ignored;
	struct endpoint part = {.fd = -1, .path = name}, *e = &part;
	struct place *place = &file_of(e)->place;
	place->dir = dir;
	snprintf(place->name, sizeof(place->name), "%s", name);
	if (!part_set_name(e))
		return;
	e->fd = openat(dir, file_of(e)->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (e->fd < 0)
		return;
	if (lock_part(e, NULL, &ignored) == 0 &&
	    part_refuse_shared(dir, name, name, &ignored) == 0 && part_file_is_named(e) == 0 &&
	    part_check(e, &ignored) == 0 && fstat(e->fd, &st) == 0 && (st.st_mode & 07777) == 0600)
		unlinkat(dir, file_of(e)->temporary, 0);
	endpoint_close(e);
}

/* The lock belongs to the open file description: the new one needs its own, and another copy may
 * have been faster, and have changed what was compared. */
static int reopen_for_writing(struct endpoint *e, struct fcopy_error *error)
{
	struct stat before = {0}, now = {0};
	int fd = open(io_proc_path(e->fd).text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_proc(error, "open", e->path, errno);
	int r = 0;
	if (fstat(fd, &before) < 0)
		r = error_call(error, "fstat", e->path, errno);
	else if (dup3(fd, e->fd, O_CLOEXEC) < 0)
		r = error_call(error, "dup3", e->path, errno);
	close(fd);
	if (r == 0)
		r = lock_part(e, NULL, error);
	if (r == 0 && fstat(e->fd, &now) < 0)
		r = error_call(error, "fstat", e->path, errno);
	if (r == 0 &&
	    (now.st_size != before.st_size || now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
	     now.st_mtim.tv_nsec != before.st_mtim.tv_nsec))
		r = part_fail_lock(e, -EWOULDBLOCK, error);
	return r;
}

int part_claim(struct endpoint *e, const struct stat *part, bool matches, struct fcopy_error *error)
{
	const bool reused = file_of(e)->keep_part;
	bool writable = (fcntl(e->fd, F_GETFL) & O_ACCMODE) == O_RDWR;
	bool ours = writable && (part->st_mode & 07777) == 0600;
	if (!ours && !matches)
		return refuse_part(e, EPERM, "its .fcopy-part is not a part of this copy", error);
	if (!ours && fchmod(e->fd, 0600) < 0) {
		int err = errno;
		if (temporary_stores_modes(file_of(e)->place.dir))
			return error_call(error, "fchmod", e->path, err);
	}
	int r = writable ? 0 : reopen_for_writing(e, error);
	if (r == 0 && reused && !file_of(e)->place.exists)
		r = part_renew(e, error);
	file_of(e)->keep_part |= r == 0;
	return r;
}

bool part_keep(struct endpoint *e, off_t size)
{
	struct stat st;
	if (!file_of(e)->temporary[0])
		return false;
	/* Best effort: the next copy compares every byte. */
	(void)!ftruncate(e->fd, size);
	/* It may have the owner of the source already. */
	(void)!fchown(e->fd, geteuid(), (gid_t)-1);
	(void)!fchmod(e->fd, 0600);
	if (fstat(e->fd, &st) < 0 || part_unsafe_reason(file_of(e)->place.dir, &st))
		file_of(e)->keep_part = false;
	return file_of(e)->keep_part;
}
