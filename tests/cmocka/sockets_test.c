/* SPDX-License-Identifier: MIT
 * Every system call of a connection fails, at each time that it is made, on one side of a copy over
 * TCP; the other side is another process. Afterwards both sides agree: the file is there, or
 * the old one is, and both know.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE     ((off_t)(1 << 20) + 7)
#define OLD_SIZE 3000

enum scene { SENDER, RECEIVER, SCENES };

static const char *const scene_names[SCENES] = {"sender", "receiver"};

enum want { FAILS, GOES_ON, EITHER };

static const int exhausted[] = {EMFILE, ENFILE, ENOMEM, -1};
static const int taken[] = {EADDRINUSE, EACCES, -1};
static const int unreachable[] = {ECONNREFUSED, ENETUNREACH, ETIMEDOUT, -1};
static const int passing[] = {ECONNABORTED, EAGAIN, EINTR, EPROTO, EPERM, -1};
static const int bad_option[] = {EINVAL, ENOMEM, -1};
static const int broken[] = {ECONNRESET, ETIMEDOUT, EIO, -1};
static const int cut[] = {ENOTCONN, -1};
static const int soft[] = {EINTR, EAGAIN, -1};
static const int interrupted[] = {EINTR, -1};
static const int lacking[] = {EINVAL, ENOSYS, -1};

static const struct row {
	enum scene scene;
	const char *call;
	const int *errs;
	enum want want;
	bool late; /* also made when the file has its name already */
} rows[] = {
    {SENDER, "socket", exhausted, FAILS, false},
    {SENDER, "connect", unreachable, FAILS, false},
    {SENDER, "setsockopt", bad_option, FAILS, false},
    {SENDER, "getsockopt", bad_option, EITHER, true},
    {SENDER, "getaddrinfo", exhausted, FAILS, false},
    {SENDER, "ioctl", bad_option, EITHER, true}, /* a wait may do without, the receipt not */
    {SENDER, "sendfile64", broken, FAILS, false},
    {SENDER, "sendfile64", soft, GOES_ON, false},
    {SENDER, "sendfile64", lacking, GOES_ON, false},
    {SENDER, "shutdown", cut, FAILS, false},
    {SENDER, "recv", broken, FAILS, true},
    {SENDER, "recv", soft, GOES_ON, false},
    {SENDER, "poll", interrupted, GOES_ON, false},
    {RECEIVER, "socket", exhausted, FAILS, false},
    {RECEIVER, "getaddrinfo", exhausted, FAILS, false},
    {RECEIVER, "bind", taken, FAILS, false},
    {RECEIVER, "listen", taken, FAILS, false},
    {RECEIVER, "accept4", exhausted, FAILS, false},
    {RECEIVER, "accept4", passing, GOES_ON, false},
    {RECEIVER, "setsockopt", bad_option, FAILS, true},
    {RECEIVER, "setsockopt of SO_RCVLOWAT", bad_option, GOES_ON, false},
    {RECEIVER, "getsockopt", bad_option, GOES_ON, false},
    {RECEIVER, "pipe2", exhausted, GOES_ON, false},
    {RECEIVER, "splice", broken, FAILS, false},
    {RECEIVER, "splice", interrupted, GOES_ON, false},
    {RECEIVER, "splice", lacking, GOES_ON, false},
    {RECEIVER, "poll", interrupted, GOES_ON, false},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
};

/* The pipe on which the receiver writes its port for the sender. */
static int ports[2];

static void tell_port(void *user, const struct fcopy_event *event)
{
	const bool *tested = user;
	if (event->kind != FCOPY_EVENT_LISTENING)
		return;
	const char *port = strrchr(event->text, ':') + 1;
	fault_off();
	need(write(ports[1], port, strlen(port)) > 0);
	if (*tested)
		fault_on();
}

static int receive(bool tested, struct fcopy_report *report)
{
	struct fcopy_options options = {.api = FCOPY_API, .notify = tell_port, .user = &tested};
	if (tested)
		fault_on();
	int r = fcopy_copy("tcp-listen:0", "d/dst", &options, report);
	fault_off();
	return r;
}

static int send_to_receiver(bool tested, struct fcopy_report *report)
{
	char dst[32] = "tcp:127.0.0.1:";
	ssize_t n = read(ports[0], dst + strlen(dst), 8);
	if (n <= 0)
		return -1; /* the receiver never listened */
	if (tested)
		fault_on();
	int r = fcopy_copy("src", dst, NULL, report);
	fault_off();
	return r;
}

/* The other side, which no fault hits. */
static pid_t start_other_side(enum scene tested)
{
	struct fcopy_report report;
	pid_t child = fork();
	need(child >= 0);
	if (child > 0)
		return child;
	close(ports[tested == SENDER ? 0 : 1]);
	_exit((tested == SENDER ? receive(false, &report) : send_to_receiver(false, &report)) < 0);
}

/* Returns 0 if the other side succeeded. A receiver to whom nobody came is not waited for. */
static int end_other_side(pid_t child, bool kill_it)
{
	int status;
	if (kill_it)
		kill(child, SIGKILL);
	need(waitpid(child, &status, 0) == child);
	return status;
}

static void once(void *arg)
{
	const struct run *run = arg;
	const struct row *row = run->row;
	struct fcopy_report report = {0};
	unlink("d/dst");
	make_file("d/dst", OLD_SIZE, DENSE, 2);
	need(pipe(ports) == 0);
	int before = open_descriptors();
	pid_t child = start_other_side(row->scene);
	int r = row->scene == SENDER ? send_to_receiver(true, &report) : receive(true, &report);
	assert_int_equal(open_descriptors(), before);
	close(ports[0]);
	close(ports[1]);
	bool alone = r < 0 && row->scene == SENDER && report.dst_peer[0] == '\0';
	int other = end_other_side(child, alone);
	if (!fault_seen() || row->want == GOES_ON)
		assert_int_equal(r, 0);
	if (fault_seen() && row->want == FAILS)
		assert_int_equal(r, -1);
	assert_int_equal(report.error.err, r < 0 ? run->err : 0);
	if (r == 0 || (row->late && same_bytes("src", "d/dst"))) {
		assert_true(same_bytes("src", "d/dst"));
	} else {
		assert_true(same_bytes("old", "d/dst"));
		assert_int_not_equal(other, 0);
	}
	if (r == 0)
		assert_int_equal(other, 0);
	assert_int_equal(names_in("d"), 1);
}

static void sweep(void **state)
{
	const struct errno_case *c = *state;
	struct run run = {c->row, c->err};
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", OLD_SIZE, DENSE, 2);
	fault_sweep(run.row->call, run.err, once, &run);
}

/* A copy to one end of a pair of sockets, whose other end is ours, too. */
static int copy_to_pair(int type, const struct fcopy_options *options, struct fcopy_report *report)
{
	int pair[2];
	char name[32];
	make_file("src", 1000, DENSE, 1);
	need(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0);
	snprintf(name, sizeof(name), "fd:%d", pair[0]);
	int before = open_descriptors();
	fault_on();
	int r = fcopy_copy("src", name, options, report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	close(pair[0]);
	close(pair[1]);
	return r;
}

static const struct adoption {
	const char *call, *reported;
	int nth;
} adoptions[] = {
    {"fcntl64", "fcntl(F_DUPFD)", 1}, {"fstat64", "fstat", 3},         {"fcntl64", "fcntl", 2},
    {"fcntl64 of flags", "fcntl", 1}, {"setsockopt", "setsockopt", 1},
};

static void cannot_be_adopted(void **state)
{
	const struct adoption *a = *state;
	struct fcopy_report report;
	fault_set(a->call, a->nth, EINVAL);
	assert_int_equal(copy_to_pair(SOCK_STREAM, NULL, &report), -1);
	assert_true(fault_seen());
	assert_int_equal(report.error.err, EINVAL);
	assert_string_equal(report.error.call, a->reported);
	assert_int_equal(report.bytes, 0);
}

static void no_stream_socket(void **state)
{
	struct fcopy_report report;
	(void)state;
	assert_int_equal(copy_to_pair(SOCK_DGRAM, NULL, &report), -1);
	assert_int_equal(report.error.err, ESOCKTNOSUPPORT);
	assert_string_equal(report.error.reason, "is not a stream socket");
}

static volatile int cancel;

static void set_cancel(void)
{
	cancel = 1;
}

/* The peer has everything in its queue and says nothing: cancelled before it does. */
static void cancelled_before_the_receipt(void **state)
{
	const struct fcopy_options options = {.api = FCOPY_API, .cancel = &cancel};
	struct fcopy_report report;
	(void)state;
	cancel = 0;
	fault_before(set_cancel);
	fault_set("recv", 1, 0);
	assert_int_equal(copy_to_pair(SOCK_STREAM, &options, &report), -1);
	assert_int_equal(report.error.err, EINTR);
	assert_string_equal(report.error.operation, "waiting for the receiver to close");
	assert_string_equal(report.error.call, "recv");
	assert_false(report.confirmed);
}

/* A connection that is under way, and a wait for it that fails. */
static void cannot_wait_for_the_connection(void **state)
{
	struct fcopy_report report;
	(void)state;
	make_file("src", 1000, DENSE, 1);
	int before = open_descriptors();
	fault_set("connect", 1, EINPROGRESS);
	fault_also("poll", ENOMEM);
	fault_on();
	int r = fcopy_copy("src", "tcp:127.0.0.1:1", NULL, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, ENOMEM);
	assert_string_equal(report.error.call, "connect");
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN); /* as fcopy.h requires for sending to a socket */
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, scene_names[rows[i].scene],
				rows[i].call);
	for (size_t i = 0; i < sizeof(adoptions) / sizeof(*adoptions); i++)
		case_add(cannot_be_adopted, &adoptions[i], "fd:N: %s fails, time %d",
			 adoptions[i].call, adoptions[i].nth);
	case_add(no_stream_socket, NULL, "fd:N: a socket of datagrams");
	case_add(cancelled_before_the_receipt, NULL, "cancelled before the receipt");
	case_add(cannot_wait_for_the_connection, NULL, "the wait for the connection fails");
	return cases_run("sockets");
}
