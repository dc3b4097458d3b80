# SPDX-License-Identifier: MIT
# GNU make; `make help` lists the targets.

PREFIX  ?= /usr/local
BUILD   ?= build
PROGRAM ?= fcopy
CC      ?= cc
CFLAGS  ?= -O2 -g
WARN    ?= -Wall -Wextra

VERSION := $(shell sed -n 's/^\#define FCOPY_VERSION *"\(.*\)"/\1/p' include/fcopy.h)

# The io_uring engine is built in when liburing's static library is there.
LIBURING := $(shell pkg-config --exists liburing 2>/dev/null && \
	ls "$$(pkg-config --variable=libdir liburing)/liburing.a" 2>/dev/null)
ifneq ($(LIBURING),)
DEFINES := -DHAVE_LIBURING $(shell pkg-config --cflags liburing)
endif

FLAGS  = -std=gnu11 $(WARN) -Iinclude -Isrc -D_FILE_OFFSET_BITS=64 $(DEFINES) $(CPPFLAGS) $(CFLAGS)
LIBS   = $(LIBURING) -pthread

LIB_SRC := $(wildcard src/io/*.c src/engines/*.c src/endpoints/*.c src/copy/*.c)
CLI_SRC := fcopy.c $(wildcard src/cli/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
LIB     := $(BUILD)/libfcopy.a

.PHONY: all
all: $(PROGRAM) ## the program, and libfcopy.a

$(PROGRAM): $(CLI_OBJ) $(LIB)
	$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(LIB): $(LIB_OBJ)
	rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) -MMD -MP -c -o $@ $<

# Changes only when the flags do, and then everything is built anew.
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' | cmp -s - $@ || \
		echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' >$@

.PHONY: force
force:

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

include tests/tests.mk

.PHONY: demo bench
demo: all ## time each mode on a 1 GiB file, in a minute
	bench/demo.sh
bench: all ## the quick set of benchmarks, in five minutes
	bench/bench.sh --quick all

.PHONY: install uninstall
install: all ## into $(DESTDIR)$(PREFIX)
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/fcopy
	install -D -m 644 include/fcopy.h $(DESTDIR)$(PREFIX)/include/fcopy.h
	install -D -m 644 $(LIB) $(DESTDIR)$(PREFIX)/lib/libfcopy.a

uninstall: ## undoes install
	rm -f $(DESTDIR)$(PREFIX)/bin/fcopy $(DESTDIR)$(PREFIX)/include/fcopy.h \
		$(DESTDIR)$(PREFIX)/lib/libfcopy.a

.PHONY: dist clean help
dist: ## a source archive of HEAD in build/
	@mkdir -p $(BUILD)
	git archive --prefix=fcopy-$(VERSION)/ -o $(BUILD)/fcopy-$(VERSION).tar.gz HEAD

clean: ## removes what was built
	rm -rf $(BUILD) $(PROGRAM)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'
