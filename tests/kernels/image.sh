# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Builds what qemu boots: an initramfs, the root image with the guest's programs, and the image with
# what is tested.

work=${work:?} here=${here:?} root=${root:?} build=${build:?} # of kernels.sh

# make_root: $work/root.img, once. Maintainer scripts do not run: nothing of this machine is changed.
make_root() {
	local guest=$work/root dir
	if [ "$work/root.img" -nt "$here/packages.sh" ] && [ "$work/root.img" -nt "$here/image.sh" ]; then
		return
	fi
	update_lists || return
	rm -rf "$guest"
	for dir in bin sbin lib lib64; do
		mkdir -p "$guest/usr/$dir" && ln -s "usr/$dir" "$guest/$dir" || return
	done
	fetch_guest "$guest" || return
	rm -rf "$guest"/usr/share/{doc,man,locale,info} "$guest"/var/lib/apt
	mkdir -p "$guest"/{proc,sys,dev,run,tmp,mnt,check,root,lib/modules,var/lib/nfs/{v4recovery,sm,sm.bak}} || return
	ln -s mawk "$guest/usr/bin/awk" || return
	: >"$guest/var/lib/nfs/etab"
	: >"$guest/var/lib/nfs/rmtab"
	printf '%s\n' root:x:0:0::/root:/bin/bash _rpc:x:101:65534::/:/bin/false \
		nobody:x:65534:65534::/:/bin/false >"$guest/etc/passwd"
	printf '%s\n' root:x:0: nogroup:x:65534: >"$guest/etc/group"
	echo '127.0.0.1 localhost guest' >"$guest/etc/hosts"
	as_root mke2fs -q -F -t ext4 -d "$guest" "$work/root.new" 1500M && mv "$work/root.new" "$work/root.img" &&
		cp "$guest/bin/busybox" "$work/busybox" && rm -rf "$guest"
}

# as_root CMD…: so that files in an image belong to root if this script runs as another user.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		unshare --map-root-user "$@"
	fi
}

# make_initramfs VERSION: $work/VERSION/initramfs, which loads the modules for the disks and starts
# guest/init.sh.
make_initramfs() {
	local dir=$work/$1 top=$work/$1/initramfs.d module file
	rm -rf "$top"
	mkdir -p "$top"/{proc,dev,root} && cp "$work/busybox" "$top/busybox" || return
	for module in virtio_pci virtio_blk crc32c_generic ext4; do
		modprobe -d "$dir" -S "$(cat "$dir/release")" --show-depends "$module" 2>/dev/null
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$dir/modules.list"
	while read -r file; do
		module=${file##*/}
		case $file in
		*.xz) xz -dc "$file" >"$top/${module%.xz}" ;;
		*) cp "$file" "$top/$module" ;;
		esac || return
		echo "${module%.xz}"
	done <"$dir/modules.list" >"$top/modules"
	cat >"$top/init" <<-'END'
		#!/busybox sh
		/busybox mount -t proc proc /proc
		/busybox mount -t devtmpfs dev /dev
		for module in $(/busybox cat /modules); do /busybox insmod "/$module"; done
		/busybox mount -t ext4 /dev/vda /root &&
			/busybox mount -t ext4 /dev/vdb /root/check &&
			exec /busybox switch_root /root /bin/bash /check/guest/init.sh
		/busybox poweroff -f
	END
	chmod +x "$top/init"
	(cd "$top" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$dir/initramfs"
}

# make_payload VERSION: $work/VERSION/check.img, mounted as /check: modules, fcopy, tests and scripts.
make_payload() {
	local dir=$work/$1 top=$work/$1/check.d
	rm -rf "$top"
	mkdir -p "$top/bin" || return
	cp -a "$here/guest" "$top/guest" && cp -a "$dir/modules" "$top/modules" || return
	cp "$FCOPY" "$top/bin/fcopy" || return
	cp "$build"/tests/check/*_test "$top/bin/" || return
	"${CC:-cc}" -O2 -Wall -Wextra -static -o "$top/bin/replay" "$root/tests/tools/replay.c" || return
	echo "$WANTED" >"$top/wanted"
	echo "$CHECKS" >"$top/checks"
	echo "$CUTS" >"$top/cuts"
	rm -f "$dir/check.img"
	as_root mke2fs -q -F -t ext4 -d "$top" "$dir/check.img" 1000M && rm -rf "$top"
}
