/* SPDX-License-Identifier: MIT
 * The table of modes: what people ask for by number or name, and which options go with it.
 */
#include "engines/engine.h"

#include <stdlib.h>
#include <string.h>

#define TAKES_STREAMS (FCOPY_TAKES_STREAM_SRC | FCOPY_TAKES_STREAM_DST)
#define AUTO_TAKES                                                                                 \
	(FCOPY_TAKES_THREADS | FCOPY_TAKES_SPARSE | FCOPY_TAKES_REFLINK | FCOPY_TAKES_NO_CACHE |   \
	 TAKES_STREAMS)

static const struct fcopy_mode modes[] = {
    {0, "auto", NULL, NULL, "a fast and safe mechanism that fcopy chooses", 0, true, true,
     AUTO_TAKES},
    {1, "readwrite", "rw", "readwrite", "read and write through a buffer of 8 KiB", 8192, false,
     false, FCOPY_TAKES_BUFFER_SIZE | TAKES_STREAMS},
    {2, "sendfile", "sf", "sendfile", "sendfile: from the page cache, inside the kernel", 0, false,
     false, FCOPY_TAKES_STREAM_DST},
    {3, "splice", "sp", "splice", "splice through a pipe of 1 MiB", 0, false, false,
     FCOPY_TAKES_BUFFER_SIZE | TAKES_STREAMS},
    {4, "copy_file_range", "cfr", "copy_file_range",
     "copy_file_range: file to file, inside the kernel", 0, false, false, 0},
    {5, "mmap", "mm", "mmap", "mmap the source in windows and write them", 0, false, false,
     FCOPY_TAKES_BUFFER_SIZE | FCOPY_TAKES_STREAM_DST},
    {6, "direct", "dio", "direct", "O_DIRECT through io_uring; preallocates a new file", 0, false,
     true, 0},
    {7, "parallel", "par", "readwrite", "readwrite in threads; preallocates a new file",
     (size_t)1 << 20, true, true, FCOPY_TAKES_THREADS | FCOPY_TAKES_BUFFER_SIZE},
    {8, "reflink", "clone", "reflink", "share the source's extents (FICLONE)", 0, false, false, 0},
    {.name = NULL},
};

const struct fcopy_mode *fcopy_modes(void)
{
	return modes;
}

const struct fcopy_mode *fcopy_mode_find(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	/* 04 may be the directory of a month. */
	bool numeric = text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
		       (text[0] != '0' || text[1] == '\0');
	for (const struct fcopy_mode *m = modes; m->name; m++)
		if (numeric
			? m->number == number
			: strcmp(text, m->name) == 0 || (m->alias && strcmp(text, m->alias) == 0))
			return m;
	return NULL;
}

const char *fcopy_mode_missing(const struct fcopy_mode *mode)
{
	const struct engine *engine = mode->engine ? engine_find(mode->engine) : NULL;
	if (!engine)
		return NULL;
	return engine->probe ? engine->probe() : NULL;
}
