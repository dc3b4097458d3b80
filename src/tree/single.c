/* SPDX-License-Identifier: MIT
 * A SRC that is not a directory.
 */
#include "directory.h"
#include "entry.h"
#include "io/io.h"
#include "report.h"
#include "root.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* --parents: is the next operand copied to the same directory, which is open as `next`? If not,
 * flushes what was made in the present one, unless a flush of the next one does that, too. */
static bool single_stays(struct tree *t, int next)
{
	const int dir = t->singles.dir->dst;
	struct stat st, at;
	struct failure fail;
	const bool known = fstat(dir, &st) == 0 && fstat(next, &at) == 0;
	if (known && same_inode(&st, &at) && !t->root.foreseen)
		return true;
	const bool flushed = known && st.st_dev == at.st_dev && !flush_needs_each(t, dir);
	if (t->singles.flush_due && !t->options->dry_run && !flushed) {
		const int r = flush_singles(t, dir, &fail);
		if (r < 0)
			tree_fail(t, fail.call, t->singles.dst, -r);
		t->singles.flush_due = false;
	}
	return false;
}

/* The directory that holds only the operands that are files. Its descriptor src is of the next
 * operand's directory. */
static int single_open(struct tree *t, const struct operand *src, const struct operand *to)
{
	const struct stat none = {0};
	struct directory *d = t->singles.dir;
	int fd = operand_open_directory(src);
	if (fd < 0)
		return tree_fail(t, "open", src->path, -fd);
	if (!d || (t->options->parents && !single_stays(t, to->place.dir))) {
		int dst = t->root.foreseen ? -1 : fcntl(to->place.dir, F_DUPFD_CLOEXEC, 0),
		    err = errno;
		d = dst >= 0 || t->root.foreseen ? directory_new(NULL, "", fd, dst, &none) : NULL;
		if (!d) {
			close(fd);
			io_close(dst);
			return dst < 0 && !t->root.foreseen
				   ? tree_fail(t, "fcntl(F_DUPFD)", to->path, err)
				   : tree_fail(t, "malloc", src->path, ENOMEM);
		}
		directory_unref(t->singles.dir);
		t->singles.dir = d;
	}
	operand_directory(src, t->singles.src);
	operand_directory(to, t->singles.dst);
	d->src_path = t->singles.src;
	d->dst_path = t->singles.dst;
	d->src = fd;
	if (t->operands->dst.kind != OPERAND_INTO || d->link >= 0)
		return 0;
	const int r = link_dest_open(t, d->dst, NULL, &d->link);
	if (r < 0)
		close(fd);
	return r;
}

/* A file, symlink or special file. */
int single_copy(struct tree *t, const struct operand *src, const struct operand *to)
{
	struct fcopy_tree_report *report = t->report;
	int r = single_open(t, src, to);
	if (r < 0)
		return r;
	const uint64_t failed = report->count[FCOPY_COUNT_FAILED],
		       vanished = report->count[FCOPY_COUNT_VANISHED];
	const uint64_t flush_due = outcome_sum(report->count, SUM_FLUSH_DUE),
		       settled = outcome_sum(report->count, SUM_SETTLED);
	t->root.ground = (struct ground){.foreign = true,
					 .single = true,
					 .flush = t->options->copy.fsync ? FLUSH_FILES
									 : FLUSH_NONE};
	walk_entry(t, &(struct entry){.dir = t->singles.dir,
				      .name = src->place.name,
				      .as = to->place.name,
				      .follow = src->follow});
	if (report->count[FCOPY_COUNT_VANISHED] > vanished)
		tree_fail(t, "open", src->path, ENOENT);
	/* With resume also what was complete: an earlier run may not have flushed it. */
	t->singles.flush_due |= t->options->copy.resume ||
				outcome_sum(report->count, SUM_FLUSH_DUE) > flush_due;
	/* A signal that came after the commit has nothing left to stop. */
	t->root.committed = report->count[FCOPY_COUNT_FAILED] == failed &&
			    outcome_sum(report->count, SUM_SETTLED) > settled;
	close(t->singles.dir->src);
	t->singles.dir->src = -1;
	return t->root.committed ? 0 : -EIO;
}

/* Is an option given that acts on an entry of a directory? A stream is none. */
static bool needs_file(const struct fcopy_tree_options *o)
{
	return o->link || o->symbolic_link || o->backup || o->confirm || o->parents ||
	       o->attributes_only || o->remove_destination || o->update == FCOPY_UPDATE_OLDER ||
	       o->update == FCOPY_UPDATE_CHANGED;
}

/* A stream, or a device whose bytes are wanted. Only one SRC, or DST, can be one. */
int single_copy_stream(struct tree *t, const struct operand *src)
{
	struct fcopy_report one;
	struct fcopy_options o = t->options->copy;
	struct operand dst;
	if (o.mode && !(o.mode->takes & FCOPY_TAKES_THREADS))
		o.threads = 0; /* of the tree */
	if (needs_file(t->options))
		return tree_refuse(
		    t, src->kind == OPERAND_FILE ? t->operands->dst.path : src->path, EINVAL,
		    "is a stream or a device: -b, -i, -l, -s, -u, --parents, --attributes-only and "
		    "--remove-destination need a file",
		    FCOPY_ADVICE_USAGE);
	if (t->options->update != FCOPY_UPDATE_ALL) {
		o.no_clobber = true;
		o.in_place = FCOPY_WHEN_NEVER;
	}
	if (t->options->dry_run)
		return tree_refuse(t, src->path, EINVAL,
				   "--dry-run knows only files and directories",
				   FCOPY_ADVICE_USAGE);
	copy_tree_phase(o.progress, FCOPY_PHASE_WAIT);
	int r = operand_share(&dst, &t->operands->dst);
	if (r < 0)
		return tree_fail(t, "fcntl(F_DUPFD)", dst.path, -r);
	r = copy_operands(src, &dst, &o, &one, t->share.by ? t->share.by->copy_file : NULL);
	operand_close(&dst);
	for (int i = 0; i < FCOPY_PHASES; i++)
		t->report->seconds[i] += one.seconds[i];
	t->root.existed = one.existed;
	if (one.atomic) /* only such a DST is unchanged after a failure */
		strcpy(t->report->dst, one.dst);
	if (one.part_kept && !part_make_path(t->report->part, one.dst))
		t->report->part[0] = '\0';
	const bool stays = one.skipped && t->options->update == FCOPY_UPDATE_NONE_FAIL;
	t->root.committed = r == 0 && !stays && (!t->share.by || one.committed);
	t->root.in_place = r < 0 && (one.in_place || (!one.atomic && one.bytes > 0));
	report_add_steps(t->report, one.step, one.steps);
	struct outcome outcome = {.type = one.type};
	outcome_take(&outcome, &one, r == 0);
	if (one.skipped)
		outcome.action = FCOPY_ACTION_SKIPPED;
	if (stays)
		return tree_refuse(t, one.dst, EEXIST, DECIDE_STAYS, FCOPY_ADVICE_NONE);
	if (r < 0)
		report_operand(t, &one.error);
	else
		report_operand_outcome(t, &outcome, one.dst[0] ? one.dst : t->operands->dst.path,
				       NULL);
	return r;
}
