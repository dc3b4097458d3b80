/* SPDX-License-Identifier: MIT
 * The commit of a tree: everything that one process has to do when all chunks are complete. It is
 * two walks of what the list has: the first one makes hard links, and gives large files their
 * attributes; in the second one the directories end.
 */
#include "endpoints/error.h"
#include "endpoints/replace.h"
#include "io/hash.h"
#include "shard_tree.h"
#include "tree/directory.h"
#include "tree/entry.h"
#include "tree/report.h"
#include "tree/root.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What the walks meet. */
struct finish {
	struct outline files;       /* hard links and large files */
	struct outline directories; /* with the sums of the names in them */
};

/* The permissions that the copy of a large file gets: those of the list, unless chmod(2) or
 * chown(2) has changed them since, perhaps because no shard could read the file. */
static struct stat finish_permissions(const struct worker *w, int src, const struct stat *listed)
{
	struct stat st = *listed, now;
	if (fstat(src, &now) < 0 || now.st_ino != st.st_ino)
		return st;
	source_hide_mode(&now, &w->options);
	st.st_mode = now.st_mode;
	st.st_uid = now.st_uid;
	st.st_gid = now.st_gid;
	return st;
}

static void finish_large_copy(struct worker *w, const struct entry *e, int src, int dst)
{
	const struct stat st = finish_permissions(w, src, &line_of(e)->entry.st);
	const mode_t extra = 0600 & ~(st.st_mode & permissions_left(w->tree, e->dir->dst));
	struct stat now;
	int r = 0;
	if (fstat(dst, &now) < 0)
		r = report_call(w, e, "fstat", entry_dst, errno);
	else if (extra && fchmod(dst, now.st_mode & 07777 & ~extra) < 0)
		r = report_call(w, e, "fchmod", entry_dst, errno);
	if (r == 0)
		r = preserve_open(w, e, src, dst, &st, false);
	if (r == 0 && w->tree->root.ground.flush == FLUSH_EACH && fsync(dst) < 0)
		report_call(w, e, "fsync", entry_dst, errno);
}

/* A large file gets its attributes when all its ranges are complete. */
static void finish_large_file(struct worker *w, const struct entry *e)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	const int src = openat(e->dir->src, e->name, flags | (e->follow ? 0 : O_NOFOLLOW));
	const int dst = src < 0 ? -1 : openat(e->dir->dst, e->as, flags | O_NOFOLLOW);
	if (dst < 0)
		report_call(w, e, "open", src < 0 ? entry_src : entry_dst, errno);
	else
		finish_large_copy(w, e, src, dst);
	io_close(src);
	io_close(dst);
}

/* Splits off the last name of a path: what stays is that of a directory. */
static const char *finish_split(char **path)
{
	static char top[] = ".";
	char *slash = strrchr(*path, '/'), *name = slash ? slash + 1 : *path;
	if (slash)
		*slash = '\0';
	else
		*path = top;
	return name;
}

/* It may have its final mode, from a commit that was killed. */
static int finish_open_one(int dir, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dir, name, flags);
	if (fd < 0 && errno == EACCES) {
		const int r = permissions_admit_owner(dir, name);
		if (r < 0)
			return r;
		fd = openat(dir, name, flags);
	}
	/* cppcheck-suppress resourceLeak ; the caller closes it */
	return fd < 0 ? -errno : fd;
}

/* Opens a directory of the copy by its path below the operand, which is taken apart; "." is the
 * operand's. No symlink is followed. Returns a descriptor or -errno. */
static int finish_open_path(const struct shard_tree *s, char *path)
{
	for (int fd = s->root.dst;;) {
		char *slash = strchr(path, '/');
		if (slash)
			*slash = '\0';
		const int next = finish_open_one(fd, path);
		if (fd != s->root.dst)
			close(fd);
		if (next < 0 || !slash)
			return next;
		fd = next;
		path = slash + 1;
	}
}

/* Where a file cannot have another name, it is copied once more. */
static void finish_link(struct worker *w, const struct entry *e)
{
	const struct shard_tree *s = w->tree->share.state;
	char *from = line_of(e)->from;
	const char *name = finish_split(&from);
	struct failure fail = {.call = "open"};
	const struct entry other = {
	    .dir = e->dir, .name = e->name, .as = e->as, .follow = e->follow};
	struct copied c = {.at = finish_open_path(s, from), .name = name};
	struct stat st;
	int r = c.at;
	if (r >= 0 && fstatat(c.at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		r = fail_at(&fail, "stat");
	if (r < 0) {
		report_call(w, e, fail.call, entry_dst, -r);
	} else {
		facts_find(w, e, &st);
		r = hard_link_make(w, e, &st, &c, &fail);
		if (r >= 0) {
			report_outcome(w, e, &(struct outcome){.action = FCOPY_ACTION_LINKED});
		} else if (hard_link_is_failure(-r)) {
			report_call(w, e, fail.call, entry_dst, -r);
		} else {
			struct fcopy_error error;
			error_call(&error, fail.call, entry_dst, -r);
			report_warning(w, e, &error);
			entry_copy(w, &other);
		}
	}
	io_close(c.at);
}

static struct listed *finish_next(struct worker *w)
{
	(void)w;
	return NULL;
}

static void finish_one(struct worker *w, const struct entry *e)
{
	switch (line_of(e)->kind) {
	case 'l': finish_link(w, e); break;
	case 'r': finish_large_file(w, e); break;
	default: entry_copy(w, e);
	}
}

/* Walks what is in the outline. ends: directories do. */
static int finish_walk(struct shard_tree *s, struct outline *o, bool ends)
{
	static const struct batches lines = {finish_next, finish_one, NULL};
	struct ground ground = s->ground;
	ground.share = !ends;
	return shard_walk(s, &ground, &lines, &o->root);
}

/* Reads the chunks once more. Notes which names there must be, and what the walks meet. */
static int finish_read_chunks(struct shard_tree *s, struct finish *f)
{
	struct chunk c;
	int r = 0;
	for (unsigned k = 0; r == 0 && k < s->job.chunks; k++) {
		if ((r = chunk_read(&s->job, k, &c)) < 0)
			break;
		for (size_t i = 0; r == 0 && i < c.count; i++) {
			struct line *l = &c.line[i], *in = NULL;
			if (l->first > 0)
				continue;
			if ((l->kind == 'd' && !outline_add(&f->directories, l)) ||
			    (strchr("lr", l->kind) && !outline_copy(&f->files, l)) ||
			    !(in = outline_open(&f->directories, l->dir)))
				r = job_fail(&s->job, NULL, "malloc", ENOMEM);
			else
				in->entry.names += hash_name(l->entry.name);
		}
		chunk_free(&c);
	}
	return r;
}

/* The directory of the operand, and the rename. */
static int finish_root(struct shard_tree *s)
{
	struct building *r = &s->root;
	struct tree *t = r->tree;
	struct stat st;
	struct outcome o = {.type = S_IFDIR};
	struct directory *d = shard_top(s, false);
	if (!d)
		return -s->error.err;
	int result = fstat(r->dst, &st) < 0 ? job_fail(&s->job, NULL, "fstat", errno)
					    : job_note_commit(&s->job, &st);
	if (result == 0) {
		r->mode = temporary_mode(r->to->place.dir, r->from->place.st.st_mode & 01777,
					 NULL) |
			  (st.st_mode & S_ISGID);
		result = commit_root(r, d, &o);
	}
	if (result == 0)
		report_operand_outcome(t, &o, r->to->path, NULL);
	shard_top_free(d);
	return result;
}

static int finish_all(struct shard_tree *s, struct finish *f)
{
	struct tree *t = s->root.tree;
	const bool all = s->job.late;
	int r = finish_read_chunks(s, f);
	if (r == 0 && f->files.lines > 0)
		r = finish_walk(s, &f->files, false);
	if (r == 0 && all)
		r = entries_check(s);
	t->root.doubt = DOUBT_NONE;
	if (r == 0)
		r = finish_walk(s, &f->directories, true);
	/* The look at each copy may have made directories accessible. */
	if (r == 0 && t->root.doubt != DOUBT_NONE && !all && (r = entries_check(s)) == 0)
		r = finish_walk(s, &f->directories, true);
	return r == 0 && t->share.differs ? job_refuse_source(&s->job) : r;
}

int finish_tree(struct shard_tree *s)
{
	struct finish f = {.files = {.lines = 0}};
	double start = io_now();
	int r = finish_all(s, &f);
	s->root.tree->report->seconds[FCOPY_PHASE_COPY] += io_now() - start;
	if (r == 0)
		r = finish_root(s);
	outline_free(&f.files);
	outline_free(&f.directories);
	return r;
}
