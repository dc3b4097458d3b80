/* SPDX-License-Identifier: MIT
 *
 * The files of --log-file and --json, in directories of which another user may exchange the names.
 */
#ifndef SHOW_OUTPUT_H
#define SHOW_OUTPUT_H

struct output {
	int dir; /* O_PATH: its directory, which is looked up once */
	const char *name;
	const char *reason; /* why output_open refused, or NULL */
};

/* Finds the directory of the file. Returns 0 or -errno. */
int output_find(struct output *, const char *path);
/* Opens the file; flags as for open(2). Where another user could exchange its name, a symlink of
 * another user is refused: it could lead to any file of this one. Returns a descriptor or -errno.
 */
int output_open(struct output *, int flags);
/* Removes the file that was created, if it has its name still. */
void output_remove(const struct output *, int fd);
void output_close(struct output *);

#endif
