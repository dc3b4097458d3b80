#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/kernels/kernels.sh [--record] [KERNEL…]: boots Debian's kernels (5.10 6.1 6.12) in qemu without hardware
# virtualisation, one after the other, and checks fcopy on each file system that they have. Prints
# "kernel fs check ok|FAIL|skip reason" for each check, then tables, how long each kernel took and "N
# passed, N failed, N skipped". Results, tables, logs, downloads and images are kept in build/kernels.
# The tables hold the last result of each check since build/kernels was made; --record puts them into
# tests/README.md.
#
#   WANTED='ext4 nfs'  checks only these groups; guest/init.sh lists them
#   CHECKS='auto tree-r'  runs only these checks, which are rows of the tables
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
GUEST_SECONDS=${GUEST_SECONDS:-5400}

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

# boot VERSION: runs the guest; its results go to results, its console to console.log. The root image
# stays as it is: qemu discards what the guest writes to it.
boot() {
	local dir=$work/$1 disk
	rm -f "$dir/console.log" "$dir"/disk?.img
	for disk in 1 2 3; do
		truncate -s 8G "$dir/disk$disk.img" || return
	done
	timeout --kill-after=10 "$GUEST_SECONDS" qemu-system-x86_64 -accel tcg,thread=multi -cpu Nehalem \
		-smp 2 -m 2560 -nodefaults -no-user-config -display none -no-reboot \
		-serial "file:$dir/console.log" -serial "file:$dir/results" \
		-kernel "$dir/vmlinuz" -initrd "$dir/initramfs" \
		-append 'console=ttyS0 panic=-1 loglevel=2 mitigations=off nowatchdog' \
		-drive "file=$work/root.img,format=raw,if=virtio,snapshot=on,cache=unsafe" \
		-drive "file=$dir/check.img,format=raw,if=virtio,cache=unsafe" \
		-drive "file=$dir/disk1.img,format=raw,if=virtio,cache=unsafe,discard=unmap" \
		-drive "file=$dir/disk2.img,format=raw,if=virtio,cache=unsafe,discard=unmap" \
		-drive "file=$dir/disk3.img,format=raw,if=virtio,cache=unsafe,discard=unmap" </dev/null
}

# cpu_seconds FILE FILE: prints by how much the second line of times(1) has grown: what the processes
# that have ended used. A subshell would have no such processes, so the files are written before.
cpu_seconds() {
	awk 'FNR == 2 { gsub("s", "")
			for (i = 1; i <= 2; i++) { split($i, part, "m"); sum[FILENAME] += part[1] * 60 + part[2] } }
		END { printf "%d\n", sum[ARGV[2]] - sum[ARGV[1]] }' "$@"
}

# check_kernel VERSION: prints the results of one kernel as they come, and appends them to
# $work/results.
check_kernel() {
	local version=$1 dir=$work/$1 start=$SECONDS qemu tail
	if ! { make_root && fetch_kernel "$version" && make_initramfs "$version" && make_payload "$version"; } >&2; then
		echo "$version - prepare FAIL the reason is above" | tee -a "$work/results"
		return
	fi
	: >"$dir/results"
	times >"$work/times.before"
	boot "$version" &
	qemu=$!
	tail -n +1 -F --pid=$qemu "$dir/results" 2>/dev/null | sed -u "s/\r\$//; s/^/$version /" &
	tail=$!
	wait $qemu
	local status=$?
	wait $tail
	rm -f "$dir"/disk?.img "$dir/check.img"
	tr -d '\r' <"$dir/results" | sed "s/^/$version /" >>"$work/results"
	if ! grep -q ' - end ok' <(tail -n 1 "$work/results"); then
		echo "$version - end FAIL the guest ended early, status $status: see $dir/console.log" |
			tee -a "$work/results"
	fi
	times >"$work/times.after"
	echo "$version: $((SECONDS - start)) s, $(cpu_seconds "$work"/times.{before,after}) s of CPU time" | tee -a "$work/durations"
}

# put_into_readme: the tables, between their markers.
put_into_readme() {
	local readme=$root/tests/README.md
	awk -v table="$work/table.md" '
		/^<!-- \/kernels -->$/ { inside = 0 }
		!inside
		/^<!-- kernels -->$/ { inside = 1; while ((getline line < table) > 0) print line }' \
		"$readme" >"$work/README.md" && cp "$work/README.md" "$readme"
}

# shellcheck disable=SC2317 # called by a trap
stop() {
	# shellcheck disable=SC2046 # one word for each process
	kill $(jobs -p) 2>/dev/null
	exit "$1"
}

main() {
	local version record=''
	need qemu-system-x86_64 mke2fs depmod modprobe cpio xz dpkg-deb apt-get
	trap 'stop 130' INT
	trap 'stop 143' TERM HUP
	if [ "${1-}" = --record ]; then
		record=yes
		shift
	fi
	[ $# -gt 0 ] || set -- 5.10 6.1 6.12
	for version in "$@"; do
		if [ -z "${release_of[$version]-}" ]; then
			echo "${0##*/}: unknown kernel '$version' (one of 5.10 6.1 6.12)" >&2
			exit 2
		fi
	done
	mkdir -p "$work"
	rm -f "$work/results" "$work/durations"
	for version in "$@"; do
		check_kernel "$version"
	done
	echo
	cat "$work/results" >>"$work/history"
	sort -s -V -k1,1 "$work/history" | awk -f "$here/table.awk" | tee "$work/table.md"
	[ -z "$record" ] || put_into_readme
	cat "$work/durations"
	awk '{ n[$4]++ }
		END {
			printf "%d passed, %d failed, %d skipped\n", n["ok"], n["FAIL"], n["skip"]
			exit n["FAIL"] > 0 || !n["ok"]
		}' "$work/results"
}
main "$@"
exit
