/* SPDX-License-Identifier: MIT
 * Which records a shard creates, and when: see shard.h.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "notify.h"
#include "shard_records.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

int shard_job_init(struct shard_job *j, const struct stat *st, unsigned options)
{
	j->records = j->lock = -1;
	/* The commit closes the caller's descriptor. */
	j->parent = openat(j->parent, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (j->parent < 0)
		return records_fail(j, NULL, "openat", errno);
	j->size = j->tree ? 0 : st->st_size;
	int n = snprintf(j->part_name, sizeof(j->part_name), "%s" PART_SUFFIX, j->name);
	int m = snprintf(j->directory, sizeof(j->directory), "%s" RECORDS_SUFFIX, j->name);
	if (n >= (int)sizeof(j->part_name) || m >= (int)sizeof(j->directory))
		return records_fail(j, "open of its .fcopy-shards", "openat", ENAMETOOLONG);
	/* The first field is the version of these records. */
	snprintf(j->identity, sizeof(j->identity), "%s%u.%u.%jd.%jd.%ld.%ju", j->tree ? "1t" : "1f",
		 options, j->shard.count, (intmax_t)j->size, (intmax_t)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (uintmax_t)st->st_ino);
	j->marked = calloc(j->shard.count, 1);
	return j->marked ? 0 : records_fail(j, NULL, "malloc", ENOMEM);
}

void shard_job_free(struct shard_job *j)
{
	shard_unlock(j);
	if (j->records >= 0)
		close(j->records);
	if (j->parent >= 0)
		close(j->parent);
	free(j->marked);
	j->records = j->parent = -1;
	j->marked = NULL;
}

int records_flush_parent(const struct shard_job *j)
{
	int parent = openat(j->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = parent < 0 ? -errno : io_flush_directory(parent);
	if (parent >= 0)
		close(parent);
	return r < 0 ? records_fail(j, "fsync of the directory", "fsync", -r) : 0;
}

int records_flush(const struct shard_job *j)
{
	int r = io_flush_directory(j->records);
	return r < 0 ? records_fail(j, "fsync of the directory", "fsync", -r) : 0;
}

int records_create(const struct shard_job *j, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(j->records, name, flags, 0600);
	if (fd < 0)
		return errno == EEXIST ? 0 : records_fail(j, "create of a record", "openat", errno);
	/* The umask or a default ACL may lack a right of the owner, who locks some records. */
	(void)!fchmod(fd, 0600);
	return close(fd) < 0 ? records_fail(j, "create of a record", "close", errno) : 0;
}

int shard_write_commit(struct shard_job *j, const struct stat *part)
{
	records_commit_name(j, part, j->commit);
	int r = records_create(j, j->commit);
	return r < 0 || j->synced ? r : records_flush(j);
}

int shard_lock_proof(const struct shard_job *j, const char *name, int *fd)
{
	struct stat st;
	*fd = openat(j->records, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0 && errno != ENOENT)
		return records_fail(j, "open of a record", "openat", errno);
	int r = *fd < 0 ? -EWOULDBLOCK : private_take_lock(*fd, LOCK_EX, NULL);
	bool there = fstatat(j->records, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there && (r == 0 || private_lacks_locks(-r)))
		return 0;
	if (*fd >= 0)
		close(*fd);
	return there && r != -EWOULDBLOCK ? records_fail(j, "lock of a record", "flock", -r)
					  : SHARD_AGAIN;
}

int shard_write_receipt(struct shard_job *j)
{
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "receipt.%s", records_after(j->commit, 1));
	/* Not again: if it is gone by now, DST was removed and the shards have begun again. */
	int lock, r = j->receipt ? 0 : records_create(j, name);
	if (r == 0)
		r = records_flush(j);
	if (r == 0)
		r = shard_lock_proof(j, name, &lock);
	if (r != 0)
		return r < 0 ? r : 0; /* another process removes the records */
	/* NFS and SMB rename an open file instead of removing it. */
	shard_unlock(j);
	r = records_remove(j, j->identity, name);
	close(lock);
	return r;
}

int shard_refuse_part(const struct shard_job *j, const char *reason)
{
	return error_refuse(j->error, j->path, ESTALE, reason, FCOPY_ADVICE_SHARDS);
}

int shard_refuse_source(const struct shard_job *j)
{
	return error_refuse(j->error, j->path, EBUSY, "its source changed between the shards",
			    FCOPY_ADVICE_SHARDS);
}

int shard_record_part(struct shard_job *j, const struct stat *part, bool empty)
{
	char name[NAME_MAX + 1];
	int r = 0;
	if (!j->part) {
		/* It may have been recorded since, and have bytes. */
		r = shard_look(j);
		if (r == 0 && !j->begun)
			return SHARD_AGAIN;
		if (r == 0 && !j->part && !empty)
			return error_refuse(j->error, j->path, EEXIST,
					    "an earlier copy left its .fcopy-part",
					    FCOPY_ADVICE_REMOVE_PART);
		snprintf(name, sizeof(name), "part.%ju.%s", (uintmax_t)part->st_ino, j->identity);
		if (r == 0 && !j->part)
			r = records_create(j, name);
		if (r == 0)
			r = shard_look(j);
	}
	/* Another job cannot have got this far, unless somebody removed records. */
	if (r == 0 && (!j->begun || j->other_writes || j->parts != 1 || j->part != part->st_ino))
		r = shard_refuse_part(j, SHARD_OTHER_PART);
	return r;
}

void shard_unlock(struct shard_job *j)
{
	if (j->lock >= 0)
		close(j->lock);
	j->lock = -1;
}

static void warn_unlocked(struct shard_job *j, const struct fcopy_options *o)
{
	if (!j->warned)
		copy_warn(&(struct copy){.options = o}, j->path, ENOLCK,
			  "the file system has no locks: never run the same share twice at once",
			  FCOPY_ADVICE_NONE);
	j->warned = true;
}

/* The process that has the lock copies a complete share again, or flushes its marker: at its end it
 * commits. */
static int leave_commit(const struct shard_job *j, const struct fcopy_options *o)
{
	copy_warn(&(struct copy){.options = o}, j->path, EBUSY,
		  "not committed yet: another process is still copying a share and will "
		  "commit; if it fails, run this command again",
		  FCOPY_ADVICE_NONE);
	return SHARD_LEFT;
}

/* Does this name still refer to the open record? */
static bool is_record(const struct shard_job *j, int fd, const char *name)
{
	struct stat st, named;
	return fstat(fd, &st) == 0 && fstatat(j->records, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       named.st_ino == st.st_ino && named.st_dev == st.st_dev;
}

int shard_lock(struct shard_job *j, bool commit, const struct fcopy_options *o)
{
	char name[NAME_MAX + 1];
	shard_unlock(j);
	snprintf(name, sizeof(name), "job.%s", j->identity);
	j->lock = openat(j->records, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (j->lock < 0)
		return errno == ENOENT ? SHARD_AGAIN
				       : records_fail(j, "open of a record", "openat", errno);
	int r = commit ? shared_lock_commit(j->lock, o->cancel)
		       : private_take_lock(j->lock, LOCK_SH, o->cancel);
	if (r == -EWOULDBLOCK && commit && !j->shard.finish)
		return leave_commit(j, o);
	if (r < 0 && !private_lacks_locks(-r))
		return part_fail_lock(&(struct endpoint){.path = j->path}, r, j->error);
	if (r < 0)
		warn_unlocked(j, o);
	if (!is_record(j, j->lock, name))
		return SHARD_AGAIN;
	if (commit) /* the caller looks */
		return 0;
	/* Others may have completed everything since the last look. */
	r = shard_look(j);
	return r == 0 && (!j->begun || j->commit[0] || j->marked[j->shard.index]) ? SHARD_AGAIN : r;
}

int shard_lock_share(struct shard_job *j, const struct fcopy_options *o, int *fd)
{
	char name[NAME_MAX + 1];
	snprintf(name, sizeof(name), "lock.%u.%s", j->shard.index, j->identity);
	int r = records_create(j, name);
	if (r < 0)
		return r;
	*fd = openat(j->records, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENOENT ? SHARD_AGAIN
				       : records_fail(j, "open of a record", "openat", errno);
	r = private_take_lock(*fd, LOCK_EX, o->cancel);
	if (r == -EWOULDBLOCK)
		return error_refuse(j->error, j->path, EBUSY, "another process copies this share",
				    FCOPY_ADVICE_NONE);
	if (r < 0 && !private_lacks_locks(-r))
		return part_fail_lock(&(struct endpoint){.path = j->path}, r, j->error);
	if (r < 0)
		warn_unlocked(j, o);
	r = shard_look(j);
	return r == 0 && (!j->begun || j->marked[j->shard.index]) ? SHARD_AGAIN : r;
}

int shard_mark(struct shard_job *j, const char *what)
{
	char name[NAME_MAX + 1], range[SHARD_DETAIL];
	if (!what)
		records_range(j, j->shard.index, range);
	records_share_name(j, j->shard.index, what ? what : range, name);
	/* The part's name and the other records must be on the disk before the marker. */
	int r = j->synced ? 0 : records_flush_parent(j);
	if (r == 0 && !j->synced)
		r = records_flush(j);
	if (r == 0)
		r = records_create(j, name);
	if (r == 0)
		r = records_flush(j);
	/* Before the look: a process that finds the lock leaves the commit to this one. */
	shard_unlock(j);
	return r < 0 ? r : shard_look(j);
}

int shard_refuse_missing(const struct shard_job *j)
{
	size_t used = 0;
	const bool one = j->complete + 1 == j->shard.count;
	for (unsigned i = 0, end; i < j->shard.count; i = end) {
		for (end = i + 1; !j->marked[i] && end < j->shard.count && !j->marked[end];)
			end++;
		if (j->marked[i])
			continue;
		if (used > 80) {
			used += (size_t)snprintf(j->reason + used, 128 - used, ", ...");
			break;
		}
		used += (size_t)snprintf(j->reason + used, 128 - used, "%s%u",
					 used  ? ", "
					 : one ? "missing share "
					       : "missing shares ",
					 i);
		if (end > i + 1)
			used += (size_t)snprintf(j->reason + used, 128 - used, "-%u", end - 1);
	}
	snprintf(j->reason + used, 128 - used, one ? "/%u" : " of %u", j->shard.count);
	return error_refuse(j->error, j->path, ENODATA, j->reason, FCOPY_ADVICE_NONE);
}
