/* SPDX-License-Identifier: MIT
 * If the parent process closed standard input, output or error, occupies the descriptor, so that no
 * file that is opened later gets its number.
 */
#define _GNU_SOURCE
#include "cli.h"

#include <fcntl.h>
#include <poll.h>

void standard_reserve(void)
{
	struct pollfd fds[] = {{.fd = 0}, {.fd = 1}, {.fd = 2}};
	if (poll(fds, 3, 0) <= 0)
		return;
	/* O_PATH: read(2) and write(2) fail with EBADF, as on a closed descriptor. */
	for (int i = 0; i < 3; i++)
		if (fds[i].revents & POLLNVAL && open("/", O_PATH) < 0)
			return;
}
