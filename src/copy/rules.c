/* SPDX-License-Identifier: MIT
 * Which options may be combined with the mode, with other options, with SRC and with DST.
 * The tables are evaluated twice: before anything is opened, and after both operands are open. If
 * DST is a directory, only the open file shows what DST/basename(SRC) is.
 *
 * A new rule is one row. Rules about options of the program, such as --quiet with --progress, are
 * in src/cli/options.c.
 */
#include "rules.h"
#include "endpoints/attributes.h"
#include "endpoints/error.h"
#include "endpoints/same.h"
#include "ends.h"

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
	return o ? error_refuse(error, o->path, EINVAL,
				"fcopy copies local files, and tcp:HOST:PORT; a file of this name "
				"needs ./ in front",
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

static bool mode_runs(const struct fcopy_mode *mode, const char *engine)
{
	return mode->engine && strcmp(mode->engine, engine) == 0;
}

/* May the destination get extents of the source? */
static bool mode_shares(const struct fcopy_mode *mode)
{
	return mode_runs(mode, "reflink") || mode_runs(mode, "copy_file_range");
}

static bool may_overwrite(const struct fcopy_options *o)
{
	return o->in_place == FCOPY_WHEN_ALWAYS || o->in_place == FCOPY_WHEN_AUTO;
}

#define OF_TREE   "cannot be combined with -r, -a, -t or several SRC"
#define OF_SERVER "cannot be combined with --keep-listening"
#define OF_HTTP   "cannot be used if DST is http-listen:"
#define TO_SOCKET "cannot be used if DST is a socket"

struct option_rule {
	bool applies;
	const char *option, *reason;
};

/* Refuses the option of the first row that applies. */
static int rules_refuse_first(const struct option_rule *rule, size_t n, struct fcopy_error *error)
{
	for (; n > 0; n--, rule++)
		if (rule->applies)
			return rules_refuse(error, NULL, rule->option, rule->reason,
					    FCOPY_ADVICE_USAGE);
	return 0;
}

#define REFUSE_FIRST(rules, error)                                                                 \
	rules_refuse_first(rules, sizeof(rules) / sizeof(*(rules)), error)

/* "is not supported by mode 2 sendfile: use mode 1, 3, 5 or 7" */
static void name_modes_with(enum fcopy_takes takes, const struct fcopy_mode *mode,
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
	const bool clones = o->reflink == FCOPY_WHEN_ALWAYS;
	const bool allocates = o->preallocate == FCOPY_WHEN_ALWAYS;
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
			name_modes_with(features[i].takes, mode, detail);
			return rules_refuse(error, NULL, features[i].option, detail,
					    FCOPY_ADVICE_USAGE);
		}
	const struct option_rule rules[] = {
	    {o->buffer_size > FCOPY_BUFFER_MAX, "buffer-size", "must be at most FCOPY_BUFFER_MAX"},
	    {o->threads > FCOPY_THREADS_MAX, "threads", "must be at most FCOPY_THREADS_MAX"},
	    {clones && o->sparse, "reflink",
	     "cannot be combined with --sparse: a clone keeps the holes of SRC"},
	    {clones && o->no_cache, "reflink",
	     "cannot be combined with --no-cache: a clone moves no bytes"},
	    {allocates && o->sparse == FCOPY_WHEN_ALWAYS, "preallocate",
	     "cannot be combined with --sparse=always: holes have no blocks"},
	    {allocates && (clones || mode_shares(mode)), "preallocate",
	     "cannot be combined with a clone or copy_file_range: DST may share blocks of SRC"},
	    {may_overwrite(o) && o->resume, "inplace", "cannot be combined with --resume"},
	    {may_overwrite(o) && o->no_clobber, "inplace", "cannot be combined with --no-clobber"},
	};
	return REFUSE_FIRST(rules, error);
}

static int rules_check_tree(const struct request *x, struct fcopy_error *error)
{
	const struct fcopy_options *o = x->options;
	const struct fcopy_tree_options *t = x->tree;
	if (!t)
		return 0;
	const struct option_rule rules[] = {
	    {o->expected_size, "size", OF_TREE},
	    {o->count, "count", OF_TREE},
	    {o->scratch, "benchmark", OF_TREE},
	    {t->update && o->resume, "update",
	     "cannot be combined with --resume: run the same command again"},
	    {t->delete_extra && o->resume, "delete",
	     "cannot be combined with --resume: run the same command again"},
	    {t->dry_run && o->shard.count, "dry-run", "cannot be combined with --shard"},
	    {t->link_dest && (o->shard.count || o->resume), "link-dest",
	     "cannot be combined with --shard or --resume"},
	    {t->link && (o->shard.count || o->resume || t->link_dest), "link",
	     "cannot be combined with --shard, --resume or --link-dest"},
	    {t->symbolic_link && (o->shard.count || o->resume || t->link_dest), "symbolic-link",
	     "cannot be combined with --shard, --resume or --link-dest"},
	    {t->symbolic_link && t->link, "symbolic-link", "cannot be combined with --link"},
	    {t->symbolic_link && t->update == FCOPY_UPDATE_CHANGED, "symbolic-link",
	     "cannot be combined with --update=changed"},
	    {t->attributes_only && (o->shard.count || o->resume || t->link_dest || t->link),
	     "attributes-only", "cannot be combined with --shard, --resume, --link-dest or --link"},
	    {t->attributes_only && (o->verify || o->fsync || t->update == FCOPY_UPDATE_CHANGED),
	     "attributes-only", "cannot be combined with --fsync, --verify or --update=changed"},
	    {t->attributes_only && (t->symbolic_link || t->backup || t->remove_destination),
	     "attributes-only", "cannot be combined with -s, -b or --remove-destination"},
	    {t->keep_directory_symlink && (o->shard.count || t->delete_extra),
	     "keep-directory-symlink", "cannot be combined with --shard, --delete or --mirror"},
	    {t->parents && (o->shard.count || o->resume || t->link_dest), "parents",
	     "cannot be combined with --shard, --resume or --link-dest"},
	    {t->backup && (o->shard.count || o->resume || in_place_always(o)), "backup",
	     "cannot be combined with --shard, --resume or --inplace"},
	    {t->remove_destination && (o->shard.count || o->resume || in_place_always(o)),
	     "remove-destination", "cannot be combined with --shard, --resume or --inplace"},
	    {t->backup && o->no_clobber, "backup", "cannot be combined with --no-clobber"},
	    {t->backup && (t->update == FCOPY_UPDATE_NONE || t->update == FCOPY_UPDATE_NONE_FAIL),
	     "backup", "cannot be combined with --update=none"},
	    {t->backup && t->delete_extra, "backup", "cannot be combined with --delete"},
	    {t->update && o->shard.count, "update", "cannot be combined with --shard"},
	    {t->delete_extra && o->shard.count, "delete", "cannot be combined with --shard"},
	    {(t->pattern_count || t->files) && o->shard.count, "exclude",
	     "cannot be combined with --shard"},
	};
	return REFUSE_FIRST(rules, error);
}

static int rules_check_sockets(const struct request *x, struct fcopy_error *error)
{
	const struct fcopy_options *o = x->options;
	const bool sends = x->dst->stream >= FCOPY_KIND_SOCKET;
	const bool receives = x->src->stream >= FCOPY_KIND_SOCKET;
	const bool http = x->dst->stream >= FCOPY_KIND_HTTP;
	const struct option_rule rules[] = {
	    {x->serves && o->expected_size, "size", http ? OF_HTTP : OF_SERVER},
	    {x->serves && o->preserve, "preserve", http ? OF_HTTP : OF_SERVER},

	    {sends && may_overwrite(o), "inplace", TO_SOCKET},
	    {sends && o->force, "force", TO_SOCKET},
	    {sends && o->no_clobber, "no-clobber", TO_SOCKET},
	    {sends && o->no_directory, "no-target-directory", TO_SOCKET},
	    {sends && o->preallocate, "preallocate", TO_SOCKET},
	    {sends && o->sparse, "sparse", TO_SOCKET},
	    {sends && o->reflink, "reflink", TO_SOCKET},
	    {sends && o->threads, "threads", TO_SOCKET},
	    {sends && o->shard.count, "shard", TO_SOCKET},
	    {receives && o->shard.count, "shard", "cannot be used if SRC is a socket"},
	    {receives && o->threads, "threads", "cannot be used if SRC is a socket"},
	    {o->timeout_ms && !sends && !receives, "timeout", "requires a socket as SRC or DST"},
	};
	return REFUSE_FIRST(rules, error);
}

/* The options, for any SRC and DST. */
static int rules_check_options(const struct request *x, const struct fcopy_mode *mode,
			       struct fcopy_error *error, char detail[FCOPY_DETAIL_MAX])
{
	int r = rules_check_mode(x, mode, error, detail);
	if (r == 0)
		r = rules_check_tree(x, error);
	return r < 0 ? r : rules_check_sockets(x, error);
}

/* Refuses options that independent processes cannot support together. */
static int rules_check_shard(const struct request *x, const struct fcopy_mode *mode,
			     struct fcopy_error *error)
{
	const struct fcopy_options *o = x->options;
	const struct fcopy_tree_options *t = x->tree;
	const bool clones = o->reflink == FCOPY_WHEN_ALWAYS || mode_runs(mode, "reflink");
	const struct {
		bool applies;
		const char *reason;
	} rules[] = {
	    {o->shard.count == 0, "finish requires the number of shards"},
	    {o->shard.count > FCOPY_SHARDS_MAX,
	     "the number of shards must be at most FCOPY_SHARDS_MAX"},
	    {o->shard.job && (!o->shard.job[0] || strlen(o->shard.job) > FCOPY_JOB_MAX ||
			      strcmp(o->shard.job, "-") == 0),
	     "the name of a job must have 1 to FCOPY_JOB_MAX bytes, but not be -"},
	    {!o->shard.finish && o->shard.index >= o->shard.count,
	     "the index of a shard must be less than the number of shards"},
	    {t && (x->sources > 1 || t->into_directory || t->keep_going),
	     "cannot be combined with several SRC, -t or --keep-going"},
	    {may_overwrite(o), "cannot be combined with --inplace: DST must be whole or absent"},
	    {o->resume, "cannot be combined with --resume: run the same shard again"},
	    {o->count > 0 || o->expected_size > 0, "cannot be combined with --size or --count"},
	    {o->no_clobber, "cannot be combined with --no-clobber: another shard may create DST"},
	    {o->scratch, "cannot be combined with --benchmark"},
	    {clones,
	     "cannot be combined with --reflink=always or mode 8: a share is not a whole file"},
	};
	if (o->shard.count == 0 && !o->shard.finish)
		return o->shard.job ? rules_refuse(error, NULL, "job", "requires --shard",
						   FCOPY_ADVICE_USAGE)
				    : 0;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].applies)
			return rules_refuse(error, NULL, "shard", rules[i].reason,
					    FCOPY_ADVICE_USAGE);
	return 0;
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
	    {o->count && mode_runs(mode, "reflink"), "count", 0, ANY, NO_LIMIT, use_auto},
	    {o->count && clones, "count", 0, ANY, NO_LIMIT, usage},
	    {o->verify, "verify", ANY, END_DISK | END_FILE,
	     "cannot be verified: only a file or a block device can be read back", usage},
	    {o->verify && mode->engine && !mode_runs(mode, engine_readwrite.name), "verify",
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
		r = rules_check_options(x, mode, error, detail);
	if (r == 0)
		r = rules_check_shard(x, mode, error);
	if (r < 0)
		return r;
	snprintf(detail, FCOPY_DETAIL_MAX, "a stream has no offsets, which mode %d %s needs",
		 mode->number, mode->name);
	return rules_check_ends(x, mode, error, detail);
}
