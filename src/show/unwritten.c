/* SPDX-License-Identifier: MIT
 * Implements unwritten.h by sysfs, for a user who watches: the copies of scripts make no call more.
 * A file system without its own block device (network, btrfs) has no entry there.
 */
#define _GNU_SOURCE
#include "unwritten.h"
#include "hint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SECTOR        512 /* bytes in the counters, whatever the device's sectors are */
#define MEASURED_MS   1000
#define SLOW_SECONDS  2
#define STAT_WRITTEN  6 /* the index of a counter: Documentation/block/stat.rst */
#define STAT_MS       9
#define STAT_COUNTERS 10

/* What the device has written up to now, in sectors, and for how long it was busy. */
struct written {
	uint64_t sectors, ms;
};

static struct {
	bool known;
	char device[64]; /* its directory in sysfs */
	struct written before;
} begun;

static bool read_text(const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", begun.device, name);
	FILE *f = fopen(path, "re");
	bool got = f && fgets(text, (int)size, f);
	if (f)
		fclose(f);
	return got;
}

static bool read_written(struct written *w)
{
	char text[512], *at = text;
	uint64_t counter[STAT_COUNTERS];
	if (!read_text("stat", text, sizeof(text)))
		return false;
	for (int i = 0; i < STAT_COUNTERS; i++)
		counter[i] = strtoull(at, &at, 10);
	*w = (struct written){counter[STAT_WRITTEN], counter[STAT_MS]};
	return true;
}

/* A partition's attributes are those of its device, one directory above. */
static bool is_removable(void)
{
	char text[64], path[PATH_MAX];
	if ((read_text("removable", text, sizeof(text)) ||
	     read_text("../removable", text, sizeof(text))) &&
	    text[0] == '1')
		return true;
	if ((read_text("device/type", text, sizeof(text)) ||
	     read_text("../device/type", text, sizeof(text))) &&
	    strcmp(text, "SD\n") == 0)
		return true;
	return realpath(begun.device, path) && strstr(path, "/usb");
}

/* Does the device need more than SLOW_SECONDS, at the speed of this copy, for the rest? */
static bool is_slow(uint64_t bytes)
{
	struct written now;
	if (!read_written(&now) || now.ms < begun.before.ms + MEASURED_MS ||
	    now.sectors <= begun.before.sectors)
		return false;
	const double wrote = (double)(now.sectors - begun.before.sectors) * SECTOR;
	const double seconds = (double)(now.ms - begun.before.ms) / 1000;
	return ((double)bytes - wrote) / (wrote / seconds) > SLOW_SECONDS;
}

/* Of DST, or of the directory that will hold it. */
static bool find_device(const char *dst, dev_t *device)
{
	struct stat st;
	char parent[PATH_MAX];
	const char *slash = strrchr(dst, '/');
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - dst + 1) : 1,
		 slash ? dst : ".");
	if (stat(dst, &st) < 0 && stat(parent, &st) < 0)
		return false;
	*device = st.st_dev;
	return S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

void unwritten_begin(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	dev_t device;
	const bool watched = cli->verbose > 0 || cli->progress || isatty(STDERR_FILENO);
	if (!watched || cli->quiet || cli->as_cp || o->fsync || o->verify || o->shard.count > 0 ||
	    cli->tree.dry_run ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH ||
	    !find_device(cli->dst, &device))
		return;
	snprintf(begun.device, sizeof(begun.device), "/sys/dev/block/%u:%u", major(device),
		 minor(device));
	begun.known = access(begun.device, F_OK) == 0;
	if (begun.known)
		read_written(&begun.before);
}

void unwritten_print(const char *dst, uint64_t bytes)
{
	if (!begun.known || bytes == 0 || !(is_removable() || is_slow(bytes)))
		return;
	fputs("fcopy: ", stderr);
	message_print(dst);
	fputs(": data may still be in memory (with --fsync, fcopy waits for the device)\n", stderr);
}
