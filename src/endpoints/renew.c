/* SPDX-License-Identifier: MIT
 * What an earlier attempt gave to DST.fcopy-part must not admit users to this copy: the source, or
 * the options, may be others now.
 */
#define _GNU_SOURCE
#include "error.h"
#include "file.h"

int part_renew(const struct endpoint *e, struct fcopy_error *error)
{
	const char *call;
	struct endpoint file = {.fd = -1}, *probe = &file;
	const struct place *new = &file_of(probe)->place;
	int r = temporary_open_probe(file_of(e)->place.dir, probe, &call);
	if (r < 0) {
		error_call(error, call, e->path, -r);
	} else if ((r = metadata_keep_owner(e, new, false, error)) < 0 ||
		   (r = metadata_keep_acl(e, new, false, error)) < 0) {
		error_refuse(error, e->path, -r,
			     "its .fcopy-part cannot get the owner and ACL of a new file",
			     FCOPY_ADVICE_REMOVE_PART);
	}
	temporary_drop(probe);
	return r;
}
