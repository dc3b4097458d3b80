#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/kernels/kernels.sh [--record] [--jobs=N] [KERNEL…]: boots Debian's kernels (5.10 6.1 6.12) in qemu
# without hardware virtualisation, N at once (default: all), and checks fcopy on each file system that they have.
# Prints "kernel fs check ok|FAIL|skip reason" for each check, then tables, how long each kernel took and
# "N passed, N failed, N skipped". Results, tables, logs, downloads and images are kept in build/kernels.
# The tables hold the last result of each check since build/kernels was made; --record puts them into
# tests/kernels/RESULTS.md.
#
#   WANTED='ext4 nfs'  checks only these groups; guest/init.sh lists them
#   CHECKS='auto tree-r'  runs only these checks, which are rows of the tables
#   CUTS=N             cuts the power about 2N times during each copy of the check 'interrupted' (6)
#   GUEST_SECONDS=N    stops a guest after N seconds (5400)
#   FCOPY, FCOPY_BUILD the program, and the directory with the test programs
set -u
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${FCOPY_BUILD:-$root/build}
work=$build/kernels
FCOPY=${FCOPY:-$root/fcopy}
WANTED=${WANTED-}
CHECKS=${CHECKS-}
CUTS=${CUTS:-6}
GUEST_SECONDS=${GUEST_SECONDS:-5400}
kernels=(5.10 6.1 6.12)
jobs=${#kernels[@]}

# shellcheck source=tests/kernels/packages.sh
. "$here/packages.sh"
# shellcheck source=tests/kernels/image.sh
. "$here/image.sh"

# need PROGRAM…: exits if one is missing, and names the packages.
need() {
	local program missing=''
	for program in "$@"; do
		type "$program" >/dev/null 2>&1 || missing="$missing $program"
	done
	if [ -n "$missing" ]; then
		echo "${0##*/}: missing:$missing" >&2
		echo "hint: sudo apt-get install qemu-system-x86 e2fsprogs kmod cpio xz-utils" >&2
		exit 1
	fi
}

# usage MESSAGE: exits.
usage() {
	echo "${0##*/}: $1" >&2
	echo "usage: ${0##*/} [--record] [--jobs=N] [KERNEL…], where KERNEL is 5.10, 6.1 or 6.12" >&2
	exit 2
}

# boot VERSION: replaces this process by qemu; the results of the guest go to serial, its console to console.log. The root image
# stays as it is: qemu discards what the guest writes to it.
boot() {
	local dir=$work/$1 disk
	rm -f "$dir"/disk?.img
	for disk in 1 2 3; do
		truncate -s 8G "$dir/disk$disk.img" || return
	done
	exec timeout --kill-after=10 "$GUEST_SECONDS" qemu-system-x86_64 -accel tcg,thread=multi -cpu Nehalem \
		-smp 2 -m 2560 -nodefaults -no-user-config -display none -no-reboot \
		-serial "file:$dir/console.log" -serial "file:$dir/serial" \
		-kernel "$dir/vmlinuz" -initrd "$dir/initramfs" \
		-append 'console=ttyS0 panic=-1 loglevel=2 mitigations=off nowatchdog' \
		-drive "file=$work/root.img,format=raw,if=virtio,snapshot=on,cache=unsafe" \
		-drive "file=$dir/check.img,format=raw,if=virtio,cache=unsafe" \
		-drive "file=$dir/disk1.img,format=raw,if=virtio,cache=unsafe,discard=unmap" \
		-drive "file=$dir/disk2.img,format=raw,if=virtio,cache=unsafe,discard=unmap" \
		-drive "file=$dir/disk3.img,format=raw,if=virtio,cache=unsafe,discard=unmap" </dev/null
}

# prepare VERSION: one kernel at a time, since all share the root image and the package lists.
prepare() {
	rm -f "$work/$1/results" "$work/$1/duration"
	if ! { make_root && fetch_kernel "$1" && make_initramfs "$1" && make_payload "$1"; } >&2; then
		mkdir -p "$work/$1"
		echo "$1 - prepare FAIL the reason is above" | tee "$work/$1/results"
		return 1
	fi
}

# cpu_seconds FILE: prints the CPU time in FILE, the output of times(1), of the processes that have ended.
cpu_seconds() {
	awk 'NR == 2 { gsub("s", "")
			for (i = 1; i <= 2; i++) { split($i, part, "m"); sum += part[1] * 60 + part[2] } }
		END { printf "%d\n", sum }' "$1"
}

# check_kernel VERSION: prints the results of one kernel as they come, appends them to its history, and
# prints its duration. Runs in a separate process, which writes below $work/VERSION only.
check_kernel() {
	local version=$1 dir=$work/$1 start=$SECONDS qemu tail status
	trap 'stop 143' INT TERM HUP
	: >"$dir/serial"
	boot "$version" &
	qemu=$!
	tail -n +1 -F --pid=$qemu "$dir/serial" 2>/dev/null | sed -u "s/\r\$//; s/^/$version /" &
	tail=$!
	wait $qemu
	status=$?
	wait $tail
	rm -f "$dir"/disk?.img "$dir/check.img"
	tr -d '\r' <"$dir/serial" | sed "s/^/$version /" >"$dir/results"
	if ! grep -q ' - end ok' <(tail -n 1 "$dir/results"); then
		echo "$version - end FAIL the guest ended early, status $status: see $dir/console.log" |
			tee -a "$dir/results"
	fi
	cat "$dir/results" >>"$work/history.$version"
	times >"$dir/times"
	echo "$version: $((SECONDS - start)) s, $(cpu_seconds "$dir/times") s of CPU time" | tee "$dir/duration"
}

# check_kernels: all that are wanted, at most $jobs at once.
check_kernels() {
	local version prepared=()
	for version in "${kernels[@]}"; do
		prepare "$version" && prepared+=("$version")
	done
	for version in "${prepared[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
			wait -n
		done
		check_kernel "$version" &
	done
	wait
}

# each FILE: prints that file of each kernel that was wanted. A kernel without one has failed.
each() {
	local version
	for version in "${kernels[@]}"; do
		cat "$work/$version/$1" 2>/dev/null || echo "$version - end FAIL no $1"
	done
}

# put_into_readme: the tables, between their markers.
put_into_readme() {
	local readme=$here/RESULTS.md
	awk -v table="$work/table.md" '
		/^<!-- \/kernels -->$/ { inside = 0 }
		!inside
		/^<!-- kernels -->$/ { inside = 1; while ((getline line < table) > 0) print line }' \
		"$readme" >"$work/README.md" && cp "$work/README.md" "$readme"
}

# shellcheck disable=SC2317 # called by a trap
stop() {
	trap '' INT TERM HUP
	# shellcheck disable=SC2046 # one word for each process
	kill $(jobs -p) 2>/dev/null
	exit "$1"
}

main() {
	local version record=''
	need qemu-system-x86_64 mke2fs depmod modprobe cpio xz dpkg-deb apt-get
	while :; do
		case ${1-} in
		--record) record=yes ;;
		--jobs=*[!0-9]* | --jobs= | --jobs=0*) usage "invalid number of jobs '${1#*=}'" ;;
		--jobs=*) jobs=${1#*=} ;;
		-*) usage "unknown option '$1'" ;;
		*) break ;;
		esac
		shift
	done
	[ $# -eq 0 ] || kernels=("$@")
	for version in "${kernels[@]}"; do
		[ -n "${release_of[$version]-}" ] || usage "unknown kernel '$version'"
	done
	mkdir -p "$work"
	trap 'stop 130' INT
	trap 'stop 143' TERM HUP
	check_kernels
	echo
	cat "$work"/history.* | sort -s -V -k1,1 | awk -f "$here/table.awk" | tee "$work/table.md"
	[ -z "$record" ] || put_into_readme
	each duration
	each results | awk '{ n[$4]++ }
		END {
			printf "%d passed, %d failed, %d skipped\n", n["ok"], n["FAIL"], n["skip"]
			exit n["FAIL"] > 0 || !n["ok"]
		}'
}
main "$@"
exit
