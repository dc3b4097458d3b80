/* SPDX-License-Identifier: MIT
 *
 * A name that SRC or DST leads to, by its directory. operand.h has what a path is split into.
 */
#ifndef ENDPOINTS_PLACE_H
#define ENDPOINTS_PLACE_H

#include "fcopy.h"

#include <sys/stat.h>

#define O_PLACE (O_PATH | O_CLOEXEC) /* how its descriptors are opened */

/* A name in a directory that is held open: later renames of its parents change nothing. */
struct place {
	int dir;       /* a descriptor, or -1 */
	bool borrowed; /* the caller's, which outlives the place; else place_close closes it */
	int target;    /* O_PATH descriptor of a directory, or of what a symlink named, or -1 */
	char name[NAME_MAX + 1]; /* the last component: no slash; empty: target is an unnamed file,
				  * or the place is / */
	dev_t dev;               /* the file system of dir; 0: unknown */
	bool exists;
	bool symlink;   /* the name is one: st and target are of what it leads to */
	struct stat st; /* if it exists; of a dangling symlink its own */
	bool flagged;   /* `flags` are known */
	uint64_t flags; /* STATX_ATTR_* of the file that st is of */
};

void place_close(struct place *);
bool place_is_directory(const struct place *);
/* Is the failure that the place is a symlink that leads to nothing? */
bool place_leads_nowhere(const struct fcopy_error *);

/* The path is for messages. These return 0, or -errno with the failure recorded. */

/* Looks the name up. */
int place_stat(struct place *, const char *path, struct fcopy_error *);
/* The place is a symlink, and `link` its name, or what it says: st becomes that of its target. */
int place_open_target(struct place *, const char *link, const char *path, struct fcopy_error *);
/* It becomes `name` in the directory that is open as `dir`. */
int place_enter(struct place *, int dir, const char *name, const char *path, struct fcopy_error *);
/* The same; `dir` must stay open until the place is closed. */
int place_borrow(struct place *, int dir, const char *name, const char *path, struct fcopy_error *);
/* It becomes what `other`, which stays open, is. */
int place_share(struct place *, const struct place *other, const char *path, struct fcopy_error *);

#endif
