/* SPDX-License-Identifier: MIT
 * What a tree reports: failures and warnings.
 */
#include "report.h"
#include "endpoints/error.h"
#include "part/part.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char entry_src[] = "SRC", entry_dst[] = "DST";

void tree_stop(struct tree *t, int err)
{
	int none = 0;
	__atomic_compare_exchange_n(&t->stop, &none, -err, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

bool tree_stopped(const struct tree *t)
{
	return __atomic_load_n(&t->stop, __ATOMIC_RELAXED) < 0 || tree_is_cancelled(t);
}

/* Replaces entry_src and entry_dst by the paths. */
static struct fcopy_error report_paths(const struct tree *t, const struct entry *e,
				       const struct fcopy_error *error, char path[2][PATH_MAX])
{
	struct fcopy_error whole = *error;
	const char **member[] = {&whole.path, &whole.path2};
	for (int i = 0; i < 2; i++) {
		if (*member[i] != entry_src && *member[i] != entry_dst)
			continue;
		entry_path(e, *member[i] == entry_src, path[i], PATH_MAX);
		*member[i] = path[i];
	}
	/* A tree never overwrites a file that has other hard links. */
	if (whole.advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE && whole.err == EMLINK)
		whole.advice = FCOPY_ADVICE_FORCE;
	else if (whole.advice == FCOPY_ADVICE_FLUSH &&
		 t->root.ground.journal) /* it is in the part */
		whole.advice = FCOPY_ADVICE_NONE;
	else if (whole.err == EMFILE && whole.advice == FCOPY_ADVICE_NONE)
		whole.advice = FCOPY_ADVICE_DESCRIPTORS;
	return whole;
}

/* Copies the first failure and its strings, which are valid only during the event. The caller holds
 * the lock. */
static void report_first(struct fcopy_tree_report *r, const struct fcopy_error *error)
{
	if (r->error.err != 0) {
		r->error.unsuitable &= error->unsuitable;
		return;
	}
	r->error = *error;
	if (error->path) {
		snprintf(r->path, sizeof(r->path), "%s", error->path);
		r->error.path = r->path;
	}
	if (error->path2) {
		snprintf(r->path2, sizeof(r->path2), "%s", error->path2);
		r->error.path2 = r->path2;
	}
	if (error->reason) {
		snprintf(r->detail, sizeof(r->detail), "%s", error->reason);
		r->error.reason = r->detail;
	}
}

int report_operand(struct tree *t, const struct fcopy_error *error)
{
	pthread_mutex_lock(&t->lock);
	report_first(t->report, error);
	report_notify(t, &(struct fcopy_event){.kind = FCOPY_EVENT_FAILED, .error = error});
	report_operand_outcome(t, &(struct outcome){.action = FCOPY_ACTION_FAILED},
			       t->report->dst[0] ? t->report->dst : NULL, error);
	t->root.landed |= error->advice == FCOPY_ADVICE_FLUSH;
	pthread_mutex_unlock(&t->lock);
	return -error->err;
}

/* file: of a warning about space, which has its numbers there; or NULL. */
static void report_serialised(struct tree *t, enum fcopy_event_kind kind,
			      const struct fcopy_error *error, const struct fcopy_report *file)
{
	pthread_mutex_lock(&t->lock);
	report_notify(t, &(struct fcopy_event){.kind = kind, .error = error, .report = file});
	pthread_mutex_unlock(&t->lock);
}

void report_operand_warning(struct tree *t, const struct fcopy_error *error)
{
	report_serialised(t, FCOPY_EVENT_WARNING, error, NULL);
}

int tree_fail(struct tree *t, const char *call, const char *path, int err)
{
	struct fcopy_error error;
	error_call(&error, call, path, err);
	return report_operand(t, &error);
}

int tree_look_up(struct tree *t, const char *call, const char *path, int err)
{
	struct fcopy_error error;
	error_look_up(&error, call, path, err);
	return report_operand(t, &error);
}

int tree_refuse(struct tree *t, const char *path, int err, const char *reason,
		enum fcopy_advice advice)
{
	struct fcopy_error error;
	error_refuse(&error, path, err, reason, advice);
	return report_operand(t, &error);
}

int tree_unsuitable(struct tree *t, struct fcopy_error error)
{
	error.unsuitable = true;
	return report_operand(t, &error);
}

void report_not_atomic(struct tree *t, const char *path, const char *reason)
{
	struct fcopy_error error;
	error_refuse(&error, path, EOPNOTSUPP, reason, FCOPY_ADVICE_NONE);
	pthread_mutex_lock(&t->lock);
	if (!t->report->not_atomic) {
		t->report->not_atomic = reason;
		report_notify(
		    t, &(struct fcopy_event){.kind = FCOPY_EVENT_NOT_ATOMIC, .error = &error});
	}
	pthread_mutex_unlock(&t->lock);
}

void report_not_private(struct tree *t, const char *path)
{
	struct fcopy_error error;
	error_refuse(&error, path, EPERM, PART_EXPOSED, FCOPY_ADVICE_NONE);
	pthread_mutex_lock(&t->lock);
	if (!t->known.exposed)
		report_notify(
		    t, &(struct fcopy_event){.kind = FCOPY_EVENT_NOT_PRIVATE, .error = &error});
	t->known.exposed = true;
	pthread_mutex_unlock(&t->lock);
}

/* Makes the outcome of an entry that failed. Returns whether there was none before: several
 * attributes of one entry can be lost. */
static bool report_fail_entry(struct worker *w, const struct entry *e, struct outcome *failed)
{
	*failed = (struct outcome){.action = FCOPY_ACTION_FAILED};
	if (!e->name[0]) {
		failed->type = S_IFDIR;
		return !__atomic_exchange_n(&e->dir->failed, true, __ATOMIC_RELAXED);
	}
	if (w->work.entry != e)
		return true;
	if (w->work.outcome.stage == OUTCOME_SENT)
		return false;
	failed->type = w->work.outcome.type;
	failed->changed = w->work.outcome.changed;
	w->work.outcome = *failed;
	w->work.outcome.stage = OUTCOME_SENT;
	return true;
}

/* Each thread's unfinished entry: the operand reports the cancellation. */
static void report_leave_entry(struct worker *w, const struct entry *e)
{
	if (w->work.entry == e && w->work.outcome.stage != OUTCOME_SENT)
		w->work.outcome.stage = OUTCOME_NONE;
}

int report_failure(struct worker *w, const struct entry *e, const struct fcopy_error *error)
{
	struct tree *t = w->tree;
	struct outcome failed;
	char path[2][PATH_MAX];
	if (error->err == EINTR && tree_is_cancelled(t)) {
		report_leave_entry(w, e);
		return -EINTR;
	}
	struct fcopy_error whole = report_paths(t, e, error, path);
	/* SRC itself, no entry below it; DST is a directory. */
	whole.unsuitable |= error->err == EISDIR && error->path == entry_dst;
	whole.unsuitable &= t->root.ground.single;
	const bool first = report_fail_entry(w, e, &failed);
	__atomic_add_fetch(&t->root.failures, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&t->lock);
	report_first(t->report, &whole);
	t->root.landed |= t->root.ground.single && error->advice == FCOPY_ADVICE_FLUSH;
	report_notify(t, &(struct fcopy_event){.kind = FCOPY_EVENT_FAILED, .error = &whole});
	if (first)
		report_failed_outcome(w, e, &failed, &whole);
	pthread_mutex_unlock(&t->lock);
	if (error_classify(error) == ERROR_FULL) /* all later files would fail, too */
		tree_stop(t, error->err);
	return -error->err;
}

int report_call(struct worker *w, const struct entry *e, const char *call, const char *path,
		int err)
{
	struct fcopy_error error;
	error_call(&error, call, path, err);
	return report_failure(w, e, &error);
}

int report_refusal(struct worker *w, const struct entry *e, const char *path, int err,
		   const char *reason)
{
	struct fcopy_error error;
	error_refuse(&error, path, err, reason, FCOPY_ADVICE_NONE);
	return report_failure(w, e, &error);
}

void report_unmet(struct worker *w, struct directory *root, const char *name)
{
	const struct entry e = ENTRY(root, name);
	char above[PATH_MAX], reason[PATH_MAX + 64];
	struct stat st;
	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - name), name);
		if (fstatat(root->src, above, &st, AT_SYMLINK_NOFOLLOW) < 0)
			break;
		if (!S_ISLNK(st.st_mode))
			continue;
		snprintf(reason, sizeof(reason),
			 "is below %s, a symlink that is not followed: use -L to follow it", above);
		report_refusal(w, &e, entry_src, ENOTDIR, reason);
		return;
	}
	if (fstatat(root->src, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		report_call(w, &e, "stat", entry_src, errno);
	else
		report_refusal(w, &e, entry_src, ENOENT,
			       "was not copied: its directory was not entered");
}

/* As with cp(1), only the superuser expects to give files away. */
static bool report_is_usual(const struct fcopy_error *e)
{
	return e->err == EPERM && e->call && strncmp(e->call, "fchown", 6) == 0 && geteuid() != 0;
}

void report_warning(struct worker *w, const struct entry *e, const struct fcopy_error *error)
{
	struct tree *t = w->tree;
	char path[2][PATH_MAX];
	if (report_is_usual(error) || !t->options->copy.notify)
		return;
	struct fcopy_error whole = report_paths(t, e, error, path);
	report_serialised(t, FCOPY_EVENT_WARNING, &whole, &w->file.report);
}

void report_not_entered(struct worker *w, const struct entry *e, bool mounted)
{
	struct tree *t = w->tree;
	char path[2][PATH_MAX];
	struct fcopy_error error;
	error_refuse(&error, entry_src, EXDEV,
		     mounted ? "is a mount point: -x copies nothing in it"
			     : "is a subvolume: -x copies nothing in it",
		     FCOPY_ADVICE_NONE);
	if (!t->options->copy.notify)
		return;
	const struct fcopy_error whole = report_paths(t, e, &error, path);
	report_serialised(t, mounted ? FCOPY_EVENT_NOT_ENTERED : FCOPY_EVENT_WARNING, &whole, NULL);
}

void report_event(void *worker, const struct fcopy_event *event)
{
	struct worker *w = worker;
	char path[PATH_MAX];
	if (event->kind == FCOPY_EVENT_WARNING && w->work.entry)
		report_warning(w, w->work.entry, event->error);
	if (event->kind == FCOPY_EVENT_NOT_ATOMIC && w->work.entry) {
		entry_path(w->work.entry, false, path, sizeof(path));
		report_not_atomic(w->tree, path, event->error->reason);
	}
}

void report_large(struct worker *w, const struct entry *e)
{
	struct tree *t = w->tree;
	struct fcopy_progress *p = t->options->copy.progress;
	char path[sizeof(p->file)] = "";
	if (!p)
		return;
	if (e)
		entry_path(e, false, path, sizeof(path));
	pthread_mutex_lock(&t->lock);
	__atomic_add_fetch(&p->file_version, 1, __ATOMIC_ACQ_REL);
	for (size_t i = 0; i < sizeof(path); i++)
		__atomic_store_n(&p->file[i], path[i], __ATOMIC_RELAXED);
	__atomic_add_fetch(&p->file_version, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&t->lock);
}

/* The counts of a tree. */

void report_add_steps(struct fcopy_tree_report *to, const struct fcopy_step *step, size_t n)
{
	for (; n > 0; n--, step++) {
		struct fcopy_step *s = to->step;
		while (s < to->step + to->steps && s->engine != step->engine)
			s++;
		if (s == to->step + to->steps)
			to->step[to->steps++] = (struct fcopy_step){.engine = step->engine};
		s->threads = step->threads > s->threads ? step->threads : s->threads;
		s->bytes += step->bytes;
		s->calls += step->calls;
		s->seconds += step->seconds;
		if (step->refusal) {
			s->refusal = step->refusal;
			s->refusal_call = step->refusal_call;
		}
	}
}

void report_add(struct fcopy_tree_report *to, const struct fcopy_tree_report *from)
{
	for (int i = 0; i < FCOPY_COUNTS; i++)
		to->count[i] += from->count[i];
	report_add_steps(to, from->step, from->steps);
}

/* Did the file system refuse FICLONE for all files, not only for this one? */
static bool report_refuses_clones(const struct fcopy_report *r)
{
	for (size_t i = 0; i < r->steps; i++)
		if (r->step[i].engine == engine_reflink.name)
			switch (r->step[i].refusal) {
			case EOPNOTSUPP:
			case ENOTTY:
			case ENOSYS:
			case EXDEV: return true;
			default: return false;
			}
	return false;
}

void report_file(struct worker *w, const struct stat *st, bool complete)
{
	const struct fcopy_report *r = &w->file.report;
	outcome_take(&w->work.outcome, r, complete);
	report_add_steps(&w->sum, r->step, r->steps);
	if (w->clones.is == ANSWER_UNKNOWN && report_refuses_clones(r))
		w->clones = (struct device_answer){st->st_dev, ANSWER_NO};
}
