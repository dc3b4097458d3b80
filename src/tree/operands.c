/* SPDX-License-Identifier: MIT
 * What the operands of a tree name, and what is refused before anything is created.
 */
#include "endpoints/error.h"
#include "io/io.h"
#include "part/part.h"
#include "report.h"
#include "root.h"
#include "source/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int operands_compare_names(const void *a, const void *b)
{
	const struct operand *const *oa = a, *const *ob = b;
	return strcmp((*oa)->place.name, (*ob)->place.name);
}

#define SAME_NAME "have the same name: one would replace the other"
#define PART_NAME                                                                                  \
	"cannot be copied together: an unfinished copy of the first would have the name of the "   \
	"second"

static int operands_refuse_names(struct tree *t, const char *a, const char *b, const char *reason)
{
	struct fcopy_error error;
	error_refuse(&error, a, EEXIST, reason, FCOPY_ADVICE_USAGE);
	error.path2 = b;
	return report_operand(t, &error);
}

/* Sets part to the name under which an unfinished copy of src is kept. Returns false if none is
 * kept: without --resume only that of a directory is. */
static bool operands_make_part_name(const struct tree *t, const struct operand *src,
				    char part[NAME_MAX + 1])
{
	if (operand_is_unnamed(src))
		return false;
	const struct operand *dst = &t->operands->dst;
	part_make_name(part, dst->kind == OPERAND_DIRECTORY ? dst->place.target : -1,
		       src->place.name);
	return t->options->copy.resume || src->kind == OPERAND_DIRECTORY;
}

/* A source that is merged into DST itself must not have an entry with the name of another one. */
static int operands_check_merged(struct tree *t, const struct operand *merged)
{
	struct stat st;
	char path[PATH_MAX], part[NAME_MAX + 1];
	for (size_t i = 0; i < t->operands->count; i++) {
		const struct operand *src = &t->operands->src[i];
		if (src == merged)
			continue;
		int size = snprintf(path, sizeof(path), "%s/%s", merged->path, src->place.name);
		if (size >= (int)sizeof(path))
			return tree_fail(t, "stat", merged->path, ENAMETOOLONG);
		if (lstat(path, &st) == 0)
			return operands_refuse_names(t, path, src->path, SAME_NAME);
		if (operands_make_part_name(t, src, part) &&
		    snprintf(path, sizeof(path), "%s/%s", merged->path, part) < (int)sizeof(path) &&
		    lstat(path, &st) == 0)
			return operands_refuse_names(t, src->path, path, PART_NAME);
	}
	return 0;
}

/* With --parents: where in DST the copy of an operand goes. */
struct below {
	char *path; /* by path_clean() */
	struct operand *src;
};

static int operands_compare_below(const void *a_, const void *b_)
{
	const struct below *a = a_, *b = b_;
	const int r = path_compare(a->path, b->path);
	return r ? r : a->src < b->src ? -1 : 1;
}

#define BELOW_SYMLINK                                                                              \
	"cannot be copied together: the second is below a symlink, which the first copies as one"

/* Does the walk of `top` enter the directory with this path below it? 1, 0, or -ELOOP: it is a
 * symlink. */
static int operands_is_entered(const struct tree *t, const struct below *top, const char *path,
			       const char *below)
{
	const struct fcopy_tree_options *o = t->options;
	const bool follow = o->follow == FCOPY_FOLLOW_ALWAYS || !*below;
	struct stat st;
	if (*below && t->filter && filter_protects(t->filter, below, true))
		return 0;
	if (fstatat(AT_FDCWD, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	return faccessat(AT_FDCWD, path, R_OK | X_OK, AT_EACCESS) == 0 &&
	       (!o->one_file_system || st.st_dev == top->src->place.st.st_dev);
}

/* Does the walk of `top` meet the operand? Returns 1, 0, or -errno, reported. */
static int operands_is_met(struct tree *t, const struct below *b, const struct below *top)
{
	const struct fcopy_tree_options *o = t->options;
	const int flags = o->follow == FCOPY_FOLLOW_ALWAYS ? 0 : AT_SYMLINK_NOFOLLOW;
	const struct stat *src = &b->src->place.st;
	const char *below = path_below(b->path, top->path);
	char path[PATH_MAX];
	struct stat st = top->src->place.st;
	int r = 1;
	below += *below == '/';
	if (*below && top->src->kind == OPERAND_SYMLINK)
		return operands_refuse_names(t, top->src->path, b->src->path, BELOW_SYMLINK);
	const int start = snprintf(path, sizeof(path), "%s/", top->src->path);
	if (start + strlen(below) >= sizeof(path) || (*below && !S_ISDIR(st.st_mode)))
		return 0;
	strcpy(path + start, below);
	for (char *end = path + start - 1; *below && end && r > 0; end = strchr(end + 1, '/')) {
		*end = '\0';
		r = operands_is_entered(t, top, path, end < path + start ? "" : path + start);
		*end = '/';
	}
	if (r == -ELOOP)
		return operands_refuse_names(t, top->src->path, b->src->path, BELOW_SYMLINK);
	if (r > 0 && *below)
		r = fstatat(AT_FDCWD, path, &st, flags) == 0 &&
		    !(t->filter && filter_protects(t->filter, path + start, S_ISDIR(st.st_mode)));
	return r > 0 && same_inode(&st, src);
}

/* Where one SRC contains another one, each entry is copied once, so that their order has no effect:
 * sets `covered`. They are sorted; `top` has room for all. */
static int operands_cover(struct tree *t, struct below *b, size_t n, struct below **top)
{
	size_t above = 0;
	qsort(b, n, sizeof(*b), operands_compare_below);
	for (size_t i = 0; i < n; i++) {
		while (above > 0 && !path_below(b[i].path, top[above - 1]->path))
			above--;
		const int r = above > 0 ? operands_is_met(t, &b[i], top[above - 1]) : 0;
		if (r < 0)
			return r;
		b[i].src->covered = r > 0;
		if (r == 0 && (b[i].src->kind != OPERAND_DIRECTORY || t->options->recursive))
			top[above++] = &b[i];
	}
	return 0;
}

static int operands_check_below(struct tree *t)
{
	size_t n = 0;
	int r = 0;
	struct below *b = calloc(t->operands->count, sizeof(*b));
	struct below **top = calloc(t->operands->count, sizeof(struct below *));
	if (!b || !top)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < t->operands->count; i++) {
		b[n].src = &t->operands->src[i];
		if (b[n].src->place.exists && (r = path_clean(b[n].src->path, &b[n].path)) == 0)
			n++;
		if (r == -EINVAL) /* only the last component is .. */
			r = 0;
	}
	r = r < 0 ? tree_fail(t, "malloc", NULL, ENOMEM) : operands_cover(t, b, n, top);
	for (size_t i = 0; i < n; i++)
		free(b[i].path);
	free(top);
	free(b);
	return r;
}

/* The second of two sources with the same name would replace the first. The copy of a source would
 * also replace an unfinished copy of another one that has its name. */
static int operands_check_sorted(struct tree *t, const struct operand **sorted, size_t n)
{
	struct operand part = {.path = NULL};
	const struct operand *key = &part, **other;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && operands_compare_names(&sorted[i - 1], &sorted[i]) == 0)
			return operands_refuse_names(t, sorted[i - 1]->path, sorted[i]->path,
						     SAME_NAME);
		if (operands_make_part_name(t, sorted[i], part.place.name) &&
		    (other = bsearch(&key, sorted, n, sizeof(*sorted), operands_compare_names)))
			return operands_refuse_names(t, sorted[i]->path, (*other)->path, PART_NAME);
	}
	return 0;
}

static int operands_check_names(struct tree *t)
{
	const size_t n = t->operands->count;
	const struct operand *unnamed = NULL;
	if (n < 2)
		return 0;
	if (t->options->parents) /* then the paths differ */
		return t->options->files ? 0 : operands_check_below(t);
	const struct operand **sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return tree_fail(t, "malloc", NULL, ENOMEM);
	int r = 0;
	for (size_t i = 0; i < n && r == 0; i++) {
		sorted[i] = &t->operands->src[i];
		if (!operand_is_unnamed(sorted[i]))
			continue;
		if (unnamed)
			r = tree_refuse(t, sorted[i]->path, EINVAL,
					"is merged into DST itself: give no other SRC",
					FCOPY_ADVICE_USAGE);
		unnamed = sorted[i];
	}
	if (r == 0 && unnamed)
		r = operands_check_merged(t, unnamed);
	if (r == 0) {
		qsort(sorted, n, sizeof(*sorted), operands_compare_names);
		r = operands_check_sorted(t, sorted, n);
	}
	free(sorted);
	return r;
}

static int operands_check_rules(struct tree *t)
{
	struct fcopy_error error;
	char detail[FCOPY_DETAIL_MAX];
	int r = 0;
	for (size_t i = 0; i < t->operands->count && r == 0; i++)
		r = rules_check(&(struct request){.src = &t->operands->src[i],
						  .dst = &t->operands->dst,
						  .options = &t->options->copy,
						  .tree = t->options,
						  .sources = t->operands->count},
				&error, detail);
	if (r < 0)
		report_operand(t, &error);
	return r;
}

/* Does the directory DST have the part of DST/SRC? Then that is what --resume continues. */
static bool operands_continue_inside(const struct tree *t)
{
	struct stat st;
	char part[NAME_MAX + 1];
	const struct operand *src = &t->operands->src[0], *dst = &t->operands->dst;
	if (t->operands->count != 1 || src->kind != OPERAND_DIRECTORY || operand_is_unnamed(src) ||
	    dst->kind != OPERAND_DIRECTORY)
		return false;
	part_make_name(part, dst->place.target, src->place.name);
	return fstatat(dst->place.target, part, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

int operands_find(struct tree *t, const char *const *src, size_t n, const char *dst)
{
	const struct fcopy_tree_options *o = t->options;
	const bool follow = o->follow == FCOPY_FOLLOW_DEFAULT ? !o->recursive
							      : o->follow != FCOPY_FOLLOW_NEVER;
	if (n == 0)
		return tree_refuse(t, dst, EINVAL, "there is no source", FCOPY_ADVICE_USAGE);
	for (size_t i = 0; i < n; i++)
		if (src[i][0] == '\0')
			return tree_look_up(t, "stat", src[i], ENOENT);
	if (dst[0] == '\0')
		return tree_look_up(t, "stat", dst, ENOENT);
	t->operands->src = calloc(n, sizeof(*t->operands->src));
	if (!t->operands->src)
		return tree_fail(t, "calloc", dst, ENOMEM);
	t->operands->count = n;
	for (size_t i = 0; i < n; i++) {
		struct operand *found = &t->operands->src[i];
		operand_find_source(found, src[i], follow);
		if (found->place.exists && inodes_add(&t->operands->inodes, &found->place.st) < 0)
			return tree_fail(t, "malloc", dst, ENOMEM);
	}
	/* The next run of a command with --resume, or the next shard, finds the copy as DST. */
	const bool itself = o->copy.no_directory || ((o->copy.resume || t->share.by) &&
						     t->operands->src[0].kind == OPERAND_DIRECTORY);
	operand_find_destination(&t->operands->dst, dst, n > 1 || o->into_directory || !itself);
	if (o->copy.resume && !o->copy.no_directory && operands_continue_inside(t))
		t->operands->dst.kind = OPERAND_INTO;
	return 0;
}

/* With -T. Skipped is what exists, of any type. */
static bool operands_replace_directory(const struct tree *t)
{
	const struct operand *src = t->operands->src;
	return t->operands->dst.kind == OPERAND_DIRECTORY && t->operands->count == 1 &&
	       !t->options->copy.no_clobber && t->options->update != FCOPY_UPDATE_NONE &&
	       (src->kind == OPERAND_FILE || src->kind == OPERAND_SYMLINK ||
		src->kind == OPERAND_DEVICE);
}

/* With several sources, or -t, DST must be a directory. */
static int operands_check_directory(struct tree *t)
{
	const struct operand *dst = &t->operands->dst;
	if (operands_replace_directory(t))
		return tree_unsuitable(t, (struct fcopy_error){.err = EISDIR,
							       .path = dst->path,
							       .reason = "is a directory"});
	if (dst->kind == OPERAND_INTO ||
	    (t->operands->count == 1 && !t->options->into_directory && !t->options->parents))
		return 0;
	const bool several = t->operands->count > 1 && !t->options->into_directory;
	if (dst->kind == OPERAND_NEW || dst->error.err == ENOENT) {
		struct fcopy_error error = NO_DIRECTORY(dst->path);
		if (several)
			error.reason = "no such directory for several SRC";
		return tree_unsuitable(t, error);
	}
	if (dst->kind != OPERAND_FAILED)
		return tree_unsuitable(
		    t,
		    (struct fcopy_error){
			.err = ENOTDIR,
			.path = dst->path,
			.reason = several ? "is not a directory, which several SRC need" : NULL});
	return report_operand(t, &dst->error);
}

/* Before a part is made, which could not be resumed: --link-dest excludes that. */
static int operands_check_link_dest(struct tree *t)
{
	const char *path = t->options->link_dest;
	int fd = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (path && fd < 0)
		return tree_look_up(t, "open", path, errno);
	if (path)
		close(fd);
	return 0;
}

/* With --parents: the directories above each SRC are made below DST, and no other ones. */
static int operands_check_parents(struct tree *t)
{
	for (size_t i = 0; t->options->parents && i < t->operands->count; i++) {
		const struct operand *src = &t->operands->src[i];
		char directory[PATH_MAX], *clean = NULL;
		if (src->start >= sizeof(directory))
			continue; /* it is too long to exist */
		operand_directory(src, directory);
		const int r = path_clean(directory, &clean);
		if (r == 0)
			free(clean);
		else if (r == -EINVAL)
			return tree_refuse(t, src->path, EINVAL,
					   "contains '..': --parents cannot copy it below DST",
					   FCOPY_ADVICE_USAGE);
		else
			return tree_fail(t, "malloc", NULL, -r);
	}
	return 0;
}

int operands_check(struct tree *t)
{
	int r = operands_check_rules(t);
	if (r == 0)
		r = operands_check_directory(t);
	if (r == 0)
		r = operands_check_link_dest(t);
	if (r == 0)
		r = operands_check_parents(t);
	return r < 0 ? r : operands_check_names(t);
}
