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
FISHDIR ?= $(DATADIR)/fish/vendor_completions.d
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

FLAGS  = -std=gnu11 $(WARN) -Iinclude -Isrc -D_FILE_OFFSET_BITS=64 $(DEFINES) $(CPPFLAGS) $(CFLAGS)
LIBS   = $(LIBURING) -pthread

LIB_SRC := $(wildcard src/source/*.c src/io/*.c src/engines/*.c src/part/*.c src/endpoints/*.c src/copy/*.c src/tree/*.c)
CLI_SRC := fcopy.c $(wildcard src/cli/*.c src/show/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(BUILD)/%.o)
LIB     := $(BUILD)/libfcopy.a
# The library with all global names, for the tests; the other one exports fcopy_* alone.
INTERNAL := $(BUILD)/internal.a
# The version of the shared library's binary interface: it increases when an old program would not run with a new library.
SONAME  := libfcopy.so.1
SHARED  := $(BUILD)/$(SONAME)

.PHONY: all
all: $(PROGRAM) $(SHARED) ## the program, libfcopy.a and libfcopy.so

$(PROGRAM): $(CLI_OBJ) $(LIB)
	$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# One object, so that all names but fcopy_* can become local. It holds code, also with -flto, not bytecode. Without its
# section groups: the linker would drop a group whose name another object has, with names that are local.
LTO = $(if $(findstring -flto,$(CFLAGS)),$(if $(findstring clang,$(CC)),-fuse-ld=lld,-flinker-output=nolto-rel))
$(BUILD)/libfcopy.o: $(LIB_OBJ)
	$(CC) $(FLAGS) $(if $(findstring lld,$(LTO)),,-Wl,--force-group-allocation) $(LTO) -r -nostdlib -o $@ $^
	$(OBJCOPY) --wildcard --keep-global-symbol='fcopy_*' $@

$(SHARED): $(BUILD)/libfcopy.o src/dist/libfcopy.map
	$(CC) $(FLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=src/dist/libfcopy.map -o $@ $< $(LIBS)

$(LIB): $(BUILD)/libfcopy.o
$(INTERNAL): $(LIB_OBJ)

$(LIB) $(INTERNAL):
	rm -f $@
	$(AR) rcs $@ $^

$(LIB_OBJ): PIC := -fPIC # also for shared objects that contain the library
$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(PIC) -MMD -MP -c -o $@ $<

# Changes only when the flags do; then everything is compiled again.
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' | cmp -s - $@ || \
		echo '$(CC) $(FLAGS) $(LDFLAGS) $(LIBS)' >$@

.PHONY: force
force:

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d)

include tests/tests.mk

.PHONY: demo bench figures
bench: all ## the main benchmarks, in five minutes
	bench/bench.sh quick
DEMO_SIZE ?= 1G
demo: all ## time modes 0 to 4 on a file of DEMO_SIZE (1G), in a minute
	bench/demo.sh $(DEMO_SIZE)

# What is installed: mode, file, destination; or the word link, its target, its name. Uninstall goes through the same list.
PC := $(BUILD)/fcopy.pc
INSTALLED = \
	755 $(PROGRAM) $(call quoted,$(BINDIR)/fcopy) \
	644 include/fcopy.h $(call quoted,$(INCDIR)/fcopy.h) \
	644 $(LIB) $(call quoted,$(LIBDIR)/libfcopy.a) \
	644 $(SHARED) $(call quoted,$(LIBDIR)/libfcopy.so.$(VERSION)) \
	link libfcopy.so.$(VERSION) $(call quoted,$(LIBDIR)/$(SONAME)) \
	link $(SONAME) $(call quoted,$(LIBDIR)/libfcopy.so) \
	644 $(PC) $(call quoted,$(LIBDIR)/pkgconfig/fcopy.pc) \
	644 src/man/fcopy.1 $(call quoted,$(MANDIR)/man1/fcopy.1) \
	644 src/man/fcopy-part.5 $(call quoted,$(MANDIR)/man5/fcopy-part.5) \
	644 src/man/fcopy-shards.7 $(call quoted,$(MANDIR)/man7/fcopy-shards.7) \
	644 src/man/libfcopy.3 $(call quoted,$(MANDIR)/man3/libfcopy.3) \
	644 src/dist/fcopy.schema.json $(call quoted,$(DATADIR)/fcopy/fcopy.schema.json) \
	644 src/dist/examples/job.yaml $(call quoted,$(DATADIR)/fcopy/examples/job.yaml) \
	644 src/dist/examples/table.c $(call quoted,$(DATADIR)/fcopy/examples/table.c) \
	644 src/dist/completions/fcopy.bash $(call quoted,$(BASHDIR)/fcopy) \
	644 src/dist/completions/_fcopy $(call quoted,$(ZSHDIR)/_fcopy) \
	644 src/dist/completions/fcopy.fish $(call quoted,$(FISHDIR)/fcopy.fish)

# A path as pkg-config reads it inside double quotes, and as the right side of sed's s|||.
in_pc = $(call quoted,s|@$(1)@|$(subst |,\|,$(subst &,\&,$(subst \,\\,$(2))))|)

$(PC): src/dist/fcopy.pc.in force
	@mkdir -p $(@D)
	sed -e $(call in_pc,libdir,$(LIBDIR)) -e $(call in_pc,includedir,$(INCDIR)) \
		-e $(call in_pc,version,$(VERSION)) -e $(call in_pc,uring,$(LIBURING)) $< >$@
figures: ## the plots, and the tables of the READMEs, from the committed results
	bench/figures.sh

.PHONY: install uninstall check-install
install: all $(PC) ## into $(DESTDIR)$(PREFIX)
	@printf '%s\n' $(INSTALLED) | while read -r mode && read -r from && IFS= read -r to; do \
		to=$(call quoted,$(DESTDIR))$$to; \
		echo "install $$to"; \
		if [ "$$mode" = link ]; then ln -sfn "$$from" "$$to"; else install -D -m "$$mode" "$$from" "$$to"; fi || exit 1; \
	done

uninstall: ## undoes install
	@printf '%s\n' $(INSTALLED) | while read -r mode && read -r from && IFS= read -r to; do \
		to=$(call quoted,$(DESTDIR))$$to; \
		echo "remove $$to"; \
		rm -f "$$to" || exit 1; \
	done
	@rmdir $(call quoted,$(DESTDIR)$(DATADIR)/fcopy/examples) \
		$(call quoted,$(DESTDIR)$(DATADIR)/fcopy) 2>/dev/null || true

check-install: all $(PC) ## proves that uninstall undoes install
	rm -rf $(BUILD)/root && mkdir -p $(BUILD)/root
	$(MAKE) --no-print-directory install DESTDIR=$(call absolute,$(BUILD)/root)
	$(MAKE) --no-print-directory uninstall DESTDIR=$(call absolute,$(BUILD)/root)
	@left=$$(find $(BUILD)/root ! -type d); \
		[ -z "$$left" ] && echo "nothing is left" || { echo "left: $$left"; exit 1; }

# The date that packages show: that of the commit, so that two builds of one commit are equal.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || stat -c %Y src/dist/CHANGELOG.md))
DEB := $(BUILD)/deb/fcopy-$(VERSION)
# The package is built by Debian's rules, whatever this make was told.
DEB_CLEAN := $(addprefix -u ,MAKEFLAGS MAKELEVEL BUILD PROGRAM PREFIX DESTDIR CC CFLAGS CPPFLAGS LDFLAGS)
.PHONY: deb
deb: ## Debian packages in build/deb/ (dpkg-dev, debhelper)
	rm -rf $(BUILD)/deb && mkdir -p $(DEB)
	tar -cf - Makefile LICENSE fcopy.c include src tests | tar -xf - -C $(DEB)
	mv $(DEB)/src/dist/debian $(DEB)/debian
	sed 's|@version@|$(VERSION)|; s|@date@|$(shell date -Ru -d @$(EPOCH))|' \
		src/dist/debian/changelog >$(DEB)/debian/changelog
	cd $(DEB) && env $(DEB_CLEAN) dpkg-buildpackage -us -uc -b
	@ls $(BUILD)/deb/*.deb

RPM := $(BUILD)/rpm
# The tools of other systems: rpmbuild may run where no RPM package satisfies BuildRequires.
.PHONY: rpm
rpm: dist ## RPM packages of HEAD in build/rpm/ (rpmbuild)
	rm -rf $(RPM) && mkdir -p $(RPM)/SOURCES
	cp $(BUILD)/fcopy-$(VERSION).tar.gz $(RPM)/SOURCES/
	sed 's|@version@|$(VERSION)|' src/dist/fcopy.spec >$(RPM)/fcopy.spec
	env $(DEB_CLEAN) rpmbuild --quiet -ba $(RPMFLAGS) --define '_topdir $(CURDIR)/$(RPM)' $(RPM)/fcopy.spec
	@find $(RPM) -name '*.rpm'

.PHONY: dist clean help
dist: ## a source archive of HEAD in build/
	@mkdir -p $(BUILD)
	git archive --prefix=fcopy-$(VERSION)/ -o $(BUILD)/fcopy-$(VERSION).tar.gz HEAD

clean: ## removes what was built
	rm -rf $(BUILD) $(PROGRAM)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'
