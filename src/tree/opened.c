/* SPDX-License-Identifier: MIT
 * Which directories of a tree are open. Each has two descriptors, or three with --link-dest, until
 * everything below it is finished, so a deep tree would need them for each level. If they run
 * short, directories that no thread uses are closed, the one that was used least recently first; a
 * thread that needs one opens it again. A name can have been exchanged since: what it names now
 * must be the same inode. A subdirectory is in one of these states:
 *
 *     state   src    users  in the list
 *     ------  -----  -----  -----------
 *     in use  >= 0   > 0    no           by opened_use(): it stays open until opened_unuse()
 *     idle    >= 0   0      yes          by opened_add(), opened_unuse()
 *     closed  -1     0      no           from idle, when descriptors run short
 *     ended   -1     any    no           by opened_end()
 */
#include "directory.h"
#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define OF_THREAD                                                                                  \
	16        /* descriptors that a thread may need for one entry, and to open a directory     \
		   */
#define OF_TREE 8 /* ... and the tree, after its directory was opened */

static unsigned long opened_descriptors_left(const struct directory *root)
{
	struct rlimit limit;
	int last = root->src > root->dst ? root->src : root->dst;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT_MAX)
		return INT_MAX;
	/* The kernel returns the lowest free descriptor. */
	return limit.rlim_cur > (rlim_t)last + OF_TREE ? limit.rlim_cur - (rlim_t)last - OF_TREE
						       : 0;
}

void opened_start(struct tree *t, const struct directory *root)
{
	t->opened = (struct opened){.lock = PTHREAD_MUTEX_INITIALIZER,
				    .descriptors = opened_descriptors_left(root)};
	unsigned most = (unsigned)(t->opened.descriptors / OF_THREAD);
	t->opened.threads = most > 1 ? most : 1;
}

/* How many directories may be open. A thread needs the one that it reads, and the one that it
 * enters. */
static unsigned long opened_most(const struct tree *t)
{
	const unsigned long threads = __atomic_load_n(&t->pool.threads.workers, __ATOMIC_RELAXED);
	const unsigned long used = threads * OF_THREAD;
	const unsigned long left = t->opened.descriptors > used ? t->opened.descriptors - used : 0;
	const unsigned long most = left / (t->options->link_dest ? 3 : 2);
	return most > 2 * threads ? most : 2 * threads;
}

static void opened_list_remove(struct opened *o, struct directory *d)
{
	const struct opened_directory *x = &d->opened;
	*(x->before ? &x->before->opened.after : &o->first) = x->after;
	*(x->after ? &x->after->opened.before : &o->last) = x->before;
}

static void opened_list_append(struct opened *o, struct directory *d)
{
	d->opened.before = o->last;
	d->opened.after = NULL;
	*(o->last ? &o->last->opened.after : &o->first) = d;
	o->last = d;
}

/* Notes which directory of the earlier copy is open. */
static bool opened_note_link(struct directory *d)
{
	struct stat st;
	if (d->link < 0)
		return true;
	if (fstat(d->link, &st) < 0)
		return false;
	d->opened.link = inode_of(&st);
	return true;
}

/* Notes which inode the copy is. */
static bool opened_note_inode(struct directory *d)
{
	struct stat st;
	if (d->dst_inode.dev || d->dst < 0)
		return true;
	if (fstat(d->dst, &st) < 0)
		return false;
	d->dst_inode = inode_of(&st);
	return true;
}

/* The descriptors of a directory that is not open any more. */
struct closing {
	int fd[3];
};

static void opened_close(const struct closing *c)
{
	for (int i = 0; i < 3; i++)
		io_close(c->fd[i]);
}

static struct closing opened_take(struct tree *t, struct directory *d)
{
	const struct closing c = {{d->src, d->dst, d->link}};
	d->src = d->dst = d->link = -1;
	t->opened.count--;
	return c;
}

/* The rest of a directory's names can be read from this descriptor only. */
static void opened_close_unused(struct tree *t)
{
	const unsigned long most = opened_most(t);
	struct directory *d = t->opened.first;
	while (d && t->opened.count > most) {
		struct directory *next = d->opened.after;
		if ((d->names == NAMES_READ || d->names == NAMES_LOST) && opened_note_link(d) &&
		    opened_note_inode(d)) {
			/* Another user can make a directory that gets its inode number. */
			if (d->dst >= 0 && t->root.ground.foreign)
				d->opened.id = identity_of(d->dst);
			opened_list_remove(&t->opened, d);
			const struct closing c = opened_take(t, d);
			opened_close(&c);
		}
		d = next;
	}
}

bool opened_are_many(struct tree *t)
{
	pthread_mutex_lock(&t->opened.lock);
	bool many = 2 * t->opened.count >= opened_most(t);
	pthread_mutex_unlock(&t->opened.lock);
	return many;
}

void opened_add(struct tree *t, struct directory *d)
{
	pthread_mutex_lock(&t->opened.lock);
	t->opened.count++;
	opened_list_append(&t->opened, d);
	opened_close_unused(t);
	pthread_mutex_unlock(&t->opened.lock);
}

int directory_open(const struct tree *t, int parent, const char *name)
{
	const struct fcopy_options *o = &t->options->copy;
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	int fd = openat(parent, name, O_RDONLY | flags);
	if (fd < 0 && errno == EACCES && !o->preserve && !o->fsync && !t->root.ground.journal &&
	    !t->share.by && faccessat(parent, name, X_OK, AT_EACCESS) == 0)
		fd = openat(parent, name, O_PATH | flags);
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? -errno : fd;
}

int directory_follow(int parent, const char *name, int flags)
{
	uid_t user;
	const int fd = io_open_link(parent, name, flags | O_DIRECTORY | O_NONBLOCK, &user);
	if (user == 0)
		return fd;
	io_close(fd); /* of O_PATH */
	return -EPERM;
}

int directory_open_old(const struct tree *t, int parent, const char *name)
{
	int fd = directory_open(t, parent, name);
	if ((fd != -ENOTDIR && fd != -ELOOP) || !t->options->keep_directory_symlink ||
	    !t->root.ground.foreign)
		return fd;
	fd = directory_follow(parent, name, O_RDONLY);
	return fd == -ENOENT ? -ENOTDIR : fd;
}

/* The directories that one of the tree stands for. */
enum opened_side { OPENED_SRC, OPENED_DST, OPENED_LINK };

static int opened_side(const struct directory *d, enum opened_side side)
{
	return side == OPENED_SRC ? d->src : side == OPENED_DST ? d->dst : d->link;
}

/* Opens a name that should be this directory of d. Returns a descriptor or -errno. */
static int opened_open_checked(const struct tree *t, const struct directory *d,
			       enum opened_side side, int at, const char *name, bool passes)
{
	const bool follow = side == OPENED_SRC && t->options->follow == FCOPY_FOLLOW_ALWAYS;
	const int flags = O_DIRECTORY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
	const struct inode was[] = {inode_of(&d->st), d->dst_inode, d->opened.link};
	struct stat st;
	const bool keeps = side == OPENED_DST && t->options->keep_directory_symlink;
	const int how = (passes && !keeps) || side == OPENED_LINK ? O_PATH
			: side == OPENED_SRC                      ? O_RDONLY | O_NOCTTY
								  : -1;
	int fd = how < 0 ? directory_open_old(t, at, name) : openat(at, name, flags | how);
	if (fd < 0)
		return how < 0 ? fd : -errno;
	int r = fstat(fd, &st) < 0 ? -errno : inode_is(was[side], &st) ? fd : -ESTALE;
	if (r >= 0 && side == OPENED_DST && d->opened.id.known) {
		const struct identity now = identity_of(fd);
		r = identity_is_same(&now, &d->opened.id) ? r : -ESTALE;
	}
	if (r < 0)
		close(fd);
	return r;
}

/* From the nearest directory above that is open. */
static int opened_open_by_names(const struct tree *t, const struct directory *d,
				enum opened_side side)
{
	size_t steps = 0;
	const struct directory *top = d;
	for (; top->src < 0; top = top->parent)
		steps++;
	int fd = opened_side(top, side);
	if (fd < 0) /* of the earlier copy, which lacks it */
		return -ESTALE;
	for (size_t left = steps; left > 0; left--) {
		const struct directory *below = d;
		for (size_t i = 1; i < left; i++)
			below = below->parent;
		int next = opened_open_checked(t, below, side, fd, below->name, left > 1);
		if (left < steps)
			close(fd);
		if (next < 0)
			return next;
		fd = next;
	}
	return fd;
}

/* ".." of a directory below, which is faster, leads to the same inode unless one was moved. */
static int opened_open_again(const struct tree *t, const struct directory *d, enum opened_side side,
			     const struct directory *below)
{
	int at = below ? opened_side(below, side) : -1;
	int fd = at >= 0 ? opened_open_checked(t, d, side, at, "..", false) : -1;
	return fd >= 0 ? fd : opened_open_by_names(t, d, side);
}

/* The lock is held. */
static int opened_open(struct tree *t, struct directory *d, const struct directory *below)
{
	const bool has[] = {true, d->dst_inode.dev != 0, d->opened.link.dev != 0};
	int fd[] = {-1, -1, -1};
	for (int side = OPENED_SRC; side <= OPENED_LINK; side++) {
		if (!has[side])
			continue;
		fd[side] = opened_open_again(t, d, side, below);
		/* What is gone from the earlier copy is copied. */
		if (fd[side] >= 0 || (side == OPENED_LINK && opened_is_gone(-fd[side])))
			continue;
		const int err = fd[side];
		while (--side >= OPENED_SRC)
			io_close(fd[side]);
		return err;
	}
	d->src = fd[OPENED_SRC];
	d->dst = fd[OPENED_DST];
	d->link = fd[OPENED_LINK] >= 0 ? fd[OPENED_LINK] : -1;
	if (d->link < 0)
		d->opened.link = (struct inode){0, 0};
	t->opened.count++;
	return 0;
}

int opened_use(struct tree *t, struct directory *d)
{
	int r = 0;
	pthread_mutex_lock(&t->opened.lock);
	if (d->parent && d->src < 0)
		r = opened_open(t, d, NULL);
	else if (d->parent && d->opened.users == 0)
		opened_list_remove(&t->opened, d);
	if (r == 0) {
		d->opened.users++;
		opened_close_unused(t);
	}
	pthread_mutex_unlock(&t->opened.lock);
	return r;
}

void opened_unuse(struct tree *t, struct directory *d)
{
	pthread_mutex_lock(&t->opened.lock);
	if (--d->opened.users == 0 && d->parent && d->src >= 0)
		opened_list_append(&t->opened, d);
	pthread_mutex_unlock(&t->opened.lock);
}

void opened_end(struct tree *t, struct directory *d)
{
	struct directory *parent = d->parent;
	struct closing c = {{-1, -1, -1}};
	pthread_mutex_lock(&t->opened.lock);
	/* It is probably next, and by ".." of d it takes one call, whatever the depth. */
	if (parent->parent && parent->src < 0 && d->src >= 0 && opened_open(t, parent, d) == 0)
		opened_list_append(&t->opened, parent);
	if (d->src >= 0)
		c = opened_take(t, d);
	pthread_mutex_unlock(&t->opened.lock);
	opened_close(&c);
}

struct inode opened_inode(struct tree *t, struct directory *d)
{
	pthread_mutex_lock(&t->opened.lock);
	(void)opened_note_inode(d);
	const struct inode i = d->dst_inode;
	pthread_mutex_unlock(&t->opened.lock);
	return i;
}

/* Do two descriptors have one path? */
static bool opened_have_one_path(int a, int b)
{
	char path[PATH_MAX], other[PATH_MAX];
	const ssize_t n = readlink(io_proc_path(a).text, path, sizeof(path));
	return n > 0 && n == readlink(io_proc_path(b).text, other, sizeof(other)) &&
	       memcmp(path, other, (size_t)n) == 0;
}

/* Does the name lead to the open directory fd, which had this stat when it was opened? Where inode
 * numbers change while a directory is open (some FUSE), its path decides: the kernel marks that of
 * a directory that was removed, and follows its renames. Returns as opened_check_name(). */
static int opened_leads_to(int at, const char *name, bool follow, int fd, const struct stat *then)
{
	struct stat named = {0}, now = {0};
	const int path = openat(at, name,
				O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));
	if (path < 0)
		return -errno;
	/* Names such as . lead to a directory that was removed, too: it has no link left. Some FUSE
	 * file systems report none at all. */
	const int r = fstat(path, &named) < 0 || fstat(fd, &now) < 0 ? -errno : 0;
	bool same = r == 0 && named.st_dev == now.st_dev &&
		    (now.st_nlink > 0 || then->st_nlink == 0);
	if (same && named.st_ino != now.st_ino)
		same = now.st_ino != then->st_ino && opened_have_one_path(path, fd);
	close(path);
	return r < 0 || same ? r : -ESTALE;
}

int opened_check_name(struct tree *t, struct directory *d)
{
	struct directory *parent = d->parent;
	if (!parent)
		return opened_leads_to(AT_FDCWD, d->src_path, true, d->src, &d->st);
	int r = opened_use(t, parent);
	if (r < 0)
		return r;
	r = opened_leads_to(parent->src, d->name, t->options->follow == FCOPY_FOLLOW_ALWAYS, d->src,
			    &d->st);
	opened_unuse(t, parent);
	return r;
}

bool opened_is_lacking(struct tree *t, const struct directory *d)
{
	struct stat st;
	if (!d->parent || opened_use(t, d->parent) < 0)
		return false;
	const bool lacks = fstatat(d->parent->src, d->name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			   errno == ENOENT;
	opened_unuse(t, d->parent);
	return lacks;
}
