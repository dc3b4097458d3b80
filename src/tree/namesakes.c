/* SPDX-License-Identifier: MIT
 * Implements namesakes.h.
 */
#include "namesakes.h"
#include "endpoints/operand.h"
#include "io/hash.h"
#include "io/system.h"
#include "report.h"
#include "source/reader.h"
#include "spelling.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCHED 20000 /* names of each directory of SRC that searches look at */

const struct name_list *namesakes_list(struct directory *d)
{
	struct name_list *there = __atomic_load_n(&d->rivals.there, __ATOMIC_ACQUIRE),
			 *expected = NULL;
	if (there)
		return there;
	if (!(there = malloc(sizeof(*there))))
		return NULL;
	if (names_read(d->dst, there, NULL) < 0)
		*there = (struct name_list){0};
	if (!__atomic_compare_exchange_n(&d->rivals.there, &expected, there, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		names_free(there);
		free(there);
		there = expected;
	}
	return there;
}

/* Did the copy's directory list the name when the first one was asked for? A name that was made
 * since then was made by another process, or SRC lists it twice. If the directory could not be
 * read, each name is looked for alone. */
static bool namesakes_were_listed(struct directory *d, const char *name)
{
	const struct name_list *there = namesakes_list(d);
	return there && there->name ? names_have(there, name) : reader_lists(d->dst, name);
}

void namesakes_forget(struct directory *d)
{
	if (d->rivals.there)
		names_free(d->rivals.there);
	free(d->rivals.there);
	d->rivals.there = NULL;
	names_free(&d->rivals.sought);
}

/* Writes the name with each letter of ASCII in the other case. Returns whether all of it is ASCII.
 */
static bool namesakes_swap_case(const char *name, char other[NAME_MAX + 1])
{
	bool all_ascii = true;
	size_t n = 0;
	for (const char *c = name; *c && n < NAME_MAX; c++, n++) {
		const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
		all_ascii &= (*c & 0x80) == 0;
		other[n] = letter ? (char)(*c ^ 0x20) : *c;
	}
	other[n] = '\0';
	return all_ascii;
}

bool namesakes_lead(const struct entry *e, const char *name, const struct stat *st)
{
	struct stat now;
	return fstatat(e->dir->dst, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && same_inode(&now, st);
}

bool namesakes_differ_in_case(struct tree *t, const struct entry *e, const struct stat *st,
			      bool is_new)
{
	char other[NAME_MAX + 1];
	if (namesakes_swap_case(e->as, other) &&
	    (strcmp(other, e->as) == 0 ||
	     !(namesakes_lead(e, other, st) || spelling_is_same(t, e, other))))
		return false;
	return !namesakes_were_listed(e->dir, e->as) &&
	       !(is_new && reader_lists(e->dir->dst, e->as));
}

bool namesakes_are_impossible(const struct entry *e, const struct stat *st)
{
	char other[NAME_MAX + 1];
	if (S_ISDIR(st->st_mode) || !namesakes_lead(e, e->as, st) ||
	    !system_has(e->dir->dst, SYSTEM_NAMES) || system_folds(e->dir->dst))
		return false;
	(void)namesakes_swap_case(e->as, other);
	return strcmp(other, e->as) == 0 || !namesakes_lead(e, other, st);
}

static bool namesakes_is_symlink(int dir, const char *name)
{
	struct stat st;
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/* Stats the source of a name of the same directory, and what its copy was written to: that of a
 * file follows a symlink. Returns whether DST has the name. */
static bool namesakes_stat_both(const struct entry *e, const char *name, struct stat *src,
				struct stat *dst)
{
	if (fstatat(e->dir->src, name, src, e->follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		src->st_mode = src->st_nlink = 0;
	const int flags = S_ISREG(src->st_mode) ? 0 : AT_SYMLINK_NOFOLLOW;
	return fstatat(e->dir->dst, name, dst, flags) == 0;
}

/* How often the list has the name. */
static unsigned namesakes_count(const struct name_list *list, const char *name)
{
	unsigned count = 0;
	for (size_t i = names_from(list, name); i < list->count && strcmp(list->name[i], name) == 0;
	     i++)
		count++;
	return count;
}

bool namesakes_are_twice(struct tree *t, const struct entry *e)
{
	struct name_list *sought = &e->dir->rivals.sought;
	pthread_mutex_lock(&t->claims.searches);
	if (!sought->name)
		(void)names_read(e->dir->src, sought, NULL);
	const bool twice = namesakes_count(sought, e->name) > 1;
	pthread_mutex_unlock(&t->claims.searches);
	return twice;
}

/* One pass over the names. The list is read again for each search, until many names were looked at.
 */
static void namesakes_search_names(struct tree *t, struct search *s, bool thorough)
{
	const struct entry *e = s->e;
	struct directory *d = e->dir;
	struct stat src, dst;
	const bool again = thorough || d->rivals.searched < SEARCHED;
	if (again) {
		names_free(&d->rivals.sought);
		(void)names_read(d->src, &d->rivals.sought, NULL);
		d->rivals.searched += d->rivals.sought.count + 1;
	}
	s->count = namesakes_count(&d->rivals.sought, e->name);
	s->unknown = !d->rivals.sought.name || (!again && s->count < 2);
	for (size_t i = 0; i < d->rivals.sought.count && !s->unknown && s->dst.st_nlink > 0; i++) {
		const char *name = d->rivals.sought.name[i];
		if (strcmp(name, e->name) == 0 || strlen(name) > NAME_MAX ||
		    !namesakes_stat_both(e, name, &src, &dst) ||
		    !(same_inode(&dst, &s->dst) || spelling_is_same(t, e, name)))
			continue;
		strcpy(s->rival, name);
		return;
	}
}

void namesakes_search(struct tree *t, struct search *s, bool thorough)
{
	const struct entry *e = s->e;
	struct stat src, now;
	pthread_mutex_lock(&t->claims.searches);
	for (int tries = 0; tries < 5; tries++) {
		*s = (struct search){.e = e};
		if (!namesakes_stat_both(e, e->name, &s->src, &s->dst))
			s->dst.st_nlink = 0;
		namesakes_search_names(t, s, thorough);
		/* A file that had one name is replaced without the lock: if that was done during
		 * the search, the rival had another inode than the entry. */
		if (s->unknown || s->rival[0] || s->dst.st_nlink == 0 ||
		    !namesakes_stat_both(e, e->name, &src, &now) || same_inode(&now, &s->dst))
			break;
	}
	pthread_mutex_unlock(&t->claims.searches);
}

/* Has an entry of this name made what it leads to? The name of a symlink in DST is no evidence: its
 * target may be the copy of another entry; nor is that of a file which an entry has written by
 * another name. A name that was replaced while the source was read may have been listed twice, too;
 * where two directories of SRC may have one copy, that is no evidence either. */
bool namesakes_are_one(struct tree *t, const struct search *s)
{
	const struct entry *e = s->e;
	if (s->rival[0] || (s->unknown && !namesakes_are_impossible(e, &s->dst)) ||
	    (s->dst.st_nlink > 0 && inodes_has(&t->claims.set[SET_REACHED], &s->dst)))
		return false;
	if (s->count > 1 || t->options->keep_directory_symlink)
		return s->count > 1;
	bool link = S_ISREG(s->src.st_mode) && namesakes_is_symlink(e->dir->dst, e->as);
	return !link && reader_lists(e->dir->dst, e->as);
}

bool namesakes_are_links(const struct tree *t, const struct search *s)
{
	struct stat src, dst;
	const struct entry *e = s->e;
	return t->links && s->rival[0] && s->src.st_nlink > 1 && S_ISREG(s->src.st_mode) &&
	       system_has(e->dir->dst, SYSTEM_NAMES) && !system_folds(e->dir->dst) &&
	       namesakes_stat_both(e, s->rival, &src, &dst) && same_inode(&src, &s->src);
}

bool namesakes_have_one_source(const struct search *s)
{
	struct stat src, dst;
	const struct entry *e = s->e;
	return s->rival[0] && namesakes_stat_both(e, s->rival, &src, &dst) && src.st_nlink > 0 &&
	       same_inode(&src, &s->src) && !S_ISDIR(dst.st_mode) &&
	       (namesakes_is_symlink(e->dir->dst, e->as) ||
		namesakes_is_symlink(e->dir->dst, s->rival));
}

/* Entries of DST under other names. */

static int alias_compare(const void *a, const void *b)
{
	const struct inode x = ((const struct alias *)a)->inode,
			   y = ((const struct alias *)b)->inode;
	return x.dev != y.dev ? (x.dev < y.dev ? -1 : 1) : (x.ino > y.ino) - (x.ino < y.ino);
}

static struct alias *alias_search(const struct aliases *found, const struct stat *st)
{
	const struct alias key = {.inode = inode_of(st)};
	return found->count == 0
		   ? NULL
		   : bsearch(&key, found->of, found->count, sizeof(*found->of), alias_compare);
}

bool aliases_have(const struct aliases *found, const struct stat *st)
{
	return alias_search(found, st) != NULL;
}

static void aliases_sort(struct aliases *found)
{
	size_t n = 0;
	if (found->count > 0)
		qsort(found->of, found->count, sizeof(*found->of), alias_compare);
	for (size_t i = 0; i < found->count; i++)
		if (n == 0 || alias_compare(&found->of[i], &found->of[n - 1]) != 0)
			found->of[n++] = found->of[i];
	found->count = n;
}

/* FUSE may give every name a different inode number: then the copy of a name that DST does not
 * list has a number that no listed name has. */
static bool aliases_are_listed(const struct aliases *found, const struct directory *d,
			       const struct name_list *dst)
{
	struct stat st;
	size_t listed = 0;
	for (size_t i = 0; listed < found->count && i < dst->count; i++) {
		if (fstatat(d->dst, dst->name[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		struct alias *alias = alias_search(found, &st);
		if (alias && !alias->listed) {
			alias->listed = true;
			listed++;
		}
	}
	return listed == found->count;
}

int aliases_find(struct aliases *found, const struct directory *d, const struct name_list *src,
		 const struct name_list *dst, struct failure *fail)
{
	struct stat st, again;
	for (size_t i = 0; i < src->count; i++) {
		const char *name = src->name[i];
		if (names_have(dst, name) || fstatat(d->dst, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		found->unknown |= fstatat(d->dst, name, &again, AT_SYMLINK_NOFOLLOW) == 0 &&
				  again.st_ino != st.st_ino;
		if (!found->of && !(found->of = malloc(src->count * sizeof(*found->of))))
			return fail_if(fail, -ENOMEM, "malloc");
		found->of[found->count++] = (struct alias){.inode = inode_of(&st)};
	}
	aliases_sort(found);
	found->unknown |= !system_has(d->dst, SYSTEM_NAMES) && !aliases_are_listed(found, d, dst);
	return 0;
}

static struct stat namesakes_key_at(const struct inode *dir, const char *name)
{
	return (struct stat){
	    .st_dev = dir->dev, .st_ino = dir->ino ^ hash_name(name), .st_mode = S_IFREG};
}

struct stat namesakes_key(const struct entry *e)
{
	struct inode dir = e->dir->dst_inode;
	struct stat st;
	if (dir.dev == 0 && fstat(e->dir->dst, &st) == 0)
		dir = inode_of(&st);
	return namesakes_key_at(&dir, e->as);
}

struct stat namesakes_key_of_target(const struct entry *e)
{
	struct place p = {.dir = -1, .target = -1};
	struct inode dir = {.dev = 0};
	struct fcopy_error error;
	struct stat st;
	if (place_borrow(&p, e->dir->dst, e->as, entry_dst, &error) == 0 &&
	    place_follow_found(&p, entry_dst, &error) == 0 && fstat(p.dir, &st) == 0)
		dir = inode_of(&st);
	const struct stat key = namesakes_key_at(&dir, p.name);
	place_close(&p);
	return key;
}

struct following {
	struct tree *tree;
	bool stays;
};

/* Notes that the symlink is followed. Clears `stays` if this run has replaced it, or has made it
 * and it was not the same before. */
static bool namesakes_note_followed(void *following, int dir, const struct stat *st)
{
	struct following *f = following;
	struct inodes *set = f->tree->claims.set;
	(void)dir;
	if (inodes_add(&set[SET_FOLLOWED], st) < 0)
		tree_stop(f->tree, ENOMEM);
	f->stays &= !inodes_has(&set[SET_REPLACED], st) &&
		    (!inodes_has(&set[SET_MADE], st) || inodes_has(&set[SET_KEPT], st));
	return true;
}

bool namesakes_follow(struct tree *t, const struct entry *e, const struct stat *st)
{
	struct following f = {.tree = t, .stays = true};
	struct stat now;
	if (S_ISLNK(st->st_mode)) /* a comparison does not follow it */
		return true;
	pthread_mutex_lock(&t->claims.lock);
	io_close(io_walk(e->dir->dst, e->as, O_PATH, namesakes_note_followed, &f));
	f.stays &= fstatat(e->dir->dst, e->as, &now, 0) == 0 && same_inode(&now, st);
	pthread_mutex_unlock(&t->claims.lock);
	return f.stays;
}
