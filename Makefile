# SPDX-License-Identifier: MIT
# GNU make; `make help` lists the targets.

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

VERSION := $(shell sed -n 's/^\#define FCOPY_VERSION *"\(.*\)"/\1/p' include/fcopy.h)

# The io_uring engine is built in when liburing's static library is there.
LIBURING := $(shell pkg-config --exists liburing 2>/dev/null && \
	ls "$$(pkg-config --variable=libdir liburing)/liburing.a" 2>/dev/null)
ifneq ($(LIBURING),)
DEFINES := -DHAVE_LIBURING $(shell pkg-config --cflags liburing)
endif

FLAGS  = -std=gnu11 $(WARN) -Iinclude -Isrc -D_FILE_OFFSET_BITS=64 $(DEFINES) $(CPPFLAGS) $(CFLAGS)
LIBS   = $(LIBURING) -pthread

LIB_SRC := $(wildcard src/io/*.c src/engines/*.c src/endpoints/*.c src/copy/*.c src/tree/*.c)
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

.PHONY: demo bench figures
demo: all ## time each mode on a 1 GiB file, in a minute
	bench/demo.sh
bench: all ## the quick set of benchmarks, in five minutes
	bench/bench.sh --quick all

# What is installed: mode, file, destination. Uninstall goes through the same list.
PC := $(BUILD)/fcopy.pc
INSTALLED = \
	755 $(PROGRAM) $(BINDIR)/fcopy \
	644 include/fcopy.h $(INCDIR)/fcopy.h \
	644 $(LIB) $(LIBDIR)/libfcopy.a \
	644 $(PC) $(LIBDIR)/pkgconfig/fcopy.pc \
	644 src/man/fcopy.1 $(MANDIR)/man1/fcopy.1 \
	644 src/man/libfcopy.3 $(MANDIR)/man3/libfcopy.3 \
	644 src/dist/fcopy.schema.json $(DATADIR)/fcopy/fcopy.schema.json \
	644 src/dist/completions/fcopy.bash $(BASHDIR)/fcopy \
	644 src/dist/completions/_fcopy $(ZSHDIR)/_fcopy \
	644 src/dist/completions/fcopy.fish $(FISHDIR)/fcopy.fish

# There is only a static library, so that Libs names whatever it needs itself.
$(PC): src/dist/fcopy.pc.in force
	@mkdir -p $(@D)
	sed -e 's|@libdir@|$(LIBDIR)|; s|@includedir@|$(INCDIR)|; s|@version@|$(VERSION)|' \
		-e 's|@uring@|$(if $(LIBURING),-l:liburing.a)|' $< >$@
figures: ## the plots, and the tables of the READMEs, from the committed results
	bench/figures.sh

.PHONY: install uninstall check-install
install: all $(PC) ## into $(DESTDIR)$(PREFIX)
	@printf '%s %s %s\n' $(INSTALLED) | while read -r mode from to; do \
		echo "install $(DESTDIR)$$to"; \
		install -D -m "$$mode" "$$from" "$(DESTDIR)$$to" || exit 1; \
	done

uninstall: ## undoes install
	@printf '%s %s %s\n' $(INSTALLED) | while read -r mode from to; do \
		echo "remove $(DESTDIR)$$to"; \
		rm -f "$(DESTDIR)$$to"; \
	done
	@rmdir "$(DESTDIR)$(DATADIR)/fcopy" 2>/dev/null || true

check-install: all $(PC) ## proves that uninstall undoes install
	rm -rf $(BUILD)/root && mkdir -p $(BUILD)/root
	$(MAKE) --no-print-directory install DESTDIR=$(abspath $(BUILD))/root
	$(MAKE) --no-print-directory uninstall DESTDIR=$(abspath $(BUILD))/root
	@left=$$(find $(BUILD)/root ! -type d); \
		[ -z "$$left" ] && echo "nothing is left" || { echo "left: $$left"; exit 1; }

DEB := $(BUILD)/deb/fcopy-$(VERSION)
# The package is built by Debian's rules, whatever this make was told.
DEB_CLEAN := $(addprefix -u ,MAKEFLAGS MAKELEVEL BUILD PROGRAM PREFIX DESTDIR CC CFLAGS CPPFLAGS LDFLAGS)
.PHONY: deb
deb: ## Debian packages in build/deb/ (dpkg-dev, debhelper)
	rm -rf $(BUILD)/deb && mkdir -p $(DEB)
	tar -cf - Makefile LICENSE fcopy.c include src tests/tests.mk | tar -xf - -C $(DEB)
	mv $(DEB)/src/dist/debian $(DEB)/debian
	sed 's|@version@|$(VERSION)|; s|@date@|$(shell date -Ru $(if $(SOURCE_DATE_EPOCH),-d @$(SOURCE_DATE_EPOCH)))|' \
		src/dist/debian/changelog >$(DEB)/debian/changelog
	cd $(DEB) && env $(DEB_CLEAN) dpkg-buildpackage -us -uc -b
	@ls $(BUILD)/deb/*.deb

.PHONY: dist clean help
dist: ## a source archive of HEAD in build/
	@mkdir -p $(BUILD)
	git archive --prefix=fcopy-$(VERSION)/ -o $(BUILD)/fcopy-$(VERSION).tar.gz HEAD

clean: ## removes what was built
	rm -rf $(BUILD) $(PROGRAM)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-18s%s\n", $$1, $$2 }'
