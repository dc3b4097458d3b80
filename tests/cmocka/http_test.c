/* SPDX-License-Identifier: MIT
 * Every system call of http-listen: fails, at each time that it is made, while a client uploads a
 * file or gets one. The client is another process, which no fault hits; it tries again when it was
 * cut off. What it was told is true: after a 2xx the file is there, and a response that is complete
 * has the right bytes.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE     (1100007) /* more than auto sends without sendfile(2) */
#define OLD_SIZE 3000
#define TRIES    6
#define PAUSE_US 50000
#define SECONDS  120 /* for a client that hangs */

enum scene { UPLOAD, SERVER, SCENES };

static const char *const scene_names[SCENES] = {"upload", "server"};

enum want { FAILS, GOES_ON, EITHER };

static const int exhausted[] = {EMFILE, ENOMEM, -1};
static const int taken[] = {EADDRINUSE, -1};
static const int passing[] = {ECONNABORTED, EAGAIN, EINTR, EPERM, -1};
static const int bad_option[] = {EINVAL, -1};
static const int broken[] = {ECONNRESET, EIO, -1};
static const int cut[] = {ENOTCONN, -1};
static const int soft[] = {EINTR, EAGAIN, -1};
static const int interrupted[] = {EINTR, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int input_output[] = {EIO, -1};
static const int full[] = {ENOSPC, EDQUOT, -1};

static const struct row {
	enum scene scene;
	const char *call;
	const int *errs;
	enum want want;
	bool late; /* also made when the file has its name already */
} rows[] = {
    {UPLOAD, "socket", exhausted, FAILS, false},
    {UPLOAD, "getaddrinfo", exhausted, FAILS, false},
    {UPLOAD, "bind", taken, FAILS, false},
    {UPLOAD, "listen", taken, FAILS, false},
    {UPLOAD, "calloc", no_memory, EITHER, false},
    {UPLOAD, "malloc", no_memory, EITHER, false},
    {UPLOAD, "accept4", exhausted, EITHER, false}, /* a client that waits may be given up for it */
    {UPLOAD, "accept4", passing, GOES_ON, false},
    {UPLOAD, "setsockopt", bad_option, EITHER, true}, /* the last one only ends the connection */
    {UPLOAD, "getsockopt", bad_option, GOES_ON, false},
    {UPLOAD, "recv", broken, EITHER, false}, /* of the head, or of the body */
    {UPLOAD, "recv", soft, GOES_ON, false},
    {UPLOAD, "poll", no_memory, EITHER, true},
    {UPLOAD, "poll", interrupted, GOES_ON, false},
    {UPLOAD, "send", broken, EITHER, true}, /* 100, or the status of what is stored */
    {UPLOAD, "send", soft, GOES_ON, false},
    {UPLOAD, "shutdown", cut, GOES_ON, false},
    {UPLOAD, "splice", broken, FAILS, false},
    {UPLOAD, "splice", full, FAILS, false},
    {UPLOAD, "splice", interrupted, GOES_ON, false},
    {UPLOAD, "pipe2", exhausted, GOES_ON, false},
    {UPLOAD, "fsync", input_output, FAILS, true},
    {UPLOAD, "renameat", input_output, FAILS, false},
    {SERVER, "socket", exhausted, FAILS, false},
    {SERVER, "listen", taken, FAILS, false},
    {SERVER, "calloc", no_memory, EITHER, false},
    {SERVER, "malloc", no_memory, GOES_ON, false},
    {SERVER, "accept4", exhausted, GOES_ON, false},
    {SERVER, "accept4", passing, GOES_ON, false},
    {SERVER, "accept4", broken, FAILS, false},
    {SERVER, "setsockopt", bad_option, EITHER, false},
    {SERVER, "getsockopt", bad_option, GOES_ON, false},
    {SERVER, "recv", broken, GOES_ON, false},
    {SERVER, "recv", soft, GOES_ON, false},
    {SERVER, "poll", no_memory, EITHER, false},
    {SERVER, "poll", interrupted, GOES_ON, false},
    {SERVER, "send", broken, GOES_ON, false},
    {SERVER, "send", soft, GOES_ON, false},
    {SERVER, "sendfile64", broken, GOES_ON, false},
    {SERVER, "sendfile64", soft, GOES_ON, false},
    {SERVER, "pread64", input_output, GOES_ON, false},
    {SERVER, "shutdown", cut, GOES_ON, false},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	pid_t client; /* 0: nobody listened */
};

static volatile int stop;

static void on_child(int number)
{
	(void)number;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

/* What a client saw. */
enum { NOTHING, REFUSED, SERVED, WRONG };

static char content[SIZE], answer[SIZE + 4096];

/* Reads until the server closes, or has said 100. Returns how many bytes. */
static size_t read_answer(int fd, bool *cut_off)
{
	size_t n = 0;
	ssize_t got;
	*cut_off = false;
	while ((got = recv(fd, answer + n, sizeof(answer) - 1 - n, 0)) > 0) {
		n += (size_t)got;
		answer[n] = '\0';
		if (strcmp(answer, "HTTP/1.1 100 Continue\r\n\r\n") == 0)
			return n;
	}
	answer[n] = '\0';
	*cut_off = got < 0;
	return n;
}

static int call_server(int port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	need(fd >= 0);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int status_of_answer(void)
{
	return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? atoi(answer + 9) : 0;
}

/* Returns what the client saw. A status counts even if the connection breaks behind it. */
static int upload(int fd)
{
	char head[128];
	bool cut_off;
	int n = snprintf(head, sizeof(head),
			 "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
			 "Content-Length: %d\r\n\r\n",
			 SIZE);
	if (send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
		return NOTHING;
	read_answer(fd, &cut_off);
	if (status_of_answer() == 100) {
		if (send(fd, content, SIZE, MSG_NOSIGNAL) != SIZE)
			return NOTHING;
		read_answer(fd, &cut_off);
	}
	const int status = status_of_answer();
	return status == 0 ? NOTHING : status / 100 == 2 ? SERVED : REFUSED;
}

/* A response is complete when it has the length that it announced. */
static int get(int fd)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
	bool cut_off;
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return NOTHING;
	const size_t n = read_answer(fd, &cut_off);
	const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
	if (!body || !length || status_of_answer() != 200)
		return status_of_answer() ? REFUSED : NOTHING;
	body += 4;
	const size_t has = n - (size_t)(body - answer);
	if (strtoul(length + 16, NULL, 10) != SIZE)
		return WRONG;
	if (has < SIZE)
		return NOTHING;
	return has == SIZE && memcmp(body, content, SIZE) == 0 ? SERVED : WRONG;
}

/* Tries until it is served, or nobody listens. */
static _Noreturn void be_client(enum scene scene, int port)
{
	int seen = NOTHING, fd;
	alarm(SECONDS);
	need(close_range(3, ~0u, 0) == 0); /* the listener is the server's alone */
	for (int i = 0; i < TRIES && seen < SERVED && (fd = call_server(port)) >= 0; i++) {
		const int now = scene == UPLOAD ? upload(fd) : get(fd);
		seen = now > seen ? now : seen;
		close(fd);
	}
	/* A server that does not know that it has served goes on. One that knows ends when no
	 * request is open. */
	while (scene == SERVER && seen == SERVED && usleep(PAUSE_US) == 0 &&
	       (fd = call_server(port)) >= 0) {
		if (get(fd) == WRONG)
			seen = WRONG;
		close(fd);
	}
	_exit(seen);
}

static void note(void *user, const struct fcopy_event *event)
{
	struct run *run = user;
	if (event->kind != FCOPY_EVENT_LISTENING)
		return;
	fault_off();
	run->client = fork();
	need(run->client >= 0);
	if (run->client == 0)
		be_client(run->row->scene, atoi(strrchr(event->text, ':') + 1));
	fault_on();
}

static int copy(struct run *run, struct fcopy_report *report)
{
	static const char *const src[] = {"src"};
	const struct fcopy_options options = {
	    .api = FCOPY_API,
	    .notify = note,
	    .user = run,
	    .timeout_ms = 20000,
	    .fsync = strcmp(run->row->call, "fsync") == 0,
	    .cancel = run->row->scene == UPLOAD ? &stop : NULL,
	};
	const struct fcopy_service service = {.once = true, .stop = &stop};
	fault_on();
	int r = run->row->scene == UPLOAD
		    ? fcopy_copy("http-listen:0", "d/dst", &options, report)
		    : fcopy_serve(src, 1, "http-listen:0", &options, &service, report);
	fault_off();
	return r;
}

/* Returns what the client saw. */
static int end_client(const struct run *run)
{
	int status;
	if (run->client == 0)
		return NOTHING;
	need(waitpid(run->client, &status, 0) == run->client);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), WRONG);
	return WEXITSTATUS(status);
}

static void check_upload(const struct run *run, int r, int seen)
{
	const bool stored = same_bytes("src", "d/dst");
	assert_true(stored || same_bytes("old", "d/dst"));
	assert_int_equal(names_in("d"), 1);
	if (seen == SERVED)
		assert_int_equal(r, 0);
	if (r == 0)
		assert_true(stored);
	else if (!run->row->late)
		assert_false(stored);
	if (!fault_seen())
		assert_int_equal(seen, SERVED);
}

static void once(void *arg)
{
	struct run *run = arg;
	const struct row *row = run->row;
	struct fcopy_report report = {0};
	unlink("d/dst");
	make_file("d/dst", OLD_SIZE, DENSE, 2);
	run->client = 0;
	stop = 0;
	int before = open_descriptors();
	int r = copy(run, &report);
	assert_int_equal(open_descriptors(), before);
	const int seen = end_client(run);
	if (!fault_seen() || row->want == GOES_ON)
		assert_int_equal(r, 0);
	if (fault_seen() && row->want == FAILS)
		assert_int_equal(r, -1);
	assert_int_equal(report.error.err, r < 0 ? run->err : 0);
	if (row->scene == UPLOAD)
		check_upload(run, r, seen);
	else if (r == 0)
		assert_int_equal(seen, SERVED);
}

static void prepare(void)
{
	need(mkdir("d", 0755) == 0);
	make_file("src", SIZE, DENSE, 1);
	make_file("old", OLD_SIZE, DENSE, 2);
	FILE *f = fopen("src", "r");
	need(f && fread(content, 1, SIZE, f) == SIZE);
	fclose(f);
}

static void sweep(void **state)
{
	const struct errno_case *c = *state;
	struct run run = {.row = c->row, .err = c->err};
	prepare();
	fault_sweep(run.row->call, run.err, once, &run);
}

/* Few bytes at a time: what is left of a head or of a body comes with the next call. */
static void in_pieces(void **state)
{
	struct run run = {.row = *state};
	prepare();
	fault_short(100);
	once(&run);
}

int main(void)
{
	static const struct row pieces[SCENES] = {{UPLOAD, "", NULL, GOES_ON, false},
						  {SERVER, "", NULL, GOES_ON, false}};
	const struct sigaction act = {.sa_handler = on_child};
	sigaction(SIGCHLD, &act, NULL);
	signal(SIGPIPE, SIG_IGN); /* as fcopy.h requires for sending to a socket */
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, scene_names[rows[i].scene],
				rows[i].call);
	for (size_t i = 0; i < SCENES; i++)
		case_add(in_pieces, &pieces[i], "%s: few bytes a call", scene_names[i]);
	return cases_run("http");
}
