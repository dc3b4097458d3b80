/* SPDX-License-Identifier: MIT
 * A JSON writer, as large as a report needs it; and the failures and warnings in a report.
 */
#include "report.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef __GLIBC__ /* musl has no such function */
#define NAME(err) [err] = #err
static const char *strerrorname_np(int err)
{
	static const char *const names[] = {
	    NAME(EPERM),        NAME(ENOENT),       NAME(EINTR),           NAME(EIO),
	    NAME(ENXIO),        NAME(EBADF),        NAME(EAGAIN),          NAME(ENOMEM),
	    NAME(EACCES),       NAME(EFAULT),       NAME(EBUSY),           NAME(EEXIST),
	    NAME(EXDEV),        NAME(ENODEV),       NAME(ENOTDIR),         NAME(EISDIR),
	    NAME(EINVAL),       NAME(ENFILE),       NAME(EMFILE),          NAME(ENOTTY),
	    NAME(ETXTBSY),      NAME(EFBIG),        NAME(ENOSPC),          NAME(ESPIPE),
	    NAME(EROFS),        NAME(EMLINK),       NAME(EPIPE),           NAME(ERANGE),
	    NAME(EDEADLK),      NAME(ENAMETOOLONG), NAME(ENOLCK),          NAME(ENOSYS),
	    NAME(ENOTEMPTY),    NAME(ELOOP),        NAME(ENODATA),         NAME(ETIME),
	    NAME(EREMOTE),      NAME(ENOLINK),      NAME(ECOMM),           NAME(EPROTO),
	    NAME(EBADMSG),      NAME(EOVERFLOW),    NAME(EBADFD),          NAME(EILSEQ),
	    NAME(EUSERS),       NAME(ENOTSOCK),     NAME(EDESTADDRREQ),    NAME(EMSGSIZE),
	    NAME(EPROTOTYPE),   NAME(ENOPROTOOPT),  NAME(EPROTONOSUPPORT), NAME(EOPNOTSUPP),
	    NAME(EAFNOSUPPORT), NAME(EADDRINUSE),   NAME(EADDRNOTAVAIL),   NAME(ENETDOWN),
	    NAME(ENETUNREACH),  NAME(ENETRESET),    NAME(ECONNABORTED),    NAME(ECONNRESET),
	    NAME(ENOBUFS),      NAME(EISCONN),      NAME(ENOTCONN),        NAME(ESHUTDOWN),
	    NAME(ETIMEDOUT),    NAME(ECONNREFUSED), NAME(EHOSTDOWN),       NAME(EHOSTUNREACH),
	    NAME(EALREADY),     NAME(EINPROGRESS),  NAME(ESTALE),          NAME(EUCLEAN),
	    NAME(EREMOTEIO),    NAME(EDQUOT),       NAME(EMEDIUMTYPE),     NAME(ECANCELED),
	    NAME(ENOKEY),       NAME(EKEYEXPIRED),  NAME(EKEYREVOKED),     NAME(EKEYREJECTED),
	    NAME(E2BIG),        NAME(ENOEXEC),      NAME(ECHILD),          NAME(ENOTBLK),
	    NAME(EDOM),         NAME(ESRCH),        NAME(ESOCKTNOSUPPORT)};
	return err > 0 && (size_t)err < sizeof(names) / sizeof(*names) ? names[err] : NULL;
}
#undef NAME
#endif

static void put_character(FILE *f, const unsigned char *s, size_t n)
{
	if (n == 0)
		fputs("\\ufffd", f);
	else if (*s == '"' || *s == '\\')
		fprintf(f, "\\%c", *s);
	else if (!utf8_is_control(s, n))
		fwrite(s, 1, n, f);
	else if (n < 4)
		fprintf(f, "\\u%04x", (unsigned)utf8_code(s, n));
	else /* a surrogate pair (RFC 8259, section 7) */
		fprintf(f, "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(utf8_code(s, n) >> 10),
			0xdc00 + (unsigned)(utf8_code(s, n) & 0x3ff));
}

/* Returns whether all of it was UTF-8. */
static bool put_string(FILE *f, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	bool valid = true;
	fputc('"', f);
	while (*s) {
		const unsigned char *plain = s; /* most paths are nothing else */
		while (*s >= ' ' && *s < 0x7f && *s != '"' && *s != '\\')
			s++;
		fwrite(plain, 1, (size_t)(s - plain), f);
		if (!*s)
			break;
		size_t n = utf8_length(s);
		put_character(f, s, n);
		valid &= n > 0;
		s += n ? n : 1;
	}
	fputc('"', f);
	return valid;
}

static void put_key(struct json *j, const char *key, const char *suffix)
{
	if (j->comma)
		fputs(", ", j->f);
	j->comma = true;
	if (!key)
		return;
	fputc('"', j->f);
	fputs(key, j->f);
	fputs(suffix, j->f);
	fputs("\": ", j->f);
}

static void put_base64(FILE *f, const char *text)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *s = (const unsigned char *)text;
	size_t n = strlen(text);
	for (; n > 0; s += 3) {
		size_t have = n < 3 ? n : 3;
		unsigned bits = (unsigned)s[0] << 16;
		bits |= have > 1 ? (unsigned)s[1] << 8 : 0;
		bits |= have > 2 ? s[2] : 0;
		for (size_t i = 0; i < 4; i++)
			fputc(i <= have ? digits[bits >> (18 - 6 * i) & 63] : '=', f);
		n -= have;
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	put_key(j, key, "");
	fputc(bracket, j->f);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	fputc(bracket, j->f);
	j->comma = true;
}

void json_begin(struct json *j, FILE *f)
{
	*j = (struct json){.f = f};
	json_open(j, NULL, '{');
	json_string(j, "fcopy", FCOPY_VERSION);
}

void json_end(struct json *j)
{
	json_close(j, '}');
	fputc('\n', j->f);
}

void json_null(struct json *j, const char *key)
{
	put_key(j, key, "");
	fputs("null", j->f);
}

void json_string(struct json *j, const char *key, const char *value)
{
	if (!value) {
		json_null(j, key);
		return;
	}
	put_key(j, key, "");
	put_string(j->f, value);
}

void json_errno(struct json *j, const char *key, int err)
{
	json_string(j, key, err ? strerrorname_np(err) : NULL);
}

void json_integer(struct json *j, const char *key, uint64_t value)
{
	char digits[24], *first = digits + sizeof(digits) - 1;
	put_key(j, key, "");
	*first = '\0';
	do
		*--first = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	fputs(first, j->f);
}

void json_seconds(struct json *j, const char *key, double value)
{
	put_key(j, key, "");
	fprintf(j->f, "%.6f", value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	put_key(j, key, "");
	fputs(value ? "true" : "false", j->f);
}

void json_path(struct json *j, const char *key, const char *path)
{
	if (!path) {
		json_null(j, key);
		return;
	}
	put_key(j, key, "");
	if (!put_string(j->f, path)) {
		put_key(j, key, "_b64");
		fputc('"', j->f);
		put_base64(j->f, path);
		fputc('"', j->f);
	}
}

/* Failures and warnings for --json. */

bool list_grow(void *array, size_t count, size_t *size, size_t element)
{
	void **a = array;
	if (count < *size)
		return true;
	void *more = reallocarray(*a, *size ? 2 * *size : 16, element);
	if (!more)
		return false;
	*a = more;
	*size = *size ? 2 * *size : 16;
	return true;
}

void errors_add(struct errors *list, const struct fcopy_error *e)
{
	if (!list_grow(&list->error, list->count, &list->size, sizeof(*list->error)))
		return; /* best effort: the object lacks this error */
	struct fcopy_error *to = &list->error[list->count++];
	*to = *e;
	to->path = e->path ? strdup(e->path) : NULL;
	to->path2 = e->path2 ? strdup(e->path2) : NULL;
	to->reason = e->reason ? strdup(e->reason) : NULL;
}

void error_write(struct json *j, const char *key, const struct fcopy_error *e)
{
	if (!e || e->err == 0) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_string(j, "call", e->call);
	json_string(j, "operation", e->operation);
	json_errno(j, "errno", e->err);
	json_string(j, "message", e->reason ? e->reason : strerror(e->err));
	json_path(j, "path", e->path);
	json_path(j, "path2", e->path2);
	json_string(j, "engine", e->engine);
	json_string(j, "option", e->option);
	json_close(j, '}');
}

void errors_write(const struct errors *list, struct json *j, const char *key)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < list->count; i++)
		error_write(j, NULL, &list->error[i]);
	json_close(j, ']');
}

void errors_clear(struct errors *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free((char *)list->error[i].path);
		free((char *)list->error[i].path2);
		free((char *)list->error[i].reason);
	}
	free(list->error);
	*list = (struct errors){0};
}
