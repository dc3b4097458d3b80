/* SPDX-License-Identifier: MIT
 *
 * An endpoint is what SRC or DST names: it opens, and at the end it commits or aborts. The commit
 * makes the destination visible; abort removes what this run created. Both close the descriptor.
 */
#ifndef ENDPOINTS_ENDPOINT_H
#define ENDPOINTS_ENDPOINT_H

#include "fcopy.h"

#include <sys/stat.h>

struct endpoint;
struct io;

#define ENDPOINT_KEPT 1 /* no_clobber: DST exists and stays as it is; not a failure */

/* What a destination had before the copy. */
enum endpoint_old {
	OLD_NONE,        /* nothing: a new file, or a stream */
	OLD_REPLACED,    /* a file that stays as it is until the commit replaces it */
	OLD_OVERWRITTEN, /* bytes in the file that is open: those that are not written stay */
};

enum endpoint_receipt { RECEIPT_NEVER /* not a connection */, RECEIPT_MISSING, RECEIPT_CONFIRMED };

/* All that src/copy knows of an endpoint, besides the members of struct endpoint up to `st`. start,
 * finish, claim_partial and accept return 0, or -errno with the failure recorded; the caller then
 * calls abort. NULL: nothing to do; listens, old and receipt: NULL, OLD_NONE, RECEIPT_NEVER. */
struct endpoint_ops {
	/* Connects, or waits for the peer, once both ends are open. */
	int (*start)(struct endpoint *, const struct fcopy_options *, struct fcopy_error *);
	/* After the last byte, before flush and commit. Returns 1 if it changed owner or mode. */
	int (*finish)(struct endpoint *, const struct fcopy_options *, struct fcopy_error *);
	/* 0, or ENDPOINT_KEPT, or -errno with the failure booked; the caller then calls abort. */
	int (*commit)(struct endpoint *, const struct fcopy_options *, struct fcopy_error *);
	void (*abort)(struct endpoint *);

	/* What DST had; *st: the stat of the file that existed, or NULL. */
	enum endpoint_old (*old)(const struct endpoint *, const struct stat **st);
	/* Makes DST.fcopy-part writable after its bytes were compared with the source; part: its
	 * fstat; matches: all of them are the source's. Another part is refused. */
	int (*claim_partial)(struct endpoint *, const struct stat *part, bool matches,
			     struct fcopy_error *);
	/* After a failure: keeps the first `size` bytes as DST.fcopy-part, also after abort.
	 * Returns false if that is unsafe: then abort removes them. */
	bool (*keep_partial)(struct endpoint *, off_t size);
	/* After a failure: frees blocks up to `allocated` that are past the end of the file. */
	void (*release_blocks)(const struct endpoint *, off_t allocated);

	/* HOST:PORT where peers can connect; NULL: waits for none, or not any more. */
	const char *(*listens)(const struct endpoint *);
	/* HOST:PORT of the peer, once started; empty if it has no such name. */
	const char *(*peer)(const struct endpoint *);
	/* The longest wait for the peer in milliseconds; negative: no limit. */
	int (*timeout_ms)(const struct fcopy_options *);
	/* Wakes a reader for large pieces only: its bytes are not needed before the end. */
	void (*gather)(const struct endpoint *);
	/* Waits for the next peer as long as io allows: *connection is then like the listener after
	 * its own start. */
	int (*accept)(const struct endpoint *listener, const struct io *io,
		      struct endpoint *connection, struct fcopy_error *);
	enum endpoint_receipt (*receipt)(const struct endpoint *); /* after the commit */
};

/* A name in a directory that is held open: later renames of its parents change nothing. */
struct place {
	int dir;                 /* AT_FDCWD, or a descriptor that place_close closes */
	int target;              /* O_PATH descriptor of what a symlink named, or -1 */
	char name[NAME_MAX + 1]; /* the last component: no slash, and no symlink at that time */
	bool exists;
	struct stat st; /* if it exists */
};

struct endpoint {
	const struct endpoint_ops *ops;
	const char *path; /* for messages */
	int fd;           /* -1: closed */
	bool positional;  /* explicit offsets may be used, and nobody else moves the position */
	struct stat st;   /* as it was when opened; of a new file only the type */

	/* The rest is private to src/endpoints. */

	/* of a file */
	struct place place;
	int (*link)(const struct endpoint *, const char *name); /* NULL: temporary has a name */
	char temporary[NAME_MAX + 1]; /* its name in place.dir; empty: none */
	bool keep_part;               /* abort leaves it there, to be resumed */
	mode_t mode;                  /* a named temporary is 0600 until the commit */
	int directory;                /* to be flushed at the commit, or -1 */

	/* of a socket */
	bool socket;
	/* tcp.c: connects when the endpoint is started; NULL: connected, or listening */
	int (*connect)(struct endpoint *, const struct fcopy_options *, struct fcopy_error *);
	bool listening;                  /* until it is started: waits for the peer */
	bool confirmed;                  /* commit saw the peer close: it has everything */
	char address[FCOPY_ADDRESS_MAX]; /* where it listens; once started, of the peer */
};

static inline enum endpoint_old endpoint_old(const struct endpoint *e)
{
	const struct stat *st;
	return e->ops->old ? e->ops->old(e, &st) : OLD_NONE;
}

/* The stat of the file that existed as DST, or NULL. */
static inline const struct stat *endpoint_old_stat(const struct endpoint *e)
{
	const struct stat *st = NULL;
	if (e->ops->old)
		e->ops->old(e, &st);
	return st;
}

static inline const char *endpoint_listens(const struct endpoint *e)
{
	return e->ops->listens ? e->ops->listens(e) : NULL;
}

/* Each opener fills *e and returns 0, or records the failure and returns -errno, with nothing open.
 */

/* Opens SRC for reading. */
int source_open(struct endpoint *e, const char *path, struct fcopy_error *);
/* The same from a source that is open already, a regular file; closing leaves it open. */
int source_share(struct endpoint *e, const struct endpoint *open, struct fcopy_error *);

/* Or ENDPOINT_KEPT, with nothing open. Opens DST as what it is: a file to replace, an existing
 * inode to write into, a device or a stream; resolved receives its name, DST or DST/basename(SRC).
 * Refuses whatever can be known to fail, and SRC itself, before anything is touched. */
int destination_open(struct endpoint *e, const char *path, const struct endpoint *src,
		     const struct fcopy_options *, char resolved[PATH_MAX], struct fcopy_error *);

/* The same for `name` in the open directory `dir`, for a source that is a regular file. A symlink
 * of that name is followed, a directory is refused. path is for messages and must outlive *e. */
int destination_open_in(struct endpoint *e, int dir, const char *name, const char *path,
			const struct endpoint *src, const struct fcopy_options *,
			struct fcopy_error *);

/* created.c: makes a regular file that is already open, and its fstat, a source. Commit and abort
 * close it. */
void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st);
/* Creates the regular file `name` in the open directory `dir` under its final name; EEXIST if it
 * exists. Commit closes it, abort removes it. dir and path must outlive *e. */
int created_open(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		 struct fcopy_error *);

/* The parts of destination_open. */
int replace_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		 struct fcopy_error *);
int in_place_open(struct endpoint *e, const struct endpoint *src, struct fcopy_error *);
extern const struct endpoint_ops in_place_ops; /* both only close */

/* in_place.c: the size of a block device, which stat does not report. Returns 0 or -errno. */
int device_size(int fd, off_t *size);

/* stream.c: is this -, /dev/stdin, /dev/fd/3, fd:3 or a TCP address? Descriptors are used at their
 * current position and not reopened; `dash` is what - stands for. */
bool stream_names(const char *path);
/* The file type of whatever the operand names, S_IFREG if that is not there yet. */
mode_t stream_type(const char *path, int dash);
int stream_open(struct endpoint *e, const char *path, int dash, struct fcopy_error *);

/* tcp.c: tcp:HOST:PORT connects when it is started, tcp-listen:[HOST:]PORT listens from now on. */
bool tcp_names(const char *path);
enum fcopy_kind tcp_kind(const char *path); /* of a path that tcp_names */
int tcp_open(struct endpoint *e, const char *path, struct fcopy_error *);

/* socket.c: makes e, a stream socket, one whose commit and abort are those of a connection. */
int socket_adopt(struct endpoint *e, struct fcopy_error *);
void socket_as_source(struct endpoint *e);
void socket_as_destination(struct endpoint *e);
/* Whether closing means a reset: from the socket's first moment on, and a listener's children have
 * it from their parent. */
bool socket_set_reset(int fd, bool on);
/* Writes our own address as HOST:PORT; empty if it has none of that kind. */
void socket_describe(int fd, char text[FCOPY_ADDRESS_MAX]);
/* The longest idle time, in milliseconds; negative: for ever. */
int socket_timeout_ms(const struct fcopy_options *);
/* The value of an option of level SOL_SOCKET, or -errno. */
int socket_get_option(int fd, int name);

/* receipt.c: has the peer ended its side before we have ended ours? Then its end is no receipt. */
bool receipt_is_early(int fd);
/* Waits, after the half-close of fd, until the peer closes. Returns 1 if it did; 0 if it has
 * acknowledged every byte and stays open; or -errno: -ETIMEDOUT after timeout_ms without progress
 * (negative: no limit), -EINTR if *cancel becomes non-zero. */
int receipt_await(int fd, int timeout_ms, const volatile int *cancel);

/* Finds the place that DST names: follows a symlink, and enters a directory if `into`. src_path
 * gives the name inside a directory; NULL: SRC has none. */
int place_find(struct place *, const char *path, const char *src_path, bool into,
	       char resolved[PATH_MAX], struct fcopy_error *);
/* The same for `name` in the open directory `dir`. */
int place_find_in(struct place *, int dir, const char *name, const char *path,
		  struct fcopy_error *);
void place_close(struct place *);

/* temporary_create makes an unnamed file with `mode`, or, where the file system has none, a named
 * one with mode 0600 (e->mode is the one that it gets later). temporary_name gives it its final
 * name. Both return 0, or -errno with the failed call in *call; temporary_name also ENDPOINT_KEPT.
 */
int temporary_create(struct endpoint *e, mode_t mode, const char **call);
int temporary_name(struct endpoint *e, bool no_clobber, const char **call);
void temporary_drop(struct endpoint *e);
/* Makes a random name that other users cannot guess. Returns 0 or -errno. */
#define TEMPORARY_SIZE sizeof(".fcopy-0123456789abcdef")
int temporary_draw(char name[TEMPORARY_SIZE]);
/* After a failure: cuts the part to its `size` good bytes and gives it the mode by which the next
 * copy recognises it. The abort keeps it, unless another user owns it by now: that user may have it
 * open for writing. */
bool part_keep(struct endpoint *e, off_t size);

/* Creates a file of mode 0600 in DST's directory, stats and removes it: what owner and mode does
 * the file system give to a new file? Returns 0 or -errno. */
int temporary_probe(const struct endpoint *e, struct stat *);
bool temporary_stores_modes(const struct endpoint *e); /* false: it gave another mode than 0600 */
mode_t temporary_umask(void); /* of this process; the strictest if it cannot be known */

/* part.c: opens DST.fcopy-part, which an earlier try may have left, and locks it; waits up to a
 * second for the lock. The descriptor is read-only if the part is. The caller compares the part's
 * bytes with the source and then calls part_claim, which makes the part writable; matches: each of
 * its bytes is the source's. Both return 0, or -errno with the failure booked. */
int part_open(struct endpoint *e, mode_t mode, const volatile int *cancel, struct fcopy_error *);
int part_claim(struct endpoint *e, const struct stat *part, bool matches, struct fcopy_error *);

/* Gives the copy one attribute that the source has. */
#define PRESERVE_IMPOSSIBLE "attributes are preserved between files only"
int metadata_preserve(const struct endpoint *src, const struct endpoint *dst, enum fcopy_attribute,
		      struct fcopy_error *);
/* The same between two open files or two open directories; st is the source's. Returns 0, or -errno
 * with the failed call in *call. */
int metadata_copy_attribute(enum fcopy_attribute, int src, int dst, const struct stat *st,
			    const char **call);

/* Give the file fd what the old one at `place` has: owner and group; ACL and security label. */
int metadata_keep_owner(int fd, const struct place *, const char *path, bool force,
			struct fcopy_error *);
int metadata_keep_acl(int fd, const struct place *, const char *path, bool force,
		      struct fcopy_error *);

#endif
