/* SPDX-License-Identifier: MIT
 * Counts what a tree will copy, for the progress line: a separate thread reads the directories of
 * the source, which is much faster than to copy them. Then it looks up the size of each file. Only
 * if the caller wants it, and if the copy takes long.
 */
#include "copy/move.h"
#include "directory.h"
#include "report.h"
#include "source/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE  0.3 /* seconds; a shorter copy needs no total */
#define DEPTH_MAX 256 /* directories that are open at once */
#define PUBLISHED 64  /* entries between two updates of the progress */

struct census {
	const struct tree *tree;
	int src;
	dev_t dev;
	uint64_t bytes, entries; /* with those of earlier operands */
	bool sizes;              /* the second pass: of the files */
	bool partial;            /* something was not counted */
	bool stop;
	pthread_mutex_t lock; /* of stop */
	pthread_cond_t wake;
	pthread_t thread;
};

/* Merges and resumed copies leave files alone, and links are made instead of copies: such bytes
 * never count as copied. */
static bool census_knows_bytes(const struct tree *t)
{
	const struct fcopy_tree_options *o = t->options;
	return !t->root.ground.journal && o->update == FCOPY_UPDATE_ALL && !o->link_dest &&
	       !o->link && !o->symbolic_link && !o->attributes_only;
}

static void census_publish(const struct census *c, bool complete)
{
	struct fcopy_progress *p = c->tree->options->copy.progress;
	if (c->sizes && complete)
		__atomic_store_n(&p->total, c->bytes, __ATOMIC_RELAXED);
	if (c->sizes)
		return;
	__atomic_store_n(&p->total_entries, c->entries, __ATOMIC_RELAXED);
	__atomic_store_n(&p->total_is_final, complete, __ATOMIC_RELEASE);
}

static bool census_stopped(const struct census *c)
{
	return __atomic_load_n(&c->stop, __ATOMIC_RELAXED) || tree_stopped(c->tree);
}

static void census_directory(struct census *c, int fd, unsigned depth);

static void census_add(struct census *c, int dir, const char *name, unsigned char type,
		       unsigned depth)
{
	const struct fcopy_tree_options *o = c->tree->options;
	struct stat st = {.st_mode = DTTOIF(type)};
	if (!c->sizes && ++c->entries % PUBLISHED == 0)
		census_publish(c, false);
	if (type == DT_UNKNOWN || (c->sizes && type == DT_REG) ||
	    (o->one_file_system && type == DT_DIR))
		/* If it vanished, it is not copied either. */
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return;
	if (c->sizes && S_ISREG(st.st_mode))
		/* Of hard links only one is copied: together they count once. */
		c->bytes += (uint64_t)st.st_size /
			    (o->hard_links && st.st_nlink > 1 ? st.st_nlink : 1);
	if (!S_ISDIR(st.st_mode) || (o->one_file_system && st.st_dev != c->dev))
		return;
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = depth < DEPTH_MAX ? openat(dir, name, flags) : -1;
	if (fd >= 0)
		census_directory(c, fd, depth + 1);
	else
		c->partial = true;
}

/* Takes fd. */
static void census_directory(struct census *c, int fd, unsigned depth)
{
	char *buffer = malloc(READER_SIZE);
	struct reader r = reader_of(fd, buffer, READER_SIZE);
	for (const char *name; buffer && !census_stopped(c) && (name = reader_next(&r));)
		census_add(c, fd, name, r.type, depth);
	/* ENOENT: a directory that was removed */
	c->partial |= !buffer || (r.error < 0 && r.error != -ENOENT) || census_stopped(c);
	free(buffer);
	close(fd);
}

static void census_wait(struct census *c)
{
	const struct timespec until = io_deadline(PATIENCE);
	pthread_mutex_lock(&c->lock);
	while (!c->stop && pthread_cond_timedwait(&c->wake, &c->lock, &until) == 0)
		;
	pthread_mutex_unlock(&c->lock);
}

/* Operands that follow are not counted yet: then the total is not final. */
static void census_pass(struct census *c, bool sizes)
{
	int fd = openat(c->src, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	c->sizes = sizes;
	c->entries += !sizes; /* the directory itself */
	if (fd >= 0)
		census_directory(c, fd, 0);
	else
		c->partial = true;
	census_publish(c, !c->partial && c->tree->root.last);
}

static void *census_run(void *arg)
{
	struct census *c = arg;
	census_wait(c);
	if (!census_stopped(c))
		census_pass(c, false);
	if (!c->partial && census_knows_bytes(c->tree) && !census_stopped(c))
		census_pass(c, true);
	return NULL;
}

struct census *census_start(const struct tree *t, const struct directory *root)
{
	const struct fcopy_progress *p = t->options->copy.progress;
	if (!p || !p->wants_total || t->filter || t->share.by ||
	    t->options->follow == FCOPY_FOLLOW_ALWAYS)
		return NULL;
	struct census *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct census){.tree = t,
			     .src = root->src,
			     .dev = t->root.inodes.src.dev,
			     .bytes = __atomic_load_n(&p->bytes, __ATOMIC_RELAXED),
			     .entries = __atomic_load_n(&p->entries, __ATOMIC_RELAXED),
			     .lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_condattr_t clock;
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &clock);
	if (cpus_start_thread(&c->thread, census_run, c) == 0)
		return c;
	free(c); /* the progress has no total then */
	return NULL;
}

void census_stop(struct census *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	__atomic_store_n(&c->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	free(c);
}
