# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# NFS and SMB servers and their mounts, over loopback. The exports are on /dev/vdc (XFS) and /dev/vdd
# (ext4).

fs=${fs-} data=${data:?} dir=${dir-} # of lib.sh

# nfs_op NUMBER: prints how many operations of NFS 4 nfsd has performed. The numbers are of RFC 7862.
nfs_op() {
	awk -v n="$1" '$1 == "proc4ops" { print $(3 + n) }' /proc/net/rpc/nfsd
}
WRITE=38 COPY=60 CLONE=71

# start_nfsd: short grace periods, in which NFS 4 delays every open, and NFS 3 every lock.
start_nfsd() {
	mkdir -p /srv/xfs /srv/ext4 /run/rpcbind /run/sendsigs.omit.d
	modprobe lockd nlm_grace_period=10
	modprobe -a nfsd nfs nfsv3 nfsv4 2>/dev/null
	mount_fs xfs /dev/vdc /srv/xfs && mount_fs ext4 /dev/vdd /srv/ext4 || return
	mount -t nfsd nfsd /proc/fs/nfsd
	rpcbind -w && timeout 20 rpc.statd --no-notify || return
	exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=1 127.0.0.1:/srv/xfs &&
		exportfs -i -o rw,no_root_squash,insecure,no_subtree_check,fsid=2 127.0.0.1:/srv/ext4 &&
		rpc.nfsd -G 10 -L 10 4 && rpc.mountd || return
	echo Y >/proc/fs/nfsd/v4_end_grace
}

stop_nfsd() {
	rpc.nfsd 0
	exportfs -ua
	killall -q rpc.mountd rpc.statd rpcbind
	umount /proc/fs/nfsd /srv/xfs /srv/ext4
}

# mount_nfs VERSION EXPORT MOUNTPOINT [OPTION [ADDRESS]]
mount_nfs() {
	mkdir -p "$3"
	mount -t nfs -o "vers=$1,soft,timeo=6000${4:+,$4}" "${5:-127.0.0.1}:$2" "$3"
}

# mount_clients VERSION EXPORT [OPTION]: as two machines would. A second mount of one client would not
# do: the server knows both as one, and does not recall from one what it delegates to the other.
mount_clients() {
	local id=/sys/module/nfs/parameters/nfs4_unique_id status=0
	mount_nfs "$1" "$2" /mnt/nfs "${3-}" || return
	echo other >$id
	mount_nfs "$1" "$2" /mnt/nfs2 "nosharecache${3:+,$3}" 127.0.0.2 || status=$?
	echo >$id
	return $status
}

# remount_nfs VERSION EXPORT: Linux 5.10 may refuse this mount once.
remount_nfs() {
	umount /mnt/nfs || return
	for _ in 1 2 3; do
		mount_nfs "$@" /mnt/nfs && return
		sleep 1
	done
	return 1
}

# check_server_side MODE: the server copies: it gets no WRITE.
check_server_side() {
	local writes copies
	cp "$data/large" from
	sync -f .
	writes=$(nfs_op $WRITE) copies=$(($(nfs_op $COPY) + $(nfs_op $CLONE)))
	f -m "$1" from to
	cmp "$data/large" to
	echo "COPY $(nfs_op $COPY), CLONE $(nfs_op $CLONE), WRITE $writes to $(nfs_op $WRITE)"
	[ "$(nfs_op $WRITE)" = "$writes" ]
	[ $(($(nfs_op $COPY) + $(nfs_op $CLONE))) -gt "$copies" ]
}

# check_other_mount: a copy through one mount is whole on the other, in both directions. From mount to mount only by readwrite: the
# two clients have different names, but one server, so that copy_file_range(2) asks for the recovery of its state for ever; with cp,
# too (Linux 5.10 to 6.12, NFS 4.2).
check_other_mount() {
	local there=/mnt/nfs2/check
	cp "$data/large" from
	f from to
	cmp "$data/large" $there/to
	f $there/from $there/back
	cmp "$data/large" back
	f -m readwrite from $there/across
	cmp "$data/large" across
}

# shards FROM TO OPTION…: three at once, one of them on the other mount.
shards() {
	local i at pids=()
	for i in 0 1 2; do
		at=$PWD
		[ $i != 1 ] || at=/mnt/nfs2/shards
		f "${@:3}" --shard=$i/3 "$at/$1" "$at/$2" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
}

# whole_or_absent COMPARE…: repeats the command until it finds that DST, its last argument, is there
# and whole. Listing the directory makes the client ask the server for it.
whole_or_absent() {
	local i dst=${!#}
	for i in {1..90}; do
		ls "${dst%/*}" >/dev/null
		[ ! -e "$dst" ] || break
		sleep 1
	done
	"$@"
}

# late_retry FROM TO OPTION…: on the other mount, which may remember for a minute that TO does not
# exist: it must neither fail nor begin again.
late_retry() {
	f "${@:3}" --shard=0/3 "/mnt/nfs2/shards/$1" "/mnt/nfs2/shards/$2"
	ls .
	ls "$2.fcopy-part"
	[ "$(find "$2.fcopy-part" -type f | wc -l)" = 2 ]
	grep -q ' commit ' "$2.fcopy-part/journal"
}

same_trees() {
	diff <(names_and_bytes "$1") <(names_and_bytes "$2")
}

# check_shards: in a directory that the other mount has not seen yet; then it learns that DST does not
# exist.
check_shards() {
	local there=/mnt/nfs2/shards
	if ! f --help | grep -q -- --shard; then
		skip "this fcopy has no --shard"
	fi
	rm -rf "$dir/shards"
	mkdir "$dir/shards"
	cd "$dir/shards" || return
	cp "$data/large" from
	make_tree tree
	sync -f .
	[ ! -e $there/to ]
	[ ! -e $there/copied ]
	shards from to
	late_retry from to
	whole_or_absent cmp "$data/large" "$PWD/to"
	whole_or_absent cmp "$data/large" $there/to
	shards tree copied -r
	late_retry tree copied -r
	whole_or_absent same_trees tree "$PWD/copied"
	whole_or_absent same_trees tree $there/copied
}

# check_shards_refused: the locks of these mounts do not reach other clients.
check_shards_refused() {
	rm -rf "$dir/refused"
	mkdir "$dir/refused"
	cd "$dir/refused" || return
	! /check/bin/fcopy --shard=0/2 "$data/large" to 2>err || return
	cat err
	grep 'has no locks that other machines see' err
	[ "$(ls -A)" = err ]
}

# export_xfs OPTION…: with other options than before; the mounts stay.
export_xfs() {
	exportfs -i -o "rw,insecure,no_subtree_check,fsid=1,$1" 127.0.0.1:/srv/xfs && exportfs -f
}

# killed PART ARGUMENT…: kills fcopy when it has begun the part.
killed() {
	local pid
	/check/bin/fcopy "${@:2}" &
	pid=$!
	until [ -s "$1/journal" ]; do
		kill -0 $pid
		sleep 0.2
	done
	kill -KILL $pid
	wait $pid || [ $? = 137 ]
}

# check_squash: the server takes root for the user 1234, who owns the directory: what root creates is
# not root's, cannot be given away, and no part of a copy is private.
check_squash() {
	mkdir -m 755 squash
	chown 1234:1234 squash
	export_xfs root_squash,anonuid=1234,anongid=1234
	cd squash || return
	f "$data/large" file
	f -v "$data/large" file
	cmp "$data/large" file
	f -r "$data/tree" new
	f -rT "$data/tree" new
	same_trees "$data/tree" new
	killed file2.fcopy-part --resume --limit-rate=1M "$data/large" file2
	f --resume "$data/large" file2
	cmp "$data/large" file2
	killed new2.fcopy-part -rT --resume --limit-rate=1K "$data/tree" new2
	f -rT --resume "$data/tree" new2
	same_trees "$data/tree" new2
	f -p "$data/large" owned 2>&1 | grep "fchown: Operation not permitted" # root's
	ls -A
	[ "$(ls -A)" = $'file\nfile2\nnew\nnew2\nowned' ]
	[ -z "$(find . ! -user 1234)" ]
}

# check_squash_nights: the same, where what root creates is not root's.
check_squash_nights() {
	mkdir -m 755 squash
	chown 1234:1234 squash
	export_xfs root_squash,anonuid=1234,anongid=1234
	cd squash || return
	check_nights
}

# on_nfs VERSION EXPORT
on_nfs() {
	if ! mount_clients "$1" "$2"; then
		result mount FAIL "see the console"
		return
	fi
	dir=/mnt/nfs
	if ! all_checks remount_nfs "$1" "$2"; then
		umount /mnt/nfs2
		return
	fi
	check other-mount check_other_mount
	check shards check_shards
	if [ "$2" = /srv/xfs ]; then
		check squash check_squash
		export_xfs no_root_squash # so that what it left can be removed
		check squash-nights check_squash_nights
		export_xfs no_root_squash
	fi
	if [ "$1" = 4.2 ]; then
		check server-auto check_server_side auto
		check server-cfr check_server_side copy_file_range
		[ "$2" != /srv/xfs ] || check server-reflink check_server_side reflink
	fi
	umount /mnt/nfs /mnt/nfs2
	if [ "$1" = 3 ]; then
		if ! mount_clients 3 "$2" nolock; then
			result mount FAIL "with nolock: see the console"
			return
		fi
		check shards-refused check_shards_refused
		umount /mnt/nfs /mnt/nfs2
	fi
}

# over_nfs: the exports on each version.
over_nfs() {
	if ! start_nfsd; then
		result mount FAIL "nfsd does not start: see the console"
		return
	fi
	for fs in nfs4.2-xfs nfs4.2-ext4 nfs3-xfs; do
		case $fs in
		nfs4.2-*) on_nfs 4.2 "/srv/${fs#*-}" ;;
		nfs3-*) on_nfs 3 "/srv/${fs#*-}" ;;
		esac
	done
	stop_nfsd
}

# start_smbd: one share, whose files are of root for every client.
start_smbd() {
	mkdir -p /srv/xfs /var/lib/samba/private /var/cache/samba /var/log/samba /run/samba /etc/samba
	mount_fs xfs /dev/vdc /srv/xfs || return
	cat >/etc/samba/smb.conf <<-'END'
		[global]
		map to guest = bad user
		guest account = root
		interfaces = lo
		bind interfaces only = yes
		disable netbios = yes
		smb ports = 445
		load printers = no
		[share]
		path = /srv/xfs
		read only = no
		guest ok = yes
		force user = root
	END
	smbd --daemon && sleep 3
}

mount_cifs() {
	mkdir -p /mnt/cifs
	mount -t cifs -o guest,vers=3.1.1,noperm //127.0.0.1/share /mnt/cifs
}

remount_cifs() {
	umount /mnt/cifs && mount_cifs
}

# smb_count NAME: prints how many requests of the kind the client has sent.
smb_count() {
	awk -v name="$1:" '$1 == name { print $2 }' /proc/fs/cifs/Stats
}

# check_copychunk MODE: the server copies: the client sends IOCTLs, and no WRITE.
check_copychunk() {
	local writes requests
	cp "$data/large" from
	sync -f .
	writes=$(smb_count Writes) requests=$(smb_count IOCTLs)
	f -m "$1" from to
	cmp "$data/large" to
	echo "Writes $writes to $(smb_count Writes), IOCTLs $requests to $(smb_count IOCTLs)"
	[ "$(smb_count Writes)" = "$writes" ]
	[ "$(smb_count IOCTLs)" -gt "$requests" ]
}

over_cifs() {
	modprobe cifs
	if ! start_smbd || ! mount_cifs; then
		result mount FAIL "see the console"
		return
	fi
	dir=/mnt/cifs
	all_checks remount_cifs
	check server-auto check_copychunk auto
	check server-cfr check_copychunk copy_file_range
	umount /mnt/cifs
	killall -q smbd
	sleep 2
	umount /srv/xfs
}
