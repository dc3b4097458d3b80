/* SPDX-License-Identifier: MIT
 *
 * HOW_FINAL and HOW_SWAP: a file that is created under its final name.
 */
#ifndef ENDPOINTS_CREATED_H
#define ENDPOINTS_CREATED_H

#include "endpoint.h"

/* These return 0, or -errno with the failure recorded. */

/* Creates the file of e's place; EEXIST if it exists. */
int created_open(struct endpoint *e, mode_t mode, struct fcopy_error *);
/* The same, and notes which file it is. HOW_SWAP: in place of an old entry that is no directory. */
int created_open_final(struct endpoint *e, mode_t mode, struct fcopy_error *);
/* HOW_SWAP, after the commit. */
void created_remove_old(struct endpoint *e);
/* Removes the file, unless it is complete or its name is that of another one by now, and gives an
 * old entry its name back. */
void created_drop(struct endpoint *e);

#endif
