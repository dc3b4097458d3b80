/* SPDX-License-Identifier: MIT
 *
 * Renames that replace one certain file and no other, or nothing.
 */
#ifndef ENDPOINTS_EXCHANGE_H
#define ENDPOINTS_EXCHANGE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is this still the file, with the same content, that *old is the stat of? dir: where it is. */
bool exchange_is_same(int dir, const struct stat *now, const struct stat *old);
/* Renames the file `from` to `name`, if that is the file that *old is the stat of. Returns 0;
 * -EEXIST: another one has the name, and keeps it; -ENOTRECOVERABLE: that one has become `from`,
 * and must not be removed; or -errno. With `hands_out` also EXCHANGE_ANOTHER: done, but at the last
 * moment another file has had the name, and that one is now `from`. */
#define EXCHANGE_ANOTHER 1
int exchange_over(int home, const char *from, int dir, const char *name, const struct stat *old,
		  bool hands_out);
/* Renames without replacing anything; where rename(2) is unsupported, by a link. Returns as
 * private_rename(). */
int exchange_move(int home, const char *from, int dir, const char *name);

#endif
