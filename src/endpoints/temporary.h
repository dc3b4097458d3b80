/* SPDX-License-Identifier: MIT
 *
 * Temporary files: HOW_LINK and HOW_RENAME.
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
/* A slot_maker: creates a file. mode: points to its mode_t. Returns a descriptor or -errno. */
int temporary_make(int dir, const char *name, void *mode);
/* temporary_create creates an unnamed temporary file with `mode`. Returns 1 if the file system does
 * not support O_TMPFILE. temporary_create_named creates a file with a temporary name and mode 0600,
 * which gets file_of(e)->mode later; or, where chmod has no effect, with `mode`. Both return 0, or
 * -errno with the failed call in *call. */
int temporary_create(struct endpoint *e, mode_t mode, const char **call);
int temporary_create_named(struct endpoint *e, mode_t mode, const char **call);
/* Closes the file, and removes it if it has a temporary name. A part has partial_drop. */
void temporary_drop(struct endpoint *e);
/* Creates a probe file with mode 0600 in *probe, whose fd is -1: its `place` has the name, or the
 * descriptor as `target`, and the stat, which shows the owner and mode of a new file.
 * temporary_drop removes it, also after a failure, which *call names. */
int temporary_open_probe(int dir, struct endpoint *probe, const char **call);

#endif
