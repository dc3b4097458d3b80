# SPDX-License-Identifier: MIT
# The tests' part of the Makefile. Programs are tests/check/*_test.c and tests/cmocka/*_test.c; the
# other sources there are what they share.

CHECK_SRC  := $(wildcard tests/check/*_test.c)
CMOCKA_SRC := $(wildcard tests/cmocka/*_test.c)
CHECK_HELP := $(filter-out $(CHECK_SRC),$(wildcard tests/check/*.c))
CMOCKA_HELP := $(filter-out $(CMOCKA_SRC),$(wildcard tests/cmocka/*.c)) tests/check/files.c
CHECK_BIN  := $(CHECK_SRC:%.c=$(BUILD)/%)
CMOCKA_BIN := $(CMOCKA_SRC:%.c=$(BUILD)/%)
# Those that have threads. Up here, because a rule's prerequisites are expanded where it stands.
THREADS_CHECK  := $(addprefix $(BUILD)/tests/check/,changing_test in_place_test options_test tree_test)
THREADS_CMOCKA := $(addprefix $(BUILD)/tests/cmocka/,handing_test plan_test serve_test tree_test)
TEST_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(CHECK_SRC) $(CMOCKA_SRC) $(CHECK_HELP) $(CMOCKA_HELP))
BATS       := $(if $(wildcard tests/cli/*.bats),tests/cli)
HERE       := FCOPY=$(call absolute,$(PROGRAM)) FCOPY_BUILD=$(call absolute,$(BUILD))
RUN        := $(HERE) tests/mounts.sh tests/run.sh

.SECONDARY: $(TEST_OBJ)

# src/show is not in the library.
$(BUILD)/tests/check/amount_test: $(addprefix $(BUILD)/src/show/,text.o patient.o signals.o)
$(CHECK_BIN): $(BUILD)/tests/check/%: $(BUILD)/tests/check/%.o $(CHECK_HELP:%.c=$(BUILD)/%.o) $(INTERNAL)
	$(call step,LINK)
	$(Q)$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $$(pkg-config --libs check) $(LIBS)

# What the objects define as __wrap_x is wrapped; a wrap of something that the library does not call
# would silently wrap nothing, so then the link stops.
$(CMOCKA_BIN): $(BUILD)/tests/cmocka/%: $(BUILD)/tests/cmocka/%.o $(CMOCKA_HELP:%.c=$(BUILD)/%.o) $(INTERNAL)
	$(call step,LINK)
	$(Q)wraps=$$($(NM) --defined-only $(filter %.o,$^) | sed -n 's/.* T __wrap_//p' | sort -u); \
	calls=$$($(NM) --undefined-only $(INTERNAL) | awk 'NF == 2 { print $$2 }' | sort -u); \
	for x in $$wraps; do \
		echo "$$calls" | grep -qx "$$x" || \
			{ echo "$@: the library does not call $$x: its wrap would do nothing" >&2; exit 1; }; \
	done; \
	$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $$(printf ' -Wl,--wrap=%s' $$wraps) \
		$$(pkg-config --libs cmocka) $(LIBS)

-include $(TEST_OBJ:.o=.d)

.PHONY: tests check check-packages check-long check-kernels fuzz fuzzer check-build check-musl check-asan check-tsan check-valgrind coverage lint
tests: $(PROGRAM) $(SHARED) $(CHECK_BIN) $(CMOCKA_BIN)

# Started first, so that no CPU is idle at the end.
LONGEST := $(addprefix $(BUILD)/tests/,cmocka/shard_test check/changing_test check/matrix_test)
check: tests ## the tests; as root on ext4, XFS, btrfs and tmpfs
	@$(RUN) $(filter $(CHECK_BIN) $(CMOCKA_BIN),$(LONGEST)) $(filter-out $(LONGEST),$(CHECK_BIN) $(CMOCKA_BIN)) $(BATS)

check-long: tests ## kills, faults, full disks, power cuts, fuzzing, and a table: an hour and a half
	@$(HERE) tests/long.sh

check-packages: ## the source archive and the packages of HEAD (all, or PARTS='deb rpm'): up to 25 minutes
	@tests/packages.sh $(PARTS)

check-build: ## other compilers, flags and targets (all, or BUILDS='musl m32'): minutes
	@tests/build.sh $(BUILDS)

check-musl: ## the tests with musl as the C library (all, or SUITES='tests/cli/tree.bats')
	@tests/musl.sh $(SUITES)

KERNELS ?= 5.10 6.1 6.12
check-kernels: $(PROGRAM) $(CHECK_BIN) ## Debian's kernels (KERNELS='5.10 6.1 6.12') in qemu: 40 minutes
	@$(HERE) tests/kernels/kernels.sh $(KERNELS)

# The same tests with other flags, in a build of their own.
SANITIZED = $(MAKE) --no-print-directory BUILD=build/$(1) PROGRAM=build/$(1)/fcopy LDFLAGS= \
	CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=$(2)'

# Of the program's tests those that trace nothing: strace and LeakSanitizer exclude each other.
ASAN_BATS = tests/cli/refusals.bats tests/cli/devices.bats

check-asan: ## the tests with AddressSanitizer and UBSan
	ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		$(call SANITIZED,asan,address$(comma)undefined -fno-sanitize-recover=all) \
		BATS='$(ASAN_BATS)' check

# The program's tests that start threads, except those that limit memory: TSan needs more.
TSAN_BATS = $(patsubst %,tests/cli/%.bats,serve tree tree_resume lines)

check-tsan: ## what has threads, with ThreadSanitizer
	TSAN_OPTIONS=halt_on_error=1 \
		$(call SANITIZED,tsan,thread) BATS='$(TSAN_BATS)' CHECK_BIN='$$(THREADS_CHECK)' \
		CMOCKA_BIN='$$(THREADS_CMOCKA)' check

# What is parsed, with libFuzzer (clang, and its libclang-rt).
FUZZ_SECONDS ?= 600
FUZZ_SRC := $(wildcard tests/fuzz/*.c)
FUZZER   := $(BUILD)/tests/fuzz/command_line
FUZZED = $(MAKE) --no-print-directory BUILD=build/fuzz PROGRAM=build/fuzz/fcopy LDFLAGS= CC=clang \
	CFLAGS='-O2 -g -fsanitize=fuzzer-no-link,address$(comma)undefined \
		-fno-sanitize-recover=all'

$(FUZZER): $(FUZZ_SRC:%.c=$(BUILD)/%.o) $(filter-out $(BUILD)/fcopy.o,$(CLI_OBJ)) $(INTERNAL)
	$(call step,LINK)
	$(Q)$(CC) $(FLAGS) -fsanitize=fuzzer -Wl,--wrap=getaddrinfo,--wrap=strdup -o $@ $^ $(LIBS) -lm

-include $(FUZZ_SRC:%.c=$(BUILD)/%.d)

fuzzer:
	@$(FUZZED) build/fuzz/tests/fuzz/command_line

fuzz: ## what is parsed, and TCP streams, with libFuzzer, for FUZZ_SECONDS (600)
	@FCOPY_BUILD=$(call absolute,$(BUILD)) tests/long/fuzz.sh $(FUZZ_SECONDS)

comma := ,

# One process for all tests, on one file system: a process for each would take an hour. Each process
# has its own log, also the children of tests; an error in any log is a failure. Lines that start with --
# are ignored: they name system calls that valgrind does not know.
VALGRIND_BATS = $(patsubst %,tests/cli/%.bats,modes tree_resume)
VALGRIND = -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
	--log-file=%q{FCOPY_BUILD}/valgrind/log.%p
check-valgrind: tests ## the tests of the library, and the program, with valgrind
	@rm -rf $(BUILD)/valgrind && mkdir -p $(BUILD)/valgrind/bin && chmod 1777 $(BUILD)/valgrind
	@ln -s $(call absolute,$(PROGRAM)) $(BUILD)/valgrind/bin/fcopy
	@printf '#!/bin/sh\nexec valgrind "$$FCOPY_BUILD/valgrind/bin/fcopy" "$$@"\n' >$(BUILD)/valgrind/fcopy
	@chmod 755 $(BUILD)/valgrind/fcopy
	@$(HERE) FCOPY=$(BUILD)/valgrind/fcopy UNDER=valgrind VALGRIND_OPTS='$(VALGRIND)' \
		CK_FORK=no CK_TIMEOUT_MULTIPLIER=20 FCOPY_TEST_DIR=$(call absolute,$(BUILD)) \
		tests/run.sh $(CHECK_BIN) $(CMOCKA_BIN) $(VALGRIND_BATS); status=$$?; \
		ls $(BUILD)/valgrind/log.* >/dev/null && ! grep -h '^==' $(BUILD)/valgrind/log.* && [ $$status = 0 ]

# gcovr replaces the file that it writes to, were it a device.
COVERED = $(MAKE) --no-print-directory BUILD=build/coverage PROGRAM=build/coverage/fcopy LDFLAGS= \
	CFLAGS='-O0 -g --coverage -fprofile-update=atomic'
GCOVR   = gcovr --root . --object-directory build/coverage --print-summary

coverage: ## how much of src/ the tests run through; fails below 95 and 90 %
	@mkdir -p build/coverage
	@find build/coverage -name '*.gcda' -delete
	$(COVERED) check
	$(GCOVR) --filter src/ --txt build/coverage/lines.txt --html-details build/coverage/index.html \
		--fail-under-line 90
	@echo 'of engines, io and endpoints:'
	@$(GCOVR) --filter 'src/(engines|io|endpoints)/' --txt build/coverage/inner.txt --fail-under-line 95

SOURCES = $(LIB_SRC) $(CLI_SRC) $(wildcard tests/*/*.c)
HEADERS = $(wildcard include/*.h src/*/*.h tests/*/*.h)
# Not by git, which a tarball lacks: shellcheck without a file fails.
SCRIPTS = $(shell grep -rlIE --exclude-dir=build --exclude-dir=.git \
	'^\#!/bin/(ba)?sh|^\# shellcheck shell' 2>/dev/null)
FUSE    = $(shell pkg-config --cflags fuse3 2>/dev/null)
# What the linters cannot know without the library's headers is left out where those are missing.
SECCOMP = $(shell pkg-config --exists libseccomp 2>/dev/null && echo yes)
LINTED  = $(filter-out $(if $(FUSE),,tests/tools/faultfs.c) $(if $(SECCOMP),,tests/tools/deny.c),$(SOURCES))
LINT_FLAGS = -std=gnu11 -Iinclude -Isrc -Itests/tools -D_GNU_SOURCE= -D_FILE_OFFSET_BITS=64 $(DEFINES) $(FUSE)

# Offsets that begin alike are meant; mmap's memory is returned; a descriptor fills a gap; a field of
# a struct of doubles is a double; and accept4 may be told that nobody asks for the address.
CPPCHECK_SUPPRESS = --suppress=duplicateAssignExpression --suppress=memleak:src/io/io.c \
	--suppress=leakReturnValNotUsed:src/cli/start.c --suppress=invalidPointerCast:src/cli/benchmark.c \
	--suppress=nullPointer:src/endpoints/socket.c

lint: $(LIB_OBJ) $(CLI_OBJ) ## clang-format, clang-tidy, cppcheck, shellcheck, mandoc, figures; gcc and clang with -Werror
	NM=$(NM) tests/rooms.sh $(LIB_OBJ) $(CLI_OBJ)
	python3 tests/comments.py $(SOURCES) $(HEADERS)
	bench/figures.sh --check
	@! grep -nE '^#include "(endpoints/)?(file|socket)\.h"' fcopy.c $(filter-out src/endpoints/%,$(wildcard src/*/*.[ch]))
	clang-format --dry-run -Werror $(SOURCES) $(HEADERS)
	printf '%s\n' $(LINTED) | xargs -P "$$(nproc)" -n 4 sh -c 'gcc -fsyntax-only -Wall -W -Werror $(LINT_FLAGS) "$$@" && \
		clang -fsyntax-only -Wall -Wextra -Werror $(LINT_FLAGS) "$$@" || exit 1' compilers
	printf '%s\n' $(LINTED) | xargs -P "$$(nproc)" -n 4 sh -c 'clang-tidy --quiet "$$@" -- $(LINT_FLAGS) \
		2>/dev/null || exit 1' clang-tidy
	cppcheck --quiet --error-exitcode=1 --inline-suppr -j "$$(nproc)" --std=c11 --library=posix,gnu \
		--enable=warning,performance,portability --suppress=missingIncludeSystem \
		$(CPPCHECK_SUPPRESS) \
		-Iinclude -Isrc -D_GNU_SOURCE= -D_FILE_OFFSET_BITS=64 -DHAVE_LIBURING fcopy.c src
	shellcheck -x $(SCRIPTS)
	@# Neither ends a test or `bash -e` when it is false: one on each line, or || after it.
	@! grep -nE '^\s+(\[\[? .* \]\]? && (\[|! )[^|]*\]|! [^|]*[^|\\])$$' tests/cli/*
	$(if $(wildcard src/man/*),mandoc -Tlint -Wwarning $(wildcard src/man/*))
