/* SPDX-License-Identifier: MIT
 * --list: the modes, for people and as an object.
 */
#include "json.h"
#include "report.h"

void modes_print(void)
{
	puts("MODE  NAME             ALIAS  WHAT IT DOES (an alias needs -m)");
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		const char *missing = fcopy_mode_missing(m);
		printf("%4d  %-15s  %-5s  %s", m->number, m->name, m->alias ? m->alias : "-",
		       m->summary);
		if (missing)
			printf(" [unavailable: %s]", missing);
		putchar('\n');
	}
}

void modes_json(FILE *f)
{
	struct json j = {.f = f};
	json_open(&j, NULL, '{');
	json_string(&j, "fcopy", FCOPY_VERSION);
	json_open(&j, "list", '[');
	for (const struct fcopy_mode *m = fcopy_modes(); m->name; m++) {
		json_open(&j, NULL, '{');
		json_integer(&j, "number", (uint64_t)m->number);
		json_string(&j, "mode", m->name);
		json_string(&j, "alias", m->alias);
		json_string(&j, "engine", m->engine);
		json_string(&j, "summary", m->summary);
		json_string(&j, "missing", fcopy_mode_missing(m));
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	fputc('\n', f);
}
