/* SPDX-License-Identifier: MIT
 * A server whose system calls fail, at each time that they are made. What belongs to one client
 * costs that client alone, and it knows; the next one is served.
 */
#define _GNU_SOURCE
#include "cases.h"

#include "fcopy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE    ((off_t)(300 << 10) + 7)
#define CLIENTS 3 /* in turn */

enum want { ENDS, GOES_ON, LOSES_ONE, EITHER };

static const int exhausted[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM, -1};
static const int passing[] = {ECONNABORTED, EAGAIN, EINTR, EPERM, -1};
static const int broken[] = {EBADF, EIO, -1};
static const int no_memory[] = {ENOMEM, -1};
static const int no_thread[] = {EAGAIN, -1};
static const int no_thread_ever[] = {EPERM, -1};
static const int input_output[] = {EIO, -1};
static const int reset[] = {ECONNRESET, -1};

static const struct row {
	enum want want;
	const char *call;
	const int *errs;
} rows[] = {
    {GOES_ON, "accept4", exhausted},
    {GOES_ON, "accept4", passing},
    {ENDS, "accept4", broken},
    {GOES_ON, "calloc", no_memory},
    {LOSES_ONE, "pthread_create", no_thread},
    {ENDS, "pthread_create", no_thread_ever},
    {LOSES_ONE, "sendfile64", reset},
    {LOSES_ONE, "fstat64", input_output},
    {LOSES_ONE, "shutdown", reset},
    {LOSES_ONE, "recv", reset},
    {EITHER, "poll", no_memory},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

struct run {
	const struct row *row;
	int err;
	pid_t child;
	int served, lost;         /* clients that the server reported */
	struct fcopy_error error; /* of one that was lost */
};

static volatile int stop;

static void on_child(int number)
{
	(void)number;
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

/* The clients, one after another, which no fault hits. Exits with the number of those that failed.
 */
static _Noreturn void be_clients(const char *port)
{
	struct fcopy_report report;
	char peer[32];
	int failed = 0;
	need(close_range(3, ~0u, 0) == 0); /* the listener is the server's alone */
	snprintf(peer, sizeof(peer), "tcp:127.0.0.1:%s", port);
	for (int i = 0; i < CLIENTS; i++) {
		int r = fcopy_copy(peer, "got", NULL, &report);
		failed += r < 0;
		if (r == 0)
			need(same_bytes("src", "got"));
	}
	_exit(failed);
}

static void note(void *user, const struct fcopy_event *event)
{
	struct run *run = user;
	if (event->kind == FCOPY_EVENT_LISTENING) {
		run->child = fork();
		need(run->child >= 0);
		if (run->child == 0)
			be_clients(strrchr(event->text, ':') + 1);
		fault_on();
	} else if (event->kind == FCOPY_EVENT_CLIENT && event->error->err == 0) {
		__atomic_add_fetch(&run->served, 1, __ATOMIC_RELAXED);
	} else if (event->kind == FCOPY_EVENT_CLIENT) {
		__atomic_add_fetch(&run->lost, 1, __ATOMIC_RELAXED);
		run->error = *event->error;
	}
}

/* One client is lost at most, and the errno is reported. */
static void check_clients(const struct run *run, int failed)
{
	enum want want = fault_seen() ? run->row->want : GOES_ON;
	if (run->lost > 0) {
		assert_int_equal(run->error.err, run->err);
		assert_non_null(run->error.call);
	}
	/* without a thread nothing reports the client */
	int threadless = fault_seen() && strcmp(run->row->call, "pthread_create") == 0;
	assert_int_equal(run->served + run->lost, CLIENTS - threadless);
	assert_in_range(run->lost + threadless, want == LOSES_ONE, want >= LOSES_ONE);
	/* who has everything may be gone before the server's last look at it failed */
	assert_true(failed == run->lost + threadless || strcmp(run->row->call, "recv") == 0);
}

static int serve(const struct fcopy_options *options, unsigned max_clients,
		 const volatile int *stop_flag, struct fcopy_report *report)
{
	static const char *const src[] = {"src"};
	const struct fcopy_service service = {.max_clients = max_clients, .stop = stop_flag};
	return fcopy_serve(src, 1, "tcp-listen:0", options, &service, report);
}

static void once(void *arg)
{
	struct run *run = arg;
	struct fcopy_options options = {.api = FCOPY_API, .notify = note, .user = run};
	struct fcopy_report report;
	int status, before = open_descriptors();
	run->served = run->lost = 0;
	stop = 0;
	int r = serve(&options, 2, &stop, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	need(waitpid(run->child, &status, 0) == run->child);
	assert_true(WIFEXITED(status));
	if (!fault_seen() || run->row->want != ENDS) {
		assert_int_equal(r, 0);
		check_clients(run, WEXITSTATUS(status));
		return;
	}
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, run->err);
	assert_non_null(report.error.call);
	assert_int_equal(run->served + WEXITSTATUS(status), CLIENTS);
}

static void sweep(void **state)
{
	const struct errno_case *c = *state;
	struct run run = {.row = c->row, .err = c->err};
	make_file("src", SIZE, DENSE, 1);
	fault_sweep(run.row->call, run.err, once, &run);
}

/* A policy that denies every accept(2) ends the server. */
static void is_denied(void **state)
{
	static const struct row row = {ENDS, "accept4", NULL};
	struct run run = {.row = &row, .err = EPERM};
	(void)state;
	make_file("src", SIZE, DENSE, 1);
	fault_set(row.call, 2 + FAULT_EVERY, EPERM);
	once(&run);
	assert_true(fault_seen());
}

/* The cancel flag ends the server too, and that is no success. */
static void is_cancelled(void **state)
{
	struct run run = {.row = &rows[0]};
	struct fcopy_options options = {
	    .api = FCOPY_API, .notify = note, .user = &run, .cancel = &stop};
	struct fcopy_report report;
	int status, before = open_descriptors();
	(void)state;
	make_file("src", SIZE, DENSE, 1);
	stop = 0;
	int r = serve(&options, 0, NULL, &report);
	fault_off();
	assert_int_equal(open_descriptors(), before);
	need(waitpid(run.child, &status, 0) == run.child);
	assert_int_equal(status, 0);
	assert_int_equal(run.served, CLIENTS);
	assert_int_equal(r, -1);
	assert_int_equal(report.error.err, EINTR);
	assert_string_equal(report.error.reason, "interrupted");
}

int main(void)
{
	const struct sigaction act = {.sa_handler = on_child};
	sigaction(SIGCHLD, &act, NULL);
	signal(SIGPIPE, SIG_IGN); /* as fcopy.h requires for sending to a socket */
	cases_enter("ext4");
	for (size_t i = 0; i < ROWS; i++)
		case_add_errnos(sweep, &rows[i], rows[i].errs, "server", rows[i].call);
	case_add(is_denied, NULL, "server: every accept4 is denied");
	case_add(is_cancelled, NULL, "server: cancelled");
	return cases_run("serve");
}
