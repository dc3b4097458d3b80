#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints the Debian packages that `make` and `make check` need, for apt-get install.
echo gcc g++ libc6-dev make pkg-config liburing-dev check libcmocka-dev bats parallel strace jq python3-jsonschema \
	acl attr e2fsprogs xfsprogs btrfs-progs erofs-utils fuse3 libfuse3-dev libseccomp-dev procps psmisc \
	util-linux util-linux-extra iproute2 netcat-openbsd ncat socat curl rsync python3 tmux zsh fish \
	bash-completion time mandoc git
