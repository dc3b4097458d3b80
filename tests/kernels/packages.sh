# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Downloads Debian packages into a private apt directory, $work/apt, and extracts them. The machine's
# own sources and package lists stay untouched; only the address of its mirror is taken from them.

work=${work:?} # of kernels.sh

# The Debian release whose package holds a kernel.
declare -A release_of=([5.10]=bullseye [6.1]=bookworm [6.12]=trixie)

# The guest's programs. fcopy is linked with this machine's C library, so they come from its release.
guest_packages=(bash coreutils util-linux mount kmod e2fsprogs xfsprogs btrfs-progs f2fs-tools exfatprogs
	dosfstools ntfs-3g dmsetup nfs-kernel-server samba cifs-utils attr acl diffutils findutils grep sed
	mawk procps psmisc iproute2 netbase rsync rpcbind libc-bin libsubunit0 busybox-static)

# codename: prints the name of this machine's release.
codename() {
	# shellcheck source=/dev/null
	(. /etc/os-release && echo "${VERSION_CODENAME-}")
}

# mirror: prints the address from which this machine gets its release.
mirror() {
	apt-get indextargets --format "\$(RELEASE) \$(COMPONENT) \$(REPO_URI)" 'Created-By: Packages' |
		awk -v release="$(codename)" '$1 == release && $2 == "main" { print $3; exit }'
}

# private PROGRAM ARGUMENT…: apt-get or apt-cache with the private directory.
private() {
	local program=$1 apt=$work/apt
	shift
	"$program" -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts="$apt/none" \
		-o Dir::Etc::preferencesparts="$apt/none" -o Dir::State="$apt/state" \
		-o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
		-o Acquire::Languages=none -o APT::Install-Recommends=false -o APT::Sandbox::User=root \
		-o Acquire::Retries=3 -q=2 "$@"
}

# update_lists: reads the mirror's lists, once. A release that the mirror no longer has is reported
# later, when its package is missing.
update_lists() {
	local apt=$work/apt release address
	local keys=/usr/share/keyrings/debian-archive-keyring.gpg
	if [ -e "$apt/updated" ]; then
		return
	fi
	address=$(mirror)
	if [ -z "$address" ]; then
		echo "$0: apt of this machine knows no mirror of Debian's release '$(codename)'" >&2
		return 1
	fi
	mkdir -p "$apt"/{none,state/lists/partial,cache/archives/partial} || return
	: >"$apt/status"
	for release in $(printf '%s\n' "$(codename)" "${release_of[@]}" | sort -u); do
		echo "deb [signed-by=$keys] $address $release main"
	done >"$apt/sources.list"
	private apt-get update
	: >"$apt/updated"
}

# fetch_guest DIR: extracts the guest's packages, and those that they depend on, into DIR.
fetch_guest() {
	local dir=$1 deb archives=$work/apt/cache/archives
	rm -f "$archives"/*.deb
	private apt-get --yes --download-only -t "$(codename)" install "${guest_packages[@]}" || return
	for deb in "$archives"/*.deb; do
		dpkg-deb -x "$deb" "$dir" || return
	done
	rm -f "$archives"/*.deb
}

# package_of VERSION: prints the newest package of that kernel.
package_of() {
	private apt-cache search --names-only "^linux-image-$1\\..*-amd64\$" | cut -d' ' -f1 |
		grep -vE -- '-(cloud|rt)-' | sort -V | tail -n 1
}

# fetch_kernel VERSION: makes $work/VERSION with vmlinuz, release (the kernel's full name), and
# modules/RELEASE, without those that no test needs.
fetch_kernel() {
	local dir=$work/$1 package modules
	if [ -e "$dir/release" ]; then
		return
	fi
	update_lists || return
	package=$(package_of "$1")
	if [ -z "$package" ]; then
		echo "$0: the mirror has no package linux-image-$1.…-amd64" >&2
		return 1
	fi
	rm -rf "$dir"
	mkdir -p "$dir/package" "$dir/modules" || return
	(cd "$dir" && private apt-get download "$package") && dpkg-deb -x "$dir"/*.deb "$dir/package" || return
	modules=$(find "$dir/package" -type d -path '*/lib/modules/*' -prune)
	rm -rf "$modules"/kernel/{sound,drivers/{gpu,media,net,scsi,usb,infiniband,staging,iio,input,hwmon}}
	mv "$dir"/package/boot/vmlinuz-* "$dir/vmlinuz" && mv "$modules" "$dir/modules/" || return
	rm -rf "$dir/package" "$dir"/*.deb
	index_modules "$dir" "${modules##*/}" && echo "${modules##*/}" >"$dir/release"
}

# index_modules DIR RELEASE: depmod(8) wants the modules below lib/modules.
index_modules() {
	mkdir -p "$1/lib" && ln -sfn ../modules "$1/lib/modules" && depmod -b "$1" "$2"
}
