/* SPDX-License-Identifier: MIT
 * Which engine moves which bytes: the one that was asked for, or what auto finds fastest and safe.
 */
#define _GNU_SOURCE
#include "copy.h"
#include "extents.h"
#include "io/error.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#define SMALL_SIZE    ((off_t)64 << 10) /* up to here one buffer and no question is the fastest */
#define PARALLEL_SIZE ((off_t)1 << 20)  /* from here on threads gain more than they cost */

/* A mode asked for by name: its one engine moves every byte, or the copy fails. */
static int run_mode(struct copy *c, const struct engine *engine)
{
	struct transfer *t = &c->all;
	int r = allocate_blocks(c, 0, c->src.st.st_size);
	if (r == 0 && c->mode->threads) {
		struct transfer known = *t;
		known.end = c->src.st.st_size;
		if (!c->src.positional || !c->dst.positional) {
			transfer_refuse(t, "threads", SIDE_BOTH, ESPIPE);
			return step_refused(c, engine, t);
		}
		r = step_run_threads(c, engine, &known);
		t->offset = known.offset;
	}
	if (r == 0)
		r = step_run(c, engine, t);
	c->untidy = true;
	return r == ENGINE_NEXT ? step_refused(c, engine, t) : r;
}

/* Lets each engine go on where the one before gave way. The last one never does. */
static int run_chain(struct copy *c, struct transfer *t, const struct engine *const *engines)
{
	int r = ENGINE_NEXT;
	for (; *engines && r == ENGINE_NEXT; engines++)
		r = step_run(c, *engines, t);
	return r;
}

/* After what was planned: until a read says that the source has ended, so that growth is seen. */
static int read_on(struct copy *c)
{
	static const struct engine *const files[] = {&engine_readwrite, NULL};
	static const struct engine *const streams[] = {&engine_splice, &engine_sendfile,
						       &engine_readwrite, NULL};
	bool regular = S_ISREG(c->src.st.st_mode) && S_ISREG(c->dst.st.st_mode);
	return run_chain(c, &c->all, regular ? files : streams);
}

/* The same with one buffer on the stack: read, write, read is all that a small file takes. */
static int read_on_small(struct copy *c)
{
	char buffer[SMALL_SIZE];
	c->all.buffer = buffer;
	c->all.buffer_size = sizeof(buffer);
	int r = step_run(c, &engine_readwrite, &c->all);
	c->all.buffer = NULL;
	c->all.buffer_size = 0;
	return r;
}

/* On network file systems the server may copy by itself. */
static bool is_remote(int fd)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0)
		return false;
	switch ((unsigned)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case CEPH_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC: return true;
	default: return false;
	}
}

static int copy_data(struct copy *c, off_t end)
{
	struct transfer *t = &c->all, part = *t;
	part.end = end;
	int r = ENGINE_NEXT;
	if (c->remote)
		r = step_run(c, &engine_copy_file_range, &part);
	if (r == ENGINE_NEXT)
		r = end - part.offset < PARALLEL_SIZE
			? step_run(c, &engine_readwrite, &part)
			: step_run_threads(c, &engine_readwrite, &part);
	t->offset = part.offset;
	return r;
}

static int skip_hole(struct copy *c, const struct extent *x)
{
	uint64_t n = (uint64_t)(x->end - x->start);
	int r = allocate_hole(c, x->start, x->end);
	if (r == 0 && x->kind == EXTENT_UNWRITTEN)
		r = allocate_unwritten(c, x->start, x->end);
	if (r < 0)
		return r;
	c->report->holes += n;
	c->all.offset = x->end;
	if (c->monitor.progress)
		__atomic_fetch_add(&c->monitor.progress->bytes, n, __ATOMIC_RELAXED);
	return 0;
}

/* Data is copied, holes stay holes, unwritten extents stay allocated. */
static int copy_extents(struct copy *c, off_t size)
{
	struct extents x;
	struct extent e;
	int r = 0;
	extents_start(&x, c->src.fd, 0, size);
	while (r == 0 && extents_next(&x, &e)) {
		if (e.kind != EXTENT_DATA) {
			r = skip_hole(c, &e);
			continue;
		}
		if ((r = allocate_blocks(c, e.start, e.end)) == 0)
			r = copy_data(c, e.end);
		if (c->all.offset < e.end)
			break; /* failed, or the source ended earlier than it said */
	}
	return r;
}

static int clone_file(struct copy *c)
{
	int r = step_run(c, &engine_reflink, &c->all);
	c->report->cloned = r == 0;
	return r;
}

static int copy_file(struct copy *c)
{
	const struct fcopy_options *o = c->options;
	const struct stat *st = &c->src.st;
	bool small = st->st_size <= SMALL_SIZE, dense = st->st_blocks * 512 >= st->st_size;
	int r = ENGINE_NEXT;
	if (st->st_size > 0 && o->reflink != FCOPY_NEVER && o->sparse == FCOPY_AUTO)
		r = clone_file(c);
	if (r == ENGINE_NEXT && o->reflink == FCOPY_ALWAYS)
		return step_refused(c, &engine_reflink, &c->all);
	if (r != ENGINE_NEXT)
		return r;
	c->remote = !small && o->reflink != FCOPY_NEVER && is_remote(c->src.fd);
	if (o->sparse == FCOPY_AUTO && !(small && dense))
		return copy_extents(c, st->st_size);
	if (small)
		return 0;
	if ((r = allocate_blocks(c, 0, o->sparse == FCOPY_NEVER ? st->st_size : 0)) < 0)
		return r;
	return copy_data(c, st->st_size);
}

int plan_run(struct copy *c)
{
	bool files = S_ISREG(c->src.st.st_mode) && c->src.positional && c->dst.positional;
	if (c->mode->engine)
		return run_mode(c, engine_find(c->mode->engine));
	int r = files ? copy_file(c) : 0;
	if (r < 0)
		return r;
	return files && c->src.st.st_size <= SMALL_SIZE ? read_on_small(c) : read_on(c);
}
