/* SPDX-License-Identifier: MIT
 * What the parser of HTTP requests says of each head: stdin has a length (4 bytes) and the head,
 * stdout a line: status, length of the head, chunked, length of the body, method, target. For
 * judge_http.py.
 */
#include "endpoints/http.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
	static char head[1 << 16];
	struct http_request r;
	uint32_t n;
	while (fread(&n, sizeof(n), 1, stdin) == 1) {
		if (n > sizeof(head) || (n > 0 && fread(head, n, 1, stdin) != 1))
			return 1;
		const size_t length = http_head_length(head, n);
		const int status = length > 0 ? http_parse(&r, head, length) : -1;
		printf("%d %zu %d %" PRIu64 " ", status, length, status == 0 && r.chunked,
		       status == 0 ? r.length : 0);
		if (status == 0) {
			fwrite(r.name.at, 1, r.name.length, stdout);
			putchar(' ');
			fwrite(r.target.at, 1, r.target.length, stdout);
		}
		putchar('\n');
	}
	return 0;
}
