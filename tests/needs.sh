#!/bin/sh
# SPDX-License-Identifier: MIT
# needs.sh [WHAT]: prints the packages that `make` and `make check` need, for apt-get install.
# WHAT: lint (and the sanitizers, valgrind, coverage, figures), build (make check-build, make check-musl), packages
# (make check-packages), kernels (make check-kernels: Debian 12 or 13 on x86-64), or alpine (for
# apk add: what `make` and `make check` need there).
set -eu

# Debian 12 has gcc 12, Debian 13 has gcc 14. gcc-multilib conflicts with the cross compilers.
gcc=$(sed -n 's/^VERSION_ID="\{0,1\}13.*/14/p' /etc/os-release 2>/dev/null || true)

case ${1-} in
'') echo gcc g++ libc6-dev make pkg-config liburing-dev check libcmocka-dev bats parallel strace jq python3-jsonschema \
	acl attr e2fsprogs xfsprogs btrfs-progs erofs-utils fuse3 libfuse3-dev libseccomp-dev procps psmisc \
	util-linux util-linux-extra iproute2 netcat-openbsd ncat socat curl rsync python3 tmux zsh fish \
	bash-completion time mandoc git ;;
lint) echo clang clang-format clang-tidy libclang-rt-dev cppcheck shellcheck valgrind gcovr lintian debhelper hyperfine \
	gnuplot-nox ;;
build) echo clang lld libc6-dev-i386 "lib32gcc-${gcc:-12}-dev" musl-tools dpkg-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu \
	libc6-dev-s390x-cross qemu-user-static ;;
packages) echo debhelper lintian mmdebstrap rpm cpio musl-tools ;;
kernels) echo qemu-system-x86 e2fsprogs kmod cpio xz-utils ;;
alpine) echo build-base linux-headers liburing-dev pkgconf check-dev cmocka-dev bash bats parallel strace jq \
	py3-jsonschema acl attr coreutils findutils diffutils grep sed gawk tar e2fsprogs xfsprogs btrfs-progs \
	erofs-utils fuse3 fuse3-dev libseccomp-dev procps-ng psmisc util-linux iproute2 netcat-openbsd nmap-ncat \
	socat curl rsync python3 tmux zsh fish bash-completion mandoc git ;;
*)
	sed -n '3,6s/^# //p' "$0" >&2
	exit 2
	;;
esac
