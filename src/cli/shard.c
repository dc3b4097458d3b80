/* SPDX-License-Identifier: MIT
 * --shard: which share this process copies, from the option or from the launcher's environment.
 */
#include "option.h"
#include "show/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables that one launcher sets together. */
struct launcher {
	const char *index, *count; /* count NULL: the launcher does not say N */
	const char *first, *step;  /* the index is (index - first) / step; NULL: 0 and 1 */
	unsigned long base;        /* ... or counts from this */
};

/* Only variables that belong to a step, a rank or an array: an sbatch script without srun has
 * SLURM_PROCID=0 and SLURM_NTASKS=4 and is one process. */
static const struct launcher launchers[] = {
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", NULL, NULL, 0},
    {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP", 0},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, 0},
    {"PMI_RANK", "PMI_SIZE", NULL, NULL, 0},
    {"PMIX_RANK", NULL, NULL, NULL, 0},
    {"PARALLEL_SEQ", NULL, NULL, NULL, 1},
    {"JOB_COMPLETION_INDEX", NULL, NULL, NULL, 0},
};

struct launched {
	const struct launcher *by;
	unsigned long index, count; /* count 0: unknown */
};

/* A decimal number up to `most` that ends at *end. */
static bool shard_number(const char *text, unsigned long most, unsigned long *n, char **end)
{
	*n = strtoul(text, end, 10);
	return text[0] >= '0' && text[0] <= '9' && *n <= most;
}

/* Returns EXIT_DONE with *n, which is `missing` if the variable is not set; or EXIT_USAGE. */
static int launcher_read(const char *name, unsigned long missing, unsigned long *n)
{
	char *end;
	const char *text = name ? getenv(name) : NULL;
	*n = missing;
	if (!text)
		return EXIT_DONE;
	if (shard_number(text, 0x7fffffff, n, &end) && *end == '\0')
		return EXIT_DONE;
	return message_option("shard", "%s is '%s', not a number", name, text);
}

/* whole: are all variables of the launcher set? Otherwise: only the index? */
static bool launcher_is_set(const struct launcher *v, bool whole)
{
	const bool has_count = !v->count || getenv(v->count);
	return getenv(v->index) && has_count == whole;
}

static int launcher_find_index(const struct launcher *v, struct launched *f)
{
	unsigned long first, step;
	f->by = v;
	if (launcher_read(v->index, 0, &f->index) || launcher_read(v->count, 0, &f->count) ||
	    launcher_read(v->first, v->base, &first) || launcher_read(v->step, 1, &step))
		return EXIT_USAGE;
	if (f->index < first || step == 0 || (f->index - first) % step != 0)
		return message_option("shard", "%s=%lu is not %lu plus a multiple of %lu", v->index,
				      f->index, first, step);
	f->index = (f->index - first) / step;
	return EXIT_DONE;
}

static int launcher_refuse(const struct launched *a, const struct launched *b)
{
	const char *count_a = a->by->count, *count_b = b->by->count;
	return message_option("shard",
			      "%s%s%s and %s%s%s disagree: use --shard=I/N, or unset one of them",
			      a->by->index, count_a ? " with " : "", count_a ? count_a : "",
			      b->by->index, count_b ? " with " : "", count_b ? count_b : "");
}

/* Looks for the launchers of one kind: the others are not compared with them. */
static int launcher_find(bool whole, struct launched *result)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
		struct launched f = {0};
		if (!launcher_is_set(&launchers[i], whole))
			continue;
		if (launcher_find_index(&launchers[i], &f) != EXIT_DONE)
			return EXIT_USAGE;
		bool both = result->by && result->count > 0 && f.count > 0;
		if (result->by && (result->index != f.index || (both && result->count != f.count)))
			return launcher_refuse(result, &f);
		if (!result->by || result->count == 0)
			*result = f;
	}
	return EXIT_DONE;
}

static int shard_parse_auto(struct fcopy_shard *s, const char *value, unsigned long count)
{
	struct launched f = {0};
	int status = launcher_find(true, &f);
	if (status == EXIT_DONE && !f.by)
		status = launcher_find(false, &f);
	if (status != EXIT_DONE)
		return status;
	if (!f.by)
		return message_option(
		    "shard", "no variables of a launcher are set (srun, a Slurm array, mpirun, "
			     "parallel, a Kubernetes index): use --shard=I/N");
	if (count == 0)
		count = f.count;
	if (count == 0 && f.by->count)
		return message_option("shard", "%s is set, but not %s: use --shard=auto/N",
				      f.by->index, f.by->count);
	if (count == 0)
		return message_option("shard", "%s comes without a count: use --shard=auto/N",
				      f.by->index);
	if (count > FCOPY_SHARDS_MAX)
		return message_option("shard", "%lu shares are too many (maximum %d)", count,
				      FCOPY_SHARDS_MAX);
	if (f.index >= count)
		return message_option(
		    "shard", "invalid '%s': %s gives share %lu, but the shares are 0 to %lu", value,
		    f.by->index, f.index, count - 1);
	s->index = (unsigned)f.index;
	s->count = (unsigned)count;
	s->finish = false;
	return EXIT_DONE;
}

int shard_parse(struct cli *cli, const struct option_row *row, const char *value)
{
	struct fcopy_shard *s = &cli->copy.shard;
	const char *slash = strchr(value, '/');
	unsigned long index = 0, count = 0;
	char *end;
	bool word = strncmp(value, "auto", 4) == 0 && (value[4] == '/' || value[4] == '\0');
	bool finish = strncmp(value, "finish/", 7) == 0;
	bool good = (slash || word) &&
		    (!slash || (shard_number(slash + 1, FCOPY_SHARDS_MAX, &count, &end) &&
				*end == '\0' && count > 0));
	if (good && !word && !finish)
		good = shard_number(value, count - 1, &index, &end) && end == slash;
	if (!good)
		return message_option(row->name,
				      "invalid value '%s' (I/N with I from 0 to N-1 and N up to "
				      "%d, auto, auto/N, finish/N)",
				      value, FCOPY_SHARDS_MAX);
	if (word)
		return shard_parse_auto(s, value, count);
	s->index = (unsigned)index;
	s->count = (unsigned)count;
	s->finish = finish;
	return EXIT_DONE;
}

int shard_parse_job(struct cli *cli, const struct option_row *row, const char *value)
{
	const size_t length = strlen(value);
	if (length == 0 || length > FCOPY_JOB_MAX || strcmp(value, "-") == 0)
		return message_option(row->name, "invalid value '%s' (1 to %d bytes, but not -)",
				      value, FCOPY_JOB_MAX);
	cli->copy.shard.job = value;
	return EXIT_DONE;
}
