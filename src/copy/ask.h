/* SPDX-License-Identifier: MIT
 *
 * Cheap questions about a file, before the first byte.
 */
#ifndef COPY_ASK_H
#define COPY_ASK_H

#include "copy.h"

/* Is little of the file in the page cache; does its file system do uncached I/O? */
bool ask_is_cold(int fd, off_t size);
bool ask_is_uncached(int fd);

#endif
