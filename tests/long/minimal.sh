#!/bin/bash
# SPDX-License-Identifier: MIT
#
# minimal.sh [few]: storage that lacks operations, or answers oddly. Wherever cp makes the copy,
# fcopy makes an equal one, or leaves DST as it was and says what is unsupported. With "few", only
# some of the copies are made.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
need setfattr setpriv
need_private_mounts "$@"
make_work
[ -c /dev/fuse ] || skip "no /dev/fuse"
faultfs=$(tool faultfs) || skip "faultfs cannot be built"
few=${1-}
mnt=$work/mnt
mkdir "$work"/{backing,mnt,s,s/d,s/d/e}
for size in 0 1 4095 4097; do
	random_file "$work/s/f$size" $size
done
random_file "$work/s/d/large" 1500000
random_file "$work/s/hole" 4096
truncate -s 300000 "$work/s/hole"
printf end >>"$work/s/hole"
ln -s f1 "$work/s/link"
chmod 640 "$work/s/f1"
chmod 750 "$work/s/d"
setfattr -n user.colour -v blue "$work/s/f1" 2>/dev/null
touch -d '2001-02-03 04:05:06' "$work/s/f4095" "$work/s/d/e"
random_file "$work/old" 5000

# start OPTION…: mounts faultfs with these options. It ends with this script at latest.
start() {
	local IFS=,
	setpriv --pdeathsig TERM "$faultfs" "$work/backing" "$mnt" -f -o "attr_timeout=0,$*" &
	until mountpoint -q "$mnt"; do
		kill -0 $! 2>/dev/null || skip "FUSE does not mount"
		sleep 0.01
	done
}

# prepare NAME WHAT: what exists at DST before the copy. No name is used twice: the kernel would
# remember what it was.
prepare() {
	case $2 in
	replace*) cp "$work/old" "$work/backing/$1" ;;
	merge*)
		mkdir "$work/backing/$1"
		cp "$work/old" "$work/backing/$1/f4097"
		;;
	esac
}

# listing NAME WHAT: bytes, types and links of a copy; with -a also times and modes as cp sets them.
listing() {
	local more=
	[[ $2 != *all* ]] || more=' %m %T@'
	(cd "$work/backing" && find "$1" -mindepth 0 \( -type l -printf "%P %y %l\n" -o -type d -printf "%P %y${more% %T@}\n" \
		-o -printf "%P %y %s$more\n" \) | LC_ALL=C sort &&
		find "$1" -type f -exec md5sum {} + | sed 's|  [^/]*|  |' | sort -k 2)
}

# one WHAT CP-ARGUMENTS -- FCOPY-ARGUMENTS: both copy to a name of their own.
one() {
	local what=$1 by_cp=0 by_fcopy=0 said
	local -a cp=() fcopy=()
	shift
	while [ "$1" != -- ]; do
		cp+=("$1")
		shift
	done
	fcopy=("${@:2}")
	tried=$((tried + 1))
	local theirs=cp$tried ours=fcopy$tried
	prepare $theirs "$what"
	prepare $ours "$what"
	(cd "$work" && timed cp "${cp[@]}" mnt/$theirs) 2>"$work/cp.err" || by_cp=$?
	(cd "$work" && timed "$FCOPY" "${fcopy[@]}" mnt/$ours) 2>"$work/err" || by_fcopy=$?
	said=$(head -n 2 "$work/err")
	[ -z "$(find "$work/backing" -name '.fcopy-*')" ] || fail other "$lacks: $what: a hidden name is left"
	if [ $by_fcopy = 0 ]; then
		[ $by_cp = 0 ] || return
		diff <(listing $theirs "$what") <(listing $ours "$what") >"$work/differences" ||
			fail wrong "$lacks: $what: $(head -n 3 "$work/differences")"
	elif [ $by_fcopy != 1 ]; then
		fail_status $by_fcopy "$lacks: $what: $said"
	elif [ $by_cp = 0 ] && ! grep -qE 'hint: |unsupported here|cannot be renamed here' "$work/err"; then
		fail other "$lacks: $what: cp copies, fcopy: $said"
	elif [ "$what" = replace ] && ! cmp -s "$work/old" "$work/backing/$ours"; then
		fail lost "$lacks: $what: the old file: $said"
	elif [[ $what = new* ]] && [ -e "$work/backing/$ours" ]; then
		fail other "$lacks: $what: an incomplete file is left: $said"
	fi
	[ $by_fcopy = 0 ] || refused=$((refused + 1))
}

copies() {
	local file
	one "new 4097" s/f4097 -- s/f4097
	one "tree all" -a s -- -a s
	one "merge" -rT s -- -rT s
	[ ! "$few" ] || return 0
	one "replace" s/f4097 -- s/f4097
	one "replace in place" s/f4097 -- --inplace s/f4097
	one "replace in place=auto" s/f4097 -- --inplace=auto s/f4097
	one "merge in place=auto" -rT s -- -rT --inplace=auto s
	for file in f0 f1 f4095 hole d/large; do
		one "new $file" "s/$file" -- "s/$file"
	done
	one "new --resume" s/f4097 -- --resume s/f4097
	one "new --verify" s/d/large -- --verify s/d/large
	one "new --fsync" s/d/large -- --fsync s/d/large
	one "tree" -r s -- -r s
	one "tree in place" -r s -- -r --inplace s
	one "tree --resume" -r s -- -r --resume s
	one "tree --verify" -r s -- -r --verify s
	one "merge all" -aT s -- -aT s
}

# lack OPTION…: with these options of faultfs.
lack() {
	lacks=$*
	start "$@"
	copies
	umount "$mnt"
	rm -rf "$work/backing/"*
}

# all ERRNO OPERATION…: prints a rule for each.
all() {
	local operation
	for operation in "${@:2}"; do
		echo "fault=$operation:$1"
	done
}

refused=0
small="chmod chown utimens"
more="link symlink truncate fsync statfs fallocate lseek getxattr setxattr listxattr"
[ ! "$few" ] || more="symlink setxattr"
errnos=(EPERM EOPNOTSUPP EACCES EINVAL EIO EMFILE)
number=0
lack xattrs
for operation in $small $more rename renamedir renameover renameopen; do
	lack xattrs "fault=$operation:ENOSYS"
	[ ! "$few" ] || continue
	lack xattrs "fault=$operation:${errnos[number++ % 6]}"
done
# shellcheck disable=SC2046,SC2086 # lists of words
{
	lack $(all EPERM $small)
	lack $(all ENOSYS $small $more)
	lack $(all ENOSYS $small $more rename)
}
for option in direct_io sequential writeback modeless; do
	lack $option
done
echo "$name: $refused refused"
finish
