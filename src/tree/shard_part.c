/* SPDX-License-Identifier: MIT
 * The directory DST.fcopy-part/ while shards copy a tree into it.
 */
#define _GNU_SOURCE
#include "copy/shard.h"
#include "endpoints/error.h"
#include "permissions.h"
#include "root.h"

#include <fcntl.h>
#include <unistd.h>

/* Checks that no other copy uses the open part; sets *st. Returns SHARD_AGAIN if the part has lost
 * its name. */
static int shard_check_part(const struct root *root, const struct shard_job *j, struct stat *st)
{
	struct stat named;
	int r = shared_check_lock(root->dst, root->tree->options->copy.cancel);
	if (r < 0)
		return part_fail_lock(&(struct endpoint){.path = j->path}, r, j->error);
	if (fstat(root->dst, st) < 0)
		return error_call(j->error, "fstat", j->path, errno);
	if (fstatat(j->parent, j->part_name, &named, AT_SYMLINK_NOFOLLOW) < 0 ||
	    named.st_ino != st->st_ino || named.st_dev != st->st_dev)
		return SHARD_AGAIN;
	return 0;
}

int shard_open_part(struct root *root, struct shard_job *j)
{
	struct stat st = {0};
	if (!j->part && !storage_can(&root->tree->storage, j->parent, STORAGE_RENAMES_DIRECTORIES))
		return error_refuse(
		    j->error, j->path, EOPNOTSUPP,
		    "cannot be copied in shards: directories cannot be renamed here",
		    FCOPY_ADVICE_NO_PART);
	bool created = !j->part && mkdirat(j->parent, j->part_name, 0700) == 0;
	if (!j->part && !created && errno != EEXIST)
		return error_call(j->error, "mkdir", j->path, errno);
	if (created)
		permissions_admit_owner(j->parent, j->part_name);
	root->dst = openat(j->parent, j->part_name,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root->dst < 0 && errno == ENOTDIR && j->part)
		return shard_refuse_part(j, SHARD_OTHER_PART);
	if (root->dst < 0 && errno == ENOTDIR)
		return error_refuse(j->error, j->path, ENOTDIR,
				    "its .fcopy-part is not a directory", FCOPY_ADVICE_REMOVE_PART);
	if (root->dst < 0 && errno == ENOENT)
		return SHARD_AGAIN;
	if (root->dst < 0)
		return error_operation(j->error, "open of its .fcopy-part", "openat", j->path,
				       errno);
	int r = shard_check_part(root, j, &st);
	/* Once it is recorded, it may have its final owner and mode: the commit was interrupted. */
	const char *unsafe = r == 0 && !j->part ? part_unsafe_reason(j->parent, &st) : NULL;
	if (unsafe)
		r = error_refuse(j->error, j->path, EPERM, unsafe, FCOPY_ADVICE_REMOVE_PART);
	return r == 0 ? shard_record_part(j, &st, private_is_empty(root->dst) == 1) : r;
}
