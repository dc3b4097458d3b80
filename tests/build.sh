#!/bin/bash
# SPDX-License-Identifier: MIT
#
# build.sh [--quick] [NAME…]: compiles fcopy by every supported compiler, for every supported target, with
# warnings as errors, and runs some tests of each result. Prints one line for each build, and at the end
# `N passed, N failed, N skipped`. With NAMEs (gcc-O0, musl, …), only those builds. A build is skipped only if a
# package that it needs is not installed. --quick: one build of each compiler, C library and architecture, with -O0,
# and of the tests those of the modes and of trees that take no longer than a few seconds.
#
# Not gcc-multilib, which conflicts with cross compilers: libc6-dev-i386 and lib32gcc-N-dev suffice,
# if the compiler is shown the kernel's headers.
set -u
cd "$(dirname "$0")/.." || exit 1
top=build/builds
passed=0 failed=0 skipped=0
machine=$(gcc -print-multiarch)
quick=
if [ "${1-}" = --quick ]; then
	quick=yes
	shift
	[ $# != 0 ] || set -- clang-O0 no-liburing m32 musl arm64 s390x
fi
wanted=" $* "

# Tests of the program that need neither its name in /proc nor strace. The others of trees count system calls, or
# take long.
trees='^(-r|-a|-rL|into|several|two|a new tree|merge)'
tests=(tests/cli/modes.bats tests/cli/sparse.bats tests/cli/destinations.bats)
[ -z "$quick" ] || tests=(tests/cli/modes.bats)

# lacks PACKAGE…: prints the first one that is not installed.
lacks() {
	local package
	for package; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
			{ echo "$package"; return; }
	done
}

# large PROGRAM: each mode that works here copies a file with data on both sides of 4 GiB.
large() {
	local program=$1 dir mode status=0
	dir=$(mktemp -d "$top/large.XXXXXX") || return
	echo small >"$dir/small"
	truncate -s 4294967000 "$dir/a"
	head -c 3000 /dev/urandom >>"$dir/a"
	for mode in $("$program" --list | awk 'NR > 1 { print $2 }'); do
		if "$program" "$dir/small" "$dir/b" "$mode" 2>/dev/null; then
			"$program" "$dir/a" "$dir/b" "$mode" && cmp "$dir/a" "$dir/b" || status=1
		fi
		rm -f "$dir/b"
	done
	rm -rf "$dir"
	return $status
}

# linked NAME COMPILER: libfcopy.a has code also if its objects had bytecode: a program that is built without -flto links.
linked() {
	local dir=$top/$1
	printf '%s\n' '#include <fcopy.h>' 'int main(int n, char **a)' \
		'{ static struct fcopy_report r; return fcopy_copy(a[n - 2], a[n - 1], 0, &r); }' >"$dir/link.c"
	# shellcheck disable=SC2016,SC2046
	$2 -fno-lto -Iinclude -o "$dir/link" "$dir/link.c" "$dir/libfcopy.a" $(make -s --eval='libs:;@echo $(LIBS)' libs) &&
		"$dir/link" "$dir/link.c" "$dir/link.copy" && cmp "$dir/link.c" "$dir/link.copy"
}

# not_ok NAME TESTS: counts and shows the failure.
not_ok() {
	grep -A 8 '^not ok' "$top/$1/log" | head -n 30
	echo "$1: FAILED $2"
	failed=$((failed + 1))
	return 1
}

# try NAME PACKAGES EMULATOR MAKE_ARGUMENT…
try() {
	local name=$1 packages=$2 emulator=$3 start=$SECONDS dir=$top/$1 missing suite program
	shift 3
	[[ $wanted == "  " || $wanted == *" $name "* ]] || return
	# shellcheck disable=SC2086
	missing=$(lacks $packages)
	if [ -n "$missing" ]; then
		echo "$name: skipped: package $missing is not installed"
		skipped=$((skipped + 1))
		return
	fi
	rm -rf "$dir"
	mkdir -p "$dir"
	if ! make -j"$(nproc)" BUILD="$dir" PROGRAM="$dir/fcopy" WARN='-Wall -Wextra -Werror' "$@" \
		all >"$dir/log" 2>&1; then
		grep -A 4 -E "(error|warning):" "$dir/log" || tail -n 20 "$dir/log"
		echo "$name: FAILED to build"
		failed=$((failed + 1))
		return
	fi
	if [[ $name == *-lto ]] && ! linked "$name" "${name%%-*}" >>"$dir/log" 2>&1; then
		tail "$dir/log"
		echo "$name: FAILED to link libfcopy.a without -flto"
		failed=$((failed + 1))
		return
	fi
	program=$PWD/$dir/fcopy
	if [ -n "$emulator" ]; then
		printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$emulator" "$program" >"$dir/run"
		chmod +x "$dir/run"
		program=$PWD/$dir/run
	fi
	for suite in "${tests[@]}"; do
		FCOPY=$program EMULATOR=${emulator%% *} timeout 300 bats "$suite" >>"$dir/log" 2>&1 ||
			not_ok "$name" "${suite##*/}" || return
	done
	FCOPY=$program timeout 300 bats -f "$trees" tests/cli/tree.bats >>"$dir/log" 2>&1 ||
		not_ok "$name" tree.bats || return
	if [ -z "${name##m32*}" ] || [ -z "${name##musl*}" ]; then
		large "$program" >>"$dir/log" 2>&1 || {
			tail "$dir/log"
			echo "$name: FAILED with a file of more than 4 GiB"
			failed=$((failed + 1))
			return
		}
	fi
	echo "$name: passed ($((SECONDS - start)) s)"
	passed=$((passed + 1))
}

for cc in gcc clang; do
	try $cc-O0 $cc '' CC=$cc CFLAGS=-O0
	try $cc-O2 $cc '' CC=$cc CFLAGS=-O2
	try $cc-O3-lto "$cc$([ $cc = gcc ] || echo ' lld')" '' CC=$cc CFLAGS='-O3 -flto' \
		LDFLAGS="$([ $cc = gcc ] || echo -fuse-ld=lld)"
	try $cc-fortify $cc '' CC=$cc CFLAGS='-O2 -D_FORTIFY_SOURCE=3'
done
# As make does it, or quickly.
flags=()
[ -z "$quick" ] || flags=(CFLAGS=-O0)
try no-liburing gcc '' CC=gcc LIBURING= "${flags[@]}"

# musl-gcc and gcc -m32 look for the kernel's headers in directories that only other packages fill.
kernel=$PWD/$top/kernel
mkdir -p "$top/kernel"
ln -sfn /usr/include/linux "$kernel/linux"
ln -sfn /usr/include/asm-generic "$kernel/asm-generic"
ln -sfn "/usr/include/$machine/asm" "$kernel/asm"
try m32 "libc6-dev-i386 lib32gcc-$(gcc -dumpversion)-dev" '' CC='gcc -m32' CPPFLAGS="-idirafter '$kernel'" "${flags[@]}"
try musl musl-tools '' CC=musl-gcc CPPFLAGS="-isystem '$kernel'" "${flags[@]}"
try arm64 "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static" "qemu-aarch64-static -L /usr/aarch64-linux-gnu" \
	CC=aarch64-linux-gnu-gcc "${flags[@]}"
try s390x "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static" "qemu-s390x-static -L /usr/s390x-linux-gnu" \
	CC=s390x-linux-gnu-gcc "${flags[@]}"

echo "check-build took $SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
