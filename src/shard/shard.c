/* SPDX-License-Identifier: MIT
 * The public functions: a copy by one process, or a share of it.
 */
#include "range.h"
#include "tree.h"

static bool shard_is_asked(const struct fcopy_options *o)
{
	return o && o->api == FCOPY_API && (o->shard.count > 0 || o->shard.finish);
}

int fcopy_copy(const char *src, const char *dst, const struct fcopy_options *options,
	       struct fcopy_report *report)
{
	static const struct fcopy_service once = {.once = true};
	if (operand_is_http(dst))
		return fcopy_serve(&src, 1, dst, options, &once, report);
	return copy_paths(src, dst, options, report,
			  shard_is_asked(options) ? shard_copy_file : NULL);
}

int fcopy_tree(const char *const *src, size_t n, const char *dst,
	       const struct fcopy_tree_options *options, struct fcopy_tree_report *report)
{
	static const struct shared_copy shards = {.copy_root = shard_copy_root,
						  .names_copy = shard_names_copy,
						  .copy_file = shard_copy_file,
						  .list = list_add,
						  .leave = list_leave};
	const bool shared = shard_is_asked(options ? &options->copy : NULL);
	return tree_run(src, n, dst, options, report, shared ? &shards : NULL);
}
