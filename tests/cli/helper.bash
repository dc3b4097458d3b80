# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Loaded by every test file: each test runs in a directory of its own, $T, and leaves nothing.
# FCOPY names the program under test; by default it is the repository's.

bats_require_minimum_version 1.5.0
export LC_ALL=C
# No test reads or writes the user's own home, or leaves files beside the source.
export HOME=$BATS_RUN_TMPDIR PYTHONDONTWRITEBYTECODE=1
unset HISTFILE XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME XDG_STATE_HOME
PATH=$PATH:/usr/sbin:/sbin
# From the program's own table: the names of all modes but auto, the numbers of all, how many there
# are, and all as messages list them: "0 auto, 1 readwrite, …". Asked once for each file of tests.
if [ "${LISTED-}" != "${FCOPY-}" ] || [ -z "${LISTED-}" ]; then
	FCOPY=$(realpath "${FCOPY:-$BATS_TEST_DIRNAME/../../fcopy}")
	LIST=$("$FCOPY" --list | awk '$1 ~ /^[0-9]+$/ { print $1, $2 }')
	MODES=$(awk '$1 > 0 { printf "%s ", $2 }' <<<"$LIST")
	NUMBERS=$(awk '{ print $1 }' <<<"$LIST" | paste -sd' ')
	MODE_COUNT=$(wc -l <<<"$LIST")
	MODE_LIST=$(paste -sd, <<<"$LIST" | sed 's/,/, /g')
	LISTED=$FCOPY LIBC=glibc
	! grep -qaE 'ld-musl|No file descriptors available' "$FCOPY" || LIBC=musl
	export FCOPY LIBC LIST LISTED MODES NUMBERS MODE_COUNT MODE_LIST
fi
# A number never changes its meaning: the modes of the first release, by which tests check the table.
FIRST_MODES="0 auto, 1 readwrite, 2 sendfile, 3 splice, 4 copy_file_range, 5 mmap, 6 direct, 7 parallel, 8 reflink"
export FIRST_MODES
# The system calls of open(3) and the stat functions, which differ with musl.
OPEN=openat STATS=newfstatat
[ "$LIBC" = glibc ] || OPEN=open STATS=newfstatat,stat,lstat,fstat
export OPEN STATS
HANG=120 # seconds that nothing takes, however busy the machine
NOBODY="setpriv --reuid 65534 --regid 65534 --clear-groups"

# A file of tests may define scene(): each test starts with what it makes.
setup() {
	cheap_errors
	umask 022
	T=${TMPDIR:-/tmp}/fcopy-cli.$$
	mkdir -m 755 "$T" 2>/dev/null || { T=$(mktemp -d "$T.XXXXXX") && chmod 755 "$T"; } || return
	cd "$T" || return
	! declare -F scene >/dev/null || scene
}

# A temporary name that survives its copy is a failure of any test.
teardown() {
	local left
	cd / || return
	# shellcheck disable=SC2046 # one word a job
	[ -z "${!-}" ] || [ -z "$(jobs -p)" ] || kill -KILL $(jobs -p) 2>/dev/null || true
	is_root || chmod -R u+rwx "$T" 2>/dev/null || true # directories of mode 0555
	left=$(find "$T" -xdev -name '.fcopy-*' -print , -delete 2>/dev/null) ||
		rm -rf --one-file-system "$T" 2>/dev/null ||
		{ chattr -R -i -a "$T" 2>/dev/null; rm -rf --one-file-system "$T"; } || return
	[ -z "$left" ] || [ -n "${BATS_TEST_SKIPPED-}" ] || { echo "left behind: $left"; return 1; }
}

# bats runs a function before each command of a test, which takes half a millisecond, to know where a test fails.
# The trap of the failure itself finds that out, too.
# shellcheck disable=SC2034 # bats reads these variables
cheap_errors() {
	[ "${BATS_TRACE_LEVEL:-0}" = 0 ] || return 0
	trap - DEBUG
	# Where no command fails, as at exit: the line of the test.
	local place
	shopt -s extdebug
	declare -F "$BATS_TEST_NAME" >"$BATS_TEST_TMPDIR/place"
	shopt -u extdebug
	set -eET
	read -r _ place _ <"$BATS_TEST_TMPDIR/place"
	BATS_DEBUG_LAST_STACK_TRACE=("$place $BATS_TEST_NAME $BATS_TEST_SOURCE")
	BATS_DEBUG_LASTLAST_STACK_TRACE=("${BATS_DEBUG_LAST_STACK_TRACE[@]}")
	BATS_DEBUG_LAST_LINENO=() BATS_DEBUG_LAST_SOURCE=()
	trap 'RETURNED="$LINENO ${FUNCNAME-}"' RETURN
	trap 'failed_here $?; bats_error_trap "$_"' ERR
}

failed_here() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || BATS_ERROR_STATUS=${BATS_ERROR_STATUS:-$1}
	[ -z "$BATS_DEBUG_LAST_STACK_TRACE_IS_VALID" ] || return 0
	if [[ " ${FUNCNAME[*]} " == *" $BATS_TEST_NAME "* ]]; then
		bats_capture_stack_trace
	elif [[ $RETURNED == *" $BATS_TEST_NAME" ]]; then # by return 1 in the test itself
		BATS_DEBUG_LAST_STACK_TRACE=("$RETURNED $BATS_TEST_SOURCE")
	fi
}

# expect STATUS ARG…: runs fcopy ARG… and demands its exit status; see $output and $stderr.
expect() {
	local want=$1
	shift
	separately timeout -s KILL $HANG "$FCOPY" "$@"
	demand "$want"
}

# separately COMMAND…: as "run --separate-stderr", which takes longer.
separately() {
	local errors=$BATS_TEST_TMPDIR/stderr
	output=$("$@" 2>"$errors") && status=0 || status=$?
	IFS=$' \t\n' read -rd '' stderr <"$errors" || true
	# shellcheck disable=SC2034 # for the tests
	IFS=$'\n' read -rd '' -a lines <<<"$output" || true
	# shellcheck disable=SC2034
	IFS=$'\n' read -rd '' -a stderr_lines <<<"$stderr" || true
}

# as_nobody STATUS ARG…: the same with no rights beyond those of any user. AS_UMASK: the umask of fcopy
# alone, because bats must be able to write its own files.
as_nobody() {
	local want=$1 nobody=
	shift
	if is_root; then
		# The repository may be hidden from nobody; the copy of the program is not.
		[ -x fcopy ] || install -m 755 "$FCOPY" fcopy
		nobody=$NOBODY
	else
		ln -sf "$FCOPY" fcopy
	fi
	# shellcheck disable=SC2086
	run --separate-stderr $nobody sh -c 'umask "$0"; exec ./fcopy "$@"' "${AS_UMASK:-$(umask)}" "$@"
	# Nobody may not write down what was counted.
	! counting || stderr=$(sed '/^profiling:/d' <<<"$stderr")
	demand "$want"
}

demand() {
	# shellcheck disable=SC2154
	[ "$status" = "$1" ] && return
	echo "exit status $status, not $1; stdout: $output"
	echo "stderr: $stderr"
	return 1
}

# as_glibc: $stderr has the words of glibc for errors, also if the program has those of musl.
as_glibc() {
	[ "$LIBC" = musl ] || return 0
	local -a musl=("I/O error" "No file descriptors available" ": Cross-device link" ": Not supported"
		"Symbolic link loop" "Filename too long" "Quota exceeded" "Resource busy" "Operation timed out") \
		glibc=("Input/output error" "Too many open files" ": Invalid cross-device link" ": Operation not supported"
			"Too many levels of symbolic links" "File name too long" "Disk quota exceeded" "Device or resource busy"
			"Connection timed out")
	local i
	for i in "${!musl[@]}"; do
		[[ $stderr == *"${glibc[i]}"* ]] || stderr=${stderr//"${musl[i]}"/"${glibc[i]}"}
	done
}

# says LINE…: these lines and no others went to stderr.
says() {
	local want
	as_glibc
	printf -v want '%s\n' "$@"
	[ "$stderr" = "${want%$'\n'}" ] && return
	printf 'stderr was:\n%s\nand not:\n%s\n' "$stderr" "$want"
	return 1
}

# mentions TEXT…: each of these is somewhere on stderr.
mentions() {
	local text
	as_glibc
	for text; do
		[[ $stderr == *"$text"* ]] || { echo "no '$text' in: $stderr"; return 1; }
	done
}

# lists LINE…: these lines and no others went to stdout.
lists() {
	local want
	want=$(printf '%s\n' "$@")
	[ "$output" = "$want" ] && return
	printf 'stdout was:\n%s\nand not:\n%s\n' "$output" "$want"
	return 1
}

usage_error() {
	expect 2 "${@:2}"
	says "fcopy: $1"
}

# acl FILE: its owner, group, mode and ACL.
acl() {
	getfacl "$1" | grep -v '^# file:'
}

# random FILE BYTES
random() {
	head -c "$2" /dev/urandom >"$1"
}

# never COMMAND…: it must fail. Bats lets a `!` pass that is not the last command.
never() {
	if "$@"; then
		echo "should not be: $*"
		return 1
	fi
}

# deep DIR: 1,000 levels below it, whose path is longer than PATH_MAX, and a file at the end. A shell takes a minute for them.
deep() {
	need python3
	python3 - "$1" <<-'END'
		import os, sys
		name = "n" * 20
		os.mkdir(sys.argv[1])
		os.chdir(sys.argv[1])
		for _ in range(1000):
		    os.mkdir(name)
		    os.chdir(name)
		open("leaf", "w").write("x\n")
	END
}

# is_deep DIR: a copy of that.
is_deep() {
	python3 - "$1" <<-'END'
		import os, sys
		os.chdir(sys.argv[1])
		for _ in range(1000):
		    assert os.listdir() == ["n" * 20]
		    os.chdir("n" * 20)
		assert os.listdir() == ["leaf"] and open("leaf").read() == "x\n"
	END
}

# holds TEXT FILE
holds() {
	[ "$(<"$2")" = "$1" ] || { echo "$2 holds: $(head -c 200 "$2")"; return 1; }
}

absent() {
	never test -e "$1"
	never test -L "$1"
}

is_root() {
	[ "$EUID" = 0 ]
}

# on_disk REASON: where temporary files are in memory, the test goes on beside the build.
on_disk() {
	local kind beside=${FCOPY_BUILD:-${FCOPY%/*}}
	kind=$(stat -fc %T .)
	[[ $kind == tmpfs || $kind == ramfs ]] || return 0
	kind=$(stat -fc %T "$beside")
	[[ $kind != tmpfs && $kind != ramfs && -w $beside ]] || skip "needs a disk: $1"
	rmdir "$T" # nothing was made here yet
	T=$(mktemp -d "$beside/fcopy-cli.XXXXXX")
	chmod 755 "$T"
	cd "$T" || return
}

need() {
	local tool
	for tool; do
		type "$tool" >/dev/null 2>&1 || skip "no $tool"
	done
}

need_root() {
	is_root || skip "needs root: $1"
}

# reports REASON: something is not tested here; run.sh prints the reason and counts it as skipped.
reports() {
	echo "# left out: $BATS_TEST_DESCRIPTION: $*" >&3
}

# has_mode NAME: can the mode work here? The kernel is asked by other programs, never by fcopy: a
# mode that fails though the kernel can is a failure. A mode that is not named here always works.
has_mode() {
	local able=0
	head -c 8192 /dev/zero >probe.src
	case $1 in
	reflink) cp --reflink=always probe.src probe.dst 2>/dev/null || able=1 ;;
	direct)
		dd if=probe.src of=probe.dst bs=4096 iflag=direct oflag=direct status=none 2>/dev/null &&
			has_io_uring || able=1
		;;
	esac
	rm -f probe.src probe.dst
	return $able
}

# A build without liburing says so in the table; the kernel is asked by a plain call.
has_io_uring() {
	! "$FCOPY" --list | grep -q 'unavailable: built without' &&
		python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(None).syscall(425, 1, bytes(120)) < 0)' # io_uring_setup
}

# moving_modes: prints auto and every mode that moves bytes and works here; reports the others.
moving_modes() {
	local mode
	for mode in auto $MODES; do
		if [ "$mode" = reflink ]; then
			continue # it moves none
		elif has_mode "$mode"; then
			echo "$mode"
		else
			reports "no $mode on this file system or kernel"
		fi
	done
}

need_mode() {
	has_mode "$1" || skip "no $1 in this build or kernel, or on this file system"
}

# private_mounts COMMAND: a shell whose mounts end with it; a user namespace gives it to anybody.
private_mounts() {
	local -a how=(unshare --mount)
	is_root || how=(unshare --user --map-root-user --mount)
	"${how[@]}" true 2>/dev/null || skip "no mount namespace of our own"
	separately "${how[@]}" bash -euc "$1"
}

# by_fuse OPTIONS COMMAND: runs COMMAND in bash with ./backing mounted on ./m by tests/tools/faultfs, which is compiled
# once for all tests.
by_fuse() {
	local tools=$BATS_TEST_DIRNAME/../tools
	need cc pkg-config fusermount3
	[ -c /dev/fuse ] || skip "no /dev/fuse"
	pkg-config --exists fuse3 || skip "no libfuse3"
	FAULTFS=$BATS_SUITE_TMPDIR/faultfs
	# shellcheck disable=SC2046
	[ -x "$FAULTFS" ] || (
		flock 9 # tests run at the same time
		[ -x "$FAULTFS" ] || { cc -o faultfs "$tools/faultfs.c" "$tools/faults.c" $(pkg-config --cflags --libs fuse3) &&
			mv faultfs "$FAULTFS"; }
	) 9>"$FAULTFS.lock"
	mkdir -p m
	export FCOPY FAULTFS
	private_mounts "\$FAULTFS backing m -o $1 || exit 9
		$2
		umount m 2>/dev/null || { sleep 1; umount m; } # a loop device closes its file a little later
		"
	[ "$status" != 9 ] || skip "FUSE does not mount"
	demand 0
}

# timed_tree NAME: s with three files and d/NAME, whose times have all nine digits, and odd seconds.
timed_tree() {
	mkdir -p s/d
	local i
	for i in 1 2 3; do
		random s/$i 20000
		touch -d "2024-05-06 07:08:0$((2 * i + 1)).$i$i$i$i$i$i$i$i$i" s/$i
	done
	echo x >"s/d/$1"
	touch -d "2024-05-06 07:08:09.123456789" "s/d/$1"
}

# traced STATUS EXPRESSION ARG…: runs fcopy under strace -f; the calls are in ./trace.
traced() {
	local want=$1 calls=$2
	local -a only=()
	[[ $calls != trace=* ]] || only=(--seccomp-bpf) # the other calls do not stop
	shift 2
	separately timeout -s KILL $HANG strace -f "${only[@]}" -y -qq -o trace -e "$calls" \
		-e signal=none "$FCOPY" "$@"
	demand "$want"
}

# counting: a build that counts its own lines writes that down at the end, by calls that are traced.
counting() {
	grep -q '\.gcda' "$FCOPY"
}

# An injection that hits nothing would prove nothing.
injected() {
	grep -q INJECTED trace || { echo "nothing was injected"; tail -5 trace; return 1; }
}

# in_trace PATTERN [COUNT]: a line of ./trace matches, or just COUNT lines.
in_trace() {
	local n
	n=$(grep -cE -- "$1" trace) || true
	if [ "${2-}" ]; then [ "$n" = "$2" ]; else [ "$n" -gt 0 ]; fi && return
	echo "$n lines match '$1', not ${2-1 or more}; the trace ends:"
	tail -n 40 trace
	return 1
}

# calls NAME: how many of them ./trace has.
calls() {
	grep -cE "^[0-9]+ +($1)\(" trace || true
}

# LeakSanitizer cannot look where strace does.
need_strace() {
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	need strace
	strace -qq -e trace=none true 2>/dev/null || skip "strace may not trace here"
}

# nth CALL PATTERN: which of the CALLs in ./trace is the first whose line matches.
nth() {
	grep -E "^[0-9]+ +$1\(" trace | grep -nEm1 -- "$2" | cut -d: -f1
}

# order NAME…: these calls stand in ./trace, in this order (a call may repeat between).
order() {
	local call line last=0
	for call; do
		line=$(tail -n +$((last + 1)) trace | grep -nEm1 -- "$call" | cut -d: -f1)
		[ -n "$line" ] || { echo "no $call behind line $last of:"; cat trace; return 1; }
		last=$((last + line))
	done
}

# without_tmpfile STATUS ARG…: as on a file system that lacks O_TMPFILE.
without_tmpfile() {
	local n
	echo probe >probe.src
	traced 0 trace=openat probe.src probe.dst
	n=$(nth openat O_TMPFILE)
	traced "$1" "inject=openat:error=EOPNOTSUPP:when=$n" "${@:2}"
	grep -q 'O_TMPFILE.*INJECTED' trace || { cat trace; return 1; }
}

# await COMMAND…: until it succeeds. The end of it only catches what hangs.
await() {
	local i never=$BATS_TEST_TMPDIR/never
	[ -p "$never" ] || mkfifo "$never" 2>/dev/null || [ -p "$never" ]
	for ((i = 0; i < 6000; i++)); do
		"$@" && return
		# As sleep, without a process.
		read -rt 0.01 _ <>"$never" || true
	done
	echo "waited in vain: $*"
	return 1
}

said() { grep -q "$1" "$2" 2>/dev/null; }

# What can be seen of $pid, a copy in the background. $! of strace -D is fcopy, too.

# A background job of a shell ignores SIGINT until env --default-signal has made fcopy of it.
is_fcopy() {
	grep -qx fcopy "/proc/$pid/comm"
}

# has_written [BYTES]: into its unnamed file.
has_written() {
	local fd
	for fd in "/proc/$pid/fd/"*; do
		[[ $(readlink "$fd") != *'(deleted)' && $(readlink "$fd") != *.fcopy-*/data* ]] ||
			[ "$(stat -Lc %s "$fd" 2>/dev/null || echo 0)" -lt "${1-1}" ] || return 0
	done
	return 1
}

# SIGTERM would kill the process at once: it neither handles nor ignores that signal, or no longer.
unguarded() {
	local mask
	while read -r mask; do
		[ $((0x$mask >> 14 & 1)) = 0 ] || return 1
	done < <(sed -n 's/^Sig\(Cgt\|Ign\):[[:space:]]*//p' "/proc/$pid/status")
}

# unread ARG…: fcopy ARG… with SIGPIPE's default action; nobody reads its standard error, nor its
# standard output if UNREAD=both.
unread() {
	python3 - "$FCOPY" "$@" <<-'END'
		import os, subprocess, sys
		r, w = os.pipe()
		os.close(r)
		run = subprocess.Popen(sys.argv[1:], stderr=w, restore_signals=True,
			stdout=w if os.environ.get("UNREAD") == "both" else subprocess.PIPE)
		sys.stdout.write((run.communicate()[0] or b"").decode())
		sys.exit(128 - run.returncode if run.returncode < 0 else run.returncode)
	END
}

# For connections: somebody at the other end.

PEER=$BATS_TEST_DIRNAME/../tools/peer.py

# serve ARG…: fcopy in the background; $server is its process, $port where it listens.
serve() {
	rm -f server.log
	"$FCOPY" "$@" >server.out 2>server.log 3>&- &
	server=$!
	await said '^fcopy: .* on [^ ]*:[0-9]' server.log
	port=$(sed -nE 's/^fcopy: .* on [^ ]*:([0-9]+)( .*)?$/\1/p' server.log)
}

# peer MANNER [BYTES]: the same with a peer that listens; its output is in ./peer.out.
peer() {
	rm -f peer.out
	python3 "$PEER" "$1" 0 "${@:2}" >peer.out 2>&1 3>&- &
	server=$!
	await said . peer.out
	port=$(head -n 1 peer.out)
}

# client MANNER [BYTES]: a peer that connects to $port; $client is its process.
client() {
	rm -f client.out
	python3 "$PEER" "$1" "$port" "${@:2}" >client.out 2>&1 3>&- &
	# shellcheck disable=SC2034 # the tests kill it
	client=$!
	await said connected client.out
}

# clients N: $server serves so many or more: a socket each, and the one that listens.
clients() {
	[ "$(find /proc/"$server"/fd -lname 'socket:*' 2>/dev/null | wc -l)" -gt "$1" ]
}

gone() { ! kill -0 "$server" 2>/dev/null; }

# ended STATUS: that is how $server ended, which is killed if it does not.
ended() {
	local seen=0
	await gone || stop KILL
	wait "$server" || seen=$?
	[ "$seen" = "$1" ] || { echo "status $seen, not $1:"; cat server.log; return 1; }
}

stop() {
	kill "-$1" "$server"
}

# begin_part SRC DST KIB ARG…: a copy that fails after KIB, and leaves DST.fcopy-part.
begin_part() {
	(ulimit -f "$3" && exec "$FCOPY" --resume "${@:4}" "$1" "$2" 2>/dev/null) || true
	[ "$(stat -c %s "$2.fcopy-part/data")" = $(($3 * 1024)) ]
}
