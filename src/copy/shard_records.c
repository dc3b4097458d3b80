/* SPDX-License-Identifier: MIT
 * The records of shards as names in DST.fcopy-shards/: see shard.h.
 */
#define _GNU_SOURCE
#include "shard_records.h"
#include "endpoints/error.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int records_fail(const struct shard_job *j, const char *operation, const char *call, int err)
{
	return error_operation(j->error, operation, call, j->path, err);
}

bool records_start(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool belongs_to(const char *name, const char *identity)
{
	size_t n = strlen(name), own = strlen(identity);
	return n > own && name[n - own - 1] == '.' && strcmp(name + n - own, identity) == 0;
}

const char *records_after(const char *name, int n)
{
	for (; n > 0 && name; n--) {
		name = strchr(name, '.');
		name += name != NULL;
	}
	return name;
}

struct removal {
	const char *identity, *keep;
	uint64_t inode; /* only records of the part with this inode; 0: all */
	bool receipts;
};

typedef void record_function(struct shard_job *, const char *name, const struct removal *);

/* Calls `each` for every name. */
static int for_each_record(struct shard_job *j, record_function *each, const struct removal *arg)
{
	_Alignas(8) char names[32768];
	int dir = io_reopen_directory(j->records);
	ssize_t n = dir;
	if (dir < 0)
		errno = -dir;
	while (n >= 0 && (n = getdents64(dir, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const void *)(names + at);
			if (entry->d_name[0] != '.')
				each(j, entry->d_name, arg);
			at += entry->d_reclen;
		}
	int err = errno;
	if (dir >= 0)
		close(dir);
	return n < 0 ? records_fail(j, "list of its .fcopy-shards", "getdents64", err) : 0;
}

void records_commit_name(const struct shard_job *j, const struct stat *part,
			 char name[NAME_MAX + 1])
{
	char size[SHARD_DETAIL];
	snprintf(size, sizeof(size), "%jd", (intmax_t)part->st_size);
	snprintf(name, NAME_MAX + 1, "commit.%ju.%s.%jd.%ld.%s", (uintmax_t)part->st_ino,
		 j->tree ? j->what : size, (intmax_t)part->st_mtim.tv_sec, part->st_mtim.tv_nsec,
		 j->identity);
}

/* Is DST what this receipt or commit record names? Not every client of a network file system may
 * know when a directory was created. */
static bool fits_destination(const struct shard_job *j, const char *name)
{
	const struct stat *dst = &j->dst;
	const char *inode = records_after(name, 1), *what = records_after(name, 2);
	const char *seconds = records_after(name, 3), *nanoseconds = records_after(name, 4);
	if (!j->exists || !nanoseconds || strtoull(inode, NULL, 10) != dst->st_ino)
		return false;
	const struct timespec t = {strtoll(seconds, NULL, 10), strtol(nanoseconds, NULL, 10)};
	if (t.tv_sec == dst->st_mtim.tv_sec && t.tv_nsec == dst->st_mtim.tv_nsec)
		return j->tree || strtoll(what, NULL, 10) == dst->st_size;
	return j->tree && (t.tv_sec == 0 || dst->st_mtim.tv_sec == 0);
}

bool shard_same_sum(const struct shard_job *j, const char *what)
{
	const char *sum = records_after(j->commit, 2);
	return sum && strncmp(sum, what, strlen(what)) == 0 && sum[strlen(what)] == '.';
}

/* Have the two names the same field number i? Fields end with a period. */
static bool same_field(const char *a, const char *b, int i)
{
	a = records_after(a, i);
	b = records_after(b, i);
	size_t n = a ? strcspn(a, ".") : 0;
	return a && b && n == strcspn(b, ".") && strncmp(a, b, n) == 0;
}

/* Everything but markers. */
static void read_record(struct shard_job *j, const char *name, const struct removal *none)
{
	(void)none;
	bool ours = belongs_to(name, j->identity);
	bool receipt = records_start(name, "receipt.");
	bool fits = (receipt || records_start(name, "commit.")) && fits_destination(j, name);
	const char *identity = receipt || fits ? records_after(name, 5) : NULL;
	if (!ours && identity)
		strcpy(j->settled, name);
	/* The source and N are the same: it is its size or mtime that differs. */
	j->changed |= !ours && fits && same_field(identity, j->identity, 0) &&
		      same_field(identity, j->identity, 1) && same_field(identity, j->identity, 5);
	if (ours && fits && !j->receipt)
		strcpy(j->commit, name);
	if (receipt) {
		j->receipt |= ours && fits;
		if (ours && !fits)
			strcpy(j->stale, name);
	} else if (!ours) {
		bool writes = !records_start(name, "job.");
		if (!j->other[0] || writes)
			strcpy(j->other, name);
		j->other_writes |= writes;
	} else {
		j->leftover = true;
	}
	if (ours && records_start(name, "job.")) {
		j->begun = true;
	} else if (ours && records_start(name, "part.")) {
		j->part = strtoull(name + strlen("part."), NULL, 10);
		j->parts++;
	}
}

/* The last unit may be partial: near 2^63 its end would overflow. */
static off_t range_bound(const struct fcopy_shard *s, unsigned i, off_t size)
{
	off_t whole = size / SHARD_UNIT, at = (whole + (size % SHARD_UNIT != 0)) * i / s->count;
	return at > whole ? size : at * SHARD_UNIT;
}

void shard_range(const struct fcopy_shard *s, unsigned i, off_t size, off_t *start, off_t *end)
{
	*start = range_bound(s, i, size);
	*end = range_bound(s, i + 1, size);
}

void records_range(const struct shard_job *j, unsigned i, char what[SHARD_DETAIL])
{
	off_t start, end;
	shard_range(&j->shard, i, j->size, &start, &end);
	snprintf(what, SHARD_DETAIL, "%jd-%jd", (intmax_t)start, (intmax_t)end);
}

void records_share_name(const struct shard_job *j, unsigned i, const char *what,
			char name[NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, "share.%u.%s.%ju.%s", i, what, (uintmax_t)j->part,
		 j->identity);
}

/* A marker counts if its whole name is the one that this job would give to it. */
static void read_marker(struct shard_job *j, const char *name, const struct removal *none)
{
	(void)none;
	char what[SHARD_DETAIL], expected[NAME_MAX + 1];
	if (!records_start(name, "share.") || !belongs_to(name, j->identity))
		return;
	unsigned long i = strtoul(name + strlen("share."), NULL, 10);
	const char *given = records_after(name, 2);
	size_t length = given ? strcspn(given, ".") : 0;
	if (i >= j->shard.count || length == 0 || length >= SHARD_DETAIL)
		return;
	snprintf(what, sizeof(what), "%.*s", (int)length, given);
	if (!j->tree)
		records_range(j, (unsigned)i, what);
	records_share_name(j, (unsigned)i, what, expected);
	if (strcmp(name, expected) != 0)
		return;
	if (j->tree && j->what[0] && strcmp(j->what, what) != 0)
		j->differ = true;
	strcpy(j->what, what);
	j->complete += !j->marked[i];
	j->marked[i] = 1;
}

/* Records of another user could claim anything. */
static int check_records(const struct shard_job *j)
{
	struct stat st;
	if (fstat(j->records, &st) < 0)
		return records_fail(j, NULL, "fstat", errno);
	if (part_unsafe_reason(j->parent, &st))
		return error_refuse(j->error, j->path, EPERM,
				    "its .fcopy-shards belongs to another user, or others may "
				    "write to it",
				    FCOPY_ADVICE_SHARDS);
	return 0;
}

/* An NFS client may cache for a minute that DST does not exist. An open of the directory for
 * reading makes it ask the server whether the directory has changed; O_PATH does not. */
static void refresh_parent(const struct shard_job *j)
{
	int fd = openat(j->parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

void shard_birth(int dir, const char *name, struct stat *st)
{
	struct statx sx;
	const int flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
	st->st_mtim = (struct timespec){0};
	if (statx(dir, name, flags, STATX_BTIME, &sx) == 0 && sx.stx_mask & STATX_BTIME)
		st->st_mtim = (struct timespec){sx.stx_btime.tv_sec, sx.stx_btime.tv_nsec};
}

int shard_look(struct shard_job *j)
{
	if (j->records >= 0)
		close(j->records);
	j->begun = j->receipt = j->leftover = j->other_writes = j->differ = false;
	j->commit[0] = j->stale[0] = j->other[0] = j->settled[0] = j->what[0] = '\0';
	j->part = 0;
	j->parts = j->complete = 0;
	memset(j->marked, 0, j->shard.count);
	refresh_parent(j);
	j->exists = fstatat(j->parent, j->name, &j->dst, AT_SYMLINK_NOFOLLOW) == 0;
	if (!j->exists && errno != ENOENT)
		return records_fail(j, NULL, "stat", errno);
	if (j->exists && j->tree)
		shard_birth(j->parent, j->name, &j->dst);
	j->records = openat(j->parent, j->directory,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (j->records < 0)
		return errno == ENOENT
			   ? 0
			   : records_fail(j, "open of its .fcopy-shards", "openat", errno);
	int r = check_records(j);
	if (r < 0)
		return r;
	r = for_each_record(j, read_record, NULL);
	return r == 0 && j->part ? for_each_record(j, read_marker, NULL) : r;
}

/* The inode of the part that the record belongs to, or 0. */
static uint64_t record_inode(const char *name)
{
	if (records_start(name, "job.") || records_start(name, "lock."))
		return 0;
	const char *inode = records_after(name, records_start(name, "share.") ? 3 : 1);
	return inode ? strtoull(inode, NULL, 10) : 0;
}

static void remove_record(struct shard_job *j, const char *name, const struct removal *which)
{
	if (belongs_to(name, which->identity) &&
	    records_start(name, "receipt.") == which->receipts &&
	    (!which->keep || strcmp(name, which->keep) != 0) &&
	    (!which->inode || record_inode(name) == which->inode))
		unlinkat(j->records, name, 0);
}

int records_remove(struct shard_job *j, const char *identity, const char *keep)
{
	struct removal which = {.identity = identity, .keep = keep};
	int r = for_each_record(j, remove_record, &which);
	which.receipts = true;
	return r == 0 ? for_each_record(j, remove_record, &which) : r;
}

int records_remove_stale(struct shard_job *j, const char *receipt)
{
	struct removal which = {.identity = j->identity, .inode = record_inode(receipt)};
	int r = for_each_record(j, remove_record, &which);
	if (r == 0)
		unlinkat(j->records, receipt, 0);
	return r;
}
