/* SPDX-License-Identifier: MIT
 * One name while shards copy a tree: whose share it is, a range of a large file, and the last walk.
 */
#define _GNU_SOURCE
#include "copy/settle.h"
#include "copy/shard.h"
#include "copy/verify.h"
#include "directory.h"
#include "endpoints/error.h"
#include "links.h"
#include "permissions.h"
#include "pool.h"
#include "report.h"
#include "resume.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGE_SHARED ((off_t)256 << 20) /* such a file is shared by ranges */

/* Some bits of FNV-1a do not depend on the last byte: names in a series would all get one share.
 */
static uint64_t shard_mix(uint64_t hash)
{
	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdu;
	return hash ^ hash >> 33;
}

/* What all shards must have seen alike of an entry; as numbers, not as bytes, which have an order.
 * The ctime changes with the mode, the owner, an ACL or xattr, and a new hard link, which changes
 * whose share the file is. */
static uint64_t shard_entry_sum(const struct worker *w, uint64_t path, const struct stat *st)
{
	const uint64_t seen[] = {st->st_mode & S_IFMT,
				 S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
				 (uint64_t)st->st_mtim.tv_sec,
				 (uint64_t)st->st_mtim.tv_nsec,
				 (uint64_t)st->st_ctim.tv_sec,
				 (uint64_t)st->st_ctim.tv_nsec,
				 st->st_ino,
				 !S_ISDIR(st->st_mode) && links_may_exist(w, st)};
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++)
		path = shard_mix(path ^ seen[i]);
	return path;
}

static uint64_t shard_path_hash(const struct entry *e)
{
	return hash_add(e->dir->hash, e->name, strlen(e->name));
}

/* Until the last walk, a large file has a name that belongs to this version of its source: an
 * attempt that saw another version, and may still run, writes to another file. */
static void shard_version_name(const struct worker *w, const struct entry *e, const struct stat *st,
			       char name[TEMPORARY_SIZE])
{
	snprintf(name, TEMPORARY_SIZE, ".fcopy-%016" PRIx64,
		 shard_entry_sum(w, shard_path_hash(e), st));
}

static uint64_t shard_inode_hash(const struct stat *st)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%ju", (uintmax_t)st->st_ino);
	return hash_add(HASH_START, text, (size_t)n);
}

bool shard_is_large(const struct worker *w, const struct stat *st)
{
	/* Names of one inode are made by one shard: it copies the file as a whole. */
	return S_ISREG(st->st_mode) && st->st_size >= LARGE_SHARED && !links_may_exist(w, st);
}

static int shard_run_range(struct worker *w, const struct entry *e)
{
	struct copy *c = &w->copy;
	struct stat now;
	off_t size = c->src.st.st_size;
	const struct fcopy_shard *shard = w->tree->shard;
	shard_range(shard, shard->index, size, &c->first, &c->last);
	/* The file may exist: another shard created it, or an attempt of this one. */
	int r = shard_fill_range(c, size, c->dst.st.st_size > 0);
	if (r == 0 && fstat(c->src.fd, &now) < 0)
		return report_call(w, e, "fstat", entry_src, errno);
	if (r == 0 &&
	    (c->all.offset < c->last || now.st_size != size || !same_mtime(&now, &c->src.st)))
		return report_refusal(w, e, entry_src, EBUSY, "changed while it was copied");
	if (r == 0 && w->options.fsync)
		r = copy_flush(c, false);
	if (r == 0 && w->options.verify && c->first < c->last)
		r = verify_copy(c);
	if (r < 0)
		report_failure(w, e, &w->file.error);
	return r;
}

/* Copies this shard's range of a large file; takes fd. */
int shard_copy_range(struct worker *w, const struct entry *e, int fd, const struct stat *st)
{
	struct copy *c = pool_start_copy(w);
	struct stat dst;
	char name[TEMPORARY_SIZE];
	const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	shard_version_name(w, e, st, name);
	c->idle = &w->tree->pool.idle;
	c->share = c->no_clone = true;
	/* Every shard must be able to write to it; the last walk sets the mode. */
	int to = openat(e->dir->dst, name, flags, (st->st_mode & 0777) | 0600);
	if (to < 0 || fstat(to, &dst) < 0) {
		int r = report_call(w, e, to < 0 ? "open" : "fstat", entry_dst, errno);
		close(fd);
		if (to >= 0)
			close(to);
		return r;
	}
	/* The umask or a default ACL may lack a right of the owner. */
	if (0600 & ~dst.st_mode)
		(void)!fchmod(to, (dst.st_mode & 07777) | 0600);
	source_adopt(&c->src, fd, entry_src, st);
	source_adopt(&c->dst, to, entry_dst, &dst);
	int r = shard_run_range(w, e);
	report_file(w, st, r == 0);
	c->src.ops->abort(&c->src);
	if (close(to) < 0 && r == 0)
		r = report_call(w, e, "close", entry_dst, errno);
	return r;
}

/* The entry was a regular file when its stat was taken. It may be a symlink by now. */
static int shard_open_source(const struct entry *e)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	return openat(e->dir->src, e->name, flags | (e->follow ? 0 : O_NOFOLLOW));
}

/* A large file gets its attributes when all ranges are complete. */
static int shard_set_attributes(struct worker *w, const struct entry *e, const struct stat *st)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	/* First: it changes errno. */
	mode_t extra = 0600 & ~(st->st_mode & permissions_left(w->tree, e->dir->dst));
	int src = shard_open_source(e);
	int dst = src < 0 ? -1 : openat(e->dir->dst, e->as, flags);
	struct stat now;
	int r = 0;
	if (dst < 0)
		r = report_call(w, e, "open", src < 0 ? entry_src : entry_dst, errno);
	else if (fstat(dst, &now) < 0)
		r = report_call(w, e, "fstat", entry_dst, errno);
	else if (extra && fchmod(dst, now.st_mode & 07777 & ~extra) < 0)
		r = report_call(w, e, "fchmod", entry_dst, errno);
	if (r == 0)
		r = directory_preserve(w, e, src, dst, st);
	if (r == 0 && w->tree->flush_each && fsync(dst) < 0)
		r = report_call(w, e, "fsync", entry_dst, errno);
	if (src >= 0)
		close(src);
	if (dst >= 0)
		close(dst);
	return r;
}

/* A large file gets its own name, unless a last walk that was interrupted has given it already. */
static int shard_name_large(struct worker *w, const struct entry *e, const struct stat *st)
{
	char name[TEMPORARY_SIZE];
	int dir = e->dir->dst;
	shard_version_name(w, e, st, name);
	int r = renameat(dir, name, dir, e->as) < 0 ? -errno : 0;
	/* What an attempt made that saw another version of the source. */
	if (r == -EISDIR && remove_entry(dir, e->as) == 0)
		r = renameat(dir, name, dir, e->as) < 0 ? -errno : 0;
	return r == 0 || r == -ENOENT ? 0 : report_call(w, e, "rename", entry_dst, -r);
}

static bool shard_same_link(const struct entry *e)
{
	char a[PATH_MAX], b[PATH_MAX];
	ssize_t n = readlinkat(e->dir->dst, e->as, a, sizeof(a));
	return n >= 0 && readlinkat(e->dir->src, e->name, b, sizeof(b)) == n &&
	       memcmp(a, b, (size_t)n) == 0;
}

/* Has an attempt that saw another version of the source, when the entry belonged to another share,
 * replaced its copy? Then a file that was copied with its time has another one now. */
static bool shard_is_old(struct worker *w, const struct entry *e, const struct stat *st,
			 const struct stat *dst)
{
	if (dst->st_nlink > 1 && !links_may_exist(w, st))
		return true;
	if (S_ISLNK(st->st_mode))
		return !shard_same_link(e);
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode))
		return dst->st_rdev != st->st_rdev;
	if (!S_ISREG(st->st_mode) || !(w->tree->options->copy.preserve & FCOPY_ATTR_TIMESTAMPS) ||
	    same_mtime(dst, st))
		return false;
	int fd = shard_open_source(e);
	bool old = fd < 0 || !resume_has_same_bytes(w, e, fd, st);
	if (fd >= 0)
		close(fd);
	return old;
}

/* The last walk: the copies that the markers promise are there. */
static int shard_check(struct worker *w, const struct entry *e, const struct stat *st)
{
	struct stat dst = {0};
	bool large = shard_is_large(w, st);
	int r = large ? shard_name_large(w, e, st) : 0;
	if (r < 0)
		return r;
	if (fstatat(e->dir->dst, e->as, &dst, AT_SYMLINK_NOFOLLOW) < 0 && errno != ENOENT)
		return report_call(w, e, "stat", entry_dst, errno);
	if ((dst.st_mode & S_IFMT) != (st->st_mode & S_IFMT) ||
	    (S_ISREG(st->st_mode) && dst.st_size != st->st_size) ||
	    (large ? dst.st_nlink != 1 : shard_is_old(w, e, st, &dst))) {
		__atomic_store_n(&w->tree->differs, true, __ATOMIC_RELAXED);
		return report_refusal(w, e, entry_dst, EBUSY, "does not match its source any more");
	}
	__atomic_add_fetch(&e->dir->present, 1, __ATOMIC_RELAXED);
	return large ? shard_set_attributes(w, e, st) : 0;
}

int shard_claim(struct worker *w, const struct entry *e, uint64_t *sum)
{
	struct tree *t = w->tree;
	const struct fcopy_shard *shard = t->shard;
	struct stat st;
	*sum = 0;
	if (strlen(e->name) > NAME_MAX)
		return 0; /* entry_copy_any() reports it */
	if (fstatat(e->dir->src, e->name, &st, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : report_call(w, e, "stat", entry_src, errno);
	source_hide_mode(&st, &w->options);
	uint64_t path = shard_path_hash(e);
	*sum = shard_entry_sum(w, path, &st);
	__atomic_add_fetch(&t->sum, *sum, __ATOMIC_RELAXED);
	if (S_ISDIR(st.st_mode)) {
		__atomic_add_fetch(&e->dir->present, 1, __ATOMIC_RELAXED);
		return 0;
	}
	if (t->walk == WALK_COMPARES)
		return -EALREADY;
	if (t->walk == WALK_FINISHES) {
		int r = shard_check(w, e, &st);
		return r < 0 ? r : -EALREADY;
	}
	if (shard_is_large(w, &st))
		return 0;
	if (links_may_exist(w, &st))
		path = shard_inode_hash(&st);
	return shard_mix(path) % shard->count == shard->index ? 0 : -EALREADY;
}
