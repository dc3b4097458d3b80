/* SPDX-License-Identifier: MIT
 * A copy from or to a TCP peer that does what the input says: sends, reads, ends its side, resets.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD  "what was there before"
#define MOST (1 << 20)

struct peer {
	const uint8_t *step;
	size_t steps;
	int fd;
	unsigned char *bytes; /* that it has sent, or received */
	size_t count;
	bool ended, reset; /* before it closed */
};

static int listener = -1, home;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void prepare(void)
{
	socklen_t size = sizeof(address);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	home = fuzz_directory();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
	MUST(listen(listener, 1) == 0);
}

/* What is sent at an offset, so that no two places are alike. */
static unsigned char byte_at(size_t offset)
{
	return (unsigned char)(offset * 2654435761u >> 13);
}

static void peer_send(struct peer *p, size_t n, int flags)
{
	unsigned char bytes[8192];
	n = n < sizeof(bytes) ? n : sizeof(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(p->count + i);
	ssize_t sent = p->count + n <= MOST ? send(p->fd, bytes, n, flags | MSG_NOSIGNAL) : 0;
	if (sent > 0 && !flags)
		p->count += (size_t)sent;
}

static void peer_read(struct peer *p, size_t n)
{
	if (n > MOST - p->count)
		n = MOST - p->count;
	ssize_t got = recv(p->fd, p->bytes + p->count, n, MSG_WAITALL);
	if (got > 0)
		p->count += (size_t)got;
}

static void peer_reset(struct peer *p)
{
	const struct linger l = {.l_onoff = 1, .l_linger = 0};
	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	p->reset = true;
}

/* Each step is two bytes: what, and how much. Returns whether another step may follow. */
static bool peer_step(struct peer *p, unsigned what, unsigned much, bool sends)
{
	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		if (sends)
			peer_send(p, what % 8 == 0 ? much : 32 * much, 0);
		else
			peer_read(p, what % 8 == 0 ? much : 2048 * much);
		return true;
	case 3: usleep(much); return true;
	case 4: p->ended = true; return shutdown(p->fd, SHUT_WR) == 0;
	case 5: peer_reset(p); return false;
	case 6:
		if (!sends)
			send(p->fd, "?", 1, MSG_NOSIGNAL);
		return true;
	default: return much % 4 != 0;
	}
}

static void *sender(void *arg)
{
	struct peer *p = arg;
	for (size_t i = 0; i + 1 < p->steps && !p->ended; i += 2)
		if (!peer_step(p, p->step[i], p->step[i + 1], true))
			break;
	p->ended |= !p->reset;
	close(p->fd);
	return NULL;
}

static void *receiver(void *arg)
{
	struct peer *p = arg;
	for (size_t i = 0; i + 1 < p->steps; i += 2)
		if (!peer_step(p, p->step[i], p->step[i + 1], false))
			break;
	close(p->fd);
	return NULL;
}

static void check_file(const struct peer *p, int r, const char *path)
{
	static char bytes[MOST + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	ssize_t n = read(fd, bytes, sizeof(bytes));
	close(fd);
	if (r < 0) {
		MUST(n == sizeof(OLD) - 1 && memcmp(bytes, OLD, sizeof(OLD) - 1) == 0);
		return;
	}
	MUST(!p->reset && p->ended && n == (ssize_t)p->count);
	for (ssize_t i = 0; i < n; i++)
		MUST((unsigned char)bytes[i] == byte_at((size_t)i));
}

static void check_received(const struct peer *p, int r, const struct fcopy_report *report,
			   size_t size)
{
	MUST(p->count <= size);
	for (size_t i = 0; i < p->count; i++)
		MUST(p->bytes[i] == byte_at(i));
	MUST(!report->confirmed || (r == 0 && !p->reset && !p->ended && p->count == size));
}

/* The file that is sent, or the old one that a stream replaces. */
static void make_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	close(fd);
}

static int connect_peer(struct peer *p)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;
	MUST(fd >= 0);
	do /* libFuzzer's timer interrupts */
		r = connect(fd, (struct sockaddr *)&address, sizeof(address));
	while (r < 0 && errno == EINTR);
	MUST(r == 0 || errno == EISCONN);
	do
		p->fd = accept(listener, NULL, NULL);
	while (p->fd < 0 && errno == EINTR);
	MUST(p->fd >= 0);
	const struct timeval patience = {.tv_sec = 1};
	setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

void stream_check(const uint8_t *data, size_t size)
{
	static unsigned char bytes[MOST], sent[MOST];
	static struct fcopy_report report;
	char path[64], operand[32];
	if (size < 3)
		return;
	if (listener < 0)
		prepare();
	const bool from = data[0] & 1;
	struct peer p = {.step = data + 3, .steps = size - 3, .bytes = bytes};
	struct fcopy_options o = {.api = FCOPY_API, .timeout_ms = 2000, .force = true};
	size_t n = 0, length = (size_t)data[1] << (data[2] & 15);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		n++;
	MUST(n > 0);
	o.mode = data[0] & 2 ? NULL : &fcopy_modes()[(data[0] >> 2) % n];
	length = length < MOST ? length : MOST;
	for (size_t i = 0; !from && i < length; i++)
		sent[i] = byte_at(i);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/f", home);
	make_file(path, from ? (const void *)OLD : sent, from ? sizeof(OLD) - 1 : length);
	int fd = connect_peer(&p);
	snprintf(operand, sizeof(operand), "fd:%d", fd);
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, from ? sender : receiver, &p) == 0);
	int r = from ? fcopy_copy(operand, path, &o, &report)
		     : fcopy_copy(path, operand, &o, &report);
	close(fd);
	pthread_join(thread, NULL);
	if (from)
		check_file(&p, r, path);
	else
		check_received(&p, r, &report, length);
}
