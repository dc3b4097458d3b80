#!/bin/bash
# SPDX-License-Identifier: MIT
#
# musl.sh [SUITE…]: builds fcopy and its C tests with musl-gcc and runs `make check`'s programs and bats
# files with that program: all, or these (tests/cli/tree.bats, build/musl/tests/check/files_test, …). The libraries of
# the tests come from Debian's source packages, and stay in build/musl/root. Prints at the end `N passed, N failed,
# N skipped`. Where musl is the C library, `make check` does the same.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD/build/musl
root=$top/root

cannot() {
	echo "check-musl: skipped: $1"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

fail() {
	echo "check-musl: not ok: $1"
	[ ! -s "$top/log" ] || tail -n 20 "$top/log"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

# fetch PACKAGE…: unpacks the source packages of the configured Debian archive below $top/src, without touching the
# lists of apt.
fetch() {
	local file apt=$top/apt
	local -a options=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$apt/parts"
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
	rm -rf "$apt" "$top/src"
	mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial" "$top/src"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ ! -s "$file" ] || sed -n '/\/debian/s/^deb /deb-src /p' "$file" >"$apt/parts/${file##*/}"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ ! -s "$file" ] || ! grep -q '^URIs:.*/debian' "$file" ||
			sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}"
	done
	apt-get "${options[@]}" update &&
		(cd "$top/src" && apt-get "${options[@]}" source "$@") &&
		rm -rf "$apt"
}

# describe LIBRARY: for pkg-config.
describe() {
	printf 'Name: %s\nDescription: for tests\nVersion: 1\nLibs: -L%s -l%s\nCflags: -I%s\n' \
		"$1" "$root/lib" "$1" "$root/include" >"$root/lib/pkgconfig/$1.pc"
}

# The unit test libraries and liburing, static.
build_libraries() {
	local src=$top/src
	rm -rf "$root"
	mkdir -p "$root/include" "$root/lib/pkgconfig"
	ln -s /usr/include/linux /usr/include/asm-generic "/usr/include/$(gcc -print-multiarch)/asm" "$root/include"
	(cd "$src"/check-* && CC=musl-gcc ./configure -q --prefix="$root" --disable-shared --disable-subunit &&
		make -j"$(nproc)" -C lib && make -j"$(nproc)" -C src install &&
		cp check_stdint.h "$root/include") && describe check || return
	# cmocka is one file; its cmake writes these, too.
	(cd "$src"/cmocka-* && cp include/cmocka*.h "$root/include" &&
		musl-gcc -O2 -Iinclude -DHAVE_ASSERT_H -DHAVE_INTTYPES_H -DHAVE_MALLOC_H -DHAVE_SETJMP_H \
			-DHAVE_SIGNAL_H -DHAVE_STDARG_H -DHAVE_STDDEF_H -DHAVE_STDINT_H -DHAVE_STDIO_H -DHAVE_STDLIB_H \
			-DHAVE_STRINGS_H -DHAVE_STRING_H -DHAVE_TIME_H -DHAVE_UNISTD_H -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME \
			-DHAVE_CALLOC -DHAVE_EXIT -DHAVE_FPRINTF -DHAVE_FREE -DHAVE_LONGJMP -DHAVE_SIGLONGJMP -DHAVE_MALLOC \
			-DHAVE_MEMCPY -DHAVE_MEMSET -DHAVE_PRINTF -DHAVE_SETJMP -DHAVE_SIGNAL -DHAVE_SNPRINTF -DHAVE_STRCMP \
			-DHAVE_STRERROR -DHAVE_VSNPRINTF -DHAVE_GCC_THREAD_LOCAL_STORAGE -c src/cmocka.c -o cmocka.o &&
		ar rcs "$root/lib/libcmocka.a" cmocka.o) && describe cmocka || return
	(cd "$src"/liburing-* && ./configure --cc="musl-gcc" --prefix="$root" &&
		make -j"$(nproc)" -C src CC=musl-gcc CPPFLAGS="-isystem $root/include" ENABLE_SHARED=0 install) || return
	touch "$root/complete"
}

case $(${CC:-cc} -dumpmachine) in
*-musl*) exec make check ;;
esac
for tool in musl-gcc bats strace pkg-config; do
	type $tool >/dev/null 2>&1 || cannot "no $tool (packages: tests/needs.sh, tests/needs.sh build)"
done
mkdir -p "$top"
if [ ! -e "$root/complete" ]; then
	for tool in apt-get dpkg-source; do
		type $tool >/dev/null 2>&1 || cannot "no $tool to unpack check, cmocka and liburing"
	done
	[ -d "$top/src" ] || 	fetch check cmocka liburing >"$top/log" 2>&1 || fail "source packages of check, cmocka and liburing"
	build_libraries >"$top/log" 2>&1 </dev/null || fail "check, cmocka or liburing do not build"
	rm -rf "$top/src"
fi

export PKG_CONFIG_LIBDIR=$root/lib/pkgconfig CC=musl-gcc
make -j"$(nproc)" tests BUILD=build/musl PROGRAM=build/musl/fcopy WARN='-Wall -Wextra -Werror' LDFLAGS="-L$root/lib" \
	CPPFLAGS="-isystem $root/include" >"$top/log" 2>&1 || fail "fcopy or its tests do not build"
unset PKG_CONFIG_LIBDIR
if [ $# = 0 ]; then
	set -- "$top"/tests/check/*_test "$top"/tests/cmocka/*_test tests/cli
fi
FCOPY=$top/fcopy FCOPY_BUILD=$top exec tests/mounts.sh tests/run.sh "$@"
