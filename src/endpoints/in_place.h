/* SPDX-License-Identifier: MIT
 *
 * An existing inode that is written into: a file or a device.
 */
#ifndef ENDPOINTS_IN_PLACE_H
#define ENDPOINTS_IN_PLACE_H

#include "endpoint.h"

/* A part of destination_open(). */
int in_place_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		  struct fcopy_error *);
/* Would in_place_open() refuse the device? Writes nothing. Returns 0 or -errno. */
int in_place_rehearse(const struct place *, const char *path, const struct stat *src,
		      struct fcopy_error *);
extern const struct endpoint_ops in_place_ops; /* commit and abort only close */

/* The size of a block device, which stat does not report. Returns 0 or -errno. */
int device_size(int fd, off_t *size);

#endif
