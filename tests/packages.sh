#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# packages.sh [PART…]: builds the source archive and the packages of HEAD from clean checkouts, and tests
# them. Prints a line with the duration for each part, and at the end `N passed, N failed, N skipped`. The
# parts: dist, deb, bookworm, trixie (Debian 12 and 13, in bare systems), rpm, apk. A part whose tools are
# missing is skipped with the reason. All output is in build/packages.log.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build
log=$PWD/build/packages.log
work=$(mktemp -d "${TMPDIR:-/tmp}/fcopy-packages.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
passed=0 failed=0 skipped=0
: >"$log"

# shellcheck source=SCRIPTDIR/../.ci/system.sh
. .ci/system.sh

need() {
	local tool
	for tool; do
		type "$tool" >/dev/null 2>&1 || cannot "no $tool"
	done
}

# checkout NAME: a clean one of HEAD in $work/NAME.
checkout() {
	need git
	git rev-parse --git-dir >/dev/null 2>&1 || cannot "not a git checkout"
	git clone -q --no-hardlinks . "$work/$1"
	cd "$work/$1" || return
}

# equal GLOB: the files in both checkouts have the same names and bytes.
equal() {
	# shellcheck disable=SC2086
	(cd "$work/one" && sha256sum $1) >"$work/sums"
	[ -s "$work/sums" ] && (cd "$work/two" && sha256sum -c --quiet "$work/sums") || return
	cat "$work/sums"
}

# Two runs in different directories give equal archives.
part_dist() {
	local name
	for name in one two; do
		(checkout $name && make dist) || return
	done
	equal 'build/fcopy-*.tar.gz'
}

# Two builds in different directories give equal packages, which lintian accepts. They install, run and are removed.
part_deb() {
	local name package installed=$work/installed
	need dpkg-buildpackage dh lintian
	for name in one two; do
		([ -d "$work/$name" ] || checkout $name) && (cd "$work/$name" && make deb) || return
	done
	equal 'build/deb/*.deb'
	lintian --allow-root --fail-on error,warning "$work"/one/build/deb/*.changes || return
	[ "$(id -u)" = 0 ] || { echo "not installed: dpkg --root needs root"; return; }
	mkdir -p "$installed"/var/lib/dpkg/{info,updates,triggers}
	touch "$installed/var/lib/dpkg/status"
	for package in fcopy libfcopy1 libfcopy-dev; do
		dpkg --root="$installed" --force-depends,script-chrootless -i "$work"/one/build/deb/${package}_*.deb || return
	done
	"$installed/usr/bin/fcopy" "$installed/usr/bin/fcopy" "$work/copy" && cmp "$installed/usr/bin/fcopy" "$work/copy" &&
		[ -e "$installed/usr/share/zsh/vendor-completions/_fcopy" ] || return
	dpkg --root="$installed" -P fcopy libfcopy-dev libfcopy1 || return
	! find "$installed" ! -type d | grep -vF "$installed/var/"
}

# in_debian SUITE: builds the packages in a bare system, and runs the autopkgtest with them installed.
in_debian() {
	local depends
	system_check
	depends=$(sed -n 's/^Depends: //p' src/dist/debian/tests/control | sed 's/fcopy, libfcopy1, libfcopy-dev, //; s/ //g')
	rm -rf --one-file-system "$root"
	system_make "$1" "passwd,build-essential,debhelper,lintian,liburing-dev,pkg-config,$depends" || return
	(checkout "$1") && mv "$work/$1" "$root/src" || return
	inside bash -euc 'cd /src
		useradd tester
		make deb
		lintian --allow-root --fail-on error,warning build/deb/*.changes
		apt-get install -y --no-install-recommends ./build/deb/fcopy_*.deb ./build/deb/libfcopy*[1v]_*.deb
		pkg-config --modversion fcopy
		cd build/deb/fcopy-*/
		make clean
		chmod -R a+rX /src
		setpriv --reuid tester --regid tester --init-groups env HOME=/tmp debian/tests/cli
		apt-get purge -y fcopy libfcopy1 libfcopy-dev'
}

part_bookworm() { in_debian bookworm; }
part_trixie() { in_debian trixie; }

part_rpm() {
	need rpmbuild
	# Elsewhere than on RPM's systems, no package of its database satisfies BuildRequires.
	(checkout rpm && make rpm RPMFLAGS="$(rpm -q rpm >/dev/null 2>&1 || echo --nodeps)") || return
	mkdir "$work/unpacked"
	for package in "$work"/rpm/build/rpm/RPMS/*/*.rpm; do
		(cd "$work/unpacked" && rpm2cpio "$package" | cpio -idm --quiet) || return
	done
	try_installed "$work/unpacked"
}

# try_installed DIR: the program below DIR/usr/bin copies itself.
try_installed() {
	"$1/usr/bin/fcopy" "$1/usr/bin/fcopy" "$work/copy" && cmp "$1/usr/bin/fcopy" "$work/copy" && rm "$work/copy"
	find "$1" -name 'libfcopy.so*' | grep . && find "$1" -name fcopy.1\* | grep .
}

# The functions of the APKBUILD, with musl's compiler where abuild is missing.
part_apk() {
	local kernel=$work/kernel machine
	if ! type abuild >/dev/null 2>&1; then
		need musl-gcc
		machine=$(gcc -print-multiarch)
		mkdir -p "$kernel"
		ln -s /usr/include/linux /usr/include/asm-generic "$kernel"
		ln -s "/usr/include/$machine/asm" "$kernel/asm"
		export CC=musl-gcc CPPFLAGS="-isystem $kernel"
	fi
	(checkout apk && make dist && tar -xf build/fcopy-*.tar.gz -C "$work") || return
	sh -euc 'srcdir=$0 pkgdir=$0/apk-root
		. "$0/apk/src/dist/APKBUILD"
		cd "$builddir"
		[ "$(sed -n "s/^#define FCOPY_VERSION *\"\(.*\)\"/\1/p" include/fcopy.h)" = "$pkgver" ]
		build && check && package' "$work" || return
	try_installed "$work/apk-root"
}

parts=${*:-dist deb bookworm trixie rpm apk}
for name in $parts; do
	start=$SECONDS
	(part_"$name") >"$work/log" 2>&1
	status=$?
	cat "$work/log" >>"$log"
	case $status in
	0) passed=$((passed + 1)) result=passed ;;
	77) skipped=$((skipped + 1)) result=$(tail -n 1 "$work/log") ;;
	*)
		failed=$((failed + 1)) result=FAILED
		grep -A 12 '^not ok' "$work/log" || tail -n 30 "$work/log"
		;;
	esac
	echo "$name: $result ($((SECONDS - start)) s)"
done
echo "check-packages took $SECONDS s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] && [ $passed != 0 ]
