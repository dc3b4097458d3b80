/* SPDX-License-Identifier: MIT
 * fcopy_serve: one thread per client runs an ordinary copy, so a slow client delays no other. An
 * HTTP client first says which bytes of which file it wants: then the copy has that range.
 */
#include "copy.h"
#include "endpoints/error.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#define STACK_SIZE   ((size_t)512 << 10) /* a copy takes 64 KiB of it, far more under a sanitizer */
#define LOOK_MS      250 /* check the stop flag this often: another thread may handle the signal */
#define LOOK_SOON_MS 20  /* the same, if the client that is running may be the last one */
#define GRACE        2.0 /* seconds that a client of ranges may need for its next request */

struct service {
	const struct fcopy_options *options;
	const volatile int *stop;
	struct endpoint *file, listener; /* each SRC, and DST */
	const char **name;               /* HTTP: each SRC's */
	size_t count;
	unsigned max_clients;
	bool once;
	pthread_attr_t detached;
	pthread_mutex_t lock;
	pthread_cond_t left; /* one of the running clients has ended */
	unsigned running;
	/* With once. */
	bool *delivered; /* each SRC, to its last byte */
	size_t missing;  /* how many were not */
	double ends;     /* io_now() after which no further request is expected */
	bool watched;    /* a client has options.progress */
	struct fcopy_report *report;
};

struct client {
	struct service *service;
	struct endpoint connection;
	struct copy copy;
	struct fcopy_options options;
	struct fcopy_report report;
};

static bool serve_flag_is_set(const volatile int *flag)
{
	return flag && __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static bool service_stopped(const struct service *s)
{
	return serve_flag_is_set(s->stop) || serve_flag_is_set(s->options->cancel);
}

/* Waits at most LOOK_MS until fewer than `most` clients are running. Returns whether that is so. */
static bool serve_wait_below(struct service *s, unsigned most)
{
	const struct timespec until = io_deadline(LOOK_MS / 1e3);
	pthread_mutex_lock(&s->lock);
	if (s->running >= most)
		pthread_cond_timedwait(&s->left, &s->lock, &until);
	bool below = s->running < most;
	pthread_mutex_unlock(&s->lock);
	return below;
}

static void serve_count(struct service *s, int change)
{
	pthread_mutex_lock(&s->lock);
	s->running += (unsigned)change;
	if (change < 0)
		pthread_cond_signal(&s->left);
	pthread_mutex_unlock(&s->lock);
}

/* One client at a time is shown. */
static struct fcopy_progress *serve_progress(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	struct fcopy_progress *p = s->once && !s->watched ? s->options->progress : NULL;
	s->watched |= p != NULL;
	pthread_mutex_unlock(&s->lock);
	return p;
}

/* A client of HTTP has ended. */
static void serve_note_delivery(struct client *k, const struct endpoint *file)
{
	struct service *s = k->service;
	pthread_mutex_lock(&s->lock);
	s->watched &= k->options.progress == NULL;
	s->ends = io_now() + (k->report.http.status == 206 ? GRACE : 0);
	if (k->report.http.last) {
		bool *delivered = &s->delivered[file - s->file];
		s->missing -= !*delivered;
		*delivered = true;
		if (s->once)
			*s->report = k->report;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Answers the request, and copies the bytes that it asks for. */
static void serve_request(struct client *k)
{
	struct service *s = k->service;
	struct copy *c = &k->copy;
	const struct offer offer = {s->file, s->name, s->count};
	struct demand d;
	struct fcopy_error *error = &k->report.error;
	int r = c->dst.ops->answer(&c->dst, &offer, &d, error);
	k->report.http = d.http;
	if (r > 0) {
		k->options.progress = serve_progress(s);
		c->exact = true;
		c->first = d.first;
		c->last = d.last;
		c->tail = (off_t)d.http.length - (d.last - d.first);
		r = source_share(&c->src, d.file, error);
		c->src.st = d.st;
		if (r == 0)
			r = copy_run(c);
		else
			c->dst.ops->abort(&c->dst);
	} else {
		if (r == 0)
			r = copy_commit(c);
		if (r < 0)
			c->dst.ops->abort(&c->dst);
	}
	k->report.http.last &= r == 0;
	k->report.source_changed = error->err == EBUSY;
	serve_note_delivery(k, d.file);
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
	if (k->connection.ops->answer)
		serve_request(k);
	else if (source_share(&k->copy.src, s->file, &k->report.error) < 0)
		k->connection.ops->abort(&k->connection);
	else
		copy_run(&k->copy);
	copy_notify(&k->copy, FCOPY_EVENT_CLIENT, &k->report.error, NULL);
	free(k);
	serve_count(s, -1);
	return NULL;
}

/* Temporary resource shortage: sleep and retry. Returns 0 after the sleep; -err for other errors.
 */
static int serve_pause(int err)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
	if (err != EAGAIN && err != EMFILE && err != ENFILE && err != ENOBUFS && err != ENOMEM)
		return -err;
	nanosleep(&pause, NULL);
	return 0;
}

/* Starts the client's thread. If no thread can be created, disconnects the client; the server
 * continues. */
static int serve_start_client(struct client *k, struct fcopy_error *error)
{
	struct service *s = k->service;
	pthread_t thread;
	serve_count(s, 1);
	int err = pthread_create(&thread, &s->detached, serve_client, k);
	if (err == 0)
		return 0;
	k->connection.ops->abort(&k->connection);
	free(k);
	serve_count(s, -1);
	if (serve_pause(err) == 0)
		return 0;
	return error_call(error, "pthread_create", s->listener.path, err);
}

/* once: how long to wait for a client before service_done() is asked again. */
static int serve_look_ms(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	const bool soon = s->once && (s->running > 0 || s->missing == 0);
	pthread_mutex_unlock(&s->lock);
	return soon ? LOOK_SOON_MS : LOOK_MS;
}

/* Accepts a client, or returns after a short time without one. Returns 0, or -errno with the
 * failure recorded. */
static int serve_take_client(struct service *s, struct fcopy_error *error)
{
	const struct io io = {.cancel = s->stop, .timeout_ms = serve_look_ms(s)};
	struct client *k = calloc(1, sizeof(*k));
	if (!k)
		return serve_pause(ENOMEM);
	k->service = s;
	int r = s->listener.ops->accept(&s->listener, &io, &k->connection, &k->report.error);
	if (r == 0)
		return serve_start_client(k, error);
	r = r == -ETIMEDOUT || r == -EINTR ? 0 : serve_pause(-r);
	if (r < 0)
		*error = k->report.error;
	free(k);
	return r;
}

/* once: each SRC was delivered, and nobody needs more of it. */
static bool service_done(struct service *s)
{
	pthread_mutex_lock(&s->lock);
	bool done = s->once && s->missing == 0 && s->running == 0 && io_now() >= s->ends;
	pthread_mutex_unlock(&s->lock);
	return done;
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
	while (r == 0 && !service_stopped(s) && !service_done(s))
		if (serve_wait_below(s, s->max_clients))
			r = serve_take_client(s, error);
	s->listener.ops->abort(&s->listener); /* the kernel refuses clients from now on */
	while (!serve_wait_below(s, 1))
		;
	pthread_attr_destroy(&s->detached);
	if (r == 0 && serve_flag_is_set(s->options->cancel))
		r = error_refuse(error, s->listener.path, EINTR, "interrupted", FCOPY_ADVICE_NONE);
	return r;
}

/* Checks one SRC and opens it. */
static int serve_open_file(struct service *s, const struct operand *src, const struct operand *dst,
			   struct endpoint *file, struct fcopy_report *report)
{
	struct fcopy_error *error = &report->error;
	const struct request request = {
	    .src = src, .dst = dst, .options = s->options, .serves = true, .sources = s->count};
	int r = rules_check(&request, error, report->detail);
	if (r < 0) {
		error->advice = FCOPY_ADVICE_USAGE; /* no client could be served */
		return r;
	}
	r = source_open(file, src, s->options, error);
	if (r < 0 && error->advice == FCOPY_ADVICE_RECURSIVE) /* a server has no -r */
		error->advice = FCOPY_ADVICE_NONE;
	return r;
}

static void serve_close_files(struct service *s, size_t n)
{
	for (; n > 0; n--)
		s->file[n - 1].ops->abort(&s->file[n - 1]);
}

/* The name in the URL. Two files cannot have one. */
static int serve_name_file(struct service *s, size_t i, const struct operand *src,
			   struct fcopy_error *error)
{
	s->name[i] = src->path + src->start;
	for (size_t j = 0; j < i; j++)
		if (strcmp(s->name[i], s->name[j]) == 0) {
			error_refuse(error, src->path, EEXIST,
				     "has the same name as an earlier SRC", FCOPY_ADVICE_USAGE);
			return error_unsuitable(error);
		}
	return 0;
}

static int serve_open_listener(struct service *s, const struct operand *src, struct operand *dst,
			       struct fcopy_report *report)
{
	struct request request = {
	    .src = src, .dst = dst, .options = s->options, .serves = true, .sources = s->count};
	struct fcopy_error *error = &report->error;
	operand_find_file(dst, src, report->dst);
	int r = destination_open(&s->listener, dst, s->file, s->options, NULL, error);
	request.to = &s->listener;
	for (size_t i = 0; r == 0 && i < s->count; i++) {
		request.from = &s->file[i];
		r = rules_check(&request, error, report->detail);
		if (r < 0)
			s->listener.ops->abort(&s->listener);
	}
	return r;
}

/* Opens each SRC and DST. Returns 0, or -errno with the failure recorded and nothing open. */
static int service_open(struct service *s, const char *const *src, struct operand *dst,
			struct fcopy_report *report)
{
	struct operand from = {.path = NULL};
	size_t n = 0;
	int r = 0;
	for (; r == 0 && n < s->count; n += r == 0) {
		operand_find_source(&from, src[n], true);
		r = serve_open_file(s, &from, dst, &s->file[n], report);
		if (r == 0 && (r = serve_name_file(s, n, &from, &report->error)) < 0)
			s->file[n].ops->abort(&s->file[n]);
	}
	if (r == 0) {
		operand_find_source(&from, src[0], true);
		r = serve_open_listener(s, &from, dst, report);
	}
	if (r < 0)
		serve_close_files(s, n);
	return r;
}

static int service_run(struct service *s, const char *const *src, const char *dst)
{
	struct fcopy_report *report = s->report;
	const struct copy reported = {.options = s->options, .report = report};
	struct operand to;
	operand_find_destination(&to, dst, !s->options->no_directory);
	int r = service_open(s, src, &to, report);
	operand_close(&to);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->count; i++)
		if (S_ISREG(s->file[i].st.st_mode))
			report->expected += (uint64_t)s->file[i].st.st_size;
	if (s->listener.ops) /* it was opened */
		copy_notify(&reported, FCOPY_EVENT_LISTENING, NULL, endpoint_listens(&s->listener));
	r = serve_clients(s, &report->error);
	serve_close_files(s, s->count);
	return r;
}

int fcopy_serve(const char *const *src, size_t n, const char *dst,
		const struct fcopy_options *options, const struct fcopy_service *how,
		struct fcopy_report *report)
{
	static const struct fcopy_service forever = {.max_clients = 0};
	struct fcopy_options own;
	memset(report, 0, sizeof(*report));
	if (!how)
		how = &forever;
	if (copy_options(&own, options, dst, &report->error) < 0)
		return -1;
	if (n == 0) {
		error_refuse(&report->error, dst, EINVAL, "no SRC", FCOPY_ADVICE_USAGE);
		return -1;
	}
	struct service s = {.options = &own,
			    .stop = how->stop,
			    .once = how->once,
			    .count = n,
			    .missing = n,
			    .report = report,
			    .max_clients = how->max_clients ? how->max_clients
							    : FCOPY_CLIENTS_DEFAULT,
			    .lock = PTHREAD_MUTEX_INITIALIZER};
	s.file = calloc(n, sizeof(*s.file));
	s.name = calloc(n, sizeof(*s.name));
	s.delivered = calloc(n, sizeof(*s.delivered));
	int r = s.file && s.name && s.delivered ? service_run(&s, src, dst)
						: error_call(&report->error, "calloc", dst, ENOMEM);
	free(s.file);
	free(s.name);
	free(s.delivered);
	return r < 0 ? -1 : 0;
}
