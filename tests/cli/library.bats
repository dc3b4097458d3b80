#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The shared library, loaded by Python's ctypes. FCOPY_LIBRARY names it; by default it is the build's.

load helper

setup_file() {
	export FCOPY_LIBRARY=${FCOPY_LIBRARY:-$(realpath "${FCOPY_BUILD:-$BATS_TEST_DIRNAME/../../build}")/libfcopy.so.1}
}

# by_python FUNCTION ARGUMENT…: calls a function of this module; prints what it returns.
by_python() {
	need python3
	cat >library.py <<-'END'
		import ctypes, os, sys
		from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

		fcopy = ctypes.CDLL(os.environ["FCOPY_LIBRARY"], use_errno=True)
		fcopy.fcopy_mode_find.restype = c_void_p

		class Options(ctypes.Structure):  # the first members of struct fcopy_options
		    _fields_ = [("api", c_int), ("mode", c_void_p), ("rest", ctypes.c_char * 4096)]

		def copy(src, dst, mode=None, api="1"):
		    report = ctypes.create_string_buffer(1 << 16)  # starts with its error, and that with err
		    options = Options(api=int(api))
		    if mode:
		        options.mode = fcopy.fcopy_mode_find(mode.encode())
		        assert options.mode, mode
		    used = byref(options) if mode or api != "1" else None
		    src, dst = src.encode(), dst.encode()  # the error points to them
		    result = fcopy.fcopy_copy(src, dst, used, report)
		    err = c_int.from_buffer(report).value
		    text = ctypes.create_string_buffer(10000)
		    fcopy.fcopy_error_text(report, text, c_size_t(len(text)))
		    return f"{result} {err} {text.value.decode() if err else 'done'}"

		def tree(src, dst):
		    report = ctypes.create_string_buffer(1 << 16)
		    options = ctypes.create_string_buffer(8192)  # struct fcopy_tree_options, copy.api first
		    c_int.from_buffer(options).value = 1
		    sources = (c_char_p * 1)(src.encode())
		    return fcopy.fcopy_tree(sources, c_size_t(1), dst.encode(), options, report)

		print(globals()[sys.argv[1]](*sys.argv[2:]))
	END
	run --separate-stderr python3 library.py "$@"
}

# no_musl: Python with glibc cannot load a library that needs musl.
no_musl() {
	[ "$LIBC" = glibc ] || ldd "$(realpath "$(command -v python3)")" 2>&1 | grep -q musl || skip "Python has another C library than libfcopy"
}

@test "ctypes: a copy in every mode that works here, and by default" {
	local mode
	no_musl
	random a 3000000
	by_python copy a b
	[ "$output" = "0 0 done" ]
	cmp a b
	for mode in auto $MODES; do
		! has_mode "$mode" || {
			rm -f b
			by_python copy a b "$mode"
			[ "$output" = "0 0 done" ] && cmp a b
		} || { echo "$mode: $output $stderr"; return 1; }
	done
}

@test "ctypes: several sources, and failures as the program words them" {
	no_musl
	echo data >a
	by_python tree a b
	[ "$output" = 0 ]
	cmp a b
	by_python copy nope c
	[ "$output" = "-1 2 nope: open: No such file or directory" ] || { echo "$output $stderr"; return 1; }
	by_python copy a c auto 99
	[ "$output" = "-1 22 c: options.api is not FCOPY_API" ] || { echo "$output $stderr"; return 1; }
	absent c
}

@test "the shared library exports fcopy_* with a version, and nothing else" {
	need nm readelf
	[ -e "$FCOPY_LIBRARY" ] || skip "the library is installed elsewhere"
	nm -D --defined-only --with-symbol-versions "$FCOPY_LIBRARY" | awk '{ print $3 }' | sort >exported
	never grep -v -e '^fcopy_[a-z_]*@@FCOPY_1$' -e '^FCOPY_1' exported
	grep -o '\bfcopy_[a-z_]*(' "$BATS_TEST_DIRNAME/../../include/fcopy.h" | tr -d '(' | sort -u >declared
	diff declared <(sed -n 's/^\(fcopy_.*\)@@.*/\1/p' exported)
	# Debian's list of symbols has each of them.
	local list=$BATS_TEST_DIRNAME/../../src/dist/debian/libfcopy1.symbols
	[ ! -e "$list" ] || diff declared <(sed -n 's/^ \(fcopy_.*\)@FCOPY_1 .*/\1/p' "$list" | sort)
	readelf -d "$FCOPY_LIBRARY" | grep -q 'SONAME.*\[libfcopy\.so\.1\]'
	never grep -q . <(readelf -d "$FCOPY_LIBRARY" | grep TEXTREL)
}

@test "the program does not need the shared library" {
	need readelf
	never grep -q . <(readelf -d "$FCOPY" | grep 'NEEDED.*fcopy')
}

@test "each member and function that libfcopy(3) names is in the header, which has the rest" {
	python3 - "$BATS_TEST_DIRNAME/../.." <<-'END'
		import re, sys
		header, page = (open(sys.argv[1] + f).read() for f in ("/include/fcopy.h", "/src/man/libfcopy.3"))
		page = page[:page.index(".Sh EXAMPLES")]
		words = re.findall(r"^\.(?:Va|Fn|Fo|Nm|Dv FCOPY|Vt) (.*)", page, re.M)
		names = {name for text in words for name in re.findall(r"[A-Za-z_]{3,}", text.split('"')[0])}
		assert {"keep_going", "cancel", "fcopy_tree", "count", "fcopy_tree_options"} <= names, names
		missing = [n for n in names - {"struct"} if not re.search(rf"\b(FCOPY_?)?{n}\b", header)]
		assert not missing, missing
		# Each function of the header has its place on the page.
		functions = re.findall(r"^[a-z].*?\b(fcopy_\w+)\((?!.*\bfcopy_\w+\()", header, re.M)
		assert len(set(functions)) > 8, functions
		assert not set(functions) - names, set(functions) - names
	END
}
