/* SPDX-License-Identifier: MIT
 * What an option or a mode demands of SRC and DST. The table is evaluated twice: before anything is
 * opened, when only the operands are known, and once both ends are open.
 */
#include "copy.h"
#include "endpoints/error.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What an end is; sets of these are what a rule allows. */
enum end {
	END_STREAM = 1 << 0, /* pipe, socket */
	END_DEVICE = 1 << 1, /* character device */
	END_DISK = 1 << 2,   /* block device */
	END_OPEN = 1 << 3,   /* a regular file named by -, fd:N or /dev/fd/N: used only once */
	END_FILE = 1 << 4,   /* a regular file, or a name that does not exist */
	END_ANY = (1 << 5) - 1,
};

#define REGULAR (END_OPEN | END_FILE)
#define STORAGE (END_DISK | END_OPEN | END_FILE)

static enum end end_of_type(mode_t type, bool file)
{
	if (S_ISFIFO(type) || S_ISSOCK(type))
		return END_STREAM;
	if (S_ISCHR(type))
		return END_DEVICE;
	if (S_ISBLK(type))
		return END_DISK;
	return file ? END_FILE : END_OPEN;
}

/* Of an operand. A directory counts as a file: what is in it is known once it is open. */
static enum end end_of_operand(const char *operand, int dash)
{
	return end_of_type(stream_type(operand, dash), !stream_names(operand));
}

static enum end end_of_endpoint(const struct endpoint *e)
{
	return end_of_type(e->st.st_mode, e->positional);
}

/* The ends of one copy; e is NULL before they are open. */
struct ends {
	const char *src, *dst;
	const struct endpoint *src_e, *dst_e;
};

static bool src_is(const struct ends *x, unsigned allowed)
{
	return allowed == END_ANY || allowed & (x->src_e ? end_of_endpoint(x->src_e)
							 : end_of_operand(x->src, STDIN_FILENO));
}

static bool dst_is(const struct ends *x, unsigned allowed)
{
	return allowed == END_ANY || allowed & (x->dst_e ? end_of_endpoint(x->dst_e)
							 : end_of_operand(x->dst, STDOUT_FILENO));
}

static int rules_evaluate(const struct ends *x, const struct fcopy_options *o,
			  struct fcopy_error *error)
{
	static const char offsets[] = "a stream has no offsets, which this mode needs";
	const unsigned lacks = ~(o->mode ? o->mode : fcopy_modes())->takes;
	const bool allocates = o->preallocate == FCOPY_WHEN_ALWAYS;
	/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of a sentence */
	const struct {
		bool asked;
		unsigned src, dst; /* enum end: what they may be */
		const char *reason;
		enum fcopy_advice advice;
	} rules[] = {
	    {lacks & FCOPY_TAKES_STREAM_SRC, ~END_STREAM, END_ANY, offsets, FCOPY_ADVICE_AUTO},
	    {lacks & FCOPY_TAKES_STREAM_DST, END_ANY, ~END_STREAM, offsets, FCOPY_ADVICE_AUTO},
	    {o->verify || o->resume, END_FILE, END_FILE,
	     "only a copy from a file to a file can be verified or resumed", FCOPY_ADVICE_USAGE},
	    {o->shard.count > 0, END_FILE, END_FILE, "only a file can be copied in shards",
	     FCOPY_ADVICE_USAGE},
	    {o->preserve_required, REGULAR, REGULAR, PRESERVE_IMPOSSIBLE, FCOPY_ADVICE_USAGE},
	    {o->no_cache, STORAGE, STORAGE, "has no page cache to bypass", FCOPY_ADVICE_USAGE},
	    {o->reflink == FCOPY_WHEN_ALWAYS, REGULAR, REGULAR, "only a file can be cloned",
	     FCOPY_ADVICE_USAGE},
	    {allocates, END_ANY, END_FILE, "has no blocks to allocate", FCOPY_ADVICE_USAGE},
	    {allocates, END_DISK | END_FILE, END_ANY, "has no known size to allocate",
	     FCOPY_ADVICE_USAGE},
	    {o->fsync, END_ANY, STORAGE, "is not on a disk: it cannot be flushed",
	     FCOPY_ADVICE_USAGE},
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!rules[i].asked)
			continue;
		bool fits = src_is(x, rules[i].src);
		if (!fits || !(o->scratch || dst_is(x, rules[i].dst)))
			return error_refuse(error, fits ? x->dst : x->src, ESPIPE, rules[i].reason,
					    rules[i].advice);
	}
	return 0;
}

/* What the other shards would have to agree on at every moment, or cannot do together. */
static const char *rules_unshardable(const struct fcopy_options *o, bool clones)
{
	const struct {
		bool asked;
		const char *reason;
	} rules[] = {
	    {o->shard.count > FCOPY_SHARDS_MAX, "more shards than FCOPY_SHARDS_MAX"},
	    {!o->shard.finish && o->shard.index >= o->shard.count,
	     "the index of a shard is less than their number"},
	    {o->in_place, "shards cannot write in place: DST must be whole or absent"},
	    {o->resume, "shards cannot be resumed: run the same shard again"},
	    {o->count > 0 || o->expected_size > 0, "shards copy all of a file of known size"},
	    {o->no_clobber, "shards cannot keep an existing file: another shard may have made it"},
	    {o->scratch, "a benchmark has no shards"},
	    {clones, "a clone is of the whole file: it has no shards"},
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].asked)
			return rules[i].reason;
	return NULL;
}

int rules_check_shard(const char *dst, const struct fcopy_options *o, struct fcopy_error *error)
{
	bool mode_clones = o->mode && o->mode->engine && strcmp(o->mode->engine, "reflink") == 0;
	if (o->shard.count == 0 && !o->shard.finish)
		return 0;
	const char *reason = o->shard.count == 0
				 ? "there are no shards to finish"
				 : rules_unshardable(o, mode_clones ||
							    o->reflink == FCOPY_WHEN_ALWAYS);
	return reason ? error_refuse(error, dst, EINVAL, reason, FCOPY_ADVICE_USAGE) : 0;
}

int rules_check_operands(const char *src, const char *dst, const struct fcopy_options *o,
			 struct fcopy_error *error)
{
	const struct ends x = {.src = src, .dst = dst};
	if (o->threads > FCOPY_THREADS_MAX)
		return error_refuse(error, dst, EINVAL, "more threads than FCOPY_THREADS_MAX",
				    FCOPY_ADVICE_USAGE);
	if (o->buffer_size > FCOPY_BUFFER_MAX)
		return error_refuse(error, dst, EINVAL, "a larger buffer than FCOPY_BUFFER_MAX",
				    FCOPY_ADVICE_USAGE);
	bool mode_clones = o->mode && o->mode->engine && strcmp(o->mode->engine, "reflink") == 0;
	if (o->count && (mode_clones || o->reflink == FCOPY_WHEN_ALWAYS))
		return error_refuse(error, src, EINVAL,
				    "only the whole file can be cloned, not its first bytes",
				    mode_clones ? FCOPY_ADVICE_AUTO : FCOPY_ADVICE_USAGE);
	if (o->in_place && o->resume)
		return error_refuse(error, dst, EINVAL, "cannot be resumed in place",
				    FCOPY_ADVICE_USAGE);
	if (o->scratch && stream_names(dst))
		return error_refuse(error, dst, EINVAL, "has no directory for a scratch file",
				    FCOPY_ADVICE_USAGE);
	int r = rules_check_shard(dst, o, error);
	return r < 0 ? r : rules_evaluate(&x, o, error);
}

int rules_check_open(const struct endpoint *src, const struct endpoint *dst,
		     const struct fcopy_options *o, struct fcopy_error *error)
{
	const struct ends x = {src->path, dst->path, src, dst};
	return rules_evaluate(&x, o, error);
}
