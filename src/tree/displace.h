/* SPDX-License-Identifier: MIT
 *
 * What becomes of entries of DST: those that a mirror removes, because SRC lacks them, and those
 * that a copy replaces, as the options of cp(1) say: options.confirm is asked, options.backup gives
 * it another name, options.remove_destination replaces it whatever it is. The name of a backup is
 * chosen here; the commit makes it (endpoints/slot.h).
 */
#ifndef TREE_DISPLACE_H
#define TREE_DISPLACE_H

#include "endpoints/slot.h"
#include "part/left.h"
#include "tree.h"

/* Before the first entry of the operand that is merged into the open directory dst. */
/* Does it have a marker, and is it flushed at its end? */
bool mirror_marks(const struct tree *);
void mirror_begin(struct tree *, const struct operand *, int dst);
/* What the marker in the open directory says. It may be that of another mirror. */
struct mirror mirror_look(int dir);
/* Notes what a directory of DST has and its source lacks, when all of its entries are copied. */
void mirror_collect(struct worker *, struct directory *);
/* After the last entry: removes what was noted, and flushes DST. */
void mirror_end(struct tree *, struct directory *root);
/* Is it the marker of a mirror, which is never copied? */
bool mirror_is_marker(const struct entry *);

/* Removes entries from DST, or counts them. */

#define MARKER ".fcopy-mirror" /* a name in DST: see mirror.c */

/* What DST has and SRC lacks, or has as another type, which is excluded. */
struct extra {
	struct extra *next;
	struct inode inode;
	mode_t mode;
	off_t size;
	struct timespec mtime;
	char path[]; /* below the operand */
};

/* Is it the marker, or a name of a copy that may be at work? */
bool mirror_is_own(const char *name);
/* Does a pattern exclude the entry `name` of the directory src, which has this path below SRC? */
bool mirror_source_is_excluded(const struct tree *, int src, const char *name, const char *path);
/* An entry of DST has another type than its source, which is why a mirror removes it. May all of it
 * be removed? Returns 0 or -errno, reported. */
int mirror_may_remove(struct worker *, const struct entry *);
/* Removes the entry of this name in dir, which is or was that of e, and reports it as e. A dry run
 * only reports. Returns 0 or -errno, reported. */
int mirror_remove_cleared(struct worker *, const struct entry *, int dir, const char *name);
/* Removes what mirror_collect() found, if SRC still has its name and lacks it. counts: only counts.
 * reports: sends each entry to the caller. Returns how many entries; UINT64_MAX: not all could be
 * counted. */
uint64_t mirror_remove_all(struct worker *, struct directory *root, bool counts, bool reports);

/* What a copy replaces. */

/* What had the name of an entry: until the entry has been made, it is in a directory with a drawn
 * name, or has such a name itself. */
struct cleared {
	char name[TEMPORARY_SIZE]; /* empty: nothing */
	bool aside;                /* `old` holds it */
	bool claimed;              /* this entry has claimed it */
	struct old old;
};

/* An entry of DST has another type than its source: takes its name away, or nothing if something in
 * it must stay. Where it cannot be renamed, it is removed. Returns 0 or -errno, reported. A dry run
 * reports what would be removed. */
int displace_clear(struct worker *, const struct entry *, struct cleared *);
/* made: removes what the entry replaced; otherwise gives it back its name. */
void displace_clear_end(struct worker *, const struct entry *, struct cleared *, bool made);

struct displaced {
	struct backup backup;
	struct cleared cleared; /* by a mirror */
	struct worker *worker;  /* of the backup: whose copy, and of which entry */
	const struct entry *entry;
};

/* Nothing is displaced yet. */
static inline void displace_none(struct displaced *d)
{
	d->backup.name[0] = d->cleared.name[0] = '\0';
	d->cleared.claimed = false;
	d->backup.left = 0;
	d->backup.keeps_another = false;
}

/* Asks, clears and chooses the name of the backup, as w->work.decision says. Returns false if the
 * outcome is known: the entry of DST is skipped, or can have no backup. */
bool displace_begin(struct worker *, const struct entry *, struct displaced *);
/* Is anything left to be done when the copy has ended? */
static inline bool displace_ends(const struct displaced *d)
{
	return d->backup.left || d->cleared.name[0];
}

/* The copy has ended: unless it was made, what a mirror cleared gets its name back. */
void displace_end(struct worker *, const struct entry *, struct displaced *, bool made);
/* Does options.confirm, if there is one, allow to replace the entry? If not, it is skipped. */
bool displace_may(struct worker *, const struct entry *);

/* Entries of directories in which another user can exchange names: made in a private directory, and
 * then renamed. */

/* How one call makes an entry that is no file with bytes. */
struct making {
	const char *call; /* that one */
	slot_maker *make;
	/* Makes it complete before it gets its name: gives it its attributes, or opens it. Returns
	 * 0, or -errno with the call. NULL: it is complete. */
	int (*complete)(int dir, const char *name, void *arg, struct failure *);
	bool whole; /* the call alone makes it, of an inode that is known: under its final name,
		     * nobody can exchange it before it is complete */
	void *arg;  /* of both */
};

/* Can a user other than root and this one rename what is in the destination of this directory? Not
 * below a private directory. Then an entry is made aside, where that is possible: where a directory
 * can be renamed. */
bool aside_is_shared(const struct tree *, struct directory *);
bool aside_is_possible(struct tree *, struct directory *);
/* May a complete copy in this directory have been exchanged by another user: in the directory, or
 * on the way to it? */
bool aside_may_move(struct tree *, struct directory *);

/* Makes the entry in a slot: in a private directory, where another user could exchange its name;
 * under a drawn name, if it replaces another entry; or under its name. Returns 0; -EEXIST: the name
 * exists, and `replace` is false; RESULT_TAKEN: something else than an option has seen has the
 * name; or -errno with the call; then nothing is left of what was made but under its final name. A
 * backup that decide() wants is made with the rename; the caller holds rivals_lock() then.
 *
 * Where directories cannot be renamed, or nothing can be renamed out of the private directory, as
 * under Landlock, it is made beside that; not for root, whom the owner of the directory could make
 * change the attributes of another inode. Where no rename replaces an entry, --inplace makes it
 * under its final name. */
int aside_make(struct worker *, const struct entry *, const struct making *, bool replace,
	       struct failure *);
/* In place of what has the name, which is claimed first: no other entry replaces it. An entry that
 * stays there can be claimed again. Returns as aside_make(), or RESULT_RIVAL: another entry has
 * it. The caller holds rivals_lock(). */
int aside_replace(struct worker *, const struct entry *, const struct making *, struct failure *);
/* Removes this thread's private directory, if there is one: its directory may be closed next. */
void aside_end(struct worker *);

#endif
