/* SPDX-License-Identifier: MIT
 * Which options may be combined with the mode, with SRC and with DST; conflicts.c has those that
 * exclude each other. The tables are evaluated twice: before anything is opened, and after both
 * operands are open. If DST is a directory, only the open file shows what DST/basename(SRC) is.
 *
 * A new rule is one row.
 */
#include "conflicts.h"
#include "copy.h"
#include "endpoints/attributes.h"
#include "endpoints/error.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* scp(1) and rsync(1) take USER@HOST:PATH, and others URLs. A file of such a name may exist. */
static bool operand_is_remote(const struct operand *o)
{
	const char *at = strchr(o->path, '@'), *colon = strchr(o->path, ':');
	bool host = at && colon > at && at > o->path &&
		    !memchr(o->path, '/', (size_t)(colon - o->path));
	return o->kind != OPERAND_STREAM && !o->place.exists && (host || strstr(o->path, "://"));
}

static int rules_check_remote(const struct request *x, struct fcopy_error *error)
{
	const struct operand *o = operand_is_remote(x->src)   ? x->src
				  : operand_is_remote(x->dst) ? x->dst
							      : NULL;
	const struct operand *url = strncmp(x->src->path, "tcp://", 6) == 0   ? x->src
				    : strncmp(x->dst->path, "tcp://", 6) == 0 ? x->dst
									      : NULL;
	if (url)
		return error_refuse(error, url->path, EINVAL,
				    "is no address: write tcp:HOST:PORT, without //",
				    FCOPY_ADVICE_USAGE);
	const bool web = o == x->src && o && strncmp(o->path, "http", 4) == 0;
	return o ? error_refuse(error, o->path, EINVAL,
				web ? "fcopy fetches no URL: use curl -OC - URL; a file of this "
				      "name needs ./ in front"
				    : "fcopy copies local files, and tcp:HOST:PORT; a file of this "
				      "name needs ./ in front",
				FCOPY_ADVICE_USAGE)
		 : 0;
}

/* The file that the caller writes during the copy and that the operand is; NULL: none. */
static const struct fcopy_output *operand_output(const struct operand *o,
						 const struct fcopy_options *options)
{
	const bool known = o->place.exists || o->stream != FCOPY_KIND_PATH;
	return known ? same_output(options, &o->place.st) : NULL;
}

/* What the caller writes must not get into SRC or DST. */
static int rules_check_outputs(const struct request *x, struct fcopy_error *error)
{
	const struct fcopy_output *dst = operand_output(x->dst, x->options);
	const struct fcopy_output *src = operand_output(x->src, x->options);
	if (dst)
		return same_refuse_output(dst, x->dst->path, error);
	return src && src->not_source ? same_refuse_output(src, x->src->path, error) : 0;
}

static int rules_refuse(struct fcopy_error *error, const char *path, const char *option,
			const char *reason, enum fcopy_advice advice)
{
	int r = error_refuse(error, path, path ? ESPIPE : EINVAL, reason, advice);
	error->option = option;
	error_unsuitable(error);
	return r;
}

/* "is not supported by mode 2 sendfile: use mode 1, 3, 5 or 7" */
static void rules_name_modes(enum fcopy_takes takes, const struct fcopy_mode *mode,
			     char detail[FCOPY_DETAIL_MAX])
{
	unsigned left = 0, first = 1;
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++)
		left += (m->takes & takes) != 0;
	int n = snprintf(detail, FCOPY_DETAIL_MAX, "is not supported by mode %d %s: use mode",
			 mode->number, mode->name);
	for (const struct fcopy_mode *m = fcopy_modes(); m->name && n < FCOPY_DETAIL_MAX; m++) {
		if (!(m->takes & takes))
			continue;
		n += snprintf(detail + n, (size_t)(FCOPY_DETAIL_MAX - n), "%s %d",
			      first       ? ""
			      : left == 1 ? " or"
					  : ",",
			      m->number);
		first = 0;
		left--;
	}
}

static int rules_check_mode(const struct request *x, const struct fcopy_mode *mode,
			    struct fcopy_error *error, char detail[FCOPY_DETAIL_MAX])
{
	const struct fcopy_options *o = x->options;
	const struct {
		bool given;
		enum fcopy_takes takes;
		const char *option;
	} features[] = {
	    {o->buffer_size > 0, FCOPY_TAKES_BUFFER_SIZE, "buffer-size"},
	    {o->threads && !x->tree, FCOPY_TAKES_THREADS, "threads"},
	    {o->sparse, FCOPY_TAKES_SPARSE, "sparse"},
	    {o->reflink, FCOPY_TAKES_REFLINK, "reflink"},
	    {o->no_cache, FCOPY_TAKES_NO_CACHE, "no-cache"},
	};
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		if (features[i].given && !(mode->takes & features[i].takes)) {
			rules_name_modes(features[i].takes, mode, detail);
			return rules_refuse(error, NULL, features[i].option, detail,
					    FCOPY_ADVICE_USAGE);
		}
	if (o->buffer_size > FCOPY_BUFFER_MAX)
		return rules_refuse(error, NULL, "buffer-size", "must be at most FCOPY_BUFFER_MAX",
				    FCOPY_ADVICE_USAGE);
	return o->threads > FCOPY_THREADS_MAX
		   ? rules_refuse(error, NULL, "threads", "must be at most FCOPY_THREADS_MAX",
				  FCOPY_ADVICE_USAGE)
		   : 0;
}

static int rules_check_conflicts(const struct request *x, struct fcopy_error *error,
				 char detail[FCOPY_DETAIL_MAX])
{
	struct given_set set = {.has[GIVEN_TREE] = x->tree,
				.has[GIVEN_SEVERAL] = x->tree && x->sources > 1,
				.has[GIVEN_SERVES] = x->serves,
				.has[GIVEN_TO_SOCKET] = x->dst->stream >= FCOPY_KIND_SOCKET,
				.has[GIVEN_TO_HTTP] = x->dst->stream >= FCOPY_KIND_HTTP,
				.has[GIVEN_FROM_SOCKET] = x->src->stream >= FCOPY_KIND_SOCKET};
	given_add(&set, x->options, x->tree);
	const char *option = conflict_find(&set, detail);
	return option ? rules_refuse(error, NULL, option, detail, FCOPY_ADVICE_USAGE) : 0;
}

static int rules_check_shard(const struct request *x, struct fcopy_error *error)
{
	const struct fcopy_shard *s = &x->options->shard;
	const char *reason = NULL;
	if (s->count == 0 && !s->finish)
		return 0;
	if (s->count == 0)
		reason = "finish requires the number of shards";
	else if (s->count > FCOPY_SHARDS_MAX)
		reason = "the number of shards must be at most FCOPY_SHARDS_MAX";
	else if (s->job &&
		 (!s->job[0] || strlen(s->job) > FCOPY_JOB_MAX || strcmp(s->job, "-") == 0))
		reason = "the name of a job must have 1 to FCOPY_JOB_MAX bytes, but not be -";
	else if (!s->finish && s->index >= s->count)
		reason = "the index of a shard must be less than the number of shards";
	return reason ? rules_refuse(error, NULL, "shard", reason, FCOPY_ADVICE_USAGE) : 0;
}

/* What SRC or DST is. A rule allows a set of these. */
enum end {
	END_PIPE = 1 << 0,     /* also a socket that is not a connection */
	END_SOCKET = 1 << 1,   /* connected, or will connect */
	END_LISTENER = 1 << 2, /* a socket that listens */
	END_DEVICE = 1 << 3,   /* character device */
	END_DISK = 1 << 4,     /* block device */
	END_OPEN = 1 << 5,     /* a regular file named by -, fd:N or /dev/fd/N: used only once */
	END_FILE = 1 << 6,     /* a regular file, or a name that does not exist */
	END_HTTP = 1 << 7,     /* a socket that listens for HTTP clients */
};

#define REGULAR (END_OPEN | END_FILE)
#define STREAM  (END_PIPE | END_SOCKET | END_LISTENER | END_HTTP)
#define ANY     ((1 << 8) - 1)

static unsigned end_of_type(mode_t type, bool named)
{
	if (S_ISFIFO(type) || S_ISSOCK(type))
		return END_PIPE;
	if (S_ISCHR(type))
		return END_DEVICE;
	if (S_ISBLK(type))
		return END_DISK;
	return named ? END_FILE : END_OPEN;
}

/* What the operand may be. A directory counts as a file, until DST/basename(SRC) is open. */
static unsigned end_of_operand(const struct operand *o)
{
	switch (o->stream) {
	case FCOPY_KIND_CONNECT: return END_SOCKET;
	case FCOPY_KIND_LISTEN:
	case FCOPY_KIND_LISTEN_ANY: return END_LISTENER;
	case FCOPY_KIND_SOCKET: return END_SOCKET | END_LISTENER;
	case FCOPY_KIND_HTTP:
	case FCOPY_KIND_HTTP_ANY: return END_HTTP;
	default: return end_of_type(o->place.st.st_mode, o->stream == FCOPY_KIND_PATH);
	}
}

static unsigned end_of_endpoint(const struct endpoint *e)
{
	if (e->ops->answer || e->ops->reply)
		return END_HTTP;
	if (e->ops->peer)
		return endpoint_listens(e) ? END_LISTENER : END_SOCKET;
	return end_of_type(e->st.st_mode, e->positional);
}

/* What SRC and DST may be, and once they are open, are: a set of enum end. */
static unsigned ends_src(const struct request *x)
{
	if (x->options->scratch && x->src->kind == OPERAND_DIRECTORY)
		return 0;
	if (x->tree && x->src->kind != OPERAND_STREAM) /* its entries may be of any type */
		return END_FILE;
	return x->from ? end_of_endpoint(x->from) : end_of_operand(x->src);
}

static unsigned ends_dst(const struct request *x)
{
	const mode_t type = x->dst->place.st.st_mode;
	const bool special = type && !S_ISREG(type) && !S_ISDIR(type);
	if (x->dst->kind != OPERAND_STREAM && (x->tree || (x->options->scratch && !special)))
		return END_FILE;
	return x->to ? end_of_endpoint(x->to) : end_of_operand(x->dst);
}

#define NO_LIMIT   "only the whole file can be cloned, not its first bytes"
#define READ_AGAIN "--benchmark needs a file that it can read again"
#define NO_FILES   "cannot be resumed: SRC and DST must be paths of files"
#define NO_SIZE    "has no known size to allocate"
#define NO_SHARE   "only a file can be copied in shards"

#define NO_SCRATCH "is not a file or directory: --benchmark writes files next to DST"

/* A row applies if its option was given. It lists what SRC and DST may be. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of a sentence */
struct end_rule {
	bool asked;
	const char *option;
	unsigned src, dst; /* enum end: what they may be */
	const char *reason;
	enum fcopy_advice advice;
};

static int rules_check_each(const struct request *x, const struct end_rule *rule, size_t n,
			    struct fcopy_error *error)
{
	for (; n > 0; n--, rule++) {
		if (!rule->asked)
			continue;
		bool fits = rule->src == ANY || rule->src & ends_src(x);
		if (fits && (rule->dst == ANY || rule->dst & ends_dst(x)))
			continue;
		return rules_refuse(error, fits ? x->dst->path : x->src->path, rule->option,
				    rule->reason, rule->advice);
	}
	return 0;
}

static int rules_check_ends(const struct request *x, const struct fcopy_mode *mode,
			    struct fcopy_error *error, char detail[FCOPY_DETAIL_MAX])
{
	const struct fcopy_options *o = x->options;
	const unsigned lacks = ~mode->takes;
	const bool clones = o->reflink == FCOPY_WHEN_ALWAYS;
	const bool allocates = o->preallocate == FCOPY_WHEN_ALWAYS;
	const enum fcopy_advice usage = FCOPY_ADVICE_USAGE, use_auto = FCOPY_ADVICE_AUTO;
	const struct end_rule rules[] = {
	    {o->scratch, "benchmark", END_DISK | END_FILE, ANY, READ_AGAIN, usage},
	    {o->scratch, "benchmark", ANY, END_FILE, NO_SCRATCH, usage},
	    {x->tree && x->tree->recursive, "recursive", END_FILE, END_FILE,
	     "is a stream: -r and -a copy only paths", usage},
	    {x->tree && x->src->kind == OPERAND_SYMLINK, "no-dereference", ANY, END_FILE,
	     "is a stream: a symlink can be copied to a path only", usage},
	    {x->serves, "keep-listening", END_FILE, ANY,
	     "is not a regular file: it cannot be sent to every client", usage},
	    {x->serves, "keep-listening", ANY, END_LISTENER | END_HTTP,
	     "does not listen: use tcp-listen:PORT", usage},
	    {x->serves && x->sources > 1, "keep-listening", ANY, END_HTTP,
	     "cannot offer several SRC: use http-listen:PORT", usage},
	    {!x->serves, NULL, ANY, ~END_HTTP, "cannot be combined with options of trees", usage},
	    {lacks & FCOPY_TAKES_STREAM_SRC, "mode", ~STREAM, ANY, detail, use_auto},
	    {lacks & FCOPY_TAKES_STREAM_DST, "mode", ANY, ~STREAM, detail, use_auto},
	    {mode->engine && mode->threads, "mode", END_DISK | END_FILE, END_DISK | END_FILE,
	     detail, use_auto},
	    {o->count && mode_uses(mode, "reflink"), "count", 0, ANY, NO_LIMIT, use_auto},
	    {o->count && clones, "count", 0, ANY, NO_LIMIT, usage},
	    {o->verify, "verify", ANY, END_DISK | END_FILE,
	     "cannot be verified: only a file or a block device can be read back", usage},
	    {o->verify && mode->engine && !mode_uses(mode, engine_readwrite.name), "verify",
	     END_DISK | END_FILE, ANY,
	     "cannot be verified in this mode: a stream requires mode auto or readwrite", use_auto},
	    {o->resume, "resume", END_FILE, END_FILE, NO_FILES, usage},
	    {o->shard.count > 0, "shard", END_FILE, END_FILE, NO_SHARE, usage},
	    {o->preserve_required, "preserve", REGULAR, REGULAR, PRESERVE_IMPOSSIBLE, usage},
	    {o->no_cache, "no-cache", END_DISK | REGULAR, END_DISK | REGULAR,
	     "has no page cache to bypass", usage},
	    {clones, "reflink", END_FILE, END_FILE, "only a file can be cloned", usage},
	    {allocates, "preallocate", ANY, END_FILE, "has no blocks to allocate", usage},
	    {allocates, "preallocate", END_DISK | END_FILE, ANY, NO_SIZE, usage},
	    {o->sparse == FCOPY_WHEN_ALWAYS, "sparse", ANY, END_DISK | END_FILE,
	     "cannot get holes: it is a stream", usage},
	    {o->fsync, "fsync", ANY, END_DISK | REGULAR,
	     "cannot be flushed: it is neither a file nor a disk", usage},
	};
	return rules_check_each(x, rules, sizeof(rules) / sizeof(*rules), error);
}

int rules_check(const struct request *x, struct fcopy_error *error, char detail[FCOPY_DETAIL_MAX])
{
	const struct fcopy_mode *mode = x->options->mode ? x->options->mode : fcopy_modes();
	int r = rules_check_remote(x, error);
	if (r == 0 && !x->to)
		r = rules_check_outputs(x, error);
	if (r == 0)
		r = rules_check_conflicts(x, error, detail);
	if (r == 0)
		r = rules_check_mode(x, mode, error, detail);
	if (r == 0)
		r = rules_check_shard(x, error);
	if (r < 0)
		return r;
	snprintf(detail, FCOPY_DETAIL_MAX, "a stream has no offsets, which mode %d %s needs",
		 mode->number, mode->name);
	return rules_check_ends(x, mode, error, detail);
}
