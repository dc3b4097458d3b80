/* SPDX-License-Identifier: MIT
 *
 * Files for the tests of both kinds: made, compared, looked into. What goes wrong in here is no
 * result but a broken test: it is printed, and the process aborts.
 */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Every third block of a sparse or unwritten file, from the second on, holds data. */
enum shape { DENSE, SPARSE, UNWRITTEN, SHAPES };

extern const char *const shape_names[SHAPES];

/* Aborts with the file, the line and errno unless x holds. */
#define need(x) ((x) ? (void)0 : need_failed(#x, __FILE__, __LINE__))
_Noreturn void need_failed(const char *what, const char *file, int line);

/* Fills buf with bytes that depend on seed and on `at`, the offset that they are meant for. */
void fill(void *buf, size_t n, off_t at, unsigned seed);

/* Creates or empties the file. */
void make_file(const char *name, off_t size, enum shape, unsigned seed);
/* Writes n bytes of `seed` at `at` of an existing file. */
void write_at(const char *name, off_t at, size_t n, unsigned seed);
void make_text(const char *name, const char *text);

/* Removes what matches a pattern of glob(7), and all below it; nothing has to match. */
void remove_all(const char *pattern);

/* Equal in length and bytes; same_range: in the bytes [start, end) of both. */
bool same_bytes(const char *a, const char *b);
bool same_range(const char *a, const char *b, off_t start, off_t end);
/* The offset of the first byte that differs, or is missing in one of them; -1: none does. */
off_t first_difference(const char *a, const char *b);

off_t size_of(const char *name);
bool exists(const char *name);
unsigned mode_of(const char *name); /* the twelve permission bits */

/* Gives the file an ACL that no mode can stand for, or takes a look whether it has that one. False:
 * the file system knows no ACLs, or it has another. */
bool give_acl(const char *name);
bool has_acl(const char *name);

/* Descriptors that this process holds. */
int open_descriptors(void);
/* Names in a directory, but for . and .. */
int names_in(const char *dir);

/* The extents as text, such as "data:4096 hole:8192 unwritten:4096", neighbours of one kind as one,
 * up to the file's size; waits for the file's dirty pages. Static storage, two calls deep. */
const char *map_of(const char *name);
/* Bytes in extents that the file shares with another. */
off_t shared_bytes(const char *name);

/* Makes the unfinished copy of `src` to `name` in `dir`: its data has `size` bytes as make_file
 * makes them, and its journal notes none of them. */
void make_part(const char *dir, const char *name, const char *src, off_t size, unsigned seed);

#endif
