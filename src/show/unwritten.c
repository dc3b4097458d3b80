/* SPDX-License-Identifier: MIT
 * A removable device may be pulled out before it has all data: sysfs shows whether it is one. A
 * file system without its own block device (network, btrfs) is not found there.
 */
#define _GNU_SOURCE
#include "hint.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool read_text(dev_t device, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", major(device), minor(device), name);
	FILE *f = fopen(path, "re");
	bool got = f && fgets(text, (int)size, f);
	if (f)
		fclose(f);
	return got;
}

/* A partition's attributes are those of its device, one directory above. */
static bool is_removable(dev_t device)
{
	char text[64], path[PATH_MAX];
	if ((read_text(device, "removable", text, sizeof(text)) ||
	     read_text(device, "../removable", text, sizeof(text))) &&
	    text[0] == '1')
		return true;
	if ((read_text(device, "device/type", text, sizeof(text)) ||
	     read_text(device, "../device/type", text, sizeof(text))) &&
	    strcmp(text, "SD\n") == 0)
		return true;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(device), minor(device));
	char *at = realpath(path, NULL);
	bool usb = at && strstr(at, "/usb");
	free(at);
	return usb;
}

/* Will nobody wait for the device? */
static bool is_left_to_kernel(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	return !o->fsync && !o->verify && o->shard.count == 0 && !cli->tree.dry_run &&
	       fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) == FCOPY_KIND_PATH;
}

void unwritten_print(const struct cli *cli, const char *dst, uint64_t bytes)
{
	struct stat st;
	if (!cli->voice.advises || bytes == 0 || !is_left_to_kernel(cli) || stat(dst, &st) < 0 ||
	    !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) || !is_removable(st.st_dev))
		return;
	FILE *f = note_begin();
	message_print(dst);
	fputs(": data may still be in memory (with --fsync, fcopy waits for the device)", f);
	hint_end();
}
