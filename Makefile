# SPDX-License-Identifier: MIT
# GNU make; `make help` lists the targets.

# Paths that make builds have no spaces; the directory of the source, PREFIX, DESTDIR and the other
# directories of the installation may have some.
PREFIX  ?= /usr/local
BINDIR  ?= $(PREFIX)/bin
LIBDIR  ?= $(PREFIX)/lib
INCDIR  ?= $(PREFIX)/include
MANDIR  ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share
BASHDIR ?= $(DATADIR)/bash-completion/completions
ZSHDIR  ?= $(DATADIR)/zsh/site-functions
# Without XDG_DATA_DIRS, fish does not look in /usr/local.
FISHDIR ?= $(if $(filter /usr/local/share,$(DATADIR)),/etc/fish/completions,$(DATADIR)/fish/vendor_completions.d)
BUILD   ?= build
PROGRAM ?= fcopy
CC      ?= cc
CFLAGS  ?= -O2 -g
WARN    ?= -Wall -Wextra

ifneq ($(words x$(BUILD)x x$(PROGRAM)x),2)
$(error BUILD and PROGRAM must not contain spaces: '$(BUILD)', '$(PROGRAM)')
endif

# A path as one word of the shell; the same as an absolute path, unlike abspath also with spaces.
quoted    = '$(subst ','\'',$(1))'
absolute  = $(call quoted,$(if $(filter /%,$(1)),$(1),$(CURDIR)/$(1)))

# The tools that belong to the compiler's target, which may not be this machine.
tool_of   = $(shell $(CC) $(CFLAGS) -print-prog-name=$(1))
ifeq ($(origin AR),default)
AR        = $(call tool_of,ar)
endif
NM       ?= $(call tool_of,nm)
OBJCOPY  ?= $(call tool_of,objcopy)

VERSION := $(shell sed -n 's/^\#define FCOPY_VERSION *"\(.*\)"/\1/p' include/fcopy.h)

# The io_uring engine is built in if the compiler, for its target, finds liburing's header and its
# static library. LIBURING= leaves it out.
ifeq ($(origin LIBURING),undefined)
hash := \#
LIBURING := $(shell printf '%s\n' '$(hash)define _GNU_SOURCE' '$(hash)include <liburing.h>' \
	'int main(void) { return io_uring_queue_init(1, (struct io_uring *)0, 0); }' | \
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -x c -o /dev/null - -l:liburing.a 2>/dev/null && \
	echo -l:liburing.a)
endif
DEFINES := $(if $(LIBURING),-DHAVE_LIBURING)

FLAGS  = -std=gnu11 $(WARN) -Iinclude -Isrc -D_GNU_SOURCE= -D_FILE_OFFSET_BITS=64 $(DEFINES) $(CPPFLAGS) $(CFLAGS)
LIBS   = $(LIBURING) -pthread

LIB_SRC := $(wildcard src/source/*.c src/io/*.c src/engines/*.c src/part/*.c src/endpoints/*.c src/copy/*.c src/tree/*.c src/shard/*.c)
CLI_SRC := fcopy.c $(wildcard src/cli/*.c src/show/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
LIB     := $(BUILD)/libfcopy.a
# The library with all global names, for the tests; the other one exports fcopy_* alone.
INTERNAL := $(BUILD)/internal.a
# The version of the shared library's binary interface: it increases when an old program would not run with a new library.
SONAME  := libfcopy.so.1
SHARED  := $(BUILD)/$(SONAME)

# One line for each step; V=1 shows the commands.
Q    := $(if $(filter-out 0,$(V)),,@)
step  = $(if $(Q),@printf '  %-5s %s\n' '$(1)' '$@')

.PHONY: all
all: $(PROGRAM) $(SHARED) ## the program, libfcopy.a and libfcopy.so; V=1 shows the commands
	$(if $(filter-out all,$(MAKECMDGOALS)),,@echo 'built $(BUILT) $(VERSION), $(if $(LIBURING),with \
		liburing,without liburing: mode 6 (direct) is missing); next: $(BUILT) SRC DST, or make install')
BUILT = $(if $(findstring /,$(PROGRAM)),,./)$(PROGRAM)

# What the program shares with the library, whose names are local.
SHARES := $(patsubst %,$(BUILD)/src/%.o,copy/conflicts endpoints/classify io/follow io/libc io/proc io/words)
$(PROGRAM): $(CLI_OBJ) $(SHARES) $(LIB)
	$(call step,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# One object, so that all names but fcopy_* can become local. It holds code, also with -flto, not bytecode. Without its
# section groups: the linker would drop a group whose name another object has, with names that are local.
LTO = $(if $(findstring -flto,$(CFLAGS)),$(if $(findstring clang,$(CC)),-fuse-ld=lld,-flinker-output=nolto-rel))
$(BUILD)/libfcopy.o: $(LIB_OBJ)
	$(call step,JOIN)
	$(Q)$(CC) $(FLAGS) $(if $(findstring lld,$(LTO)),,-Wl,--force-group-allocation) $(LTO) -r -nostdlib -o $@ $^
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='fcopy_*' $@

$(SHARED): $(BUILD)/libfcopy.o src/dist/libfcopy.map
	$(call step,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/dist/libfcopy.map -o $@ $< $(LIBS)

$(LIB): $(BUILD)/libfcopy.o
$(INTERNAL): $(LIB_OBJ)

$(LIB) $(INTERNAL):
	$(call step,AR)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(LIB_OBJ): PIC := -fPIC # also for shared objects that contain the library
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call step,CC)
	$(Q)$(CC) $(FLAGS) $(PIC) -MMD -MP -c -o $@ $<

# Changes only when the flags do; then everything is compiled again.
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' | cmp -s - $@ || \
		echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' >$@

.PHONY: force
force:

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

include tests/tests.mk

.PHONY: demo demo-sockets bench figures
bench: all ## the main benchmarks, in five minutes
	bench/bench.sh quick
DEMO_SIZE ?= 1G
demo: all ## time modes 0 to 4 on a file of DEMO_SIZE (1G), in a minute
	bench/demo.sh $(DEMO_SIZE)
demo-sockets: all ## IBM's table of 2008, read + send against sendfile, in a minute
	bench/demo-sockets.sh
figures: ## the plots, and the tables of the READMEs, from the committed results
	bench/figures.sh

include src/dist/package.mk

.PHONY: clean help
clean: ## removes what was built
	rm -rf $(BUILD) $(PROGRAM)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'
