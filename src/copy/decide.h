/* SPDX-License-Identifier: MIT
 *
 * What becomes of an entry, and why: of the copy, a dry run, and a test. decide() makes no system
 * call and changes nothing. Its answer follows from what is known of SRC and DST, and from the
 * options. The caller finds out what is missing, and asks again.
 */
#ifndef COPY_DECIDE_H
#define COPY_DECIDE_H

#include "fcopy.h"

#include <stdbool.h>
#include <sys/stat.h>

/* What is flushed with --fsync, in ascending order. */
enum flushing {
	FLUSH_NONE,
	FLUSH_WHOLE, /* a new tree, by one syncfs(2) before its rename */
	FLUSH_FILES, /* each file, before it gets its name, and the rest by one syncfs(2) */
	FLUSH_EACH   /* every entry: syncfs(2) does not suffice here */
};

/* What is true of one SRC and of the place that its copy gets. It is known before the first entry
 * is copied, and does not change while SRC is walked. What is done with an entry follows from these
 * members, not from the way in which the copy was begun. Exactly one of fresh, journal and foreign
 * holds; lists, share and separate are of shards, and only with fresh; exclusive only with fresh,
 * too, and single and fixed_modes only with foreign. */
struct ground {
	bool fresh;     /* most names are absent: each is created first, with O_EXCL */
	bool exclusive; /* ... and no earlier attempt has made one: a name that exists is that of
			 * another entry, or was listed twice */
	bool named;     /* ... but another process can, because DST has its final name */
	bool journal;   /* an earlier run has made names; its journal shows what is complete */
	bool foreign;   /* DST is in use: files are replaced, and other users can exchange names */
	bool single;    /* SRC is no directory: its copy may have threads, and be resumed */
	bool lists;     /* nothing is copied: other processes get a list of what SRC has */
	bool share;     /* other processes copy the rest: a directory is not complete when this walk
			 * has finished it */
	bool separate;  /* each name becomes a separate file: the list says which are links */
	bool fixed_modes; /* chmod has no effect in DST: directories get their mode at once */
	bool faithful;    /* files of DST are kept as endpoint.faithful says; asked of a new tree */
	enum flushing flush;
	mode_t withheld; /* of S_IRWXU, from new directories */
};

/* May several names of one file of SRC become names of one copy? */
static inline bool ground_links(const struct ground *g, const struct fcopy_tree_options *o)
{
	return o->hard_links && !g->separate;
}

/* Are files replaced in a directory that exists? */
static inline bool ground_merges(const struct ground *g)
{
	return g->foreign && !g->single;
}

/* What is known of one entry. Not known: DST is not looked at, because it is a new directory.
 * Without `looked` only src, follow, src_output and what -s asks for are set; without `exists`,
 * also looked and err. Only `content` and `earlier` change after that, when decide() asks for them.
 */
struct facts {
	bool looked; /* the rest is known */
	int err;     /* ... not because this errno prevented it; ENOENT: DST has no such name */
	bool exists;
	struct stat src; /* what is copied: of a symlink that is followed, its target */
	struct stat old; /* what has the name in DST; a symlink is not followed */
	enum { LEADS_NOWHERE, LEADS } leads; /* if old is a symlink: has it a target? */
	struct stat target;                  /* ... this one */
	int target_err;                      /* why it has none */
	bool follow;                         /* a symlink of SRC is followed */
	bool src_is_symlink;                 /* ... and was; asked only if DST is SRC itself */
	bool leads_here;                     /* src is a symlink to what has the name */
	bool same_name;       /* SRC and DST are one name; asked only if DST is SRC itself, or -s */
	bool is_operand;      /* decide_changed() is what another SRC names */
	bool made;            /* this run has made old, for another entry */
	bool keeps;           /* update OLDER: old, or its target, is not older than src */
	bool unusable;        /* no copy of a file can be written to what has the name */
	const char *unlinked; /* why no symlink can lead to SRC, or NULL */
	int unlinked_err;
	const struct fcopy_output *src_output, *old_output,
	    *target_output; /* written by this run */
	enum { CONTENT_UNKNOWN, CONTENT_EQUAL, CONTENT_DIFFERS } content;
	/* Is old the file of options.link_dest, unchanged? */
	enum { EARLIER_UNKNOWN, EARLIER_SAME, EARLIER_OTHER } earlier;
};

enum act {
	ACT_MAKE, /* copy it, or make what options.link, symbolic_link or attributes_only ask for */
	ACT_COMPARE, /* set facts.content, and decide again */
	ACT_EARLIER, /* set facts.earlier, and decide again */
	ACT_LEAVE,   /* equal: repair its attributes; if that cannot be done, it differs */
	ACT_SAME,    /* it is a name of SRC, or of the earlier copy, as it was to become */
	ACT_SKIP,
	ACT_RIVAL, /* it is the copy of another entry */
	ACT_REFUSE
};

/* Only the members that are listed for the act mean something. */
struct decision {
	enum act act;
	/* Of ACT_MAKE: */
	bool clears;             /* a mirror replaces an entry of another type */
	bool replaces;           /* what is no copy of a file replaces what has the name */
	bool asks;               /* options.confirm, before anything changes */
	bool backup;             /* what is replaced gets another name */
	bool exact;              /* only `seen` may be replaced; NULL: nothing */
	const struct stat *seen; /* in the facts */
	/* Of ACT_REFUSE: */
	int err;
	const char *call;   /* as if it had failed, or NULL: */
	const char *reason; /* ... why */
	bool source;        /* it is about SRC */
	bool pair;          /* ... and DST */
	bool unsuitable;    /* of an operand: for what SRC and DST are */
	bool place;         /* ... facts.unusable is why */
};

/* The answer is final unless it is ACT_COMPARE or ACT_EARLIER. */
struct decision decide(const struct ground *, const struct facts *,
		       const struct fcopy_tree_options *);

/* The copy of an operand that is a directory has ended. */
struct end_facts {
	bool stopped;   /* it was cancelled, or a failure has ended all */
	bool failed;    /* an entry */
	bool goes_on;   /* ... which prevents no commit: options.keep_going */
	bool fresh;     /* it is a new tree, without its name */
	bool committed; /* an earlier run has given it its name */
	bool part;      /* it was built in a part */
	bool published; /* ... that a later run finds */
	bool doubted;   /* files that look complete may not be */
	int result;     /* of the commit, or 0: none was tried */
};
enum fate {
	FATE_COMMIT,
	FATE_STAY, /* as it is: it has its name */
	FATE_KEEP, /* as a part, which --resume continues */
	FATE_REMOVE
};
enum fate decide_fate(const struct end_facts *);

/* Has the name a file that --attributes-only leaves its bytes? */
bool decide_keeps_bytes(const struct facts *, const struct fcopy_tree_options *);
/* May a link to a copy replace what has the name? Of a file, only where a copy of it might. */
bool decide_link_replaces(const struct ground *, const struct facts *,
			  const struct fcopy_tree_options *);
/* Has DST a symlink, which a copy follows? No link replaces it. */
bool decide_link_meets_symlink(const struct facts *, const struct decision *);

/* Do the options replace an entry by a new one, whatever it is? */
static inline bool decide_replaces(const struct fcopy_tree_options *o)
{
	return o->remove_destination || o->backup;
}

/* Does --delete remove entries of another type? Not an operand: nothing has said that it is a copy
 * of SRC. */
static inline bool decide_removes(const struct ground *g, const struct fcopy_tree_options *o)
{
	return o->delete_extra && !g->single;
}

/* Does what is made of src replace what a symlink in DST leads to, and not the symlink? */
bool decide_follows(const struct ground *, mode_t src, const struct fcopy_tree_options *);
/* What the copy would replace or write to: what has the name, or what it leads to; NULL: nothing.
 * DST has the name. */
const struct stat *decide_changed(const struct ground *, const struct facts *,
				  const struct fcopy_tree_options *);
/* What --update compares src with; NULL: nothing that can be compared. DST has the name. */
const struct stat *decide_compared(const struct ground *, const struct facts *,
				   const struct fcopy_tree_options *);

#define DECIDE_SOURCE      "is another SRC: nothing in it is changed"
#define DECIDE_STAYS       "exists, and is not replaced"
#define DECIDE_NEEDS_FORCE "exists; use -f to replace it"

#endif
