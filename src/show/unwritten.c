/* SPDX-License-Identifier: MIT
 * Implements unwritten.h by /proc/diskstats and sysfs, for a user who watches: the copies of
 * scripts make no call more. A file system without its own block device (network, btrfs) is not
 * listed.
 */
#define _GNU_SOURCE
#include "hint.h"
#include "report.h"

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
#define STAT_WRITTEN  6 /* the index of a counter: Documentation/admin-guide/iostats.rst */
#define STAT_MS       9
#define STAT_COUNTERS 10

/* What a device has written up to now, in sectors, and for how long it was busy. */
struct disk {
	dev_t device;
	uint64_t sectors, ms;
};

static struct {
	bool watched;
	struct disk *disks; /* as they were before the copy */
	size_t count;
} begun;

/* All devices: which of them is that of DST is known after the copy. NULL: none. */
static struct disk *read_disks(size_t *count)
{
	struct disk *disks = NULL, *more;
	char *line = NULL, *at;
	size_t size = 0;
	FILE *f = fopen("/proc/diskstats", "re");
	*count = 0;
	while (f && getline(&line, &size, f) > 0) {
		unsigned major, minor;
		int name = 0;
		if (sscanf(line, "%u %u %*s%n", &major, &minor, &name) != 2 || name == 0 ||
		    !(more = realloc(disks, (*count + 1) * sizeof(*disks))))
			continue;
		uint64_t counter[STAT_COUNTERS];
		at = line + name;
		for (int i = 0; i < STAT_COUNTERS; i++)
			counter[i] = strtoull(at, &at, 10);
		disks = more;
		disks[(*count)++] = (struct disk){makedev(major, minor), counter[STAT_WRITTEN],
						  counter[STAT_MS]};
	}
	free(line);
	if (f)
		fclose(f);
	return disks;
}

static const struct disk *find_disk(const struct disk *disks, size_t count, dev_t device)
{
	for (; count > 0; disks++, count--)
		if (disks->device == device)
			return disks;
	return NULL;
}

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

/* Does the device need more than SLOW_SECONDS, at the speed of this copy, for the rest? */
static bool is_slow(dev_t device, uint64_t bytes)
{
	size_t count;
	struct disk *disks = read_disks(&count);
	const struct disk *now = find_disk(disks, count, device);
	const struct disk *before = find_disk(begun.disks, begun.count, device);
	bool slow = false;
	if (now && before && now->ms >= before->ms + MEASURED_MS &&
	    now->sectors > before->sectors) {
		const double wrote = (double)(now->sectors - before->sectors) * SECTOR;
		const double seconds = (double)(now->ms - before->ms) / 1000;
		slow = ((double)bytes - wrote) / (wrote / seconds) > SLOW_SECONDS;
	}
	free(disks);
	return slow;
}

void unwritten_begin(const struct cli *cli)
{
	const struct fcopy_options *o = &cli->copy;
	if (!cli->voice.advises || o->fsync || o->verify || o->shard.count > 0 ||
	    cli->tree.dry_run ||
	    fcopy_operand_kind(cli->dst, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		return;
	begun.watched = true;
	begun.disks = read_disks(&begun.count);
}

void unwritten_print(const char *dst, uint64_t bytes)
{
	struct stat st;
	if (!begun.watched || bytes == 0 || stat(dst, &st) < 0 ||
	    !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) ||
	    !(is_removable(st.st_dev) || is_slow(st.st_dev, bytes)))
		return;
	FILE *f = note_begin();
	message_print(dst);
	fputs(": data may still be in memory (with --fsync, fcopy waits for the device)", f);
	hint_end();
}
