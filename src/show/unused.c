/* SPDX-License-Identifier: MIT
 * Implements unused.h.
 */
#include "unused.h"
#include "hint.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *dst)
{
	struct stat st;
	return stat(dst, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The copy of SRC: DST, or DST/basename(SRC). Returns false if the path is too long. */
static bool name_copy(const char *src, const char *dst, bool into, char path[PATH_MAX])
{
	const char *slash = dst[strlen(dst) - 1] == '/' ? "" : "/";
	size_t end = strlen(src), start;
	while (end > 1 && src[end - 1] == '/')
		end--;
	for (start = end; start > 0 && src[start - 1] != '/';)
		start--;
	int n = into ? snprintf(path, PATH_MAX, "%s%s%.*s", dst, slash, (int)(end - start),
				src + start)
		     : snprintf(path, PATH_MAX, "%s", dst);
	return n < PATH_MAX;
}

void unused_print(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	const size_t n = cli->source_count > 0 ? cli->source_count : 1;
	char path[PATH_MAX];
	if (!cli->voice.advises || o->resume || o->shard.count > 0 || cli->tree.parents ||
	    cli->dst[0] == '\0' ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		return;
	const bool into = !o->no_directory && (cli->tree.into_directory || is_directory(cli->dst));
	for (size_t i = 0; i < n; i++) {
		const char *src = cli->source_count > 0 ? cli->sources[i] : cli->src;
		if (!name_copy(src, cli->dst, into, path) || !message_part_is_unfinished(path))
			continue;
		note_begin();
		message_part(path);
		fputs(": unfinished copy, not used without --resume", hint_stream());
		hint_end();
		return;
	}
}
