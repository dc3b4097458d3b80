/* SPDX-License-Identifier: MIT
 * What a terminal can show.
 */
#define _GNU_SOURCE
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t terminal_width(int fd)
{
	struct winsize size;
	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 80;
	return size.ws_col;
}

bool terminal_moves_cursor(void)
{
	const char *term = getenv("TERM");
	return term && strcmp(term, "dumb") != 0;
}

bool terminal_colour(int fd)
{
	const char *no = getenv("NO_COLOR");
	return isatty(fd) && !(no && *no) && terminal_moves_cursor();
}

bool terminal_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	for (int i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

bool terminal_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);
	return group < 0 || group == getpgrp();
}
