/* SPDX-License-Identifier: MIT
 * fcopy_serve: one thread per client runs an ordinary copy, so a slow client delays no other.
 */
#define _GNU_SOURCE
#include "endpoints/error.h"
#include "notify.h"
#include "rules.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#define STACK_SIZE ((size_t)512 << 10) /* a copy takes 64 KiB of it, far more under a sanitizer */
#define LOOK_MS    250 /* check the stop flag this often: another thread may handle the signal */

struct service {
	const struct fcopy_options *options;
	const volatile int *stop;
	struct endpoint file, listener; /* SRC and DST */
	unsigned max_clients;
	pthread_attr_t detached;
	pthread_mutex_t lock;
	pthread_cond_t left; /* one of the running clients has ended */
	unsigned running;
};

struct client {
	struct service *service;
	struct endpoint connection;
	struct copy copy;
	struct fcopy_options options;
	struct fcopy_report report;
};

static bool flag_is_set(const volatile int *flag)
{
	return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static bool service_stopped(const struct service *s)
{
	return flag_is_set(s->stop) || flag_is_set(s->options->cancel);
}

/* Waits at most LOOK_MS until fewer than `most` clients are running. Returns whether that is so. */
static bool wait_below(struct service *s, unsigned most)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&s->lock);
	if (s->running >= most)
		pthread_cond_timedwait(&s->left, &s->lock, &until);
	bool below = s->running < most;
	pthread_mutex_unlock(&s->lock);
	return below;
}

static void count_clients(struct service *s, int change)
{
	pthread_mutex_lock(&s->lock);
	s->running += (unsigned)change;
	if (change < 0)
		pthread_cond_signal(&s->left);
	pthread_mutex_unlock(&s->lock);
}

static void *serve_client(void *arg)
{
	struct client *k = arg;
	struct service *s = k->service;
	k->options = *s->options;
	k->options.progress = NULL;
	k->copy.options = &k->options;
	k->copy.report = &k->report;
	k->copy.mode = k->options.mode ? k->options.mode : fcopy_modes();
	k->copy.served = true;
	k->copy.dst = k->connection;
	strncpy(k->report.dst, k->connection.path, PATH_MAX - 1);
	snprintf(k->report.dst_peer, FCOPY_ADDRESS_MAX, "%s",
		 k->connection.ops->peer(&k->connection));
	if (source_share(&k->copy.src, &s->file, &k->report.error) < 0)
		k->connection.ops->abort(&k->connection);
	else
		copy_run(&k->copy);
	copy_notify(&k->copy, FCOPY_EVENT_CLIENT, &k->report.error, NULL);
	free(k);
	count_clients(s, -1);
	return NULL;
}

/* Temporary resource shortage: sleep and retry. Returns 0 after the sleep; -err for other errors.
 */
static int pause_for(int err)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	if (err != EAGAIN && err != EMFILE && err != ENFILE && err != ENOBUFS && err != ENOMEM)
		return -err;
	nanosleep(&pause, NULL);
	return 0;
}

/* Starts the client's thread. If no thread can be created, disconnects the client; the server
 * continues. */
static int start_client(struct client *k, struct fcopy_error *error)
{
	struct service *s = k->service;
	pthread_t thread;
	count_clients(s, 1);
	int err = pthread_create(&thread, &s->detached, serve_client, k);
	if (err == 0)
		return 0;
	k->connection.ops->abort(&k->connection);
	free(k);
	count_clients(s, -1);
	if (pause_for(err) == 0)
		return 0;
	return error_call(error, "pthread_create", s->listener.path, err);
}

/* Accepts a client, or returns after LOOK_MS without one. Returns 0, or -errno with the failure
 * recorded. */
static int take_client(struct service *s, struct fcopy_error *error)
{
	const struct io io = {.cancel = s->stop, .timeout_ms = LOOK_MS};
	struct client *k = calloc(1, sizeof(*k));
	if (!k)
		return pause_for(ENOMEM);
	k->service = s;
	int r = s->listener.ops->accept(&s->listener, &io, &k->connection, &k->report.error);
	if (r == 0)
		return start_client(k, error);
	r = r == -ETIMEDOUT || r == -EINTR ? 0 : pause_for(-r);
	if (r < 0)
		*error = k->report.error;
	free(k);
	return r;
}

static int serve_clients(struct service *s, struct fcopy_error *error)
{
	int r = 0;
	pthread_condattr_t clock; /* CLOCK_MONOTONIC is immune to clock changes */
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->left, &clock);
	pthread_attr_init(&s->detached);
	pthread_attr_setstacksize(&s->detached, STACK_SIZE);
	pthread_attr_setdetachstate(&s->detached, PTHREAD_CREATE_DETACHED);
	while (r == 0 && !service_stopped(s))
		if (wait_below(s, s->max_clients))
			r = take_client(s, error);
	s->listener.ops->abort(&s->listener); /* the kernel refuses clients from now on */
	while (!wait_below(s, 1))
		;
	pthread_attr_destroy(&s->detached);
	if (r == 0 && flag_is_set(s->options->cancel))
		r = error_refuse(error, s->listener.path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	return r;
}

static int open_service(struct service *s, const struct operand *src, struct operand *dst,
			struct fcopy_report *report)
{
	struct fcopy_error *error = &report->error;
	struct request request = {.src = src, .dst = dst, .options = s->options, .serves = true};
	int r = rules_check(&request, error, report->detail);
	if (r < 0) {
		error->advice = FCOPY_ADVICE_USAGE; /* no client could be served */
		return r;
	}
	r = source_open(&s->file, src, error);
	if (r < 0) {
		if (error->advice == FCOPY_ADVICE_RECURSIVE) /* a server has no -r */
			error->advice = FCOPY_ADVICE_NONE;
		return r;
	}
	operand_find_file(dst, src, report->dst);
	r = destination_open(&s->listener, dst, &s->file, s->options, error);
	request.from = &s->file;
	request.to = &s->listener;
	if (r == 0 && (r = rules_check(&request, error, report->detail)) < 0)
		s->listener.ops->abort(&s->listener);
	if (r < 0)
		s->file.ops->abort(&s->file);
	return r;
}

int fcopy_serve(const char *src, const char *dst, const struct fcopy_options *options,
		unsigned max_clients, const volatile int *stop, struct fcopy_report *report)
{
	struct fcopy_options own;
	struct service s = {.options = &own,
			    .stop = stop,
			    .max_clients = max_clients ? max_clients : FCOPY_CLIENTS_DEFAULT,
			    .lock = PTHREAD_MUTEX_INITIALIZER};
	const struct copy reported = {.options = s.options, .report = report};
	memset(report, 0, sizeof(*report));
	if (copy_options(&own, options, dst, &report->error) < 0)
		return -1;
	struct operand from, to;
	operand_find_source(&from, src, true);
	operand_find_destination(&to, dst, !own.no_directory);
	int r = open_service(&s, &from, &to, report);
	operand_close(&to);
	if (r < 0)
		return -1;
	report->expected = S_ISREG(s.file.st.st_mode) ? (uint64_t)s.file.st.st_size : 0;
	copy_notify(&reported, FCOPY_EVENT_LISTENING, NULL, endpoint_listens(&s.listener));
	r = serve_clients(&s, &report->error);
	s.file.ops->abort(&s.file);
	return r < 0 ? -1 : 0;
}
