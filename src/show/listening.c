/* SPDX-License-Identifier: MIT
 * What is printed when a socket listens: where, and the command of the peer.
 */
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

/* The address that a client can use: for a wildcard address the name of this host. */
static const char *listening_reachable(const char *address)
{
	char host[256] = "", operand[256 + 64];
	bool named = is_any_address(address) && gethostname(host, sizeof(host) - 1) == 0;
	snprintf(operand, sizeof(operand), "tcp:%s%s", named ? host : address,
		 named ? strrchr(address, ':') : "");
	return quoted(operand); /* zsh would expand the brackets of an IPv6 address */
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0;
}

/* Prints "WHAT NAME (SIZE) on ADDRESS". A Unix socket has no address: prints the operand. */
static void print_where(const char *what, const char *name, const char *size, const char *operand,
			const char *address)
{
	const bool local = is_loopback(address);
	note_printf("%s%s%s on %s%s%s%s", what, escaped(name), size,
		    escaped(address[0] ? address : operand),
		    local ? " (this machine only; use 0.0.0.0" : "",
		    local ? strrchr(address, ':') : "", local ? " for the network)" : "");
}

/* The receiver's command: a TCP stream has only the bytes, so the command says how many there are,
 * if the sender knows. */
static void print_receive(const struct cli *cli, uint64_t bytes, const char *address,
			  const char *before, const char *name)
{
	const struct fcopy_options *o = &cli->copy;
	char size[48] = "";
	if (o->count > 0 && o->count <= bytes) /* SRC may be shorter, if it is a stream */
		bytes = o->strict || cli->keep_listening ? o->count : 0;
	if (bytes > 0)
		snprintf(size, sizeof(size), "--size=%" PRIu64 " %s", bytes,
			 o->strict ? "--strict " : "");
	message_printf("receive it with: fcopy %s%s %s%s", size, listening_reachable(address),
		       before, name);
}

#define URLS_MAX 8

static const char url_plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-._~";

static void print_url(const char *command, const char *address, const char *name)
{
	const char *quote = address[0] == '[' ? "'" : ""; /* zsh would expand brackets */
	fprintf(stderr, "fcopy: %s %shttp://%s/", command, quote, address);
	for (const char *c = name; *c; c++)
		fprintf(stderr, strchr(url_plain, *c) ? "%c" : "%%%02X", (unsigned char)*c);
	fprintf(stderr, "%s\n", quote);
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
 * sends a file. The options with which curl gives the file its name: those that resume, too, take
 * the name from the URL as it is. */
static void print_urls(const char *address, const char *name)
{
	char found[URLS_MAX][FCOPY_ADDRESS_MAX];
	const char *command = !name                           ? "send it with: curl -fT FILE"
			      : name[strspn(name, url_plain)] ? "receive it with: curl -OJ"
							      : "receive it with: curl -OC -";
	size_t n = 0;
	if (is_any_address(address))
		n = find_addresses(address, found, URLS_MAX);
	if (n == 0)
		snprintf(found[n++], sizeof(*found), "%s", address);
	for (size_t i = 0; i < n; i++)
		print_url(command, found[i], name ? name : "");
}

/* Prints what a server serves and where, and the command for a client. */
static void print_server(const struct cli *cli, uint64_t bytes, const char *address)
{
	const uint64_t count = cli->copy.count;
	const bool several = cli->served_count > 1;
	char size[AMOUNT_MAX + 4] = "", files[40];
	const char *name = text_file_name(cli->src);
	if (!several && count > 0 && count < bytes)
		bytes = count;
	if (bytes > 0 || cli->served)
		snprintf(size, sizeof(size), " (%s)", amount(bytes).text);
	snprintf(files, sizeof(files), "%zu files", cli->served_count);
	print_where("serving ", several ? files : cli->src, size, cli->dst, address);
	for (size_t i = 0; cli->served && i < cli->served_count; i++)
		print_urls(address, text_file_name(cli->served[i]));
	if (cli->served || address[0] == '\0')
		return;
	const bool plain = name[0] != '-' &&
			   fcopy_operand_kind(name, STDOUT_FILENO, NULL) == FCOPY_KIND_PATH;
	print_receive(cli, bytes, address, plain ? "" : "./", quoted(name));
}

/* With port 0, print the port even with --quiet: the kernel chose it. */
void listening_print(const struct cli *cli, const struct fcopy_event *event)
{
	/* DST waits only after SRC is connected. */
	bool receives = cli_receives(cli) && event->report->src_peer[0] == '\0';
	/* A Unix socket has no address: print the operand. */
	const char *operand = receives ? cli->src : cli->dst;
	const char *address = event->text[0] ? event->text : operand;
	const bool any_port = has_any_port(cli->src) || has_any_port(cli->dst);
	progress_wait_for(receives ? "a sender" : "a receiver", address);
	if (cli->served || cli->keep_listening) {
		if (cli->voice.notes || any_port)
			print_server(cli, event->report->expected, event->text);
	} else if (any_port || cli->voice.peers) {
		print_where("listening", "", "", operand, address);
		if (receives && cli_is_http(cli->src, STDIN_FILENO))
			print_urls(event->text, NULL);
		else if (event->text[0] && receives)
			message_printf("send it with: fcopy FILE %s",
				       listening_reachable(event->text));
		else if (event->text[0])
			print_receive(cli, event->report->expected, event->text, "", "FILE");
	}
}
