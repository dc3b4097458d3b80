/* SPDX-License-Identifier: MIT
 * Are all copies there? A marker is created after the copies that it promises. So it is enough to
 * compare the names in each directory with those that are listed, by the sum of their hashes. Two
 * entries that DST takes for one have one name there. Each copy is looked at if names differ, also
 * because the file system stores others than it was given, and if the job was left for a while.
 */
#define _GNU_SOURCE
#include "finish.h"
#include "part/remove.h"
#include "source/reader.h"
#include "tree/inodes.h"
#include "tree/report.h"

#include <fcntl.h>

bool finish_expect(struct shard_tree *s, const char *dir, const char *name)
{
	struct known *k = known_add(&s->names, list_hash_path(dir, 0));
	if (k)
		k->value += list_hash_path(name, 0);
	return k;
}

/* Sums up the names of an open directory that was not read yet. sum[0]: of all; sum[1]: without
 * those that a copy gives to a file that is not finished. Returns 0 or -errno. */
static int finish_sum_names(int dir, uint64_t sum[2])
{
	_Alignas(8) char buffer[READER_SIZE];
	struct reader r = reader_of(dir, buffer, sizeof(buffer));
	for (const char *name; (name = reader_next(&r));) {
		const uint64_t hash = list_hash_path(name, 0);
		sum[0] += hash;
		sum[1] += temporary_is_drawn(name) ? 0 : hash;
	}
	return reader_close(&r);
}

/* Directories, too. Returns 0 or -errno. */
static int finish_remove_drawn(int dir)
{
	_Alignas(8) char buffer[READER_SIZE];
	struct reader r = reader_open(dir, buffer, sizeof(buffer));
	for (const char *name; (name = reader_next(&r));)
		if (temporary_is_drawn(name))
			(void)remove_entry(dir, name);
	return reader_close(&r);
}

void finish_check_names(const struct shard_tree *s, struct worker *w, struct directory *d,
			const char *path)
{
	uint64_t sum[2] = {0, 0};
	const struct known *k = known_find(&s->names, list_hash_path(path, 0));
	const uint64_t expected = k ? k->value : 0;
	int r = finish_sum_names(d->dst, sum);
	if (r == 0 && sum[0] != expected && sum[1] == expected)
		r = finish_remove_drawn(d->dst);
	if (r < 0)
		report_call(w, &(struct entry){.dir = d, .name = "", .as = ""}, "getdents64",
			    entry_dst, -r);
	else if (sum[1] != expected && sum[0] != expected)
		__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
}

/* Has each line a copy of its type and size, which no other line has? */
static void finish_check_lines(struct worker *w, struct directory *d, const struct listed *l,
			       unsigned count)
{
	const struct shard_tree *s = ((struct finish *)d->list)->shard;
	struct stat st;
	int r = path_open(s, w, d, l->dir, false), new = 1;
	for (unsigned i = 0; r == 0 && i < count; i++, l++) {
		const struct entry e = {.dir = d, .name = l->name, .as = l->name};
		const bool there = fstatat(d->dst, l->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
		if (!there && errno != ENOENT) {
			(void)report_call(w, &e, "stat", entry_dst, errno);
			break;
		}
		/* Hard links are not among these lines. */
		if (there && l->first == 0 && (new = inodes_add(s->copies, &st)) <= 0) {
			(void)report_refusal(w, &e, entry_dst, new < 0 ? -new : EEXIST,
					     "is the copy of another entry, too");
			break;
		}
		if (!there || (st.st_mode ^ l->st.st_mode) & S_IFMT ||
		    (S_ISREG(st.st_mode) && st.st_size != l->st.st_size))
			__atomic_store_n(&w->tree->root.doubtful, true, __ATOMIC_RELAXED);
	}
}

int finish_check_all(struct shard_tree *s)
{
	struct chunk c;
	int r = 0;
	s->root.tree->root.doubtful = false;
	s->copies = inodes_new();
	if (!s->copies)
		return job_fail(&s->job, NULL, "malloc", ENOMEM);
	for (unsigned k = 0; r == 0 && k < s->job.chunks; k++) {
		if ((r = chunk_read(&s->job, k, &c)) < 0)
			break;
		struct finish f = {
		    .shard = s, .run = finish_check_lines, .line = c.entry, .count = c.count};
		r = finish_run(&f);
		chunk_free(&c);
	}
	inodes_free(s->copies);
	s->copies = NULL;
	return r == 0 && s->root.tree->root.doubtful
		   ? job_refuse_part(&s->job, "its .fcopy-part was changed by something else")
		   : r;
}
