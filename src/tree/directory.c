/* SPDX-License-Identifier: MIT
 * A directory that is being copied: its memory, its attributes, and its end when everything below
 * it is finished.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "resume.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

struct directory *directory_new(struct directory *parent, const char *name, int src, int dst,
				const struct stat *st)
{
	size_t length = strlen(name);
	struct directory *d = calloc(1, sizeof(*d) + length + 1);
	if (!d)
		return NULL;
	*d = (struct directory){
	    .parent = parent, .src = src, .dst = dst, .st = *st, .pending = 1, .references = 1};
	memcpy(d->name, name, length + 1);
	if (parent) {
		d->hash = hash_add(hash_add(parent->hash, name, length), "/", 1);
		__atomic_add_fetch(&parent->pending, 1, __ATOMIC_RELAXED);
		directory_ref(parent);
	}
	return d;
}

void directory_ref(struct directory *d)
{
	__atomic_add_fetch(&d->references, 1, __ATOMIC_RELAXED);
}

/* The destination of an operand stays open as long as hard links may be made from below it. */
void directory_unref(struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		if (d->dst >= 0)
			close(d->dst);
		free(d);
		d = parent;
	}
}

int directory_reopen(const struct directory *d)
{
	if (!d->parent)
		return fcntl(d->dst, F_DUPFD_CLOEXEC, 0);
	int parent = directory_reopen(d->parent);
	if (parent < 0)
		return parent;
	int fd = openat(parent, d->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err = errno;
	close(parent);
	if (fd < 0)
		return -err;
	return fd;
}

int directory_preserve(struct worker *w, const struct entry *e, int src, int dst,
		       const struct stat *st)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct metadata_pair pair = {src, dst, st, entry_src, entry_dst};
	int lost = 0;
	for (size_t i = 0; i < METADATA_ATTRIBUTES; i++) {
		struct fcopy_error error;
		if (!(o->preserve & metadata_order[i]) ||
		    metadata_copy_attribute(metadata_order[i], &pair, &error) == 0)
			continue;
		if (!(o->preserve_required & metadata_order[i])) {
			report_warning(w, e, &error);
			continue;
		}
		report_failure(w, e, &error);
		lost = -error.err;
	}
	return lost;
}

bool directory_is_hidden(const struct tree *t)
{
	const unsigned last = FCOPY_ATTR_OWNERSHIP | FCOPY_ATTR_MODE;
	return t->atomic && !t->resume && !t->shard && t->options->copy.preserve & last;
}

/* The permissions that mkdir(2) leaves: a default ACL replaces the umask (acl(5)). A directory
 * inherits the one that it was created under. */
static mode_t directory_permissions(const struct tree *t, int fd)
{
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[65536 / sizeof(struct posix_acl_xattr_entry)];
	} acl;
	mode_t owner = 0, group = 0, other = 0;
	ssize_t n = fgetxattr(fd, "system.posix_acl_default", &acl, sizeof(acl));
	if (n <= (ssize_t)sizeof(acl.header))
		return 0777 & ~t->umask;
	size_t count = ((size_t)n - sizeof(acl.header)) / sizeof(*acl.entries);
	for (size_t i = 0; i < count; i++) {
		mode_t allowed = le16toh(acl.entries[i].e_perm) & 7;
		switch (le16toh(acl.entries[i].e_tag)) {
		case ACL_USER_OBJ: owner = allowed; break;
		case ACL_GROUP_OBJ:
		case ACL_MASK: group = allowed; break; /* the mask comes later */
		case ACL_OTHER: other = allowed; break;
		}
	}
	return owner << 6 | group << 3 | other;
}

/* Attributes come last: files below would change the times, and a mode may forbid to create them.
 */
void directory_set_attributes(struct worker *w, struct directory *d)
{
	const struct fcopy_options *o = &w->tree->options->copy;
	const struct entry e = {.dir = d, .name = "", .as = ""};
	int lost = directory_preserve(w, &e, d->src, d->dst, &d->st);
	/* It was created with all of S_IRWXU, so that entries could be created in it. */
	mode_t extra = 0700 & ~d->st.st_mode, lacks = 0;
	struct stat now;
	if (!d->fresh || o->preserve & FCOPY_ATTR_MODE)
		return;
	if (directory_is_hidden(w->tree) && lost == 0)
		lacks = d->st.st_mode & (01000 | directory_permissions(w->tree, d->dst));
	if (!extra && !(lacks & ~0700u))
		return;
	if (fstat(d->dst, &now) < 0)
		report_call(w, &e, "fstat", entry_dst, errno);
	else if (fchmod(d->dst, (now.st_mode & 07777 & ~extra) | lacks) < 0)
		report_call(w, &e, "fchmod", entry_dst, errno);
}

/* Does the destination have only names that the last walk of shards found in the source? */
static bool directory_is_exact(const struct directory *d)
{
	_Alignas(8) char names[8192];
	unsigned count = 0;
	ssize_t n = -1;
	if (lseek(d->dst, 0, SEEK_SET) == 0)
		while ((n = getdents64(d->dst, names, sizeof(names))) > 0)
			for (ssize_t at = 0; at < n; count++)
				at +=
				    ((const struct dirent64 *)(const void *)(names + at))->d_reclen;
	return n == 0 && count == d->present + 2; /* . and .. */
}

static void directory_flush(struct worker *w, struct directory *d)
{
	struct fcopy_error error;
	const char *call;
	int r = flush_directory(w->tree, d, &call);
	if (r == 0)
		return;
	error_call(&error, call, entry_dst, -r);
	report_failure(w, &(struct entry){.dir = d, .name = "", .as = ""}, &error);
}

static void directory_finish(struct worker *w, struct directory *d)
{
	if (d->resumed && !tree_stopped(w->tree) &&
	    !(w->tree->walk == WALK_FINISHES && directory_is_exact(d)))
		resume_prune(w, d);
	if (!d->parent) /* root.c still needs it */
		return;
	if (!tree_stopped(w->tree) && (!w->tree->shard || w->tree->walk == WALK_FINISHES))
		directory_set_attributes(w, d);
	if (!tree_stopped(w->tree) && d->dst >= 0)
		directory_flush(w, d);
	close(d->src);
	if (d->dst >= 0)
		close(d->dst);
	d->src = d->dst = -1;
}

void directory_release(struct worker *w, struct directory *d)
{
	while (d && __atomic_sub_fetch(&d->pending, 1, __ATOMIC_ACQ_REL) == 0) {
		struct directory *parent = d->parent;
		directory_finish(w, d);
		if (parent) /* the operand's belongs to root.c */
			directory_unref(d);
		d = parent;
	}
}
