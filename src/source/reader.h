/* SPDX-License-Identifier: MIT
 *
 * The only reader of directories: the names one by one, in the memory of the caller, because a
 * directory may be huge; or all of them; and the directories above one.
 */
#ifndef SOURCE_READER_H
#define SOURCE_READER_H

#include "io/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define READER_SIZE ((size_t)32 << 10) /* bytes: as few calls as readdir(3) makes */

struct reader {
	int fd;             /* the directory; negative: it could not be opened */
	int error;          /* 0 or -errno of `call`: no name follows */
	const char *call;   /* "openat" or "getdents64" */
	unsigned char type; /* d_type of the last name: only a hint */
	bool opened;        /* by reader_open() */
	char *buffer;
	size_t size, got, at; /* bytes of the buffer: all, with names, read */
};

/* Is it . or .., which every directory has? */
static inline bool name_is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Reads an open directory from its start, whatever was read of it: opens it again
 * (io_reopen_directory). The buffer is aligned to 8 bytes, and has room for a name: at least 2048
 * bytes. The caller calls reader_close(), also after an error. */
struct reader reader_open(int directory, void *buffer, size_t size);

/* The same with a descriptor that nobody has read from. The caller closes it. */
struct reader reader_of(int fd, void *buffer, size_t size);

/* Returns the next name, which is neither . nor .., and which is valid until the next call; or NULL
 * at the end and after an error. */
const char *reader_next(struct reader *r);

/* Returns r->error. */
int reader_close(struct reader *r);

/* Does the open directory list this name? */
bool reader_lists(int dir, const char *name);

/* Calls getdents64(2) once. Returns how many bytes of struct dirent64 it wrote into the buffer, 0
 * at the end, or -errno: ENOENT for a directory that was removed since it was opened. */
ssize_t reader_fill(int fd, void *buffer, size_t size);

/* The names in a directory, all at once. */

struct name_list {
	char *bytes;
	const char **name; /* sorted by strcmp(3); without . and .. */
	size_t count;
};

/* Reads the directory that is open as fd, from its start. Returns 0 and the
 * names, which names_free() frees; or -errno with the call. */
int names_read(int fd, struct name_list *list, struct failure *);
void names_free(struct name_list *list);

/* Is the name in the list? */
bool names_have(const struct name_list *list, const char *name);
/* The index of the first name that does not come before the text. */
size_t names_from(const struct name_list *list, const char *text);

/* Goes up by ".." from the open directory `dir` to the root, and visits both and all between. Ends
 * early if visit() returns true. Returns 1 then; 0: the root was visited; or -errno with the call.
 */
int reader_climb(int dir, bool (*visit)(const struct stat *, void *arg), void *arg,
		 struct failure *);

#endif
