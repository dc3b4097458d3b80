/* SPDX-License-Identifier: MIT
 * What is printed when a socket listens: where, and the command of the peer.
 */
#define _GNU_SOURCE
#include "hint.h"
#include "report.h"
#include "show.h"
#include "text.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool has_any_port(const char *operand)
{
	const enum fcopy_kind kind = fcopy_operand_kind(operand, STDIN_FILENO, NULL);
	return kind == FCOPY_KIND_LISTEN_ANY || kind == FCOPY_KIND_HTTP_ANY;
}

static bool is_any_address(const char *address)
{
	return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

/* Prints the address that a client can use: for a wildcard address the name of this host. */
static void print_reachable(const char *address)
{
	char host[256] = "", operand[256 + 64];
	bool named = is_any_address(address) && gethostname(host, sizeof(host) - 1) == 0;
	snprintf(operand, sizeof(operand), "tcp:%s%s", named ? host : address,
		 named ? strrchr(address, ':') : "");
	message_quoted(operand); /* zsh would expand the brackets of an IPv6 address */
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

static void end_where(const char *operand, const char *address)
{
	FILE *f = hint_stream();
	fputs(" on ", f);
	message_print(address[0] ? address : operand);
	if (is_loopback(address))
		fprintf(f, " (this machine only; use 0.0.0.0%s for the network)",
			strrchr(address, ':'));
	hint_end();
}

/* The start of the receiver's command: a TCP stream has only the bytes, so the command says how
 * many there are, if the sender knows. */
static void print_receive(const struct cli *cli, uint64_t bytes, const char *address)
{
	const struct fcopy_options *o = &cli->copy;
	fputs("fcopy: receive it with: fcopy ", stderr);
	if (o->count > 0 && o->count <= bytes) /* SRC may be shorter, if it is a stream */
		bytes = o->strict || cli->keep_listening ? o->count : 0;
	if (bytes > 0)
		fprintf(stderr, "--size=%" PRIu64 " %s", bytes, o->strict ? "--strict " : "");
	print_reachable(address);
	fputc(' ', stderr);
}

#define URLS_MAX 8

static const char url_plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-._~";

/* The name as a part of a URL. */
static void print_url_name(const char *name)
{
	for (const char *c = name; *c; c++)
		fprintf(stderr, strchr(url_plain, *c) ? "%c" : "%%%02X", (unsigned char)*c);
}

/* The options with which curl gives the file its name. Those that resume, too, take the name from
 * the URL as it is. */
static const char *curl_options(const char *name)
{
	return name[strspn(name, url_plain)] ? "-OJ" : "-OC -";
}

static void print_url(const char *address, const char *name)
{
	const bool brackets = address[0] == '['; /* zsh would expand them */
	fprintf(stderr, "%shttp://%s/", brackets ? "'" : "", address);
	print_url_name(name);
	fputs(brackets ? "'" : "", stderr);
}

/* The addresses of this machine that others can reach: at most `most`, as HOST:PORT. */
static size_t find_addresses(const char *address, char (*to)[FCOPY_ADDRESS_MAX], size_t most)
{
	const int family = address[0] == '[' ? AF_INET6 : AF_INET;
	struct ifaddrs *list;
	size_t n = 0;
	if (getifaddrs(&list) < 0)
		return 0;
	for (const struct ifaddrs *i = list; i && n < most; i = i->ifa_next) {
		char host[INET6_ADDRSTRLEN];
		const struct sockaddr *a = i->ifa_addr;
		if (!a || i->ifa_flags & IFF_LOOPBACK || !(i->ifa_flags & IFF_UP) ||
		    (a->sa_family != AF_INET && a->sa_family != family))
			continue;
		const struct in6_addr *v6 =
		    &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
		const void *v4 = &((const struct sockaddr_in *)(const void *)a)->sin_addr;
		const bool is_v4 = a->sa_family == AF_INET;
		if ((!is_v4 && IN6_IS_ADDR_LINKLOCAL(v6)) || /* needs a scope, which URLs lack */
		    !inet_ntop(a->sa_family, is_v4 ? v4 : (const void *)v6, host, sizeof(host)))
			continue;
		snprintf(to[n++], FCOPY_ADDRESS_MAX, is_v4 ? "%s%s" : "[%s]%s", host,
			 strrchr(address, ':'));
	}
	freeifaddrs(list);
	return n;
}

/* The command of an HTTP client for each address that it may use. name: what it gets, or NULL: it
 * sends a file. */
static void print_urls(const char *address, const char *name)
{
	char found[URLS_MAX][FCOPY_ADDRESS_MAX];
	size_t n = 0;
	if (is_any_address(address))
		n = find_addresses(address, found, URLS_MAX);
	if (n == 0)
		snprintf(found[n++], sizeof(*found), "%s", address);
	for (size_t i = 0; i < n; i++) {
		if (name)
			fprintf(stderr, "fcopy: receive it with: curl %s ", curl_options(name));
		else
			fputs("fcopy: send it with: curl -fT FILE ", stderr);
		print_url(found[i], name ? name : "");
		fputc('\n', stderr);
	}
}

/* Prints what an HTTP server serves. */
static void print_http_server(const struct cli *cli, uint64_t bytes, const char *address)
{
	const uint64_t count = cli->copy.count;
	struct text size = {0};
	FILE *f = note_begin();
	fputs("serving ", f);
	if (cli->served_count > 1)
		fprintf(f, "%zu files", cli->served_count);
	else
		message_print(cli->src);
	if (cli->served_count == 1 && count > 0 && count < bytes)
		bytes = count;
	text_size(&size, bytes);
	fprintf(f, " (%s)", size.at);
	end_where(cli->dst, address);
	for (size_t i = 0; i < cli->served_count; i++)
		print_urls(address, text_file_name(cli->served[i]));
}

/* Prints what the server serves and where, and the command for a client. */
static void print_server(const struct cli *cli, uint64_t bytes, const char *address)
{
	const uint64_t count = cli->copy.count;
	struct text size = {0};
	FILE *f = note_begin();
	fputs("serving ", f);
	message_print(cli->src);
	if (bytes > 0) {
		text_size(&size, count > 0 && count < bytes ? count : bytes);
		fprintf(f, " (%s)", size.at);
	}
	end_where(cli->dst, address);
	if (address[0] == '\0')
		return;
	print_receive(cli, bytes, address);
	const char *name = text_file_name(cli->src);
	if (name[0] == '-' || fcopy_operand_kind(name, STDOUT_FILENO, NULL) != FCOPY_KIND_PATH)
		fputs("./", stderr);
	message_quoted(name);
	fputc('\n', stderr);
}

/* The command of the peer that has, or wants, the bytes. */
static void print_peer(const struct cli *cli, bool sends, uint64_t bytes, const char *address)
{
	if (sends) {
		fputs("fcopy: send it with: fcopy FILE ", stderr);
		print_reachable(address);
		fputc('\n', stderr);
	} else {
		print_receive(cli, bytes, address);
		fputs("FILE\n", stderr);
	}
}

/* With port 0, print the port even with --quiet: the kernel chose it. */
void listening_print(const struct cli *cli, const struct fcopy_event *event)
{
	/* DST waits only after SRC is connected. */
	bool receives = cli_receives(cli) && event->report->src_peer[0] == '\0';
	/* A Unix socket has no address: print the operand. */
	const char *operand = receives ? cli->src : cli->dst;
	const char *address = event->text[0] ? event->text : operand;
	progress_wait_for(receives ? "a sender" : "a receiver", address);
	if (cli->served) {
		if (cli->voice.notes || has_any_port(cli->dst))
			print_http_server(cli, event->report->expected, event->text);
	} else if (cli->keep_listening) {
		if (cli->voice.notes || has_any_port(cli->src) || has_any_port(cli->dst))
			print_server(cli, event->report->expected, event->text);
	} else if (has_any_port(cli->src) || has_any_port(cli->dst) || cli->voice.peers) {
		fputs("listening", note_begin());
		end_where(operand, address);
		if (receives && cli_is_http(cli->src, STDIN_FILENO))
			print_urls(event->text, NULL);
		else if (event->text[0])
			print_peer(cli, receives, event->report->expected, event->text);
	}
}
