#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What make install puts down, what can be built with it, and whether the documentation is complete.

load helper

REPOSITORY=$(realpath "$BATS_TEST_DIRNAME/../..")

# Built apart, so that a test changes nothing in the tree, from those objects of the tree that make does not compile
# again; once for all tests of this file, which take turns: each has the .pc file rewritten, for its own PREFIX.
setup_file() {
	local built=${FCOPY_BUILD:-$REPOSITORY/build}
	export APART=$BATS_FILE_TMPDIR BATS_NO_PARALLELIZE_WITHIN_FILE=true
	mkdir "$APART/build"
	cp -a "$built"/{flags,fcopy.[do],src} "$APART/build/" 2>/dev/null || rm -rf "$APART/build"
	in_tree all >"$APART/log" 2>&1 || { cat "$APART/log"; return 1; }
}

# in_tree ARG…: make in the repository, with the products in $APART.
in_tree() {
	env -u MAKEFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS make --no-print-directory -C "$REPOSITORY" \
		BUILD="$APART/build" PROGRAM="$APART/fcopy" "$@"
}

# Everything under ./root, but no directories.
installed() {
	find root ! -type d | sed 's/^root//' | sort
}

# with_library COMMAND…: as if ./root/usr were where pkg-config looks.
with_library() {
	PKG_CONFIG_PATH=$T/usr/lib/pkgconfig LD_LIBRARY_PATH=$T/usr/lib "$@"
}

# library_flags: those to contain the static library.
library_flags() {
	with_library pkg-config --static --cflags --libs fcopy | sed 's/-lfcopy/-l:libfcopy.a/'
}

# Every option of --help: "-m --mode", or "--list" alone.
options() {
	"$FCOPY" --help | sed -nE 's/^  (-.,|   ) (--[a-z-]+).*/\1 \2/p' | tr -d ,
}

@test "make install: program, library, header, papers, completions, schema" {
	in_tree install DESTDIR="$T/root" PREFIX=/usr
	local version
	version=$("$FCOPY" --version | cut -d' ' -f2)
	cat >"$APART/list" <<-END
		/usr/bin/fcopy
		/usr/include/fcopy.h
		/usr/lib/libfcopy.a
		/usr/lib/libfcopy.so
		/usr/lib/libfcopy.so.1
		/usr/lib/libfcopy.so.$version
		/usr/lib/pkgconfig/fcopy.pc
		/usr/share/bash-completion/completions/fcopy
		/usr/share/fcopy/examples/job.yaml
		/usr/share/fcopy/examples/table.c
		/usr/share/fcopy/fcopy.schema.json
		/usr/share/fish/vendor_completions.d/fcopy.fish
		/usr/share/man/man1/fcopy.1
		/usr/share/man/man3/libfcopy.3
		/usr/share/man/man5/fcopy-json.5
		/usr/share/man/man5/fcopy-part.5
		/usr/share/man/man7/fcopy-shards.7
		/usr/share/zsh/site-functions/_fcopy
	END
	diff "$APART/list" <(installed)
	[ "$(stat -c %a root/usr/bin/fcopy root/usr/include/fcopy.h | xargs)" = "755 644" ]
	echo data >a
	root/usr/bin/fcopy a b
	cmp a b
}

@test "fish looks where make install puts its completions" {
	need fish
	local prefix
	for prefix in /usr /usr/local; do
		in_tree install DESTDIR="$T/root" PREFIX=$prefix
		directory=$(dirname "$(cd root && find . -name fcopy.fish | sed 's/^.//')")
		env -u XDG_DATA_DIRS HOME="$T" fish -c 'contains $argv[1] $fish_complete_path' "$directory" ||
			{ echo "not in $directory"; return 1; }
		in_tree uninstall DESTDIR="$T/root" PREFIX=$prefix
	done
}

@test "make uninstall undoes it, and leaves what others put there" {
	mkdir -p root/usr/bin
	echo theirs >root/usr/bin/other
	in_tree install DESTDIR="$T/root" PREFIX=/usr
	in_tree uninstall DESTDIR="$T/root" PREFIX=/usr
	[ "$(installed)" = /usr/bin/other ]
	[ ! -d root/usr/share/fcopy ]
}

# In a copy of the tree: a fault would remove sources. It has the objects but two, which are compiled as the others would be.
@test "the source tree, PREFIX and DESTDIR may have spaces in their names" {
	local tree="$T/a tree"
	mkdir "$tree"
	(cd "$REPOSITORY" && tar -cf - Makefile fcopy.c include src tests/tests.mk) | tar -xf - -C "$tree"
	(cd "$tree" && find . -type f | sort) >before
	cp -a "$APART/build" "$tree/build"
	rm -r "$tree"/build/{fcopy.o,src/io/io.o,libfcopy*}
	spaced() { env -u MAKEFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS make --no-print-directory -C "$tree" "$@" >>log 2>&1; }
	spaced install DESTDIR="$T/the root" PREFIX="/x y's" || { tail log; return 1; }
	grep -q '^  CC .*/io\.o' log
	grep -q '^  CC .*/fcopy\.o' log
	(cd "the root" && find . ! -type d | sort) | diff - <(sed "s|^/usr/|./x y's/|" "$APART/list" | sort)
	echo data >a
	"the root/x y's/bin/fcopy" a b
	cmp a b
	grep -qxF "libdir=/x y's/lib" "the root/x y's/lib/pkgconfig/fcopy.pc"
	spaced uninstall DESTDIR="$T/the root" PREFIX="/x y's"
	spaced check-install
	[ -z "$(find "the root" ! -type d)" ]
	spaced clean
	(cd "$tree" && find . -type f | sort) | diff before -
}

@test "BUILD and PROGRAM with spaces are refused" {
	run -2 env -u MAKEFLAGS -u MAKELEVEL make -C "$REPOSITORY" BUILD="$T/y z" clean
	[[ $output == *"must not contain spaces"* ]]
	run -2 env -u MAKEFLAGS -u MAKELEVEL make -C "$REPOSITORY" PROGRAM="y z" clean
	[[ $output == *"must not contain spaces"* ]]
}

@test "make install again is no failure, and directories can be named" {
	in_tree install DESTDIR="$T/root" LIBDIR=/lib/here MANDIR=/man
	in_tree install DESTDIR="$T/root" LIBDIR=/lib/here MANDIR=/man
	[ -e root/lib/here/libfcopy.a ]
	[ -e root/man/man1/fcopy.1 ]
	grep -qx 'libdir=/lib/here' root/lib/here/pkgconfig/fcopy.pc
}

@test "a program outside the tree builds with the installed library: the one of libfcopy(3)" {
	local flags
	need cc pkg-config mandoc
	in_tree install PREFIX="$T/usr"
	sed -n '/^\.Bd -literal/,/^\.Ed/{/^\./d;s/\\e/\\/g;p}' usr/share/man/man3/libfcopy.3 >example.c
	flags=$(with_library pkg-config --cflags --libs fcopy)
	# shellcheck disable=SC2086
	cc -std=c11 -pedantic -Wall -Wextra -Werror -o shared example.c $flags
	random a 3000000
	with_library ./shared a b >out
	cmp a b
	# shellcheck disable=SC2046
	cc -Wall -Wextra -Werror -o example example.c $(library_flags)
	./example a d >out
	cmp a d
	rm d
	[ "$(awk '{ n += $2 } END { print n }' out)" = 3000000 ]
	./example a c 1 >out
	cmp a c
	holds "readwrite: 3000000 bytes, 735 calls" out
	run ./example nope d
	[ "$status" = 1 ]
	[ "$output" = "nope: open: No such file or directory" ]
	run ./example a e splcie
	[ "$status" = 2 ]
	[ "$output" = "splcie: no such mode" ]
	absent e
	[ "$(with_library pkg-config --modversion fcopy)" = "$("$FCOPY" --version | cut -d' ' -f2)" ]
}

@test "the example that prints a table of the entries builds with the installed library" {
	need cc pkg-config
	in_tree install PREFIX="$T/usr"
	# shellcheck disable=SC2046
	cc -std=gnu11 -pedantic -Wall -Wextra -Werror -o table usr/share/fcopy/examples/table.c \
		$(with_library pkg-config --cflags --libs fcopy)
	mkdir s
	random s/file 3000
	mkfifo s/fifo
	ln -s x s/link
	with_library ./table s d >out
	[ "$(tail -n 1 out)" = "4 entries, 3000 bytes, 0 failed" ] || { cat out; return 1; }
	grep -qE '^copied +3000  [a-z_]+ +file$' out
	mkdir e e/link
	run with_library ./table s/. e
	[ "$status" = 1 ]
	grep -qE '^failed +0  - +link: e/link: ' <<<"$output"
}

@test "libfcopy.a exports fcopy_* alone, and links with a program that uses its inner names" {
	need cc nm pkg-config
	in_tree install PREFIX="$T/usr"
	[ "$(nm --defined-only --extern-only usr/lib/libfcopy.a | awk '$2 ~ /[A-Z]/ && $3 !~ /^fcopy_/')" = "" ]
	cat >names.c <<-'END'
		#include <fcopy.h>
		#include <stdlib.h>

		int io_read(void), ring_open(void), source_open(void), tcp_connect(void);
		int io_read(void) { abort(); }
		int ring_open(void) { abort(); }
		int source_open(void) { abort(); }
		int tcp_connect(void) { abort(); }
		int io_wait, engine_readwrite, error;

		int main(int argc, char **argv)
		{
			struct fcopy_options options = {.api = FCOPY_API};
			static struct fcopy_report report;
			options.mode = argc > 3 ? fcopy_mode_find(argv[3]) : NULL;
			return fcopy_copy(argv[1], argv[2], &options, &report) < 0;
		}
	END
	# shellcheck disable=SC2046
	cc -Wall -Wextra -Werror -o names names.c $(library_flags)
	random a 3000000
	local mode
	for mode in auto $MODES; do
		! has_mode "$mode" || { ./names a "b.$mode" "$mode" && cmp a "b.$mode"; } || return
	done
	# Position independent: a shared object can contain it, and its dependencies.
	# shellcheck disable=SC2046
	cc -shared -o whole.so -Wl,--whole-archive usr/lib/libfcopy.a -Wl,--no-whole-archive -Wl,-z,text \
		$(in_tree -s --eval='libs:;@echo $(LIBS)' libs)
}

@test "without liburing, mode direct says that it is not in this build" {
	(cd "$REPOSITORY" && grep -rl HAVE_LIBURING fcopy.c src) >uses # the other objects are the same
	never grep -v '\.c$' uses
	cp -a "$APART/build" "$APART/none"
	(cd "$APART/none" && rm libfcopy* && sed 's/c$/o/' "$T/uses" | xargs rm)
	in_tree -o "$APART/none/flags" BUILD="$APART/none" PROGRAM="$APART/none.fcopy" LIBURING= all >log 2>&1 ||
		{ tail log; return 1; }
	random a 3000000
	FCOPY=$APART/none.fcopy
	expect 1 a b direct
	mentions "built without liburing"
	never grep -q io_uring <<<"$stderr"
	absent b
	expect 0 a b
	cmp a b
	expect 0 --list
	[[ $output == *"direct"*"[unavailable: built without liburing]"* ]]
}

@test "the header is good C++ too" {
	need c++
	echo '#include <fcopy.h>' >a.cc
	c++ -Wall -Wextra -Werror -I"$REPOSITORY/include" -fsyntax-only a.cc
}

@test "the man pages are clean mdoc" {
	need mandoc
	mandoc -Tlint -Wwarning "$REPOSITORY"/src/man/*
	# Style too, but whether the pages that they refer to are installed here is not theirs.
	mandoc -Tlint "$REPOSITORY"/src/man/* >lint 2>&1 || true
	never grep -v -e mandoc.db -e 'referenced manual' lint
	# groff's own words for a page are of BSD, which has no fcopy.
	if type groff >/dev/null 2>&1; then
		local page
		for page in "$REPOSITORY"/src/man/*; do
			groff -mdoc -Tascii "$page" >shown
			never grep -w BSD shown
		done
	fi
}

@test "the man page has every option and every mode, and no others" {
	local letter name number mode alias rest
	need mandoc
	mandoc -Tascii "$REPOSITORY/src/man/fcopy.1" | col -bx >page
	while read -r letter name; do
		[ -n "$name" ] || name=$letter letter=
		grep -qE -e "^ {5}.*$name\\b" page || { echo "no $name"; return 1; }
		[ -z "$letter" ] || grep -qE -e "^ {5}${letter}[ ,]" page || { echo "no $letter"; return 1; }
	done < <(options)
	grep -oE -e '^ {5}(-. .*, |-., )?--[a-z-]+' page | grep -oE -e '--[a-z-]+' | sort -u >named
	options | grep -oE -e '--[a-z-]+' | sort -u >known
	[ -z "$(comm -23 named known)" ]
	while read -r number mode alias rest; do
		[ "$number" = MODE ] || grep -qE "^ +$number\s+$mode\s+$alias\s" page ||
			{ echo "no $mode"; return 1; }
	done < <("$FCOPY" --list)
}
