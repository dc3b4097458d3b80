/* SPDX-License-Identifier: MIT
 * What machines that share a file system do not see of each other: the locks of some mounts; and
 * for a while, which names are new, and which are gone.
 */
#define _GNU_SOURCE
#include "private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NFS with "nolock" shows local_lock; SMB, Lustre and OCFS2. A lock succeeds on all of these. */
static bool local_is_named(char *options)
{
	static const char *const names[] = {"nolock", "local_lock=all", "local_lock=flock",
					    "nobrl",  "localflock",     "localflocks"};
	char *rest = NULL;
	for (char *o = strtok_r(options, ",\n", &rest); o; o = strtok_r(NULL, ",\n", &rest))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strcmp(o, names[i]) == 0)
				return true;
	return false;
}

/* "mnt_id: ID" of /proc/self/fdinfo; 0: unknown. */
static unsigned local_mount(int fd)
{
	char path[40], line[80];
	unsigned id = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");
	while (file && id == 0 && fgets(line, sizeof(line), file))
		(void)sscanf(line, "mnt_id: %u", &id);
	if (file)
		fclose(file);
	return id;
}

bool private_locks_are_local(int fd)
{
	const unsigned id = local_mount(fd);
	FILE *file = id ? fopen("/proc/self/mountinfo", "re") : NULL;
	char *line = NULL, *options;
	size_t size = 0;
	unsigned of;
	bool local = false;
	while (file && getline(&line, &size, file) > 0) {
		if (sscanf(line, "%u", &of) != 1 || of != id)
			continue;
		/* "… - TYPE SOURCE OPTIONS": a space in a field is escaped. */
		options = strrchr(line, ' ');
		local = options && local_is_named(options + 1);
		break;
	}
	free(line);
	if (file)
		fclose(file);
	return local;
}

void private_refresh(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}
