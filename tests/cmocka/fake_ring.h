/* SPDX-License-Identifier: MIT
 *
 * A ring that does what the test wants, in place of src/io/ring.c; for the one test that includes
 * it, since what another program defines is wrapped there, too.
 */
#ifndef CMOCKA_FAKE_RING_H
#define CMOCKA_FAKE_RING_H

#include "cases.h"
#include "io/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOTS 16

struct operation {
	bool queued, writes;
	int fd;
	char *buf;
	size_t n;
	off_t at;
};

struct ring {
	struct operation slot[SLOTS];
};

/* What the ring does in this test. */
static struct {
	bool backwards;         /* completes the operation queued last, by number */
	size_t most;            /* an operation moves at most so much; 0: all */
	bool only_writes;       /* faults are for writes, otherwise for reads */
	int nth, err;           /* the nth operation fails */
	bool ever;              /* ... and each one after it */
	int wait_nth, wait_err; /* ... or the nth wait */
	bool zero;              /* the fault is a count of 0 */
	int open_err;           /* ring_open fails */
	int operations, waits, open, drained;
	bool seen;
	void (*before_read)(off_t at); /* called before a read at that offset; or NULL */
} fake;

struct ring *__wrap_ring_open(unsigned depth, void *memory, size_t size);
struct ring *__wrap_ring_open(unsigned depth, void *memory, size_t size)
{
	(void)memory, (void)size;
	assert_in_range(depth, 1, SLOTS);
	errno = fake.open_err;
	fake.open += fake.open_err == 0;
	return fake.open_err ? NULL : calloc(1, sizeof(struct ring));
}

void __wrap_ring_close(struct ring *r);
void __wrap_ring_close(struct ring *r)
{
	fake.open--;
	for (unsigned i = 0; i < SLOTS; i++) /* the kernel would write into freed memory */
		assert_false(r->slot[i].queued);
	free(r);
}

static void queue(struct ring *r, unsigned id, struct operation o)
{
	assert_in_range(id, 0, SLOTS - 1);
	assert_false(r->slot[id].queued);
	/* what O_DIRECT demands: offset, length and memory in whole blocks */
	assert_int_equal(o.at % 512, 0);
	assert_int_equal(o.n % 512, 0);
	assert_int_equal((uintptr_t)o.buf % 512, 0);
	o.queued = true;
	r->slot[id] = o;
}

void __wrap_ring_read(struct ring *r, int fd, void *buf, size_t n, off_t at, unsigned id);
void __wrap_ring_read(struct ring *r, int fd, void *buf, size_t n, off_t at, unsigned id)
{
	queue(r, id, (struct operation){.fd = fd, .buf = buf, .n = n, .at = at});
}

void __wrap_ring_write(struct ring *r, int fd, const void *buf, size_t n, off_t at, unsigned id);
void __wrap_ring_write(struct ring *r, int fd, const void *buf, size_t n, off_t at, unsigned id)
{
	queue(r, id,
	      (struct operation){.writes = true, .fd = fd, .buf = (char *)buf, .n = n, .at = at});
}

static int perform(const struct operation *o)
{
	size_t whole = (fake.most + 511) / 512 * 512, n = fake.most && o->n > whole ? whole : o->n;
	if (o->writes == fake.only_writes &&
	    (++fake.operations == fake.nth || (fake.ever && fake.seen))) {
		fake.seen = true;
		return fake.zero ? 0 : -fake.err;
	}
	if (!o->writes && fake.before_read)
		fake.before_read(o->at);
	ssize_t got = o->writes ? pwrite(o->fd, o->buf, n, o->at) : pread(o->fd, o->buf, n, o->at);
	if (got > 0 && fake.most && (size_t)got > fake.most)
		return (int)fake.most;
	return got < 0 ? -errno : (int)got;
}

int __wrap_ring_wait(struct ring *r, unsigned *id, int *result);
int __wrap_ring_wait(struct ring *r, unsigned *id, int *result)
{
	if (++fake.waits == fake.wait_nth) {
		fake.seen = true;
		return -fake.wait_err;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned slot = fake.backwards ? SLOTS - 1 - i : i;
		if (!r->slot[slot].queued)
			continue;
		r->slot[slot].queued = false;
		*id = slot;
		*result = perform(&r->slot[slot]);
		return 0;
	}
	fail_msg("waits for nothing");
	return -1;
}

/* What is in flight still moves its bytes. */
void __wrap_ring_drain(struct ring *r);
void __wrap_ring_drain(struct ring *r)
{
	fake.drained++;
	for (unsigned i = 0; i < SLOTS; i++)
		if (r->slot[i].queued)
			perform(&r->slot[i]);
	memset(r, 0, sizeof(*r));
}

#endif
