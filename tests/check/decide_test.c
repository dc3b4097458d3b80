/* SPDX-License-Identifier: MIT
 * What becomes of an entry: a table of SRC, DST and options, and what holds for every combination.
 */
#define _GNU_SOURCE
#include "util.h"

#include "copy/decide.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct fcopy_output written = {.taken = "is written by this run"};

static bool confirm(void *user, const char *dst)
{
	(void)user, (void)dst;
	return true;
}

enum kind { FILE_, SYMLINK, FIFO, DIRECTORY };
static const mode_t types[] = {S_IFREG, S_IFLNK, S_IFIFO, S_IFDIR};

static struct stat stat_of(enum kind kind, ino_t ino)
{
	return (struct stat){.st_mode = types[kind] | 0644,
			     .st_dev = 1,
			     .st_ino = ino,
			     .st_nlink = 1,
			     .st_size = kind == FILE_ ? 10 : 0};
}

/* What has the name in DST. */
static const char *const dst_names[] = {"absent",     "older",   "newer",    "equal", "other-size",
					"two-names",  "to-file", "dangling", "fifo",  "directory",
					"same-inode", "to-src",  "output"};
enum {
	ABSENT,
	OLDER,
	NEWER,
	EQUAL,
	OTHER_SIZE,
	TWO_NAMES,
	TO_FILE,
	DANGLING,
	FIFO_,
	DIRECTORY_,
	SAME_INODE,
	TO_SRC,
	OUTPUT,
	DSTS
};

/* NEWER and EQUAL are not older than SRC. */
static struct facts facts_of(enum kind src, int dst)
{
	struct facts f = {.looked = true, .src = stat_of(src, 1), .exists = dst != ABSENT};
	f.err = f.exists ? 0 : ENOENT;
	f.keeps = dst == NEWER || dst == EQUAL || dst == SAME_INODE || dst == TO_SRC;
	f.content = dst == EQUAL || dst == SAME_INODE || dst == TO_SRC ? CONTENT_EQUAL
								       : CONTENT_DIFFERS;
	f.old = stat_of(FILE_, 2);
	if (dst == OTHER_SIZE)
		f.old.st_size = 11;
	if (dst == TWO_NAMES)
		f.old.st_nlink = 2;
	if (dst == FIFO_)
		f.old = stat_of(FIFO, 2);
	if (dst == DIRECTORY_)
		f.old = stat_of(DIRECTORY, 2);
	if (dst == SAME_INODE) {
		f.src.st_nlink = 2;
		f.old = f.src;
	}
	if (dst == TO_FILE || dst == DANGLING || dst == TO_SRC) {
		f.old = stat_of(SYMLINK, 2);
		f.leads = dst == DANGLING ? LEADS_NOWHERE : LEADS;
		f.target = dst == TO_SRC ? f.src : stat_of(FILE_, 3);
		f.target_err = dst == DANGLING ? ENOENT : 0;
	}
	if (dst == OUTPUT)
		f.old_output = &written;
	return f;
}

static const struct column {
	const char *name;
	struct fcopy_tree_options o;
} columns[] = {
    {"(none)", {.recursive = true}},
    {"-n", {.copy = {.no_clobber = true}}},
    {"-u", {.update = FCOPY_UPDATE_OLDER}},
    {"=none", {.update = FCOPY_UPDATE_NONE}},
    {"=fail", {.update = FCOPY_UPDATE_NONE_FAIL}},
    {"=changed", {.update = FCOPY_UPDATE_CHANGED}},
    {"--mirror", {.update = FCOPY_UPDATE_CHANGED, .delete_extra = true}},
    {"--delete", {.delete_extra = true}},
    {"-b", {.backup = FCOPY_BACKUP_SIMPLE}},
    {"-bf", {.backup = FCOPY_BACKUP_SIMPLE, .copy = {.force = true}}},
    {"--remove", {.remove_destination = true}},
    {"-i", {.confirm = confirm}},
    {"-l", {.link = true}},
    {"-lf", {.link = true, .copy = {.force = true}}},
    {"-s", {.symbolic_link = true}},
    {"-sf", {.symbolic_link = true, .copy = {.force = true}}},
    {"--attrib", {.attributes_only = true}},
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

/* The answers, one for each column. m: make; r: a link or a special file replaces what has the
 * name; c: a mirror clears it first. b, a: with a backup, after a question. =: leave; @: it is
 * there already; S: skip. Refused: X exists; D is a directory; I SRC itself, or what this run
 * writes; L a symlink; P not this type; U no file can be written to it; W written by this run. */
static const struct row {
	enum kind src;
	int dst;
	const char *answers;
} rows[] = {
    /*                      none -n -u =none =fail =changed --mirror --delete -b  -bf --remove -i -l
       -lf -s -sf --attrib */
    {FILE_, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {FILE_, OLDER,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, NEWER,
     "m    S  S  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, EQUAL,
     "m    S  S  S     X     =        =        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, OTHER_SIZE,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, TWO_NAMES,
     "m    S  m  S     X     m        m        m        mb  mb  m        ma X  r   X  r   m"},
    {FILE_, TO_FILE,
     "m    S  m  S     X     m        c        c        mb  mb  m        ma X  r   X  r   L"},
    {FILE_, DANGLING,
     "U    S  U  U     U     U        c        c        mb  mb  m        U  X  r   X  r   L"},
    {FILE_, FIFO_,
     "U    S  U  S     X     U        c        c        mb  mb  m        U  X  r   X  r   P"},
    {FILE_, DIRECTORY_,
     "U    S  U  S     X     U        c        c        U   U   U        U  X  D   X  D   D"},
    {FILE_, SAME_INODE,
     "I    S  S  S     X     =        =        I        mb  mb  m        I  @  @   I  I   I"},
    {FILE_, TO_SRC,
     "I    S  S  S     X     =        c        c        mb  mb  m        I  X  r   X  r   L"},
    {FILE_, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
    {SYMLINK, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {SYMLINK, OLDER,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, NEWER,
     "r    S  S  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, TWO_NAMES,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, TO_FILE,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, DANGLING,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, FIFO_,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {SYMLINK, DIRECTORY_,
     "D    S  D  S     X     D        c        c        D   D   D        D  X  D   X  D   D"},
    {SYMLINK, SAME_INODE,
     "@    S  S  S     X     =        =        @        @   @   @        @  @  @   I  I   @"},
    {SYMLINK, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
    {FIFO, ABSENT,
     "m    m  m  m     m     m        m        m        m   m   m        m  m  m   m  m   m"},
    {FIFO, OLDER,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, NEWER,
     "r    S  S  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, TWO_NAMES,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, TO_FILE,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, DANGLING,
     "r    S  r  S     X     r        c        c        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, FIFO_,
     "r    S  r  S     X     r        r        r        rb  rb  r        ra r  r   r  r   r"},
    {FIFO, DIRECTORY_,
     "D    S  D  S     X     D        c        c        D   D   D        D  X  D   X  D   D"},
    {FIFO, SAME_INODE,
     "I    S  S  S     X     =        =        I        I   I   I        I  @  @   I  I   I"},
    {FIFO, OUTPUT,
     "W    W  W  W     W     W        W        W        W   W   W        W  W  W   W  W   W"},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* Can no copy of a file be written to what has the name? One that replaces it needs no directory.
 */
static bool is_unusable(const struct ground *g, const struct facts *f,
			const struct fcopy_tree_options *o)
{
	const bool copied = S_ISREG(f->src.st_mode) && !o->link && !o->symbolic_link &&
			    !o->attributes_only;
	const bool leads = S_ISLNK(f->old.st_mode) && f->leads == LEADS;
	return f->exists && copied &&
	       (S_ISDIR(f->old.st_mode) ||
		(decide_follows(g, f->src.st_mode, o) && !leads && !S_ISREG(f->old.st_mode)));
}

static void write_answer(char answer[4], const struct decision *d)
{
	static const char refused[] = {
	    [EEXIST] = 'X', [EISDIR] = 'D', [EINVAL] = 'I', [ELOOP] = 'L'};
	size_t n = 0;
	switch (d->act) {
	case ACT_MAKE: answer[n++] = d->clears ? 'c' : d->replaces ? 'r' : 'm'; break;
	case ACT_COMPARE: answer[n++] = '?'; break;
	case ACT_LEAVE: answer[n++] = '='; break;
	case ACT_SAME: answer[n++] = '@'; break;
	case ACT_EARLIER: answer[n++] = 'E'; break;
	case ACT_SKIP: answer[n++] = 'S'; break;
	case ACT_RIVAL: answer[n++] = 'R'; break;
	case ACT_REFUSE: {
		const bool type = d->reason && strcmp(d->reason, "is not a regular file") == 0;
		answer[n++] = d->place                        ? 'U'
			      : d->reason == written.taken    ? 'W'
			      : type && d->err == EINVAL      ? 'P'
			      : d->err < (int)sizeof(refused) ? refused[d->err]
							      : '!';
	} break;
	}
	if (d->act == ACT_MAKE && d->backup)
		answer[n++] = 'b';
	if (d->act == ACT_MAKE && d->asks)
		answer[n++] = 'a';
	answer[n] = '\0';
}

START_TEST(answers_are_those_of_the_table)
{
	const struct row *r = &rows[_i];
	struct facts f = facts_of(r->src, r->dst);
	const struct ground g = {.foreign = true};
	const char *at = r->answers;
	for (size_t i = 0; i < COLUMNS; i++) {
		char wanted[4], answer[4];
		int length = 0;
		need(sscanf(at, " %3s%n", wanted, &length) == 1);
		at += length;
		f.unusable = is_unusable(&g, &f, &columns[i].o);
		const struct decision d = decide(&g, &f, &columns[i].o);
		write_answer(answer, &d);
		set_label("%o over %s, %s", r->src, dst_names[r->dst], columns[i].name);
		check(strcmp(answer, wanted) == 0, "%s, not %s", answer, wanted);
	}
	check(at[strspn(at, " ")] == '\0', "more answers than columns: %s", at);
}
END_TEST

/* One bit for each thing that may be so, or not. */
enum {
	LINKS = 1,
	SYMLINKS = 2,
	ATTRIBUTES = 4,
	BACKUP = 8,
	REMOVES = 16,
	ASKS = 32,
	FORCE = 64,
	NO_CLOBBER = 128,
	DELETES = 256,
	HARD_LINKS = 512,
	ALL_OPTIONS = 1024,
};
enum {
	SINGLE = 1,
	FOLLOW = 2,
	SAME_NAME = 4,
	LEADS_HERE = 8,
	OPERAND = 16,
	MADE = 32,
	KEEPS = 64,
	TARGET_WRITTEN = 128,
	UNLINKED = 256,
	ALL_FACTS = 512,
};
#define UPDATES (FCOPY_UPDATE_CHANGED + 1)

static struct fcopy_tree_options options_of(unsigned bits, unsigned update)
{
	return (struct fcopy_tree_options){
	    .link = bits & LINKS,
	    .symbolic_link = bits & SYMLINKS,
	    .attributes_only = bits & ATTRIBUTES,
	    .backup = bits & BACKUP ? FCOPY_BACKUP_SIMPLE : FCOPY_BACKUP_NONE,
	    .remove_destination = bits & REMOVES,
	    .confirm = bits & ASKS ? confirm : NULL,
	    .delete_extra = bits & DELETES,
	    .hard_links = bits & HARD_LINKS,
	    .update = (enum fcopy_update)update,
	    .copy = {.force = bits & FORCE, .no_clobber = bits & NO_CLOBBER},
	};
}

static void add_facts(struct facts *f, unsigned bits)
{
	f->follow = bits & FOLLOW;
	f->same_name = bits & SAME_NAME;
	f->leads_here = bits & LEADS_HERE && S_ISLNK(f->src.st_mode);
	f->is_operand = bits & OPERAND;
	f->made = bits & MADE;
	f->keeps = bits & KEEPS;
	f->target_output = bits & TARGET_WRITTEN && f->leads == LEADS ? &written : NULL;
	f->unlinked = bits & UNLINKED ? "would not lead to SRC" : NULL;
	f->unlinked_err = bits & UNLINKED ? EINVAL : 0;
}

static bool is_one_inode(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* What a question, a backup or --update has looked at is replaced, and nothing else. */
static bool is_exact(const struct ground *g, const struct facts *f,
		     const struct fcopy_tree_options *o, const struct decision *d)
{
	const bool keeps = (o->confirm || o->backup) && !o->copy.no_clobber;
	const bool by_time = o->update != FCOPY_UPDATE_ALL && o->update != FCOPY_UPDATE_CHANGED;
	const struct stat *seen = f->exists ? decide_changed(g, f, o) : NULL;
	if (d->clears || !(keeps || by_time))
		return !d->exact && !d->seen;
	if (f->exists && !seen && (o->confirm || o->backup))
		seen = &f->old;
	return d->exact && d->seen == seen;
}

/* What is wrong with a decision to make the entry; NULL: nothing. */
static const char *made_wrongly(const struct ground *g, const struct facts *f,
				const struct fcopy_tree_options *o, const struct decision *d)
{
	const bool reg = S_ISREG(f->src.st_mode), dir = f->exists && S_ISDIR(f->old.st_mode);
	const bool other = f->exists && (f->src.st_mode ^ f->old.st_mode) & S_IFMT;
	const bool copied = reg && !o->link && !o->symbolic_link && !o->attributes_only;
	const bool may = (o->backup || o->remove_destination) && copied &&
			 (!f->same_name || (o->backup && o->copy.force));
	if (f->exists && is_one_inode(&f->src, &f->old) && !may)
		return "SRC itself is replaced";
	if (f->exists && f->leads_here && !d->clears && !o->symbolic_link)
		return "what SRC leads to is replaced";
	if (f->exists && f->old_output)
		return "an output is replaced";
	const struct stat *changed = f->exists ? decide_changed(g, f, o) : NULL;
	if (changed && f->is_operand && changed->st_nlink == 1 && !is_one_inode(&f->src, changed))
		return "what another SRC names is changed";
	if (f->exists && o->copy.no_clobber && !d->clears)
		return "--no-clobber replaces";
	if (d->clears && !(decide_removes(g, o) && other))
		return "cleared, but the types do not differ";
	if (dir && !d->clears)
		return "a directory is replaced";
	if (f->unusable && !d->clears)
		return "a file cannot be written to it";
	if (f->exists && !dir && o->backup && !d->clears && !(d->backup && d->exact))
		return "replaced without a backup";
	if (f->exists && !dir && o->confirm && !d->asks)
		return "replaced without a question";
	if (!f->exists && (d->backup || d->asks || d->seen))
		return "nothing is replaced";
	if (!is_exact(g, f, o, d))
		return "something else may be replaced than what was looked at";
	return o->symbolic_link && !o->link && f->unlinked ? "a symlink that leads nowhere" : NULL;
}

/* rehearsed: the same options, with dry_run. */
static const char *decided_wrongly(const struct ground *g, const struct facts *f,
				   const struct fcopy_tree_options *o,
				   const struct fcopy_tree_options *rehearsed)
{
	const struct decision d = decide(g, f, o), dry = decide(g, f, rehearsed);
	const struct stat *old = f->exists ? decide_compared(g, f, o) : NULL;
	const bool none = o->update == FCOPY_UPDATE_NONE || o->update == FCOPY_UPDATE_NONE_FAIL;
	if (d.act != dry.act || d.err != dry.err || d.reason != dry.reason ||
	    d.clears != dry.clears || d.replaces != dry.replaces)
		return "a dry run decides something else";
	if (d.act == ACT_COMPARE &&
	    !(f->content == CONTENT_UNKNOWN && f->exists && o->update == FCOPY_UPDATE_CHANGED))
		return "compared without need";
	if (d.act == ACT_LEAVE && f->content != CONTENT_EQUAL)
		return "left, but not equal";
	if (d.act == ACT_SAME && !is_one_inode(&f->src, &f->old) &&
	    !(o->link_dest && f->earlier == EARLIER_SAME))
		return "not the same";
	if ((d.act == ACT_SKIP || d.act == ACT_RIVAL) && !f->exists)
		return "nothing is left alone";
	if (d.act == ACT_REFUSE && !d.place && !(d.err > 0 && !d.call != !d.reason))
		return "refused without a reason";
	if (old && (none || (o->update == FCOPY_UPDATE_OLDER && f->keeps)) &&
	    d.act != (f->made ? ACT_RIVAL : ACT_SKIP) && d.act != ACT_REFUSE)
		return "--update replaces what it keeps";
	if (d.act == ACT_MAKE)
		return made_wrongly(g, f, o, &d);
	return d.clears || d.backup || d.asks ? "it is not made" : NULL;
}

/* For each SRC, DST and --update, all combinations of options and of what is known. */
START_TEST(every_combination_keeps_what_must_not_be_lost)
{
	static const enum kind sources[] = {FILE_, SYMLINK, FIFO};
	struct fcopy_tree_options *options = calloc(2UL * ALL_OPTIONS, sizeof(*options)),
				  *rehearsed = options + ALL_OPTIONS;
	need(options);
	const int dst = _i % DSTS;
	const unsigned update = (unsigned)_i / DSTS;
	for (unsigned bits = 0; bits < ALL_OPTIONS; bits++) {
		options[bits] = rehearsed[bits] = options_of(bits, update);
		rehearsed[bits].dry_run = true;
	}
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (unsigned known = 0; known < ALL_FACTS; known++) {
			struct facts f = facts_of(sources[i], dst);
			if ((known & TARGET_WRITTEN && f.leads != LEADS) ||
			    (known & LEADS_HERE && sources[i] != SYMLINK))
				continue; /* as without that */
			add_facts(&f, known);
			f.content = (known * 7 + (unsigned)_i) % 3;
			const struct ground g = {.foreign = true, .single = known & SINGLE};
			for (unsigned bits = 0; bits < ALL_OPTIONS; bits++) {
				const struct fcopy_tree_options *o = &options[bits];
				f.unusable = is_unusable(&g, &f, o);
				const char *wrong = decided_wrongly(&g, &f, o, &rehearsed[bits]);
				if (wrong)
					check(false,
					      "%u over %s, facts %#x, options %#x, update %u: %s",
					      sources[i], dst_names[dst], known, bits, update,
					      wrong);
			}
		}
	free(options);
}
END_TEST

START_TEST(what_is_not_looked_at_is_made_and_what_cannot_be_seen_is_refused)
{
	static const int reported[] = {ELOOP, ENOTDIR, EACCES};
	const struct ground g = {.foreign = true};
	struct facts f = facts_of(FILE_, ABSENT);
	for (unsigned bits = 0; bits < ALL_OPTIONS; bits++)
		for (unsigned update = 0; update < UPDATES; update++) {
			const struct fcopy_tree_options o = options_of(bits, update);
			const bool sees = (o.confirm || o.backup) && !o.copy.no_clobber;
			set_label("options %#x, update %u", bits, update);
			f.looked = false;
			check(decide(&g, &f, &o).act == ACT_MAKE, "not made");
			f.looked = true;
			f.err = EIO;
			check((decide(&g, &f, &o).act == ACT_REFUSE) ==
				  (sees || o.update || o.delete_extra),
			      "EIO");
			for (size_t i = 0; i < sizeof(reported) / sizeof(*reported); i++) {
				f.err = reported[i];
				check((decide(&g, &f, &o).act == ACT_REFUSE) == sees, "errno %d",
				      f.err);
			}
		}
}
END_TEST

/* The answers with --link-dest if what has the name is not compared yet, is the earlier copy, or is
 * another file. E: find out whether it is the earlier copy; the rest as above. */
static const struct {
	enum kind src;
	int dst;
	struct fcopy_tree_options o;
	const char *answers;
} earlier_rows[] = {
    {FILE_, ABSENT, {.recursive = true}, "m m m"},
    {FILE_, OLDER, {.recursive = true}, "m m m"}, /* it has one name */
    {FILE_, TWO_NAMES, {.recursive = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.copy = {.no_clobber = true}}, "S S S"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_NEVER}}, "E @ m"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_AUTO}}, "m m m"},
    {FILE_, TWO_NAMES, {.copy = {.reflink = FCOPY_WHEN_ALWAYS}}, "m m m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_OLDER}, "E @ m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_NONE}, "S S S"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_NONE_FAIL}, "X X X"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_CHANGED}, "E @ m"},
    {FILE_, TWO_NAMES, {.update = FCOPY_UPDATE_CHANGED, .delete_extra = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.delete_extra = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.backup = FCOPY_BACKUP_SIMPLE}, "E @ mb"},
    {FILE_, TWO_NAMES, {.remove_destination = true}, "E @ m"},
    {FILE_, TWO_NAMES, {.confirm = confirm}, "E @ ma"},
    {FILE_, SAME_INODE, {.recursive = true}, "I I I"},
    {FILE_, TO_FILE, {.recursive = true}, "m m m"},
    {FILE_, TO_FILE, {.delete_extra = true}, "c c c"},
    {FILE_, DANGLING, {.recursive = true}, "U U U"},
    {FILE_, FIFO_, {.delete_extra = true}, "c c c"},
    {FILE_, DIRECTORY_, {.recursive = true}, "U U U"},
    {FILE_, OUTPUT, {.recursive = true}, "W W W"},
    {SYMLINK, TWO_NAMES, {.recursive = true}, "r r r"},
    {SYMLINK, SAME_INODE, {.recursive = true}, "@ @ @"},
    {FIFO, TWO_NAMES, {.recursive = true}, "r r r"},
};

START_TEST(what_link_dest_has_made_already_is_left)
{
	struct facts f = facts_of(earlier_rows[_i].src, earlier_rows[_i].dst);
	struct fcopy_tree_options o = earlier_rows[_i].o;
	struct ground g = {.foreign = true};
	const char *at = earlier_rows[_i].answers;
	o.link_dest = "earlier";
	f.unusable = is_unusable(&g, &f, &o);
	for (int known = EARLIER_UNKNOWN; known <= EARLIER_OTHER; known++) {
		char wanted[4], answer[4];
		int length = 0;
		need(sscanf(at, " %3s%n", wanted, &length) == 1);
		at += length;
		f.earlier = (unsigned)known;
		const struct decision d = decide(&g, &f, &o);
		write_answer(answer, &d);
		set_label("row %d, earlier %d", _i, known);
		check(strcmp(answer, wanted) == 0, "%s, not %s", answer, wanted);
	}
	f.earlier = EARLIER_SAME;
	g.exclusive = true;
	check(f.src.st_nlink > 1 || decide(&g, &f, &o).act != ACT_SAME, "in a new tree");
}
END_TEST

/* One option more changes nothing but files that have another name, and asks once. */
START_TEST(link_dest_changes_no_other_decision)
{
	static const enum kind sources[] = {FILE_, SYMLINK, FIFO};
	const struct ground g = {.foreign = true};
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (unsigned bits = 0; bits < ALL_OPTIONS; bits++)
			for (unsigned update = 0; update < UPDATES; update++) {
				struct fcopy_tree_options o = options_of(bits, update);
				struct facts f = facts_of(sources[i], _i);
				f.unusable = is_unusable(&g, &f, &o);
				const struct decision without = decide(&g, &f, &o);
				o.link_dest = "earlier";
				set_label("%u over %s, options %#x, update %u", sources[i],
					  dst_names[_i], bits, update);
				for (unsigned known = 0; known <= EARLIER_OTHER; known++) {
					f.earlier = known;
					const struct decision with = decide(&g, &f, &o);
					const bool asks = without.act == ACT_MAKE &&
							  sources[i] == FILE_ &&
							  (_i == TWO_NAMES || _i == SAME_INODE);
					const enum act wanted = !asks || known == EARLIER_OTHER
								    ? without.act
								: known == EARLIER_SAME
								    ? ACT_SAME
								    : ACT_EARLIER;
					check(with.act == wanted, "%u, not %u", with.act, wanted);
				}
				struct fcopy_tree_options rehearsed = o;
				rehearsed.dry_run = true;
				const char *wrong = decided_wrongly(&g, &f, &o, &rehearsed);
				check(!wrong, "%s", wrong);
			}
}
END_TEST

/* A link replaces only what a copy would: never SRC itself, nor what -n keeps. */
START_TEST(a_link_to_a_copy_replaces_what_a_copy_would)
{
	static const enum kind sources[] = {FILE_, SYMLINK, FIFO};
	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (unsigned bits = 0; bits < ALL_OPTIONS; bits++)
			for (unsigned known = 0; known < 16; known++) {
				const struct fcopy_tree_options o = options_of(bits, 0);
				const struct ground g = {.foreign = !(known & SINGLE),
							 .exclusive = known & SINGLE};
				struct facts f = facts_of(sources[i], _i);
				add_facts(&f, known & ~(unsigned)SINGLE);
				const bool itself = f.exists &&
						    (is_one_inode(&f.src, &f.old) || f.leads_here);
				const bool directory = _i == DIRECTORY_ && sources[i] != FILE_;
				set_label("%u over %s, facts %#x, options %#x", sources[i],
					  dst_names[_i], known, bits);
				check(
				    decide_link_replaces(&g, &f, &o) ==
					!(itself || directory || g.exclusive || o.copy.no_clobber),
				    "replaces");
				struct decision d = {.act = ACT_MAKE};
				const bool symlink = _i == TO_FILE || _i == DANGLING ||
						     _i == TO_SRC ||
						     (_i == SAME_INODE && sources[i] == SYMLINK);
				check(decide_link_meets_symlink(&f, &d) == symlink, "symlink");
				d.clears = true;
				check(!decide_link_meets_symlink(&f, &d), "cleared");
			}
}
END_TEST

START_TEST(what_has_ended_is_committed_kept_or_removed)
{
	static const int results[] = {0, -EIO, -EEXIST, -ENOENT};
	for (unsigned bits = 0; bits < 256; bits++)
		for (size_t i = 0; i < 4; i++) {
			const struct end_facts f = {.stopped = bits & 1,
						    .failed = bits & 2,
						    .goes_on = bits & 4,
						    .fresh = bits & 8,
						    .committed = bits & 16,
						    .part = bits & 32,
						    .published = bits & 64,
						    .unsound = bits & 128,
						    .result = results[i]};
			const enum fate fate = decide_fate(&f);
			const bool ended = !f.stopped && (!f.failed || f.goes_on);
			set_label("facts %#x, result %d", bits, f.result);
			if (f.result < 0)
				check(fate != FATE_COMMIT, "no second commit");
			else
				check((fate == FATE_COMMIT) ==
					  (f.committed || ended || (!f.stopped && !f.fresh)),
				      "what is complete is committed");
			if (fate == FATE_COMMIT)
				continue;
			check((fate == FATE_STAY) == (f.committed || !f.fresh),
			      "what has its name is left");
			if (fate == FATE_STAY)
				continue;
			const bool sound = f.part && !f.unsound;
			check(fate != FATE_KEEP || sound, "only a sound part can be continued");
			if (sound && (f.published || (!f.stopped && f.result != -EEXIST)))
				check(fate == FATE_KEEP, "what was copied is kept");
			else
				check(fate == FATE_REMOVE, "nobody would find it");
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("decide");
	TCase *c = add_case(s, "decide");
	tcase_add_loop_test(c, answers_are_those_of_the_table, 0, ROWS);
	tcase_add_loop_test(c, every_combination_keeps_what_must_not_be_lost, 0,
			    (int)(DSTS * UPDATES));
	tcase_add_loop_test(c, what_link_dest_has_made_already_is_left, 0,
			    (int)(sizeof(earlier_rows) / sizeof(*earlier_rows)));
	tcase_add_loop_test(c, link_dest_changes_no_other_decision, 0, DSTS);
	tcase_add_loop_test(c, a_link_to_a_copy_replaces_what_a_copy_would, 0, DSTS);
	tcase_add_test(c, what_has_ended_is_committed_kept_or_removed);
	tcase_add_test(c, what_is_not_looked_at_is_made_and_what_cannot_be_seen_is_refused);
	return run_suite(s);
}
