/* SPDX-License-Identifier: MIT
 * Implements case.h.
 */
#include "case.h"
#include "io/hash.h"
#include "io/io.h"
#include "source/reader.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <wctype.h>

static locale_t case_locale;
static pthread_once_t case_once = PTHREAD_ONCE_INIT;

static void case_find_locale(void)
{
	case_locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static wint_t case_lower(wint_t c)
{
	pthread_once(&case_once, case_find_locale);
	if (case_locale)
		return towlower_l(c, case_locale);
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Reads a character of UTF-8, or one byte of other text, and moves on. */
static wint_t case_next(const char **text)
{
	const unsigned char *t = (const unsigned char *)*text;
	const int more = *t >= 0xf0 ? 3 : *t >= 0xe0 ? 2 : *t >= 0xc0 ? 1 : 0;
	wint_t c = more == 0 ? *t : *t & (0x3fu >> more);
	for (int i = 1; i <= more; i++) {
		if ((t[i] & 0xc0) != 0x80) {
			++*text;
			return *t;
		}
		c = c << 6 | (t[i] & 0x3fu);
	}
	*text += more + 1;
	return c;
}

bool case_is_equal(const char *a, const char *b)
{
	while (*a && *b)
		if (case_lower(case_next(&a)) != case_lower(case_next(&b)))
			return false;
	return !*a && !*b;
}

uint64_t case_hash(const char *path)
{
	uint64_t hash = HASH_START;
	while (*path) {
		const wint_t c = case_lower(case_next(&path));
		hash = hash_add(hash, &c, sizeof(c));
	}
	return hash_mix(hash) | 1;
}

bool case_is_one(int dir, const char *name)
{
	struct name_list list;
	struct stat st;
	bool same = false, other = false;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	const int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || names_read(fd, &list, NULL) < 0)
		list = (struct name_list){.count = 0};
	for (size_t i = 0; i < list.count && !(same && other); i++) {
		const bool is = strcmp(list.name[i], name) == 0;
		same |= is;
		other |= !is && case_is_equal(list.name[i], name);
	}
	names_free(&list);
	io_close(fd);
	return !(same && other);
}

/* case_is_one() for the last name of an absolute path. *dev: of its directory. */
static bool case_is_last_one(const char *path, dev_t *dev)
{
	char above[PATH_MAX];
	struct stat st;
	const char *name = strrchr(path, '/') + 1;
	memcpy(above, path, (size_t)(name - path));
	above[name - path] = '\0';
	const int dir = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool one = dir >= 0 && fstatat(dir, "", &st, AT_EMPTY_PATH) == 0 &&
			 case_is_one(dir, name);
	*dev = one ? st.st_dev : 0;
	io_close(dir);
	return one;
}

bool case_is_one_at(char path[PATH_MAX])
{
	dev_t dev, first = 0;
	while (path[1] && case_is_last_one(path, &dev)) {
		if (first && dev != first)
			return true;
		first = dev;
		char *end = strrchr(path, '/');
		end[end == path] = '\0';
	}
	return !path[1];
}

static size_t case_component(const char **path)
{
	*path += strspn(*path, "/");
	return strcspn(*path, "/");
}

bool case_paths_relate(const char *first, const char *second, bool *equal)
{
	char path[PATH_MAX], a[NAME_MAX + 1], b[NAME_MAX + 1];
	dev_t dev;
	const char *p = first, *q = second;
	bool differ = false;
	for (;;) {
		const size_t n = case_component(&p), m = case_component(&q);
		*equal = n == m;
		if (n == 0 || m == 0)
			return differ;
		if (n > NAME_MAX || m > NAME_MAX)
			return false;
		memcpy(a, p, n);
		memcpy(b, q, m);
		a[n] = b[m] = '\0';
		if (strcmp(a, b) != 0) {
			if (!case_is_equal(a, b))
				return false;
			memcpy(path, first, (size_t)(p - first));
			strcpy(path + (p - first), b);
			if (!case_is_last_one(path, &dev))
				return false;
			differ = true;
		}
		p += n;
		q += m;
	}
}

bool case_is_source(struct storage *s, int src, const char *name, dev_t src_dev, int dst,
		    const char *as, dev_t dst_dev)
{
	char from[PATH_MAX], to[PATH_MAX];
	bool equal;
	if (src_dev != dst_dev || !storage_is_served(s, dst, dst_dev))
		return false;
	io_name_path(src, name, from);
	io_name_path(dst, as, to);
	return from[0] == '/' && to[0] == '/' && case_paths_relate(from, to, &equal) && equal;
}
