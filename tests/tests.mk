# SPDX-License-Identifier: MIT
# The tests' part of the Makefile. Programs are tests/check/*_test.c and tests/cmocka/*_test.c; the
# other sources there are what they share.

CHECK_SRC  := $(wildcard tests/check/*_test.c)
CMOCKA_SRC := $(wildcard tests/cmocka/*_test.c)
CHECK_HELP := $(filter-out $(CHECK_SRC),$(wildcard tests/check/*.c))
CMOCKA_HELP := $(filter-out $(CMOCKA_SRC),$(wildcard tests/cmocka/*.c)) tests/check/files.c
CHECK_BIN  := $(CHECK_SRC:%.c=$(BUILD)/%)
CMOCKA_BIN := $(CMOCKA_SRC:%.c=$(BUILD)/%)
TEST_OBJ   := $(patsubst %.c,$(BUILD)/%.o,$(CHECK_SRC) $(CMOCKA_SRC) $(CHECK_HELP) $(CMOCKA_HELP))
BATS       := $(if $(wildcard tests/cli/*.bats),tests/cli)
RUN        := FCOPY=$(abspath $(PROGRAM)) FCOPY_BUILD=$(abspath $(BUILD)) tests/mounts.sh tests/run.sh

.SECONDARY: $(TEST_OBJ)

$(CHECK_BIN): $(BUILD)/tests/check/%: $(BUILD)/tests/check/%.o $(CHECK_HELP:%.c=$(BUILD)/%.o) $(LIB)
	$(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $$(pkg-config --libs check) $(LIBS)

# What the objects define as __wrap_x is wrapped; a wrap of something that the library does not call
# would silently wrap nothing, so then the link stops.
$(CMOCKA_BIN): $(BUILD)/tests/cmocka/%: $(BUILD)/tests/cmocka/%.o $(CMOCKA_HELP:%.c=$(BUILD)/%.o) $(LIB)
	@wraps=$$(nm --defined-only $(filter %.o,$^) | sed -n 's/.* T __wrap_//p' | sort -u); \
	calls=$$(nm --undefined-only $(LIB) | awk 'NF == 2 { print $$2 }' | sort -u); \
	for x in $$wraps; do \
		echo "$$calls" | grep -qx "$$x" || \
			{ echo "$@: libfcopy.a does not call $$x: its wrap would do nothing" >&2; exit 1; }; \
	done; \
	echo '$(CC) -o $@'; $(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $$(printf ' -Wl,--wrap=%s' $$wraps) \
		$$(pkg-config --libs cmocka) $(LIBS)

-include $(TEST_OBJ:.o=.d)

.PHONY: check tests
tests: $(PROGRAM) $(CHECK_BIN) $(CMOCKA_BIN)

check: tests ## the tests; as root on ext4, XFS, btrfs and tmpfs
	@$(RUN) $(CHECK_BIN) $(CMOCKA_BIN) $(BATS)
