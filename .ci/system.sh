# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced: a bare Debian system in $root, a directory.

# cannot REASON…: status 77 means skipped.
cannot() {
	echo "skipped: $*"
	exit 77
}

# Where this machine gets its packages from.
# shellcheck disable=SC2016 # fields of apt-get
mirror() {
	apt-get indextargets --format '$(ORIGIN)|$(COMPONENT)|$(REPO_URI)' 'Created-By: Packages' |
		sed -n 's/^Debian|main|//p' | head -n 1
}

# inside COMMAND…: in the new system, with mounts, processes and devices that end with the command.
# By pivot_root: the kernel denies user namespaces in a chroot, and an ordinary user's tests mount in them. The
# devices are new: as udev does it, everybody may use FUSE. SYSTEM_TMP=tmpfs mounts /tmp, as Debian 13 does.
inside() {
	# shellcheck disable=SC2016,SC2154
	unshare --mount --pid --fork --kill-child bash -euc '
		PATH=$PATH:/usr/sbin:/sbin
		mount --make-rprivate /
		mount --bind "$0" "$0"
		cd "$0"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount -t tmpfs -o mode=755 dev dev
		for name in null zero full random urandom tty fuse; do
			[ ! -c "/dev/$name" ] ||
				mknod -m 666 "dev/$name" c $(stat -c "0x%t 0x%T" "/dev/$name")
		done
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
		mount -t tmpfs -o mode=1777 shm dev/shm
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd
		for name in stdin:0 stdout:1 stderr:2; do
			ln -s "/proc/self/fd/${name#*:}" "dev/${name%:*}"
		done
		[ "${SYSTEM_TMP-}" != tmpfs ] || mount -t tmpfs -o mode=1777 tmp tmp
		pivot_root . .
		umount -l .
		cd /
		exec env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
			DEBIAN_FRONTEND=noninteractive "$@"' "$root" "$@"
}

# system_check: exits with status 77 if no such system can be made here.
system_check() {
	[ "$(id -u)" = 0 ] || cannot "only root can make a chroot"
	type mmdebstrap >/dev/null 2>&1 || cannot "no mmdebstrap"
	[ -n "$(mirror)" ] || cannot "apt here has no Debian archive"
	unshare --mount --pid --fork true 2>/dev/null || cannot "no namespaces of our own"
}

# system_make SUITE PACKAGES: with these packages, separated by commas.
system_make() {
	mmdebstrap --variant=minbase --include="$2" "$1" "$root" "$(mirror)"
	cp /etc/resolv.conf "$root/etc/"
	apt-config dump --format '%F "%v";%n' Acquire::http::Proxy Acquire::https::Proxy \
		>"$root/etc/apt/apt.conf.d/99proxy"
}
