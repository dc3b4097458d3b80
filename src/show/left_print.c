/* SPDX-License-Identifier: MIT
 * What copies leave: what --clean found and did, for people and as an object; a part that a copy
 * does not continue; and data that is not on its device.
 */
#include "io/io.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *const kinds[] = {[FCOPY_LEFT_FILE] = "file",
				    [FCOPY_LEFT_DIRECTORY] = "directory",
				    [FCOPY_LEFT_PART] = "part",
				    [FCOPY_LEFT_RECEIPT] = "receipt",
				    [FCOPY_LEFT_OLD] = "old"};
static const char *const kind_words[] = {[FCOPY_LEFT_FILE] = "temporary file",
					 [FCOPY_LEFT_DIRECTORY] = "temporary directory",
					 [FCOPY_LEFT_PART] = "unfinished copy",
					 [FCOPY_LEFT_RECEIPT] = "receipt of shards",
					 [FCOPY_LEFT_OLD] = "replaced by a mirror"};
static const char *const states[] = {
    [FCOPY_LEFT_DEAD] = "dead",       [FCOPY_LEFT_LIVE] = "live",
    [FCOPY_LEFT_UNKNOWN] = "unknown", [FCOPY_LEFT_REMOVED] = "removed",
    [FCOPY_LEFT_FAILED] = "failed",   [FCOPY_LEFT_RETURNED] = "returned"};

const char *left_words(const struct fcopy_left *l)
{
	static const struct {
		int64_t seconds;
		const char *name;
	} units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
	char text[NAME_MAX + 256];
	size_t i = 0;
	while (i < 3 && l->age < units[i].seconds)
		i++;
	const int64_t age = l->age / units[i].seconds;
	snprintf(text, sizeof(text), "%s%s%s%s, %s%s, %jd %s%s old", l->old ? "earlier '" : "",
		 l->old ? l->old : "", l->old ? "', " : "", kind_words[l->kind],
		 l->more ? "more than " : "", amount(l->bytes).text, (intmax_t)age, units[i].name,
		 age == 1 ? "" : "s");
	return escaped(text);
}

void left_print(const struct fcopy_left *l)
{
	static const char *const outcomes[] = {[FCOPY_LEFT_DEAD] = "not in use, can be removed",
					       [FCOPY_LEFT_LIVE] = "in use",
					       [FCOPY_LEFT_UNKNOWN] = "left alone: ",
					       [FCOPY_LEFT_REMOVED] = "removed",
					       [FCOPY_LEFT_FAILED] = "cannot be removed",
					       [FCOPY_LEFT_RETURNED] = "renamed back"};
	const bool returns = l->state == FCOPY_LEFT_DEAD && l->returns;
	print_on(stdout, "%s: %s: %s%s\n", escaped(l->path), left_words(l),
		 returns ? "not in use, can be renamed back" : outcomes[l->state],
		 l->state == FCOPY_LEFT_UNKNOWN ? l->reason : "");
}

void left_json(struct json *j, const struct fcopy_left *l)
{
	json_open(j, NULL, '{');
	json_path(j, "path", l->path);
	json_string(j, "kind", kinds[l->kind]);
	json_string(j, "state", states[l->state]);
	json_string(j, "reason", l->reason);
	json_integer(j, "bytes", l->bytes);
	json_bool(j, "more", l->more);
	json_integer(j, "age", (uint64_t)l->age);
	json_path(j, "old", l->old);
	json_bool(j, "returns", l->returns);
	error_write(j, "error", &l->error);
	json_close(j, '}');
}

void unused_print(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	const size_t n = cli->source_count > 0 ? cli->source_count : 1;
	char copy[PATH_MAX], part[PATH_MAX];
	struct stat st;
	if (!cli->voice.advises || o->resume || o->shard.count > 0 || cli->tree.parents ||
	    cli->dst[0] == '\0' ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		return;
	const bool into = !o->no_directory && (cli->tree.into_directory ||
					       (stat(cli->dst, &st) == 0 && S_ISDIR(st.st_mode)));
	for (size_t i = 0; i < n; i++) {
		const char *src = cli->source_count > 0 ? cli->sources[i] : cli->src;
		if ((into && !text_copy_path(src, cli->dst, copy)) ||
		    !part_path(into ? copy : cli->dst, part) || !fcopy_is_unfinished(part))
			continue;
		note_printf("%s: unfinished copy, not used without --resume", escaped(part));
		return;
	}
}

/* Data that is not on its device. It may be removable, and pulled out before it has all data: sysfs
 * shows whether it is. A file system without its own block device (network, btrfs) is not found
 * there. */

static bool device_says(dev_t device, const char *name, const char *expected)
{
	char path[PATH_MAX], text[64];
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(device), minor(device), name);
	return io_read_text(path, text, sizeof(text)) && strcmp(text, expected) == 0;
}

/* A partition's attributes are those of its device, one directory above. */
static bool device_is_removable(dev_t device)
{
	char path[PATH_MAX];
	if (device_says(device, "removable", "1\n") || device_says(device, "../removable", "1\n") ||
	    device_says(device, "device/type", "SD\n") ||
	    device_says(device, "../device/type", "SD\n"))
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(device), minor(device));
	char *at = realpath(path, NULL);
	const bool usb = at && strstr(at, "/usb");
	free(at);
	return usb;
}

void unwritten_print(const struct cli *cli, const char *dst, uint64_t bytes)
{
	const struct fcopy_options *o = &cli->copy;
	const bool waits = o->fsync || o->verify || o->shard.count > 0 || cli->tree.dry_run;
	struct stat st;
	if (!cli->voice.advises || bytes == 0 || waits ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH ||
	    stat(dst, &st) < 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) ||
	    !device_is_removable(st.st_dev))
		return;
	note_printf("%s: data may still be in memory (with --fsync, fcopy waits for the device)",
		    escaped(dst));
}
