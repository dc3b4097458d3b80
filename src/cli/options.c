/* SPDX-License-Identifier: MIT
 * The command line, by tables: what an option is called, and which modes it belongs to.
 */
#include "cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Letters that mean something to cp: they mean the same here, or nothing. */
#define CP_LETTERS "abdHilLnpPrRsS:t:Tux"

enum {
	OPT_LIST = 256,
	OPT_BUFFER_SIZE,
	OPT_PREALLOCATE,
	OPT_REFLINK,
	OPT_SPARSE,
	OPT_NO_CACHE,
	OPT_INPLACE,
	OPT_FSYNC,
	OPT_STRICT,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option table[] = {
    {"mode", required_argument, NULL, 'm'},
    {"list", no_argument, NULL, OPT_LIST},
    {"buffer-size", required_argument, NULL, OPT_BUFFER_SIZE},
    {"threads", required_argument, NULL, 'j'},
    {"preallocate", required_argument, NULL, OPT_PREALLOCATE},
    {"reflink", optional_argument, NULL, OPT_REFLINK},
    {"sparse", required_argument, NULL, OPT_SPARSE},
    {"no-cache", no_argument, NULL, OPT_NO_CACHE},
    {"inplace", no_argument, NULL, OPT_INPLACE},
    {"force", no_argument, NULL, 'f'},
    {"fsync", no_argument, NULL, OPT_FSYNC},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"verbose", no_argument, NULL, 'v'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

/* The options that belong to some modes only. */
static const struct {
	const char *name;
	enum fcopy_takes bit;
} of_modes[] = {
    {"--buffer-size", FCOPY_TAKES_BUFFER_SIZE}, {"--threads", FCOPY_TAKES_THREADS},
    {"--sparse", FCOPY_TAKES_SPARSE},           {"--reflink", FCOPY_TAKES_REFLINK},
    {"--no-cache", FCOPY_TAKES_NO_CACHE},
};

static bool parse_when(const char *text, enum fcopy_when *when)
{
	static const char *const names[] = {"auto", "always", "never"};
	for (int i = 0; i < 3; i++)
		if (strcmp(text, names[i]) == 0) {
			*when = (enum fcopy_when)i;
			return true;
		}
	return false;
}

static int set_when(const char *option, const char *text, enum fcopy_when *when)
{
	if (parse_when(text, when))
		return EXIT_DONE;
	return message_usage(option, "'%s' is none of auto, always, never", text);
}

static int set_buffer_size(struct cli *cli, const char *text)
{
	uint64_t size;
	if (!size_parse(text, &size) || size < 1 || size > FCOPY_BUFFER_MAX)
		return message_usage("--buffer-size", "'%s' is no size from 1 to 1G", text);
	cli->copy.buffer_size = (size_t)size;
	return EXIT_DONE;
}

static int set_threads(struct cli *cli, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (*end || end == text || n < 1 || n > FCOPY_THREADS_MAX)
		return message_usage("--threads", "'%s' is no number from 1 to %d", text,
				     FCOPY_THREADS_MAX);
	cli->copy.threads = (unsigned)n;
	return EXIT_DONE;
}

static int set_mode(struct cli *cli, const char *text)
{
	cli->copy.mode = fcopy_mode_find(text);
	if (cli->copy.mode)
		return EXIT_DONE;
	message_usage(text, "no such mode");
	message_modes();
	return EXIT_USAGE;
}

static int refuse_option(int option, char **argv)
{
	const char letter[] = {'-', (char)optopt, '\0'};
	if (option != '?' || (optopt && strchr(CP_LETTERS "Z", optopt) && optopt != ':'))
		return message_usage(
		    (const char[]){'-', (char)(option == '?' ? optopt : option), '\0'},
		    "cp has this option, fcopy does not");
	if (option == ':' || (optopt && optopt < 256))
		return message_usage(letter, option == ':' ? "needs a value" : "no such option");
	return message_usage(argv[optind - 1],
			     optopt ? "takes or lacks a value" : "no such option");
}

static int set_flag(struct cli *cli, int option, char **argv)
{
	switch (option) {
	case OPT_LIST: cli->action = ACTION_LIST; break;
	case OPT_HELP: cli->action = ACTION_HELP; break;
	case OPT_VERSION: cli->action = ACTION_VERSION; break;
	case OPT_NO_CACHE: cli->copy.no_cache = true; break;
	case OPT_INPLACE: cli->copy.in_place = true; break;
	case OPT_FSYNC: cli->copy.fsync = true; break;
	case OPT_STRICT: cli->copy.strict = true; break;
	case 'f': cli->copy.force = true; break;
	case 'v': cli->verbose = true; break;
	case 'q': cli->quiet = true; break;
	default: return refuse_option(option, argv);
	}
	return EXIT_DONE;
}

static int set_option(struct cli *cli, int option, char **argv)
{
	struct fcopy_options *o = &cli->copy;
	switch (option) {
	case 'm': return set_mode(cli, optarg);
	case 'j': return set_threads(cli, optarg);
	case OPT_BUFFER_SIZE: return set_buffer_size(cli, optarg);
	case OPT_PREALLOCATE: return set_when("--preallocate", optarg, &o->preallocate);
	case OPT_SPARSE: return set_when("--sparse", optarg, &o->sparse);
	case OPT_REFLINK: return set_when("--reflink", optarg ? optarg : "always", &o->reflink);
	default: return set_flag(cli, option, argv);
	}
}

static unsigned bit_of(int option)
{
	switch (option) {
	case OPT_BUFFER_SIZE: return FCOPY_TAKES_BUFFER_SIZE;
	case 'j': return FCOPY_TAKES_THREADS;
	case OPT_SPARSE: return FCOPY_TAKES_SPARSE;
	case OPT_REFLINK: return FCOPY_TAKES_REFLINK;
	case OPT_NO_CACHE: return FCOPY_TAKES_NO_CACHE;
	default: return 0;
	}
}

/* Options together with the mode, and with each other. */
static int check_together(const struct cli *cli, unsigned given)
{
	const struct fcopy_options *o = &cli->copy;
	const struct fcopy_mode *mode = o->mode ? o->mode : fcopy_modes();
	for (size_t i = 0; i < sizeof(of_modes) / sizeof(*of_modes); i++)
		if (given & of_modes[i].bit & ~mode->takes)
			return message_usage(of_modes[i].name, "does not belong to mode %d %s",
					     mode->number, mode->name);
	if (o->reflink == FCOPY_ALWAYS && o->sparse != FCOPY_AUTO)
		return message_usage("--reflink=always",
				     "a clone has the source's holes: not with --sparse");
	if (o->reflink == FCOPY_ALWAYS && o->no_cache)
		return message_usage("--reflink=always",
				     "a clone moves no bytes: not with --no-cache");
	return EXIT_DONE;
}

static int take_operands(struct cli *cli, int n, char **operand)
{
	bool mode_given = cli->copy.mode != NULL;
	if (n < 2)
		return message_usage(n ? operand[0] : NULL,
				     n ? "missing DST after SRC" : "missing SRC and DST");
	if (n > 3)
		return message_usage(operand[3],
				     "one operand too many: fcopy copies one file, SRC DST [MODE]");
	if (n == 3 && mode_given)
		return message_usage(operand[2],
				     "the mode is given twice, by -m and as an operand");
	cli->src = operand[0];
	cli->dst = operand[1];
	return n == 3 ? set_mode(cli, operand[2]) : EXIT_DONE;
}

int options_parse(struct cli *cli, int argc, char **argv)
{
	int option, status;
	unsigned given = 0;
	*cli = (struct cli){0};
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":m:j:fvq" CP_LETTERS "Z", table, NULL)) != -1) {
		if ((status = set_option(cli, option, argv)) != EXIT_DONE)
			return status;
		given |= bit_of(option);
	}
	if (cli->action != ACTION_COPY)
		return EXIT_DONE;
	status = take_operands(cli, argc - optind, argv + optind);
	return status == EXIT_DONE ? check_together(cli, given) : status;
}
