/* SPDX-License-Identifier: MIT
 * The hints about errors: what the user can do about a failure or a warning.
 */
#include "hint.h"

#include <errno.h>
#include <string.h>

const char *hint_text(enum fcopy_advice advice)
{
	switch (advice) {
	case FCOPY_ADVICE_AUTO: return "use auto, or no MODE, to let fcopy choose";
	case FCOPY_ADVICE_IN_PLACE: return "use --inplace to overwrite it";
	case FCOPY_ADVICE_NO_PART: return "leave out --resume and --shard";
	case FCOPY_ADVICE_NO_FSYNC:
		return "leave out --fsync and --verify: this storage cannot flush a file";
	case FCOPY_ADVICE_IN_PLACE_AUTO: return "use --inplace=auto to overwrite it";
	case FCOPY_ADVICE_IN_PLACE_OR_FORCE:
		return "use --inplace to overwrite it, or -f to replace it anyway";
	case FCOPY_ADVICE_RECURSIVE: return "use -r to copy directories";
	case FCOPY_ADVICE_DESCRIPTORS:
		return "raise the hard limit of open files (ulimit -Hn): each level of "
		       "directories needs two descriptors";
	case FCOPY_ADVICE_FORCE: return "use -f to replace it anyway";
	case FCOPY_ADVICE_FLUSH:
		return "DST is complete, but may not survive a power cut: check the storage, then "
		       "run sync";
	case FCOPY_ADVICE_CACHE: return "leave out --no-cache";
	case FCOPY_ADVICE_REFLINK:
		return "use --reflink=auto to copy the bytes where a clone is impossible";
	case FCOPY_ADVICE_FLAGS: return "remove the flag with chattr -i or chattr -a";
	case FCOPY_ADVICE_DEVICE: return "attach the device; or use -f to create a regular file";
	case FCOPY_ADVICE_REMOVE_LINK: return "remove the symlink, or create its target";
	case FCOPY_ADVICE_REMOVE_LOOP: return "remove the symlink";
	default: return NULL;
	}
}

static const struct given_set *hint_given;

void hint_about(const struct cli *cli)
{
	hint_given = &cli->given;
}

/* The option that the hint proposes. */
static enum given hint_proposes(enum fcopy_advice advice)
{
	switch (advice) {
	case FCOPY_ADVICE_IN_PLACE:
	case FCOPY_ADVICE_IN_PLACE_AUTO:
	case FCOPY_ADVICE_IN_PLACE_OR_FORCE: return GIVEN_INPLACE;
	case FCOPY_ADVICE_FORCE:
	case FCOPY_ADVICE_DEVICE: return GIVEN_FORCE;
	case FCOPY_ADVICE_RECURSIVE: return GIVEN_TREE;
	default: return GIVEN_NOTHING;
	}
}

void hint_advice(enum fcopy_advice advice)
{
	const enum given added = hint_proposes(advice);
	const char *without = added && hint_given ? conflict_with(hint_given, added) : NULL;
	if (without && advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE)
		hint_printf("%s", hint_text(FCOPY_ADVICE_FORCE));
	else
		hint_printf("%s%s%s", hint_text(advice), without ? "; leave out --" : "",
			    without ? without : "");
}

void hint_bare(const struct cli *cli)
{
	FILE *f = hint_begin();
	fprintf(f, "use --%s=", cli->bare);
	message_quoted(cli->bare_value);
	fputs(": ", f);
	message_quoted(cli->bare_value);
	fputs(cli->bare_is_dst ? " is DST here" : " is a SRC here", f);
	hint_end();
}

bool hint_value(const struct cli *cli, const struct fcopy_error *e)
{
	const char *value = cli->bare_value;
	if (!value || (e->err != ENOENT && e->err != ENOTDIR) || !e->path ||
	    (strcmp(e->path, value) != 0 && strcmp(e->path, cli->dst) != 0))
		return false;
	hint_bare(cli);
	return true;
}

void hint_shards(const char *purpose, const char *dst)
{
	FILE *f = hint_begin();
	fprintf(f, "%s, remove ", purpose);
	message_part(dst);
	fputs(" while no shard runs", f);
	hint_end();
}

/* Once for each directory: it may have many such entries. */
static void hint_clean(const char *path)
{
	static char last[PATH_MAX];
	char directory[PATH_MAX];
	hint_directory(path, directory);
	if (strcmp(directory, last) == 0)
		return;
	strcpy(last, directory);
	FILE *f = hint_begin();
	fprintf(f, "to remove it, if no copy uses it: fcopy%c--clean%c", HINT_SPACE, HINT_SPACE);
	message_quoted(directory);
	hint_end();
}

void hint_print_path(const struct fcopy_error *e)
{
	FILE *f;
	switch (e->advice) {
	case FCOPY_ADVICE_REMOVE_PART:
	case FCOPY_ADVICE_RESUME:
		f = hint_begin();
		if (e->advice == FCOPY_ADVICE_RESUME)
			fputs("use --resume (not --mirror) to continue that copy, or ", f);
		fputs("remove or rename ", f);
		message_part(e->path);
		hint_end();
		break;
	case FCOPY_ADVICE_REMOVE_FILE:
	case FCOPY_ADVICE_REMOVE_TREE:
		f = hint_begin();
		fprintf(f, "if no other machine is writing to it, remove it: rm%c%s", HINT_SPACE,
			e->advice == FCOPY_ADVICE_REMOVE_TREE ? "-r\1" : "");
		message_quoted(e->path);
		hint_end();
		break;
	case FCOPY_ADVICE_CLEAN: hint_clean(e->path); break;
	case FCOPY_ADVICE_SHARDS: hint_shards("to start over", e->path); break;
	default: break;
	}
}

void hint_print(const struct fcopy_error *e)
{
	if (e->advice == FCOPY_ADVICE_NONE && hint_cause(e))
		return;
	if (hint_text(e->advice))
		hint_advice(e->advice);
	else
		hint_print_path(e);
}
