#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The command line: what is no usage, exits 2, touches nothing, and says what to do.

load helper

setup_sources() {
	echo new >a
	echo old >b
}

@test "operands: none, one, four" {
	setup_sources
	usage_error "missing SRC and DST: use fcopy SRC DST, or fcopy -h for help"
	usage_error "a: missing DST: use fcopy SRC DST" a
	expect 2 a b 1 extra
	mentions "fcopy: extra: no such directory"
	holds old b
	absent extra
}

@test "an unknown mode: exit 2 and the list of modes, old destination whole" {
	setup_sources
	local mode
	for mode in "$MODE_COUNT" 99 nope " 1" -1 1x 0x1 4294967297 18446744073709551617 READWRITE; do
		expect 2 -m "$mode" a b
		mentions "$mode: no such mode" "($MODE_LIST)"
	done
	expect 2 -m "" a b
	mentions "fcopy: '': no such mode" "($MODE_LIST)"
	usage_error "readwrit: no such mode; did you mean readwrite? ($MODE_LIST)" -m readwrit a b
	holds old b
}

@test "a mistyped mode after two operands: one line with the mode that was meant" {
	setup_sources
	usage_error "splise: neither a mode nor a directory; did you mean splice?" a b splise
	holds old b
}

@test "the mode given twice, by -m and as an operand" {
	setup_sources
	usage_error "2: the mode is given twice: leave out -m or this operand (use ./2 for a directory)" -m 1 a b 2
	usage_error "2: the mode is given twice: leave out -m or this operand (use ./2 for a directory)" a b 2 --mode=2
	holds old b
}

@test "all options of cp that fcopy lacks: the answer mentions cp" {
	setup_sources
	local name
	need cp
	for name in debug $(cp --help | sed -nE 's/^ .*--([a-z-]+).*/\1/p' | sort -u); do
		! "$FCOPY" --help | grep -q -- "--$name\>" || continue
		expect 2 --$name a b
		mentions "fcopy: --$name:" "cp"
		expect 2 a b --$name=x
		mentions "fcopy: --$name=x:" "cp"
	done
	usage_error "--keep: ambiguous: --keep-going, --keep-listening, --keep-directory-symlink" --keep a b
	holds old b
}

@test "-h: at most 25 lines, all of them of options that --help has, exit 0" {
	local option
	expect 0 -h
	[ -z "$stderr" ]
	[[ $output == "Usage: fcopy "* ]]
	[ "$(wc -l <<<"$output")" -le 25 ]
	[ "$(wc -L <<<"$output")" -le 80 ]
	grep -oE '^  (-.,|   ) --[a-z-]+' <<<"$output" >brief
	[ "$(wc -l <brief)" -gt 10 ]
	while IFS= read -r option; do
		"$FCOPY" --help | grep -q -e "^$option\>" || { echo "$option"; return 1; }
	done <brief
	grep -q -e "--help.*man fcopy" <<<"$output"
}

@test "--help: the options of cp that fcopy has for its sake are the last group" {
	local name
	"$FCOPY" --help | sed -n '/^Options of cp:$/,/^$/p' >group
	"$FCOPY" --help | sed '1,/^Options of cp:$/d' >end
	never grep -qE "^[A-Z].*:$" end
	for name in backup suffix link symbolic-link parents copy-contents context strip-trailing-slashes; do
		grep -qE "^  (-.,|   ) --$name\>" group || { echo "$name"; return 1; }
	done
}

@test "an option that does not exist" {
	setup_sources
	usage_error "-Y: no such option" -Y a b
	usage_error "-K: no such option" a b -K
	expect 2 --nope a b
	mentions "--nope: no such option"
	expect 2 a b --nope=1
	mentions "--nope" "no such option"
	usage_error "--fsnyc: no such option; did you mean --fsync?" --fsnyc a b
	usage_error "--preserv-all-of-it-and-more-than-any-option-has: no such option" \
		--preserv-all-of-it-and-more-than-any-option-has a b
	usage_error "-?: no such option" "-?" a b
	usage_error "-:: no such option" -: a b
	holds old b
}

@test "an option that lacks its value, or has one too many" {
	setup_sources
	local option
	for option in -m -j; do
		expect 2 a b "$option"
		mentions "needs a value"
	done
	for option in mode threads buffer-size preallocate sparse; do
		expect 2 a b "--$option"
		mentions "--$option" "value"
	done
	for option in -p=all -f=x -f= -=; do
		usage_error "$option: only long options take =VALUE, as --preserve=LIST" $option a b
	done
	for option in fsync inplace strict no-cache force verbose quiet list help version; do
		expect 2 a b "--$option=1"
		mentions "--$option" "value"
	done
	holds old b
}

@test "an option that is ambiguous when shortened" {
	setup_sources
	usage_error "--re: ambiguous: --recursive, --resume, --reflink, --remove-destination" --re a b
	usage_error "--s=1: ambiguous: --strict, --shard, --stats, --size, --sparse, --suffix, --symbolic-link, --strip-trailing-slashes" --s=1 a b
	holds old b
	expect 0 --mode=1 --buf=64K a c
	cmp a c
}

@test "sizes: what is one, and what is not" {
	setup_sources
	local size
	for size in 0 -1 +1 "" " 1" 1.5K 1X 1KK K 1kb 1ib 2G 1024M1 16E 99999999999999999999 0x10; do
		usage_error "--buffer-size: invalid size '$size' (1 to 1G)" \
			--buffer-size="$size" a b 1
	done
	for size in 1 8192 1K 1k 1KiB 1kB 1KB 1M 1MB 1MiB 1G; do
		expect 0 --buffer-size="$size" a b 1
		cmp a b
	done
}

@test "a buffer of K is 1024 bytes, of kB 1000" {
	need_strace
	random a 5000
	traced 0 trace=pread64,read --buffer-size=1K a b readwrite
	in_trace '/a>.*, 1024, 0\) = 1024$'
	traced 0 trace=pread64,read --buffer-size=1kB a b readwrite
	in_trace '/a>.*, 1000, 0\) = 1000$'
}

@test "threads: 1 to 64" {
	setup_sources
	local n
	for n in 0 -1 65 1x "" 99999999999999999999 1.5 " 4" +4; do
		usage_error "--threads: invalid number '$n' (1 to 64)" -j "$n" a b
	done
	for n in 1 64; do
		expect 0 -j "$n" a b parallel
		cmp a b
	done
}

@test "auto, always, never, and nothing else" {
	setup_sources
	local option
	for option in preallocate sparse reflink; do
		usage_error "--$option: invalid value 'maybe' (auto, always, never)" --$option=maybe a b
		usage_error "--$option: invalid value '' (auto, always, never)" --$option= a b
	done
	holds old b
}

# supports OPTION: the numbers of the modes that --help names at it.
supports() {
	"$FCOPY" --help | sed -zE "s/\n {20,}/ /g" | sed -nE "s/^  (-.,|   ) $1[^a-z-].*\((only )?modes? ([0-9, ]+)\).*/\3/p" | tr -d ,
}

@test "each option with each mode: allowed, or exit 2, as the table says" {
	setup_sources
	local option mode allowed name
	while read -r option allowed; do
		name=${option%%=*}
		if [ "$allowed" = all ]; then
			allowed=$NUMBERS
		else # modes that are newer than this table: as --help says
			allowed="$allowed $(supports "$name" | awk -v RS=' ' '$1 > 8' | paste -sd' ')"
			[ "$(supports "$name")" = "$(xargs <<<"$allowed")" ] ||
				{ echo "$option: --help: $(supports "$name"), not $allowed"; return 1; }
		fi
		for mode in $NUMBERS; do
			rm -f c
			run --separate-stderr "$FCOPY" "$option" a c "$mode"
			if [[ " $allowed " == *" $mode "* ]]; then
				[ "$status" != 2 ] || { echo "$option $mode: exit status 2: $stderr"; return 1; }
			else
				demand 2
				mentions "is not supported by mode $mode "
				absent c
			fi
		done
	done <<-'TABLE'
		--buffer-size=8K 1 3 5 7
		--threads=2 0 7
		--sparse=auto 0
		--sparse=always 0
		--sparse=never 0
		--reflink=auto 0
		--reflink=never 0
		--no-cache 0
		--preallocate=never all
		--fsync all
		--inplace all
	TABLE
}

@test "the refusal of a pair names the option and the mode" {
	setup_sources
	usage_error "--buffer-size: is not supported by mode 2 sendfile: use mode 1, 3, 5 or 7" --buffer-size=8K a b 2
	usage_error "--buffer-size: is not supported by mode 0 auto: use mode 1, 3, 5 or 7" --buffer-size=8K a b
	usage_error "--threads: is not supported by mode 1 readwrite: use mode 0 or 7" -j2 -m rw a b
	usage_error "--sparse: is not supported by mode 4 copy_file_range: use mode 0" --sparse=auto a b copy_file_range
}

@test "options that contradict each other" {
	setup_sources
	expect 2 --reflink --sparse=always a b
	expect 2 --reflink=always --sparse=never a b
	expect 2 --reflink=always --no-cache a b
	usage_error "--inplace: cannot be combined with --resume" --inplace --resume a b
	usage_error "--preallocate: cannot be combined with --sparse=always: holes have no blocks" \
		--preallocate=always --sparse=always a b
	for option in --reflink=always reflink copy_file_range; do
		usage_error "--preallocate: cannot be combined with a clone or copy_file_range: DST may share blocks of SRC" \
			--preallocate=always a b $option
	done
	usage_error "--inplace: cannot be combined with --no-clobber" --inplace -n a b
	usage_error "--progress: cannot be combined with --quiet" --progress -q a b
	usage_error "--progress: cannot be combined with --keep-listening" -k --progress a tcp-listen:0
	usage_error "--size: cannot be combined with --keep-listening" -k --size=1M a tcp-listen:0
	usage_error "--max-clients: requires --keep-listening" --max-clients=3 a tcp-listen:0
	holds old b
}

@test "-- ends the options, and names may start with a dash" {
	echo new >-a
	expect 0 -- -a -b
	cmp ./-a ./-b
	expect 0 -- -a --list
	cmp ./-a ./--list
	expect 0 ./-a ./-m
	cmp ./-a ./-m
	expect 0 -m 1 -- -a -d
	cmp ./-a ./-d
	expect 2 -- -a -b -m
	mentions "-m: is not a directory, which several SRC need"
}

@test "options may follow the operands" {
	setup_sources
	expect 0 a b readwrite --fsync
	cmp a b
	expect 0 a -m rw c
	cmp a c
}

@test "three files: the third is no directory, and nothing is copied" {
	setup_sources
	touch c
	expect 2 a b c
	says "fcopy: c: is not a directory, which several SRC need"
	expect 2 a b d
	says "fcopy: d: neither a mode (see --list) nor a directory for several SRC"
	expect 2 a b d/
	says "fcopy: d/: no such directory for several SRC" "fcopy: hint: d does not exist; create it: mkdir -p d/"
	holds old b
}

@test "a mode that is a directory as well: neither of the two files is lost" {
	setup_sources
	mkdir 2 sendfile
	usage_error "2: is also a directory: use -m 2 or ./2" a b 2
	usage_error "sendfile: is also a directory: use -m sendfile or ./sendfile" a b sendfile
	holds old b
	[ -z "$(ls 2 sendfile | grep -v :)" ]
	expect 0 -m 2 a b
	cmp a b
}

@test "--timeout: seconds in decimal, and nothing else" {
	setup_sources
	local value
	for value in 0x10 " 5" +5 5e3 inf nan -1 ""; do
		usage_error "--timeout: invalid number of seconds '$value' (0 to 1000000; 0: no limit)" \
			"--timeout=$value" a tcp:127.0.0.1:1
	done
	expect 1 --timeout=0.5 a tcp:127.0.0.1:1
	mentions "Connection refused"
}
