/* SPDX-License-Identifier: MIT
 * The attributes of an entry's copy, and what becomes of one that is lost.
 */
#include "endpoints/error.h"
#include "entry.h"
#include "io/system.h"
#include "report.h"

#include <errno.h>
#include <unistd.h>

struct losing {
	struct worker *w;
	const struct entry *e;
	bool goes_on;
	int lost;
};

/* A directory has no pages whose error this could be; of other storage, an errno proves little. */
int preserve_lose(struct worker *w, const struct entry *e, unsigned which,
		  const struct fcopy_error *error)
{
	/* A symlink to the source need not have its owner. */
	if (w->tree->options->symbolic_link && e->name[0] && which == FCOPY_ATTR_OWNERSHIP &&
	    error->err == EPERM && geteuid() != 0)
		return 0;
	const bool fails = error->path == entry_dst && error_is_of_storage(error) &&
			   system_has(e->dir->dst, SYSTEM_FAITHFUL);
	if (!(w->tree->options->copy.preserve_required & which) && !fails) {
		report_warning(w, e, error);
		return 0;
	}
	return report_failure(w, e, error);
}

static int preserve_lose_one(void *arg, enum fcopy_attribute which, const struct fcopy_error *error)
{
	struct losing *l = arg;
	const int r = preserve_lose(l->w, l->e, which, error);
	if (r < 0)
		l->lost = r;
	return l->goes_on ? 0 : r;
}

static int preserve_all(struct losing *l, const struct xattr_file *src,
			const struct xattr_file *dst, const struct stat *st, unsigned which,
			bool exposed)
{
	const struct tree *t = l->w->tree;
	struct attributes_held held = {0};
	struct stat was;
	if (exposed && S_ISREG(st->st_mode) && fstat(dst->fd, &was) == 0)
		held = attributes_hold(src->fd, st, dst->fd, &was);
	held.known = exposed;
	struct attributes_pair pair = {
	    .src = *src,
	    .dst = *dst,
	    .st = st,
	    .src_path = entry_src,
	    .dst_path = entry_dst,
	    .storage = t->known.storage,
	    .required = t->options->copy.preserve_required,
	    .held = held,
	    .reused = !dst->by_path &&
		      (t->root.ground.journal || t->share.by || t->options->update)};
	(void)attributes_apply(&pair, t->options->copy.preserve & which, preserve_lose_one, l);
	return l->lost;
}

int preserve_entry(struct worker *w, const struct entry *e, const struct xattr_file *src,
		   const struct xattr_file *dst, const struct stat *st, unsigned which)
{
	struct losing l = {.w = w, .e = e, .goes_on = !dst->by_path};
	return preserve_all(&l, src, dst, st, which, false);
}

int preserve_open(struct worker *w, const struct entry *e, int src, int dst, const struct stat *st,
		  bool exposed)
{
	struct losing l = {.w = w, .e = e, .goes_on = true};
	return preserve_all(&l, &(struct xattr_file){.fd = src}, &(struct xattr_file){.fd = dst},
			    st, ~0U, exposed);
}
