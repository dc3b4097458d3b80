/* SPDX-License-Identifier: MIT
 * The hints about errors: what the user can do about a failure or a warning.
 */
#include "endpoints/error.h"
#include "show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Hints that follow from the errno of a failure: which directory is missing or not writable, and
 * of what a full file system has run out. */

void hint_directory(const char *path, char directory[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)(slash - path) + (slash == path) : 1;
	snprintf(directory, PATH_MAX, "%.*s", n, slash ? path : ".");
}

#define HOST_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

/* Is it HOST:PORT, with a host that is not a number? */
static bool hint_is_address(const char *path)
{
	const char *colon = strchr(path, ':');
	char *end;
	if (!colon || colon == path ||
	    fcopy_operand_kind(path, STDIN_FILENO, NULL) != FCOPY_KIND_PATH ||
	    path[strspn(path, HOST_CHARACTERS)] != ':' ||
	    path + strspn(path, "0123456789") == colon || colon[1] < '1' || colon[1] > '9')
		return false;
	return strtoul(colon + 1, &end, 10) <= 65535 && *end == '\0';
}

/* The same of http:HOST:PORT: returns HOST:PORT, or NULL. */
static const char *hint_url(const char *path)
{
	static const char start[] = "http:";
	const char *address = path + sizeof(start) - 1;
	return strncmp(path, start, sizeof(start) - 1) == 0 && hint_is_address(address) ? address
											: NULL;
}

/* As rsync(1) takes it, HOST:/PATH; there is no directory "HOST:". */
static bool hint_is_remote(const char *path)
{
	struct stat st;
	char first[PATH_MAX];
	const size_t n = strspn(path, HOST_CHARACTERS);
	if (n == 0 || strncmp(path + n, ":/", 2) != 0)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)n + 1, path);
	return lstat(first, &st) < 0;
}

void hint_new_file(const char *src, const char *dst)
{
	const char *url = hint_url(dst);
	if (url)
		hint_printf("%s is a new file here; to send to a URL, use curl" GLUE "-fT" GLUE
			    "%s" GLUE "http://%s/",
			    quoted(dst), quoted(src), url);
	else if (hint_is_address(dst))
		hint_printf("%s is a new file here; for a connection, write tcp:%s", quoted(dst),
			    quoted(dst));
}

/* The path is tcp:HOST:PORT, of either operand. Without an address it listens to this machine. */
static bool hint_refused(const char *path)
{
	const char *port = strrchr(path, ':');
	if (!port)
		return false;
	const bool here = strstr(path, ":localhost:") || strstr(path, ":127.") ||
			  strstr(path, ":[::1]:");
	hint_printf("nothing listens at this port: start the other side first, with "
		    "tcp-listen:%s%s",
		    here                ? ""
		    : strchr(path, '[') ? "[::]"
					: "0.0.0.0",
		    here ? port + 1 : port);
	return true;
}

/* Names the first directory of the path that does not exist. */
static void hint_missing(const char *directory)
{
	struct stat st;
	char first[PATH_MAX];
	for (const char *end = directory; *end;) {
		end += strspn(end, "/");
		end += strcspn(end, "/");
		snprintf(first, sizeof(first), "%.*s", (int)(end - directory), directory);
		if (lstat(first, &st) == 0)
			continue;
		hint_printf("%s does not exist; create it: mkdir" GLUE "-p" GLUE "%s",
			    quoted(first), quoted(directory));
		return;
	}
}

#define NO_DIRECTORY "no such directory"
#define PLENTY       ((unsigned long long)64 << 20) /* bytes: more than one file or directory needs */

/* Does the call make a name? Another one needs bytes, which may have been freed since. */
static bool hint_makes_name(const char *call)
{
	static const char *const calls[] = {"open", "mkdir", "link", "symlink", "rename", "mknod"};
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strncmp(call, calls[i], strlen(calls[i])) == 0)
			return true;
	return false;
}

static bool hint_full(const char *path)
{
	struct stat st;
	struct statvfs fs;
	char directory[PATH_MAX];
	if (fcopy_operand_kind(path, STDIN_FILENO, NULL) != FCOPY_KIND_PATH ||
	    (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
		return true; /* a stream or device: not the file system of its name is full */
	hint_directory(path, directory);
	if (statvfs(path, &fs) < 0 && statvfs(directory, &fs) < 0)
		return true;
	if (fs.f_files > 0 && fs.f_favail == 0)
		hint_printf("no inodes are left, although there may be space: see df" GLUE
			    "-i; remove files, or create a file system with more inodes");
	else if ((unsigned long long)fs.f_bavail * fs.f_frsize > PLENTY)
		hint_printf(
		    "the file system has space and inodes: a directory may have reached its "
		    "largest size, or a project its quota");
	return true;
}

/* A new file was refused: the call names the file, but its directory is why. */
static bool hint_unwritable(const char *path)
{
	struct stat st;
	char directory[PATH_MAX];
	hint_directory(path, directory);
	if (lstat(path, &st) == 0 || errno != ENOENT || access(directory, W_OK) == 0)
		return false;
	hint_printf("you may not write to the directory %s", quoted(directory));
	return true;
}

/* The path that was to be opened, or its directory, does not exist. */
static bool hint_absent(const struct fcopy_error *e)
{
	char directory[PATH_MAX];
	if (hint_is_remote(e->path)) {
		hint_printf("fcopy copies local files: for another host, use rsync or ssh, or "
			    "tcp:HOST:PORT");
	} else if (e->operation && strcmp(e->operation, "open of its directory") == 0) {
		hint_directory(e->path, directory);
		hint_missing(directory);
	} else if (e->reason && strncmp(e->reason, NO_DIRECTORY, strlen(NO_DIRECTORY)) == 0) {
		hint_missing(e->path);
	} else if (e->call && hint_url(e->path)) {
		hint_printf("to fetch a URL, use curl" GLUE "-OC" GLUE "-" GLUE "http://%s/",
			    hint_url(e->path));
	} else if (e->call && hint_is_address(e->path)) {
		hint_printf("for a connection, write tcp:%s", e->path);
	} else {
		return false;
	}
	return true;
}

bool hint_cause(const struct fcopy_error *e)
{
	if (!e->path || strlen(e->path) >= PATH_MAX)
		return false;
	switch (e->err) {
	case ENOENT: return hint_absent(e);
	case ECONNREFUSED: return hint_refused(e->path);
	case ENOSPC: return e->call && hint_makes_name(e->call) && hint_full(e->path);
	case EACCES: return e->call && strcmp(e->call, "open") == 0 && hint_unwritable(e->path);
	case EDQUOT:
		hint_printf("your quota of blocks or inodes is used up: see quota" GLUE "-s");
		return true;
	default: return false;
	}
}

bool hint_repeats(const struct fcopy_error *e)
{
	return (e->err == EFBIG && e->call) || error_classify(e) == ERROR_ATTRIBUTE;
}

/* Hints that the library advises. */

#define HINT_REMOVE "if no other machine is writing to it, remove it: rm"

/* Once for each directory: it may have many such entries. */
static const char *hint_directory_once(const char *path)
{
	static char last[PATH_MAX];
	char directory[PATH_MAX];
	hint_directory(path, directory);
	if (strcmp(directory, last) == 0)
		return NULL;
	strcpy(last, directory);
	return quoted(last);
}

static const struct hint {
	const char *words;                      /* NULL: nothing is said */
	enum given proposes;                    /* an option of theirs */
	const char *(*named)(const char *path); /* what %s is: something of the error's path */
} hints[] = {
    /* clang-format off */
    [FCOPY_ADVICE_AUTO] = {.words = "use auto, or no MODE, to let fcopy choose"},
    [FCOPY_ADVICE_IN_PLACE] = {.words = "use --inplace to overwrite it", .proposes = GIVEN_INPLACE},
    [FCOPY_ADVICE_IN_PLACE_OR_FORCE] = {.words = "use --inplace to overwrite it, or -f to replace it anyway", .proposes = GIVEN_INPLACE},
    [FCOPY_ADVICE_IN_PLACE_AUTO] = {.words = "use --inplace=auto to overwrite it", .proposes = GIVEN_INPLACE},
    [FCOPY_ADVICE_FORCE] = {.words = "use -f to replace it anyway", .proposes = GIVEN_FORCE},
    [FCOPY_ADVICE_DEVICE] = {.words = "attach the device; or use -f to create a regular file", .proposes = GIVEN_FORCE},
    [FCOPY_ADVICE_RECURSIVE] = {.words = "use -r to copy directories", .proposes = GIVEN_TREE},
    [FCOPY_ADVICE_REMOVE_LINK] = {.words = "remove the symlink, or create its target"},
    [FCOPY_ADVICE_REMOVE_LOOP] = {.words = "remove the symlink"},
    [FCOPY_ADVICE_FLUSH] = {.words = "DST is complete, but may not survive a power cut: check the storage, then run sync"},
    [FCOPY_ADVICE_CACHE] = {.words = "leave out --no-cache"},
    [FCOPY_ADVICE_DESCRIPTORS] = {.words = "raise the hard limit of open files (ulimit -Hn): each level of directories needs two descriptors"},
    [FCOPY_ADVICE_REFLINK] = {.words = "use --reflink=auto to copy the bytes where a clone is impossible"},
    [FCOPY_ADVICE_FLAGS] = {.words = "remove the flag with chattr -i or chattr -a"},
    [FCOPY_ADVICE_NO_PART] = {.words = "leave out --resume and --shard"},
    [FCOPY_ADVICE_NO_FSYNC] = {.words = "leave out --fsync and --verify: this storage cannot flush a file"},
    [FCOPY_ADVICE_REMOVE_PART] = {.words = "remove or rename %s", .named = part_escaped},
    [FCOPY_ADVICE_RESUME] = {.words = "use --resume (not --mirror) to continue that copy, or remove or rename %s", .named = part_escaped},
    [FCOPY_ADVICE_SHARDS] = {.words = "to start over, " HINT_SHARDS, .named = part_escaped},
    [FCOPY_ADVICE_REMOVE_FILE] = {.words = HINT_REMOVE GLUE "%s", .named = quoted},
    [FCOPY_ADVICE_REMOVE_TREE] = {.words = HINT_REMOVE GLUE "-r" GLUE "%s", .named = quoted},
    [FCOPY_ADVICE_CLEAN] = {.words = "to remove it, if no copy uses it: fcopy" GLUE "--clean" GLUE "%s", .named = hint_directory_once},
    /* clang-format on */
};

static const struct hint *hint_of(enum fcopy_advice advice)
{
	static const struct hint none;
	return advice < sizeof(hints) / sizeof(*hints) ? &hints[advice] : &none;
}

bool hint_is_general(enum fcopy_advice advice)
{
	return hint_of(advice)->words && !hint_of(advice)->named;
}

static const struct given_set *hint_given;

void hint_about(const struct cli *cli)
{
	hint_given = &cli->given;
}

void hint_advice(enum fcopy_advice advice, const char *path)
{
	const struct hint *h = hint_of(advice);
	const char *name = h->named ? h->named(path) : NULL;
	const char *without = h->proposes && hint_given ? conflict_with(hint_given, h->proposes)
							: NULL;
	if (name)
		hint_printf(h->words, name);
	else if (without && advice == FCOPY_ADVICE_IN_PLACE_OR_FORCE)
		hint_printf("%s", hints[FCOPY_ADVICE_FORCE].words);
	else if (hint_is_general(advice))
		hint_printf("%s%s%s", h->words, without ? "; leave out --" : "",
			    without ? without : "");
}

void hint_bare(const struct cli *cli)
{
	hint_printf("use --%s=%s: %s is %s here", cli->bare, quoted(cli->bare_value),
		    quoted(cli->bare_value), cli->bare_is_dst ? "DST" : "a SRC");
}

bool hint_value(const struct cli *cli, const struct fcopy_error *e)
{
	const char *value = cli->bare_value;
	if (!value || (e->err != ENOENT && e->err != ENOTDIR) || !e->path ||
	    (strcmp(e->path, value) != 0 && strcmp(e->path, cli->dst) != 0))
		return false;
	hint_bare(cli);
	return true;
}

void hint_print(const struct fcopy_error *e)
{
	if (e->advice != FCOPY_ADVICE_NONE || !hint_cause(e))
		hint_advice(e->advice, e->path);
}
