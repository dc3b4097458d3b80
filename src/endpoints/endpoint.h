/* SPDX-License-Identifier: MIT
 *
 * An endpoint is what SRC or DST names. It is opened, and at the end committed or aborted. The
 * commit makes the destination visible; abort removes what this run created. Both close the
 * descriptor.
 */
#ifndef ENDPOINTS_ENDPOINT_H
#define ENDPOINTS_ENDPOINT_H

#include "error.h"
#include "io/io.h"
#include "operand.h"
#include "part/part.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct endpoint;
struct backup;
struct storage;

#define ENDPOINT_STATE 648 /* bytes: of struct file, or of struct connection */

/* What a destination had before the copy. */
enum endpoint_old {
	OLD_NONE,        /* nothing: a new file, or a stream */
	OLD_REPLACED,    /* a file that is unchanged until the commit replaces it */
	OLD_OVERWRITTEN, /* data in the file that is open: what is not overwritten stays */
};

enum endpoint_receipt { RECEIPT_NEVER /* not a connection */, RECEIPT_MISSING, RECEIPT_CONFIRMED };

/* Files that a server offers to each client. */
struct offer {
	const struct endpoint *file;
	const char *const *name;
	size_t count;
};

/* What a client asked for. sendfile(2) and splice(2) queue pages of the file, not copies: as long
 * as they wait to be sent, a write to the file changes them. auto sends fewer bytes than these by
 * write(2). Of more, and in a mode that queues pages, the last byte waits until the client's kernel
 * has acknowledged all others. */
#define DEMAND_QUEUED ((off_t)1 << 20)

struct demand {
	const struct endpoint *file; /* of the offer */
	struct stat st;              /* of the file, when it was asked for */
	off_t first, last; /* the engines copy these bytes; finish sends those after them */
	struct fcopy_http http;
};

/* The operations that src/copy calls. Besides them it uses the members of struct endpoint up to
 * `st`.
 *
 * start, finish, commit and accept return 0 on success, or -errno with the failure
 * recorded; the caller then calls abort. finish and commit also return the values named below.
 *
 * An operation may be NULL: the endpoint has nothing to do. A NULL listens, receipt or leaves_name
 * stands for the result NULL, RECEIPT_NEVER or false; a NULL commit, of SRC, for abort. */
struct endpoint_ops {
	/* Connects, or waits for the peer, once both ends are open. */
	int (*start)(struct endpoint *, struct fcopy_error *);
	/* After the last byte, before flush and commit, if endpoint.finishes. Also returns
	 * RESULT_CHANGED. */
	int (*finish)(struct endpoint *, struct fcopy_error *);
	/* Also returns RESULT_SKIPPED or RESULT_RIVAL; the caller then calls abort, too. Or
	 * RESULT_TAKEN; the caller calls abort, or destination_expect() and commit again. */
	int (*commit)(struct endpoint *, struct fcopy_error *);
	void (*abort)(struct endpoint *);

	/* Of DST.fcopy-part. size -1: returns how many bytes are known to equal the source's, or
	 * -1 if there is no part. Any other size: so many bytes were found to be equal, and the
	 * copy continues after them; or returns -errno, and it may not. */
	off_t (*begin_partial)(struct endpoint *, off_t size);
	/* The bytes [from, to) are complete. Returns 0; or -errno of an fdatasync(2) that failed:
	 * bytes are lost, and no later call would report that again. */
	int (*note_partial)(struct endpoint *, off_t from, off_t to);
	/* After a failure: truncates DST.fcopy-part to its first `size` bytes and makes abort keep
	 * it. The call on DST that has failed, or NULL. Returns false if there are no bytes, or
	 * that is impossible: abort removes the part. */
	bool (*keep_partial)(struct endpoint *, off_t size, const struct fcopy_error *);
	/* After a failure: frees blocks up to `allocated` that are past the end of the file. */
	void (*release_blocks)(const struct endpoint *, off_t allocated);

	/* After a failed write or ftruncate(2) of a file that is overwritten: does its file system
	 * perhaps accept only files that are truncated when they are opened? Then opens it so, and
	 * returns true: the copy starts over. */
	bool (*start_over)(struct endpoint *, const struct fcopy_error *);

	/* Does a file have a temporary name or a part, which a SIGKILL would leave? *dir: the
	 * directory. */
	bool (*leaves_name)(const struct endpoint *, int *dir);

	/* HOST:PORT where peers can connect; NULL: it does not listen, or no longer. */
	const char *(*listens)(const struct endpoint *);
	/* After start: HOST:PORT of the peer; empty if its address is of another kind. */
	const char *(*peer)(const struct endpoint *);
	/* The longest wait for the peer in milliseconds; negative: no limit. */
	int (*timeout_ms)(const struct fcopy_options *);
	/* Sets SO_RCVLOWAT, so that poll reports a socket readable only when much data has come:
	 * fewer, larger reads. For a destination that is invisible until it is complete. */
	void (*gather)(const struct endpoint *);
	/* Accepts the next peer; waits for io->timeout_ms at most. *connection is then an endpoint
	 * that was started. The listener continues to listen. */
	int (*accept)(const struct endpoint *listener, const struct io *io,
		      struct endpoint *connection, struct fcopy_error *);
	enum endpoint_receipt (*receipt)(const struct endpoint *); /* after the commit */

	/* DST, HTTP, after accept: answers the request, up to the first byte of a file. Returns 1:
	 * the bytes [first, last) of demand->file are to be copied, and finish then sends what is
	 * left; 0: the answer is complete, commit comes next; or -errno. */
	int (*answer)(struct endpoint *, const struct offer *, struct demand *,
		      struct fcopy_error *);
	/* SRC, after start: waits for the first byte. Returns why the bytes are hardly what the
	 * user wants, as a static string; NULL: no reason is known. */
	const char *(*doubt)(const struct endpoint *);
	/* SRC, HTTP, after start: the length of what the peer wants to send. */
	off_t (*length)(const struct endpoint *);
	/* ... and after that: it may send. */
	int (*proceed)(struct endpoint *, struct fcopy_error *);
	/* ... after the last byte: has the peer sent more than this length? */
	bool (*surplus)(const struct endpoint *);
	/* ... before commit or abort: reports the outcome of the copy to the peer. Returns 0, or
	 * -errno: it may not know. */
	int (*reply)(struct endpoint *, struct fcopy_report *);
};

/* Entries of a tree whose names may lead to one file: the copy of one must not replace the copy of
 * another one. */
struct rivals {
	bool (*is_made)(void *arg, const struct stat *); /* did one of them make this file? */
	void *arg;
	pthread_mutex_t *lock; /* held while a name is looked up and replaced */
};

/* `ops` says of what kind it is, and never changes while it is open. commit and abort set fd to -1;
 * what the copy may read of a file that is closed is `st`, `visible` and `mode_lost`. While it is
 * open, only `fd`, `written` and `mode_lost` change; `faithful` may become true, and the caller
 * sets `rivals` and `backup` before the commit. */
struct endpoint {
	const struct endpoint_ops *ops;
	const char *path; /* for messages */
	/* Of the copy; NULL: of a source that is shared or adopted, or of destination_create(). */
	const struct fcopy_options *options;
	int fd;          /* -1: closed; of shards, also until the part is open */
	bool positional; /* use explicit offsets; false: use the current file offset */
	bool faithful;   /* the storage is known to keep attributes, or to return an error */
	bool finishes;   /* finish has something to do: of a file, it sets the owner or the mode */
	bool met;        /* O_EXCL has met a file: it is not ours */
	bool written;    /* a duplicate was closed after the last byte: see io_check_written() */
	struct stat st;  /* when it was opened; of a new file perhaps only the type */
	bool
	    past_cache; /* a flush of DST.fcopy-part has failed: only the storage shows its bytes */
	enum endpoint_old old;       /* what DST had when it was opened, and ... */
	const struct stat *old_stat; /* ... the stat of the file that existed, or NULL */
	/* Why a reader can see the copy incomplete under its final name, as a static string; NULL:
	 * none can, or it is no file. */
	const char *visible;
	const char *restarts; /* why what an earlier run has left was removed, as a static string */
	const struct rivals
	    *rivals;           /* the commit returns RESULT_RIVAL if one has the name; or NULL */
	struct backup *backup; /* that the commit makes of what it replaces; or NULL */

	int mode_lost; /* errno with which the final mode was refused, which no option asked for */

	/* What replace.h or socket.h keeps here. */
	_Alignas(8) unsigned char state[ENDPOINT_STATE];
};

/* Closes the descriptor, unless it is closed. Returns 0 or -errno. */
static inline int endpoint_close(struct endpoint *e)
{
	int fd = e->fd;
	e->fd = -1;
	return fd >= 0 && libc_close(fd) < 0 ? -errno : 0;
}

static inline const char *endpoint_listens(const struct endpoint *e)
{
	return e->ops->listens ? e->ops->listens(e) : NULL;
}

/* The functions below that open an endpoint fill *e and return 0, or record the failure and return
 * -errno; then nothing is open. */

/* With options.default_mode, the copy has nothing of the source's mode: replaces it in *st. */
static inline void source_hide_mode(struct stat *st, const struct fcopy_options *o)
{
	const mode_t type = st->st_mode & S_IFMT;
	if (o->default_mode && !(o->preserve & FCOPY_ATTR_MODE) && type != S_IFLNK)
		st->st_mode = type | (type == S_IFDIR || type == S_IFSOCK ? 0777 : 0666);
}

/* Opens SRC for reading. */
int source_open(struct endpoint *e, const struct operand *, const struct fcopy_options *,
		struct fcopy_error *);
/* Makes a regular file that is already open as `open` the source. It stays open after the commit or
 * abort of *e. */
int source_share(struct endpoint *e, const struct endpoint *open, struct fcopy_error *);

/* Makes fd, an open regular file, the source; *st is its fstat. Cannot fail. Commit and abort close
 * fd. */
void source_adopt(struct endpoint *e, int fd, const char *path, const struct stat *st);

/* Opens what operand_find_file found, according to its type: a file to replace, an existing inode
 * to write into, a device or a stream. The caller has decided that the copy may replace it, or
 * write to it. Before it changes anything, it refuses everything that is certain to fail. Takes
 * dst->place. */
int destination_open(struct endpoint *e, struct operand *dst, const struct endpoint *src,
		     const struct fcopy_options *, struct storage *, struct fcopy_error *);

/* Opens a place that place_accept() has accepted, for a source that is a regular file. path is for
 * messages and must outlive *e. */
enum destination_flags {
	/* Also a file with more hard links, as with options.force. It is never overwritten,
	 * because a tree may copy another of its names. */
	DESTINATION_REPLACES_LINKS = 1 << 0,
	DESTINATION_IS_PRIVATE = 1 << 1, /* no other user can exchange the names in dir */
	/* The copy becomes a new file: an old one, a symlink or a special file gives it nothing. */
	DESTINATION_REPLACES_ALL = 1 << 2,
	/* The commit replaces the file that was found, or none if there was none; in place, only a
	 * new file is certain to be none. */
	DESTINATION_EXACT = 1 << 3,
	DESTINATION_REPLACES_READ_ONLY = 1 << 4, /* also a file of this user that is read-only */
	/* Of a rehearsal: the copy would give this user the right to write to dir. */
	DESTINATION_ADMITTED = 1 << 5,
	DESTINATION_DIRECTORY_FITS = 1 << 6, /* destination_directory_fits() was true of another
					      * name */
	/* The only copy: a file with several names is overwritten in place. */
	DESTINATION_ONLY = 1 << 7,
};
int destination_open_place(struct endpoint *e, struct place *, const char *path,
			   const struct endpoint *src, const struct fcopy_options *, unsigned flags,
			   struct storage *, struct fcopy_error *);

/* Would destination_open_place() refuse the file? src: the fstat of the source. Creates and changes
 * nothing, and leaves the place open. Returns 0, RESULT_REFUSED or -errno. */
int destination_rehearse(const struct place *, const char *path, const struct stat *src,
			 const struct fcopy_options *, unsigned flags, struct fcopy_error *);

/* Creates the regular file `name` in the open directory `dir` under its final name; EEXIST if it
 * exists. No other user may be able to exchange that name. Commit closes it, abort removes it. dir
 * and path must outlive *e. */
int destination_create(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		       struct fcopy_error *);

/* The open directory and the name in it that a file as DST has, or will have; both live as long as
 * *e. */
const char *destination_name(const struct endpoint *e, int *dir);
/* After a successful open: was the directory seen to allow the rename, of whatever file? */
bool destination_directory_fits(const struct endpoint *e);
/* Is it the file that a symlink of the given name led to? */
bool destination_is_target(const struct endpoint *e);
/* The stat of what the commit will replace, or NULL. */
const struct stat *destination_found(const struct endpoint *e);
/* After RESULT_TAKEN: the next commit replaces the file that *old is the stat of; NULL: none.
 * Returns 0, or -errno if no file can replace it. */
int destination_expect(struct endpoint *e, const struct stat *old, struct fcopy_error *);

/* same.c: the same inode, or two device nodes of one disk. Not a socket, which may be both ends: a
 * server that echoes. */
bool same_file(const struct stat *, const struct stat *);
/* Is the open file fd, whose fstat is *st, the source? Also recognises the source under another
 * inode number. Returns 1, 0, or -errno. */
int same_is_source(const struct endpoint *src, int fd, const struct stat *st);

/* Records that SRC and DST are one file. Returns -errno. */
int same_refuse(const char *src, const char *dst, struct fcopy_error *);

/* The file that the caller writes during the copy and that *st is the stat of; NULL: none. */
const struct fcopy_output *same_output(const struct fcopy_options *, const struct stat *);
/* Refuses it as DST of a copy that is no entry of a tree. Returns -errno. */
int same_refuse_output(const struct fcopy_output *, const char *dst, struct fcopy_error *);

/* The identity of an inode, which a later file with the same inode number does not have. */

struct identity {
	bool known; /* false: the file system reports too little, or statx(2) failed */
	uint32_t dev_major, dev_minor;
	uint64_t ino, handle; /* handle: a hash of the file handle; 0: none */
	int64_t birth_seconds;
	uint32_t birth_nanoseconds;
};

struct identity identity_of(int fd); /* also of an O_PATH descriptor */
/* Returns false if one of them is unknown. */
bool identity_is_same(const struct identity *, const struct identity *);

#define IN_PLACE_REASON "it is written in place" /* a value of endpoint.visible */

/* Is a file perhaps overwritten? */
static inline bool in_place_possible(const struct fcopy_options *o)
{
	return o->in_place == FCOPY_WHEN_ALWAYS || o->in_place == FCOPY_WHEN_AUTO;
}

/* Is the file overwritten where it could be replaced, too? */
static inline bool in_place_always(const struct fcopy_options *o)
{
	return o->in_place == FCOPY_WHEN_ALWAYS;
}

#endif
