/* SPDX-License-Identifier: MIT
 *
 * A file that is created under its final name.
 */
#ifndef ENDPOINTS_CREATED_H
#define ENDPOINTS_CREATED_H

#include "endpoint.h"

/* Creates the regular file `name` in the open directory `dir` under its final name; EEXIST if it
 * exists. Commit closes it, abort removes it. dir and path must outlive *e. */
int created_open(struct endpoint *e, int dir, const char *name, mode_t mode, const char *path,
		 struct fcopy_error *);

/* Creates the file of e's place under its final name. Commit closes it and flushes the directory,
 * if that is open; abort removes it. reason: e->not_atomic. */
int created_open_final(struct endpoint *e, mode_t mode, const char *reason, struct fcopy_error *);
/* The same in place of an old entry that is no directory. Abort gives the old one its name back. */
int created_replace_final(struct endpoint *e, mode_t mode, const char *reason,
			  struct fcopy_error *);

#endif
