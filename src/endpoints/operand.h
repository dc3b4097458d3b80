/* SPDX-License-Identifier: MIT
 *
 * What SRC or DST names. Each operand is looked up once, before the first check, and handed down:
 * no other file splits a path, and no other file looks DST up before the copy.
 */
#ifndef ENDPOINTS_OPERAND_H
#define ENDPOINTS_OPERAND_H

#include "fcopy.h"

#include <sys/stat.h>

#define O_PLACE (O_PATH | O_CLOEXEC) /* how its descriptors are opened */

/* A name that SRC or DST leads to, in a directory that is held open: later renames of its parents
 * change nothing. */
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
/* May this user access `name` in the directory of the place so? Returns 0 or errno. */
int place_access(const struct place *, const char *name, int mode);
/* Is the failure that the place is a symlink that leads to nothing? */
bool place_leads_nowhere(const struct fcopy_error *);

/* The path is for messages. These return 0, or -errno with the failure recorded. */

/* Looks the name up. */
int place_stat(struct place *, const char *path, struct fcopy_error *);
/* The place is a symlink: st becomes that of its target. */
int place_open_target(struct place *, const char *path, struct fcopy_error *);
/* It becomes `name` in the directory that is open as `dir`. */
int place_enter(struct place *, int dir, const char *name, const char *path, struct fcopy_error *);
/* It becomes that name, and `dir` must stay open until the place is closed. */
int place_borrow(struct place *, int dir, const char *name, const char *path, struct fcopy_error *);
/* It becomes what `other`, which stays open, is. */
int place_share(struct place *, const struct place *other, const char *path, struct fcopy_error *);

enum operand_kind {
	OPERAND_FAILED,    /* could not be looked up: see error */
	OPERAND_STREAM,    /* no path, but a descriptor or an address: see stream and fd */
	OPERAND_NEW,       /* no file has the name */
	OPERAND_FILE,      /* a regular file */
	OPERAND_DIRECTORY, /* as DST: the copy itself (-T), or SRC has no name to use in it */
	OPERAND_INTO,      /* only DST: a directory that the copies go into */
	OPERAND_SYMLINK,   /* a SRC that is not followed, or a DST that leads nowhere */
	OPERAND_DEVICE,    /* a device, FIFO or socket */
};

struct operand {
	enum operand_kind kind;
	const char *path; /* for messages */
	size_t start;     /* of the last component in path */
	bool slash;       /* path ends in a slash: it names a directory */
	enum fcopy_kind stream;
	int fd;       /* that a stream names; or a directory as SRC that the caller opened; or -1 */
	bool follow;  /* SRC: a symlink is what it leads to */
	bool covered; /* SRC: another SRC contains it, and is copied with it */
	struct place place;
	struct fcopy_error error; /* kind OPERAND_FAILED; the caller reports it when it is due */
};

/* Looks SRC up; its place.dir stays -1. follow: a symlink is what it leads to. The path must
 * outlive the operand, which need not be closed. */
void operand_find_source(struct operand *, const char *path, bool follow);
/* Looks DST up. into: a directory is one that the copies go into. operand_close closes it. */
void operand_find_destination(struct operand *, const char *path, bool into);
void operand_close(struct operand *);
/* A copy of DST with duplicates of its descriptors, to be closed. Returns 0 or -errno. */
int operand_share(struct operand *, const struct operand *);

/* Is it http-listen:, whose clients say what is copied? */
bool operand_is_http(const char *path);

/* Would the copy be a regular file in /dev, because a device is not there, or one that replaces a
 * device (replaces: or a symlink to it)? Refuses it. Returns 0, or -errno with the failure
 * recorded. */
int operand_check_device(const struct operand *dst, bool replaces, struct fcopy_error *);

/* place.c: notes where the last component of the path starts, and copies it without its slashes.
 * Returns 0 or -ENAMETOOLONG. */
int operand_split(struct operand *);
/* Is SRC the root, or does it end in . or ..? Such a directory has no name to be copied under. */
bool operand_is_unnamed(const struct operand *);
/* The directory part of the path, with its slash, to a buffer of PATH_MAX bytes; its length. */
size_t operand_directory(const struct operand *, char directory[]);
/* Opens the directory of SRC. Returns a descriptor, or -errno. */
int operand_open_directory(const struct operand *);

/* Sets *copy to the name that the copy of src gets: dst itself, or the name of src in it if dst is
 * OPERAND_INTO. Its path is written to `path`, PATH_MAX bytes that must outlive it. Nothing is
 * followed. Returns 0, or -errno with the failure recorded; operand_close(copy) is needed in either
 * case. */
int operand_find_copy(struct operand *copy, const struct operand *dst, const struct operand *src,
		      char path[], struct fcopy_error *);

/* The copy is to be in the open directory `dir` instead, which stays open; path is its new path.
 * Returns 0, or -errno with the failure recorded. */
int operand_move(struct operand *copy, int dir, const char *path, struct fcopy_error *);
/* Of a dry run: its directory does not exist, so that nothing has its name. `dir` is above it. */
int operand_foresee(struct operand *copy, int dir, const char *path, struct fcopy_error *);

/* DST becomes the file that the copy of src replaces or creates: the name of src in the directory
 * if it is OPERAND_INTO, and the target of a symlink. Its path is copied to `path`, PATH_MAX bytes
 * that must outlive it. It is OPERAND_FAILED if that is impossible. */
void operand_find_file(struct operand *dst, const struct operand *src, char path[]);
/* place.c: what a name leads to, and then its place if it is a regular file. Returns 0, or -errno
 * with the failure recorded. */
int place_follow(struct place *, const char *path, struct fcopy_error *);
/* As place_follow(), for a name that the command line does not have: not every symlink of another
 * user is followed. */
int place_follow_found(struct place *, const char *path, struct fcopy_error *);
/* Can the place, which was looked up, get the copy of a file? follow: a symlink is followed, and
 * leads to a regular file or to none; false: a new file replaces whatever it is but a directory.
 * Returns 0, or -errno with the refusal recorded. */
int place_accept(struct place *, bool follow, const char *path, struct fcopy_error *);

#endif
