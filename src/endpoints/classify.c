/* SPDX-License-Identifier: MIT
 * What a recorded failure means, for the library and the program.
 */
#include "error.h"
#include "io/io.h"

#include <string.h>

static bool classify_is_one_of(int err, const int *errors, size_t n)
{
	for (; n > 0 && *errors != err; n--)
		errors++;
	return n > 0;
}

static bool classify_sets_attribute(const char *call)
{
	return strstr(call, "setxattr") || strstr(call, "chmod") || strstr(call, "chown") ||
	       strstr(call, "utimens");
}

enum error_class error_classify(const struct fcopy_error *e)
{
	static const int storage[] = {EIO,       ENXIO,        ENODEV, EREMOTEIO,
				      ENOTCONN,  ECONNABORTED, ESTALE, ETIMEDOUT,
				      EHOSTDOWN, EUCLEAN,      EBADMSG};
	static const int refused[] = {EPERM, EACCES, EOPNOTSUPP, ENOSYS, EINVAL, E2BIG, ERANGE};
	const char *call = e->call ? e->call : "";
	if (strstr(call, "getxattr") || strstr(call, "listxattr"))
		return ERROR_OTHER;
	if (io_is_full(e->err))
		return strstr(call, "setxattr") ? ERROR_ATTRIBUTE : ERROR_FULL;
	if (classify_is_one_of(e->err, storage, sizeof(storage) / sizeof(*storage)))
		return ERROR_STORAGE;
	return classify_sets_attribute(call) &&
		       classify_is_one_of(e->err, refused, sizeof(refused) / sizeof(*refused))
		   ? ERROR_ATTRIBUTE
		   : ERROR_OTHER;
}
