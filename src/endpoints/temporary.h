/* SPDX-License-Identifier: MIT
 *
 * Temporary files. temporary_name() is in naming.c.
 */
#ifndef ENDPOINTS_TEMPORARY_H
#define ENDPOINTS_TEMPORARY_H

#include "endpoint.h"

/* Do new files in this directory need a temporary name, because O_TMPFILE is unsupported? */
bool temporary_is_named(int dir);
mode_t temporary_umask(void); /* of this process; 077 if it is unknown */
/* The mode that the kernel gives a file that is created in `dir` with `mode`. The storage, or NULL,
 * remembers the umask. */
mode_t temporary_mode(int dir, mode_t mode, struct storage *);
/* temporary_create creates an unnamed temporary file with `mode`. Returns 1 if the file system does
 * not support O_TMPFILE. Then temporary_create_named creates a file with a temporary name and mode
 * 0600, which gets file_of(e)->mode later; or, where chmod has no effect, with `mode`.
 * temporary_name gives the file its final name. All return 0, or -errno with the failed call in
 * *call. temporary_name also returns ENDPOINT_SKIPPED if the name is not free or, with
 * file_of(e)->exact, that of another file than was found; it sets *call to NULL if another process
 * has exchanged the temporary name. */
int temporary_create(struct endpoint *e, mode_t mode, const char **call);
int temporary_create_named(struct endpoint *e, mode_t mode, const char **call);
/* Calls `make` with drawn names until one is free, which e's temporary name becomes. Returns what
 * it returned last; *call: `made`, or what failed before. */
int temporary_make_drawn(struct endpoint *e, int (*make)(const struct endpoint *, const char *name),
			 const char *made, const char **call);
int temporary_name(struct endpoint *e, bool no_clobber, const char **call);
/* Closes the file, and removes it if it has a temporary name, unless file_of(e)->keep_part. A
 * partial file has partial_drop. */
void temporary_drop(struct endpoint *e);
/* Creates a probe file with mode 0600 in *probe, whose fd is -1: its `place` has the name, or the
 * descriptor as `target`, and the stat, which shows the owner and mode of a new file.
 * temporary_drop removes it, also after a failure, which *call names. */
int temporary_open_probe(int dir, struct endpoint *probe, const char **call);

#endif
