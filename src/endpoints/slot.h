/* SPDX-License-Identifier: MIT
 *
 * A slot is how one name of DST comes into being: that of a file, or of what one call makes, such
 * as a link, a symlink, a special file or a directory. The way is chosen once, before the first
 * change. After that only the stage changes:
 *
 *            slot_choose()       pure: a dry run and a rehearsal end here
 *                 |
 *              CHOSEN <-----------------+
 *                 |                     |  this way is refused, or the storage lacks it: it is
 *      slot_make(); an unnamed file     |  unfit, and the next one is chosen
 *      and a part open themselves  -----+
 *                 |
 *               MADE      HOW_LINK: without a name; HOW_RENAME: under a drawn name; HOW_ASIDE,
 *                 |       HOW_PART: in a private directory; the others: as DST
 *            +----+-----+
 *            |          |
 *     slot_commit()  slot_drop()
 *            |          |
 *          NAMED      GONE        DST is what it was
 *       (or LOST: another process's entry has come out, and cannot get its name back)
 *
 * The commit is the only place where an entry of DST is replaced, and where it gets a backup. A
 * commit that fails leaves the slot MADE, and DST as it was: the caller commits again or drops it.
 * Of HOW_LINK, a process that is killed leaves nothing, except between linkat(2) and the rename.
 */
#ifndef ENDPOINTS_SLOT_H
#define ENDPOINTS_SLOT_H

#include "endpoint.h"
#include "storage.h"

enum slot_how {
	HOW_NONE,   /* no way is left */
	HOW_LINK,   /* an unnamed file (O_TMPFILE), which gets its name by linkat(2) */
	HOW_RENAME, /* made under a drawn name beside DST, and renamed */
	HOW_ASIDE,  /* made in a private directory beside DST, and renamed */
	HOW_PART,   /* `data` in DST.fcopy-part, and renamed */
	HOW_FINAL,  /* made under its final name, which does not exist */
	HOW_SWAP,   /* made under its final name, while the old entry has a drawn one */
	HOW_WRITE,  /* what exists is overwritten, or is a device */
};

#define HOW(how)          (1u << HOW_##how)
#define HOW_IS(slot, set) ((1u << (slot)->how & (set)) != 0)
/* The ways that leave DST as it is until a rename, or linkat(2), gives it to the copy. */
#define HOW_INVISIBLE (HOW(LINK) | HOW(RENAME) | HOW(ASIDE) | HOW(PART))

/* All that the choice depends on. Only `foreign` and `unfit` change after the first choice, and
 * each change leaves fewer ways: choosing again ends. */
struct slot_facts {
	bool file;      /* a regular file, whose bytes are copied; else what one call makes */
	bool exists;    /* DST is there */
	bool special;   /* ... and is a device or a FIFO, which is written to */
	bool displaced; /* ... and gives the copy nothing: neither its inode nor its attributes */
	bool linked;    /* ... and has other names, which may be the copies of other entries */
	bool foreign;   /* other users can exchange what a call makes before it is opened */
	bool part;      /* the copy may be continued, or is one of several shards */
	bool scratch;   /* the copy gets no name */
	enum fcopy_when in_place;
	unsigned unfit; /* a set of HOW() */
};

enum slot_stage { SLOT_CHOSEN, SLOT_MADE, SLOT_NAMED, SLOT_GONE, SLOT_LOST };

/* What the commit may replace. */
enum slot_over {
	OVER_NOTHING,
	OVER_ANY,
	OVER_FOUND, /* only what slot.found is the stat of */
};

/* What is state exists in these combinations, and no other:
 *
 *     how            stage    home                 name             fd, of a file
 *     -------------  -------  -------------------  ---------------  -------------------
 *     any            CHOSEN   -                    empty            closed
 *     LINK           MADE     the directory        empty, or drawn  open
 *                                                  (see below)
 *     RENAME         MADE     the directory        drawn            open; closed once the
 *     PART, ASIDE    MADE     the part, or a       that in it       commit has begun
 *                             private directory
 *     FINAL          MADE     the directory        empty            open, until the commit
 *     WRITE          CHOSEN   -                    empty            the same
 *     SWAP           CHOSEN,  the directory        drawn: of the    the same
 *                    MADE                          old entry
 *     any            NAMED,   -                    empty            closed
 *                    GONE
 *     any but FINAL, LOST     as MADE              of what another  open, or closed
 *     PART, WRITE                                  process made
 *
 * A commit over an old entry gives the file of LINK a drawn name, too; if the rename fails then,
 * that name stays for the next commit. SWAP is CHOSEN with a name only while slot_make() runs, and
 * after it has failed: slot_drop() gives the old entry its name back. */
struct slot {
	struct slot_facts is;
	enum slot_how how;
	enum slot_stage stage;
	int home;                  /* the directory that it is made in */
	char name[TEMPORARY_SIZE]; /* its name there, or of HOW_SWAP that of the old entry; empty:
				    * none, or that of DST */
	struct storage *storage;   /* what is known about file systems; NULL: nothing */
	enum slot_over over;
	const struct stat *found;    /* of DST, when it was looked up; NULL: it did not exist */
	struct backup *backup;       /* of OVER_FOUND: what that entry gets; NULL: none */
	int *fd;                     /* of a file; NULL: not open */
	enum storage_link link;      /* of HOW_LINK */
	bool written;                /* no close(2) has to show a failed write */
	bool private;                /* no other user can exchange the names in DST's directory */
	bool flushes;                /* that directory is flushed after the commit */
	const struct rivals *rivals; /* or NULL */
	dev_t dev;                   /* HOW_FINAL, HOW_SWAP: which file was made ... */
	ino_t ino;                   /* ... 0: no other process can exchange its name */
	int left_err;              /* why something stays that was to be removed; 0: nothing ... */
	char left[TEMPORARY_SIZE]; /* ... and its name in `home`; empty: that of DST */
};

/* What was made has this stat. */
static inline void slot_note(struct slot *s, const struct stat *st)
{
	s->dev = st->st_dev;
	s->ino = st->st_ino;
}

/* Notes what was just made under its final name, and can fail before it is complete. */
void slot_look(struct slot *, int dir, const char *as);

/* The way for these facts. Pure. */
enum slot_how slot_choose(const struct slot_facts *);

/* Makes something under the name. Returns 0 or a positive number, or -errno. */
typedef int slot_maker(int dir, const char *name, void *arg);
/* Calls `make` with drawn names in slot.home until one is free, which becomes slot.name. Returns
 * what it returned last, or -errno; the call: `made`, or what failed before. */
int slot_draw(struct slot *, slot_maker *make, void *arg, const char *made, struct failure *);
/* Takes the name of an entry that is to be replaced: it gets a drawn one in its directory instead,
 * or with `link` besides. Returns 0, or -errno with the call; then `drawn` is empty. */
int slot_displace(int dir, const char *name, bool link, char drawn[TEMPORARY_SIZE],
		  struct failure *);
/* Makes it, in the way that was chosen; `as` in `dir` is its final name. aside: the private
 * directory of HOW_ASIDE, or -1. Returns what `make` returned, or -errno; the call: `made`, or
 * what failed before. */
int slot_make(struct slot *, int dir, const char *as, int aside, slot_maker *make, void *arg,
	      const char *made, struct failure *);
/* The name that it has in slot.home. */
static inline const char *slot_name(const struct slot *s, const char *as)
{
	return HOW_IS(s, HOW_INVISIBLE) ? s->name : as;
}

/* HOW_LINK: gives the open file of this slot a name. linkat(AT_EMPTY_PATH) needs no /proc, but
 * CAP_DAC_READ_SEARCH before Linux 6.10. */
int slot_link(int dir, const char *name, void *slot);

/* Gives it the name `as` in `dir`. Returns 0; or
 *   RESULT_RIVAL     the copy of another entry of the tree has the name;
 *   RESULT_TAKEN     something has it that slot.over excludes;
 *   -ENOTRECOVERABLE as RESULT_TAKEN, and it has become slot.name by now. The slot is
 *                    LOST: slot_drop() leaves it, and slot_warn_lost() says where it is;
 *   -ESTALE          no call: another process has exchanged slot.name;
 *   -errno           with the call. */
int slot_commit(struct slot *, int dir, const char *as, struct failure *);
void slot_warn_lost(const struct slot *, const struct fcopy_options *);

/* Closes the file, and removes what was made, unless it is named. HOW_SWAP: the old entry gets
 * its name back. */
void slot_drop(struct slot *, int dir, const char *as);
/* Says what slot_commit() or slot_drop() had to leave, once. o: NULL: nobody asks. */
void slot_warn_left(struct slot *, const char *as, const struct fcopy_options *o);
/* Closes the file. Returns 0 or -errno. */
int slot_close(const struct slot *);

/* Renames that replace one certain file and no other, or nothing. */

/* Is this still the file, with the same content, that *old is the stat of? dir: where it is. */
bool exchange_is_same(int dir, const struct stat *now, const struct stat *old);
/* Renames the file `from` to `name`, if that is the file that *old is the stat of. Returns 0;
 * -EEXIST: another one has the name, and keeps it; -ENOTRECOVERABLE: that one has become `from`,
 * and must not be removed; or -errno. With `hands_out` also RESULT_EXCHANGED: done, but at the last
 * moment another file has had the name, and that one is now `from`. */
int exchange_over(int home, const char *from, int dir, const char *name, const struct stat *old,
		  bool hands_out);
/* Renames without replacing anything; where rename(2) is unsupported, by a link. Returns 0;
 * -EEXIST: something has the name; or another -errno. */
int exchange_move(int home, const char *from, int dir, const char *name);

/* A backup: the other name that an entry of DST gets when the commit of a slot replaces it. Only
 * the commit makes one:
 *
 *       slot_commit()
 *            |
 *      backup_make()       a link: the entry keeps its own name until the rename replaces it. Where
 *            |             links are impossible, the entry is renamed
 *       the rename
 *            |
 *       backup_end()       made: an older backup of that name goes. Failed: the entry has its own
 *                          name again, and the older backup its own
 *
 * HOW_SWAP has taken the entry's name before: backup_keep() gives it that of the backup. */

/* The first members are the caller's, and the last ones those of a commit: `stage` is BACKUP_NONE,
 * and `older` empty, before backup_make() and after backup_end(). */
struct backup {
	char name[NAME_MAX + 1]; /* that the entry gets; empty: no backup is wanted */
	bool numbered;           /* an older backup keeps its name: another number is chosen */
	ino_t met;               /* what had the name when it was chosen; 0: nothing */
	bool keeps_another;      /* what gets the entry's name at the last moment is replaced, and
				  * kept, too */
	/* Chooses a name again, because another process has made the backup of this number, or
	 * another entry that of this name. Returns 0, or -errno with the call. */
	int (*choose)(struct backup *, struct failure *);
	/* It is made, and has this stat. Returns 0 or -errno. */
	int (*note)(struct backup *, const struct stat *);
	void *arg; /* of both */

	enum { BACKUP_NONE, BACKUP_LINKED, BACKUP_MOVED } stage;
	const struct stat *found;   /* of the entry */
	char older[TEMPORARY_SIZE]; /* what had the name, until the commit ends; empty: nothing */
	int left;                   /* errno: the commit has succeeded, and `older` is left */
};

/* `as` in `dir` is about to be replaced. found: which entry that is. Returns 0; -EEXIST: it is
 * another one; or another -errno with the call. Then nothing is changed. */
int backup_make(struct backup *, int dir, const char *as, const struct stat *found,
		struct failure *);
/* After backup_make(). */
void backup_end(struct backup *, int dir, const char *as, bool made);
/* The entry `name` in `home` has been replaced: it becomes a backup in `dir`. Returns 0, or -errno
 * with the call; then it is still `name`. */
int backup_keep(struct backup *, int home, const char *name, int dir, struct failure *);

#endif
