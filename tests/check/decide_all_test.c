/* SPDX-License-Identifier: MIT
 * What becomes of an entry: what holds for every combination of SRC, DST, options and facts.
 */
#define _GNU_SOURCE
#include "entries.h"

#include <stdlib.h>

/* One bit for each thing that may be known. */
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
	const bool asked = o->copy.force || o->backup || o->remove_destination || d->clears;
	if (f->exists && !asked && (o->link || o->symbolic_link))
		return "a link replaces, and no option asks for that";
	if (f->exists && !asked && o->attributes_only && S_ISREG(f->old.st_mode) && d->replaces)
		return "--attributes-only replaces a file";
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
	if ((none ? f->exists : old && o->update == FCOPY_UPDATE_OLDER && f->keeps) &&
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
				const bool keeps = o.attributes_only && f.exists &&
						   S_ISREG(f.old.st_mode);
				set_label("%u over %s, facts %#x, options %#x", sources[i],
					  dst_names[_i], known, bits);
				check(decide_link_replaces(&g, &f, &o) ==
					  !(itself || directory || keeps || g.exclusive ||
					    o.copy.no_clobber),
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

int main(void)
{
	Suite *s = suite_create("decide_all");
	TCase *c = add_case(s, "decide_all");
	tcase_add_loop_test(c, every_combination_keeps_what_must_not_be_lost, 0,
			    (int)(DSTS * UPDATES));
	tcase_add_loop_test(c, link_dest_changes_no_other_decision, 0, DSTS);
	tcase_add_loop_test(c, a_link_to_a_copy_replaces_what_a_copy_would, 0, DSTS);
	return run_suite(s);
}
