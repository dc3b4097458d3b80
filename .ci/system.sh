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

# inside COMMAND…: in the new system, with mounts and processes that end with the command.
inside() {
	# shellcheck disable=SC2016,SC2154
	unshare --mount --pid --fork --kill-child bash -euc '
		mount -t proc proc "$0/proc"
		mount --rbind /sys "$0/sys"
		mount --rbind /dev "$0/dev"
		exec chroot "$0" env -i HOME=/root TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
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
