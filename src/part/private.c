/* SPDX-License-Identifier: MIT
 * A private directory: mkdir(2) returns no descriptor, so the owner of the directory above can
 * replace what it made before it is opened. Accept only an empty directory of this user with mode
 * 0700: even if it is not the new one, no other user can put anything into it.
 *
 * The mode is never changed: fchmod(2) would clear the setgid bit for a user outside the group, and
 * the copy in the directory inherits it.
 */
#include "private.h"
#include "io/io.h"
#include "io/libc.h"
#include "io/system.h"
#include "part.h"
#include "source/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define MOUNT_ID_UNIQUE 0x4000 /* STATX_MNT_ID_UNIQUE, Linux 6.8: never used again */

#define TRIES 8 /* each fails if another process replaces or removes the directory */

int private_probe(int dir, mode_t mode, struct stat *st)
{
	char name[TEMPORARY_SIZE] = "";
	int fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (fd < 0) {
		int r = temporary_draw(name);
		if (r < 0)
			return r;
		fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	}
	if (fd < 0)
		return -errno;
	int r = fstat(fd, st) < 0 ? -errno : 0;
	if (name[0]) /* rclone creates an empty file after close(2), perhaps after its removal */
		(void)!write(fd, "\n", 1);
	close(fd);
	/* Tried again: no message would name it. */
	if (name[0] && unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		unlinkat(dir, name, 0);
	return r;
}

bool private_is_ours(int parent, const struct stat *st, bool *exposed)
{
	struct stat probe = {0};
	const bool closed = (st->st_mode & 07777 & ~(mode_t)S_ISGID) == 0700;
	*exposed = false;
	errno = 0;
	if (!S_ISDIR(st->st_mode))
		return false;
	if (st->st_uid == geteuid() && closed)
		return true;
	/* Does the storage give other owners, or more rights, than were asked for? Its fixed mode
	 * may be 0600. */
	const int r = private_probe(parent, 0400, &probe);
	errno = -r;
	if (r < 0 || probe.st_uid != st->st_uid)
		return false;
	*exposed = !closed || probe.st_uid != geteuid();
	return closed || (probe.st_mode & 0377);
}

int private_is_empty(int fd)
{
	_Alignas(8) char buffer[2048];
	struct reader r = reader_open(fd, buffer, sizeof(buffer));
	const bool empty = !reader_next(&r);
	const int err = reader_close(&r);
	return err < 0 ? err : empty;
}

bool private_has_name(int fd, int parent, const char *name)
{
	struct stat st, named;
	errno = 0;
	return fstat(fd, &st) == 0 && fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same_inode(&named, &st);
}

bool private_may_have_name(int fd, int parent, const char *name)
{
	return private_has_name(fd, parent, name) || (errno != 0 && errno != ENOENT);
}

#define RELEASE_MS      8   /* the longest pause after an errno that need not be of an open file, */
#define RELEASE_OPEN_MS 128 /* and after others: each pause is twice as long as the one before */

bool private_await_release(int err, int *ms)
{
	const bool held = err == EACCES || err == EBUSY || err == EPERM || err == ETXTBSY;
	if (*ms > (held ? RELEASE_OPEN_MS : RELEASE_MS))
		return false;
	nanosleep(&(struct timespec){.tv_nsec = *ms * 1000000L}, NULL);
	*ms *= 2;
	return true;
}

bool private_is_of_disk(int err)
{
	return io_is_full(err) || err == EROFS || err == ENOENT || err == EINTR;
}

void private_here(int fd, struct journal_fact *run)
{
	struct statx sx;
	*run = (struct journal_fact){.kind = JOURNAL_RUN};
	io_read_text("/proc/sys/kernel/random/boot_id", run->boot, sizeof(run->boot));
	run->boot[strcspn(run->boot, "\n")] = '\0';
	if (!run->boot[0])
		strcpy(run->boot, "-");
	if (statx(fd, "", AT_EMPTY_PATH, MOUNT_ID_UNIQUE, &sx) == 0 &&
	    sx.stx_mask & MOUNT_ID_UNIQUE)
		run->mount = sx.stx_mnt_id;
	clock_gettime(CLOCK_REALTIME, &run->when);
}

/* A umask or a default ACL can withhold rights of the owner: then every new directory lacks them.
 * With O_PATH the rights do not matter. Takes the descriptor in *fd, or -1, and replaces it. */
static int private_admit_owner(int parent, const char *name, int *fd)
{
	struct stat st = {0}, probe = {0};
	int path = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0)
		return -errno;
	int r = fstat(path, &st) < 0 ? -errno : private_probe(parent, 0700, &probe);
	const mode_t mode = st.st_mode & 07777 & ~(mode_t)S_ISGID;
	if (r == 0 && (st.st_uid != geteuid() || mode != (probe.st_mode & 0700)))
		r = -ESTALE;
	else if (r == 0 && io_chmod(path, 0700 | (st.st_mode & S_ISGID)) < 0)
		r = -errno;
	if (r == 0) {
		if (*fd >= 0)
			close(*fd);
		*fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = *fd < 0 ? -errno : 0;
	}
	close(path);
	return r;
}

static bool private_lacks_rights(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & 077) && (st->st_mode & 0700) != 0700;
}

static int private_look(const struct private_directory *p, struct stat *st, struct failure *fail)
{
	return fstat(p->fd, st) < 0 ? fail_at(fail, "fstat") : 0;
}

static int private_open_new(struct private_directory *p, struct failure *fail)
{
	struct stat st = {0};
	fail_at(fail, "open");
	p->fd = openat(p->parent, p->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = p->fd < 0 ? -errno : private_look(p, &st, fail);
	if ((p->fd < 0 && r == -EACCES) || (r == 0 && private_lacks_rights(&st))) {
		r = private_admit_owner(p->parent, p->name, &p->fd);
		if (r == 0)
			r = private_look(p, &st, fail);
	}
	if (r == -ENOTDIR || r == -ELOOP)
		return -ESTALE;
	if (r == 0 && !private_is_ours(p->parent, &st, &p->exposed)) {
		if (errno == 0)
			return -ESTALE;
		r = fail_at(fail, "open");
		close(p->fd);
		p->fd = -1; /* whatever is in it is left alone */
		return r;
	}
	if (r == 0 && (r = private_is_empty(p->fd)) >= 0)
		r = r == 1 ? 0 : -ESTALE;
	return r;
}

uint64_t private_sign(int dir, int lock)
{
	struct stat st = {0};
	struct journal_fact facts[3] = {{.kind = JOURNAL_VERSION_IS, .number = JOURNAL_VERSION},
					{.kind = JOURNAL_PRIVATE}};
	char line[JOURNAL_LINE], text[512];
	size_t size = 0;
	if (fstat(dir, &st) < 0)
		return 0;
	uint64_t number = st.st_ino;
	if (!system_numbers_last(dir))
		(void)!getrandom(&number, sizeof(number), 0);
	facts[1].number = number;
	private_here(dir, &facts[2]);
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		size_t n = journal_format(&facts[i], line);
		memcpy(text + size, line, n);
		size += n;
	}
	(void)!write(lock, text, size);
	return number;
}

/* Was the open directory made before `start`? Then another user has moved it to this name. Only a
 * local file system has this machine's clock; it rounds down to a tick. */
static bool private_is_older(int fd, const struct timespec *start)
{
	struct statx sx;
	if (!system_has(fd, SYSTEM_LOCAL) || statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) < 0 ||
	    !(sx.stx_mask & STATX_BTIME))
		return false;
	return time_is_before(statx_time(sx.stx_btime), *start);
}

/* Apart from everything else in the directory: SMB hides a locked file from readers. Open for
 * writing: NFS needs that. A process that cleans up may have removed the empty directory, or locked
 * it first and renamed it. */
static int private_create_lock(struct private_directory *p, struct failure *fail)
{
	p->lock = openat(p->fd, PRIVATE_LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (p->lock < 0)
		return fail_at(fail, "open");
	struct stat st;
	if (fstat(p->lock, &st) == 0 && (st.st_mode & 0600) != 0600)
		(void)!fchmod(p->lock, 0600);
	fail_at(fail, "flock");
	int r = private_take_lock(p->lock, LOCK_EX, NULL);
	if (r < 0 && !private_lacks_locks(-r))
		return r == -EWOULDBLOCK ? -ENOENT : r;
	if (!private_has_name(p->lock, p->fd, PRIVATE_LOCK) ||
	    !private_has_name(p->fd, p->parent, p->name))
		return -ENOENT;
	p->number = private_sign(p->fd, p->lock);
	return 0;
}

static int private_make_once(struct private_directory *p, int parent, struct failure *fail)
{
	struct timespec start;
	*p = (struct private_directory){.parent = parent, .fd = -1, .lock = -1};
	int r = fail_if(fail, temporary_draw(p->name), "getrandom");
	if (r < 0)
		return r;
	clock_gettime(CLOCK_REALTIME_COARSE, &start);
	if (mkdirat(parent, p->name, 0700) < 0)
		return fail_at(fail, "mkdir");
	r = private_open_new(p, fail);
	if (r == 0 && private_is_older(p->fd, &start))
		r = -ESTALE;
	if (r == 0)
		r = private_create_lock(p, fail);
	if (r == -ESTALE) { /* not ours: leave it alone */
		io_close(p->lock);
		io_close(p->fd);
	} else if (r < 0 && p->fd >= 0) {
		private_end(p);
	} else if (r < 0) {
		unlinkat(parent, p->name, AT_REMOVEDIR);
	}
	return r;
}

int private_make(struct private_directory *p, int parent, struct failure *fail)
{
	int r = -EEXIST;
	for (int tries = 0; tries < TRIES && (r == -EEXIST || r == -ESTALE || r == -ENOENT);
	     tries++)
		r = private_make_once(p, parent, fail);
	if (r < 0)
		*p = (struct private_directory){.parent = parent, .fd = -1, .lock = -1};
	return r;
}

/* Closes the lock first: NFS renames an open file that is removed, and the directory is not empty
 * then. */
void private_end(struct private_directory *p)
{
	io_close(p->lock);
	if (p->fd >= 0) {
		bool named = private_may_have_name(p->fd, p->parent, p->name);
		unlinkat(p->fd, PRIVATE_LOCK, 0);
		close(p->fd);
		if (named)
			unlinkat(p->parent, p->name, AT_REMOVEDIR);
	}
	p->lock = p->fd = -1;
}

/* Is the open directory one that this user has made since `start`? Storage without owners gives all
 * files the same one. */
static bool private_is_new(int parent, int fd, const struct stat *st, const struct timespec *start)
{
	struct stat probe = {.st_uid = (uid_t)-1};
	if (st->st_uid != geteuid() &&
	    (private_probe(parent, 0600, &probe) < 0 || probe.st_uid != st->st_uid))
		return false;
	return !private_is_older(fd, start);
}

/* Opens what mkdir(2) has made since `start`. With O_PATH the rights do not matter that a umask, or
 * a default ACL, has withheld. start: NULL: no other user could replace it. */
static int private_open_made(int dir, const char *name, const struct timespec *start, mode_t *left,
			     struct failure *fail)
{
	struct stat st = {0};
	fail_at(fail, "open");
	int path = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (path < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ESTALE : -errno;
	int fd = -1, r = fstat(path, &st) < 0 ? fail_at(fail, "fstat") : 0;
	*left = st.st_mode & 07777;
	if (r == 0 && start && !private_is_new(dir, path, &st, start))
		r = -ESTALE;
	if (r == 0 && (st.st_mode & 0700) != 0700 && io_chmod(path, *left | 0700) < 0 && !start)
		(void)!fchmodat(dir, name, *left | 0700,
				AT_SYMLINK_NOFOLLOW); /* no /proc, and Linux before 6.6 */
	if (r == 0) { /* storage with fixed modes may admit its owner nevertheless */
		fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0 && start && private_is_empty(fd) == 0)
		r = -ESTALE;
	close(path);
	if (r == 0)
		return fd;
	io_close(fd);
	return r;
}

static int private_make_at(int dir, const char *name, mode_t mode, bool shared, bool closed,
			   mode_t *left, struct failure *fail)
{
	struct timespec start;
	clock_gettime(CLOCK_REALTIME_COARSE, &start);
	if (mkdirat(dir, name, mode) < 0)
		return fail_at(fail, "mkdir");
	const int fd = private_open_made(dir, name, shared ? &start : NULL, left, fail);
	if (fd < 0 && fd != -ESTALE)
		unlinkat(dir, name, AT_REMOVEDIR);
	if (fd >= 0 && closed)
		(void)!fchmod(fd, (*left & 07000) | 0700);
	return fd;
}

static int private_make_aside(int parent, const char *name, mode_t mode, bool closed, mode_t *left,
			      struct failure *fail)
{
	struct private_directory aside;
	int r = private_make(&aside, parent, fail);
	if (r < 0)
		return r == -EEXIST ? -EAGAIN : r; /* drawn names: not that of the directory */
	const int fd = private_make_at(aside.fd, PRIVATE_ENTRY, mode, false, closed, left, fail);
	r = fd < 0 ? fd
		   : fail_if(fail, private_rename(aside.fd, PRIVATE_ENTRY, parent, name), "rename");
	if (r < 0)
		unlinkat(aside.fd, PRIVATE_ENTRY, AT_REMOVEDIR);
	private_end(&aside);
	if (r == 0)
		return fd;
	io_close(fd);
	return r;
}

/* Root never falls back where a rename is refused: the owner of the directory could cause that. */
int private_make_directory(int parent, const char *name, mode_t mode, bool moves, bool closed,
			   mode_t *left, struct failure *fail)
{
	struct stat above;
	if (fstat(parent, &above) < 0)
		return fail_at(fail, "fstat");
	const bool shared = private_is_shared(&above);
	if (shared && moves) {
		int r = private_make_aside(parent, name, mode, closed, left, fail);
		if (r != -EXDEV || geteuid() == 0)
			return r;
	}
	return private_make_at(parent, name, mode, shared, closed, left, fail);
}
