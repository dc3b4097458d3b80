/* SPDX-License-Identifier: MIT
 * What has no offsets, or lies about its size: pipes, sockets, descriptors, /proc, /sys, devices;
 * and sources that change while they are copied.
 */
#define _GNU_SOURCE
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 300007

static char name_of_fd[32];

static const char *fd_name(int fd)
{
	snprintf(name_of_fd, sizeof(name_of_fd), "/dev/fd/%d", fd);
	return name_of_fd;
}

struct far_end {
	pthread_t thread;
	int fd;
	const char *file;
};

/* Odd pieces with pauses, so that the other side sees what is not full. */
static void *feed(void *arg)
{
	struct far_end *far = arg;
	char buf[7777];
	int fd = open(far->file, O_RDONLY | O_CLOEXEC);
	for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
		if (write(far->fd, buf, (size_t)n) != n)
			break;
	close(fd);
	close(far->fd);
	return NULL;
}

static void *drain(void *arg)
{
	struct far_end *far = arg;
	char buf[5555];
	int fd = open(far->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (ssize_t n; (n = read(far->fd, buf, sizeof(buf))) > 0;)
		need(write(fd, buf, (size_t)n) == n);
	close(fd);
	close(far->fd);
	return NULL;
}

/* Two ends: ours, and the one that the thread has. */
static int open_stream(bool socket, bool from, struct far_end *far)
{
	int fd[2];
	if (socket)
		need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	else
		need(pipe2(fd, O_CLOEXEC) == 0);
	far->fd = fd[from];
	far->file = from ? "src" : "dst";
	need(pthread_create(&far->thread, NULL, from ? feed : drain, far) == 0);
	return fd[!from];
}

static bool takes(const struct fcopy_mode *m, unsigned what)
{
	return (m->takes & what) == what;
}

/* The modes that read from a stream, and those that also write to one. */
static const struct fcopy_mode *readers[TABLE_MAX], *relays[TABLE_MAX];
static int reader_count, relay_count;

static void find_stream_modes(void)
{
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		if (takes(m, FCOPY_TAKES_STREAM_SRC))
			readers[reader_count++] = m;
		if (takes(m, FCOPY_TAKES_STREAM_SRC | FCOPY_TAKES_STREAM_DST))
			relays[relay_count++] = m;
	}
}

START_TEST(stream_to_file_and_back)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i / 4];
	const char *mode = m->name;
	bool socket = _i % 2, from = _i / 2 % 2;
	struct far_end far;
	enter(&dirs[0]);
	set_label("mode %s, %s a %s", mode, from ? "from" : "to", socket ? "socket" : "pipe");
	signal(SIGPIPE, SIG_IGN);
	make_file("src", SIZE, DENSE, 1);
	int fd = open_stream(socket, from, &far);
	const char *name = fd_name(fd);
	int r = copy_by(mode, from ? name : "src", from ? "dst" : name, (struct fcopy_options){0});
	close(fd);
	pthread_join(far.thread, NULL);
	if (takes(m, from ? FCOPY_TAKES_STREAM_SRC : FCOPY_TAKES_STREAM_DST)) {
		check(r == 0, "%s: %d", report.error.call, report.error.err);
		check(same_bytes("src", "dst"), "bytes differ");
		check(report.bytes == SIZE, "%llu", (unsigned long long)report.bytes);
	} else {
		check(r == -1 && report.error.advice == FCOPY_ADVICE_AUTO, "%d", r);
		check(!from || !exists("dst"), "left something");
	}
	leave();
}
END_TEST

/* From stream to stream, by what has no offsets on either side. */
START_TEST(stream_to_stream)
{
	const struct fcopy_mode *m = relays[_i / 4];
	const char *mode = m->name;
	struct far_end in, out;
	enter(&dirs[0]);
	set_label("mode %s, %d", mode, _i % 4);
	make_file("src", SIZE, DENSE, 1);
	int from = open_stream(_i % 2, true, &in), to = open_stream(_i / 2 % 2, false, &out);
	char name[32];
	snprintf(name, sizeof(name), "/dev/fd/%d", from);
	int r = copy_by(mode, name, fd_name(to), (struct fcopy_options){0});
	check(r == 0, "%s: %d", report.error.call, report.error.err);
	close(from);
	close(to);
	pthread_join(in.thread, NULL);
	pthread_join(out.thread, NULL);
	check(same_bytes("src", "dst"), "bytes differ");
	leave();
}
END_TEST

/* What is appended to, by every mode that can; auto always can. */
START_TEST(appends)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i];
	enter(&dirs[0]);
	set_label("mode %s", m->name);
	make_file("src", SIZE, DENSE, 1);
	make_file("dst", 100, DENSE, 2);
	int fd = open("dst", O_WRONLY | O_APPEND | O_CLOEXEC);
	int r = copy_by(m->name, "src", fd_name(fd), (struct fcopy_options){0});
	close(fd);
	check(r == 0 || m->number != 0, "%s: %d", report.error.call, report.error.err);
	check(r == 0 || report.error.advice == FCOPY_ADVICE_AUTO, "advice");
	check(size_of("dst") == (r ? 100 : SIZE + 100), "%lld", (long long)size_of("dst"));
	static char all[SIZE + 100], src[SIZE];
	fill(src, SIZE, 0, 1);
	fd = open("dst", O_RDONLY | O_CLOEXEC);
	need(read(fd, all, sizeof(all)) == size_of("dst"));
	close(fd);
	check(r || memcmp(all + 100, src, SIZE) == 0, "bytes differ");
	leave();
}
END_TEST

/* Files whose size says nothing of their content. */
START_TEST(lying_sources)
{
	static const char *const names[] = {"/proc/version",
					    "/proc/cpuinfo",
					    "/proc/self/maps",
					    "/proc/filesystems",
					    "/sys/kernel/mm/hugepages/../ksm/run",
					    "/sys/kernel/profiling",
					    "/sys/power/state"};
	const char *src = names[_i / mode_count];
	const struct fcopy_mode *m = &fcopy_modes()[_i % mode_count];
	if (access(src, R_OK) < 0)
		skip_test("%s cannot be read", src);
	enter(&dirs[0]);
	set_label("%s by %s", src, m->name);
	int r = copy_by(m->name, src, "dst", (struct fcopy_options){0});
	check(m->number > 1 || r == 0, "%s: %d", report.error.call, report.error.err);
	check(r == 0 || report.error.advice == FCOPY_ADVICE_AUTO, "%s: %d", report.error.call,
	      report.error.err);
	check(r == 0 || !exists("dst"), "left something");
	static char a[1 << 20], b[1 << 20];
	int fa = open(src, O_RDONLY | O_CLOEXEC), fb = r ? -1 : open("dst", O_RDONLY | O_CLOEXEC);
	ssize_t na = 0, nb = 0, n;
	while ((n = read(fa, a + na, sizeof(a) - (size_t)na)) > 0)
		na += n;
	if (fb >= 0)
		nb = read(fb, b, sizeof(b));
	/* clocks and mappings differ from one read to the next: nothing may be missing */
	bool moving = strstr(src, "maps") || strstr(src, "cpuinfo");
	check(r || (nb > 0) == (na > 0), "%zd bytes, not %zd", nb, na);
	check(r || moving || (na == nb && memcmp(a, b, (size_t)na) == 0), "bytes differ");
	close(fa);
	if (fb >= 0)
		close(fb);
	leave();
}
END_TEST

START_TEST(devices)
{
	const struct fcopy_mode *m = &fcopy_modes()[_i];
	enter(&dirs[0]);
	set_label("mode %s", m->name);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", 20000, DENSE, 2);
	int r = copy_by(m->name, "src", "/dev/full", (struct fcopy_options){0});
	check(r == -1, "written to a full device");
	check(m->number != 0 || report.error.err == ENOSPC, "%d", report.error.err);
	r = copy_by(m->name, "src", "/dev/null", (struct fcopy_options){0});
	check(r == 0 || (m->number > 1 && report.error.advice == FCOPY_ADVICE_AUTO), "%s: %d",
	      report.error.call, report.error.err);
	r = copy_by(m->name, "/dev/null", "old", (struct fcopy_options){0});
	check(r == 0 || (m->number > 1 && size_of("old") == 20000), "%d", report.error.err);
	check(r != 0 || size_of("old") == 0, "%lld", (long long)size_of("old"));
	check(names_in(".") == 2, "%d names", names_in("."));
	leave();
}
END_TEST

/* A TCP peer that sends `part` bytes of src, one urgent byte, and the rest; then it closes, or, if
 * it stalls, waits for our close. */
struct urgent_peer {
	pthread_t thread;
	int fd;
	off_t part;
	bool stalls;
};

static void *send_urgent(void *arg)
{
	struct urgent_peer *p = arg;
	static char bytes[SIZE];
	char byte;
	int fd = open("src", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, bytes, sizeof(bytes));
	close(fd);
	/* a receiver that refuses resets the connection */
	if (send(p->fd, bytes, (size_t)p->part, MSG_NOSIGNAL) == p->part &&
	    send(p->fd, "!", 1, MSG_OOB | MSG_NOSIGNAL) == 1)
		(void)!send(p->fd, bytes + p->part, (size_t)(n - p->part), MSG_NOSIGNAL);
	if (p->stalls)
		(void)!recv(p->fd, &byte, 1, 0);
	close(p->fd);
	return NULL;
}

/* Returns our side of a TCP connection over loopback; *peer is the other. */
static int connect_tcp(int *peer)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
	    ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(bind(listener, (struct sockaddr *)&a, n) == 0 && listen(listener, 1) == 0);
	need(getsockname(listener, (struct sockaddr *)&a, &n) == 0);
	need(connect(ours, (struct sockaddr *)&a, n) == 0);
	*peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	need(*peer >= 0);
	close(listener);
	return ours;
}

/* The peer resets while the copy waits for it: that is never taken for the end. */
static void *send_and_reset(void *arg)
{
	struct urgent_peer *p = arg;
	const struct linger reset = {1, 0};
	usleep(20000);
	(void)!send(p->fd, "abc", 3, MSG_NOSIGNAL);
	usleep(20000);
	setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(p->fd);
	return NULL;
}

START_TEST(reset_is_no_end)
{
	const struct fcopy_mode *m = readers[_i];
	enter(&dirs[0]);
	set_label("mode %s", m->name);
	make_file("dst", 100, DENSE, 2);
	make_file("old", 100, DENSE, 2);
	for (int round = 0; round < 10; round++) {
		struct urgent_peer peer;
		char name[32];
		int fd = connect_tcp(&peer.fd);
		snprintf(name, sizeof(name), "fd:%d", fd);
		need(pthread_create(&peer.thread, NULL, send_and_reset, &peer) == 0);
		int r = copy_by(m->name, name, "dst", (struct fcopy_options){0});
		close(fd);
		pthread_join(peer.thread, NULL);
		check(r < 0 && report.error.err == ECONNRESET, "%d, %d", r, report.error.err);
		check(same_bytes("old", "dst"), "a prefix was committed");
	}
	leave();
}
END_TEST

/* splice(2) takes the urgent mark for the end, or never gets past it. */
#define URGENT_CASES 4

START_TEST(urgent_data)
{
	static const struct {
		off_t part, size;
		bool stalls;
	} cases[URGENT_CASES] = {
	    {3, 6, false}, {100000, 200000, false}, {3, 6, true}, {100000, 200000, true}};
	const struct fcopy_mode *m = readers[_i / URGENT_CASES];
	struct urgent_peer peer = {.part = cases[_i % URGENT_CASES].part,
				   .stalls = cases[_i % URGENT_CASES].stalls};
	enter(&dirs[0]);
	set_label("mode %s, urgent byte after %lld%s", m->name, (long long)peer.part,
		  peer.stalls ? ", then silence" : "");
	make_file("src", cases[_i % URGENT_CASES].size, DENSE, 1);
	make_file("dst", 100, DENSE, 2);
	make_file("old", 100, DENSE, 2);
	char name[32];
	int fd = connect_tcp(&peer.fd);
	snprintf(name, sizeof(name), "fd:%d", fd); /* a connection, unlike /dev/fd/N */
	need(pthread_create(&peer.thread, NULL, send_urgent, &peer) == 0);
	double start = io_now();
	int r = copy_by(m->name, name, "dst", (struct fcopy_options){.timeout_ms = 1000});
	double seconds = io_now() - start;
	close(fd);
	pthread_join(peer.thread, NULL);
	check(seconds < 5, "%.1f s", seconds);
	check(r == 0 || !strcmp(m->name, "splice") ||
		  (peer.stalls && report.error.err == ETIMEDOUT),
	      "%s: %d", report.error.call, report.error.err);
	check(r != 0 || !peer.stalls, "a stream without an end was committed");
	check(same_bytes(r == 0 ? "src" : "old", "dst"), "bytes differ");
	leave();
}
END_TEST

int main(void)
{
	dirs_find();
	find_stream_modes();
	Suite *s = suite_create("streams");
	TCase *c = add_case(s, "streams");
	tcase_add_loop_test(c, stream_to_file_and_back, 0, mode_count * 4);
	tcase_add_loop_test(c, stream_to_stream, 0, relay_count * 4);
	tcase_add_loop_test(c, appends, 0, mode_count);
	tcase_add_loop_test(c, lying_sources, 0, 7 * mode_count);
	tcase_add_loop_test(c, devices, 0, mode_count);
	tcase_add_loop_test(c, reset_is_no_end, 0, reader_count);
	tcase_add_loop_test(c, urgent_data, 0, reader_count * URGENT_CASES);
	return run_suite(s);
}
