/* SPDX-License-Identifier: MIT
 * The table of engines.
 */
#include "engine.h"

#include <string.h>

const struct engine *const engine_table[] = {
    &engine_readwrite, &engine_sendfile, &engine_splice,  &engine_copy_file_range,
    &engine_mmap,      &engine_direct,   &engine_reflink, NULL};

const struct engine *engine_find(const char *name)
{
	const struct engine *const *e = engine_table;
	while (*e && strcmp((*e)->name, name) != 0)
		e++;
	return *e;
}
