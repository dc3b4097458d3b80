/* SPDX-License-Identifier: MIT
 * Whose is a directory that has the name of a part, or a drawn one? And is what is in it of this
 * copy? See part.h.
 */
#include "io/system.h"
#include "part.h"
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum part_whose part_whose(struct part *p, const char *name, struct stat *st)
{
	p->fd = openat(p->parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0)
		return errno == EACCES                      ? PART_OTHER_USER
		       : errno == ENOTDIR || errno == ELOOP ? PART_NO_DIRECTORY
							    : PART_UNKNOWN;
	if (fstat(p->fd, st) < 0)
		return PART_UNKNOWN;
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (private_is_ours(p->parent, st, &p->exposed))
		return PART_OURS;
	return st->st_uid == geteuid() ? PART_OPEN_TO_OTHERS : PART_OTHER_USER;
}

int part_open_own(const struct part *p, const char *name, int flags)
{
	struct stat st, own;
	int fd = openat(p->fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && fstat(p->fd, &own) == 0 && S_ISREG(st.st_mode) &&
	    st.st_nlink == 1 && st.st_uid == own.st_uid &&
	    (p->exposed || (st.st_mode & 07777) == 0600))
		return fd;
	close(fd);
	return -EPERM;
}

/* Where numbers change, a lock without one, as of a process that was killed early, names none: 0.
 */
int part_find_number(struct part *p)
{
	struct stat own;
	struct journal lock = {.text = NULL};
	if (fstat(p->fd, &own) < 0)
		return -errno;
	p->number = own.st_ino;
	if (system_numbers_last(p->fd))
		return 0;
	const int r = p->lock < 0 ? 0 : journal_read(p->lock, &lock, NULL, NULL);
	p->number = lock.private.number;
	journal_free(&lock);
	return r;
}

bool part_same_boot(const struct part *p)
{
	struct journal_fact here;
	private_here(p->fd, &here);
	return strcmp(here.boot, p->journal.run.boot) == 0;
}

bool part_has_header(const struct part *p)
{
	const struct journal *j = &p->journal;
	return j->version.kind && j->version.number == JOURNAL_VERSION && j->name.kind &&
	       j->data.kind && j->run.kind && j->data.part == p->number;
}

bool part_is_signed(const struct part *p, const struct journal *lock)
{
	return part_has_header(p) || (lock->private.kind && lock->private.number == p->number);
}

bool part_is_receipt(const struct part *p)
{
	struct stat st;
	return p->journal.shards.kind && p->journal.commit.kind &&
	       fstatat(p->fd, PART_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

bool part_is_data(const struct part *p, const struct stat *st)
{
	const struct journal_fact *data = &p->journal.data;
	return data->inode == st->st_ino &&
	       (data->device == st->st_dev || !part_same_boot(p) ||
		!system_has(p->fd, SYSTEM_LOCAL)); /* two mounts of one server */
}

bool part_same_source(const struct part *p, const struct journal_fact *source, uint64_t options)
{
	const struct journal_fact *s = &p->journal.source;
	return s->tree == source->tree && p->journal.options.number == options &&
	       s->source.inode == source->source.inode &&
	       (s->tree || journal_same_source(&s->source, &source->source));
}
