/* SPDX-License-Identifier: MIT
 *
 * HOW_WRITE: an existing inode that is written into, a file or a device.
 */
#ifndef ENDPOINTS_IN_PLACE_H
#define ENDPOINTS_IN_PLACE_H

#include "endpoint.h"

/* Opens the file or device of e's place. Returns 0, or -errno with the failure recorded. */
int in_place_open(struct endpoint *e, const struct endpoint *src, const struct fcopy_options *,
		  struct fcopy_error *);
/* Would in_place_open() refuse the device? Writes nothing. Returns 0 or -errno. */
int in_place_rehearse(struct endpoint *e, const struct stat *src, struct fcopy_error *);
/* The operations of struct endpoint_ops. */
void in_place_release_blocks(const struct endpoint *e, off_t allocated);
bool in_place_start_over(struct endpoint *e, const struct fcopy_error *);

/* The size of a block device, which stat does not report. Returns 0 or -errno. */
int device_size(int fd, off_t *size);

#endif
