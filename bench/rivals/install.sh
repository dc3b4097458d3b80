#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install.sh [DIR]: installs the other tools at pinned versions, through the package managers of this machine. DIR (build/rivals)
# receives what is built from crates; Debian's release pins the others, and each run states their versions.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
dir=${1:-$here/../../build/rivals}
packages=(gnuplot-nox python3 rsync default-jdk-headless nginx-light apache2-utils curl e2fsprogs xfsprogs btrfs-progs gcc libc6-dev)
crates=(uu_cp@0.12.0 xcp@0.24.9 fcp@0.2.2 cpz@3.2.1 rcp-tools-rcp@0.41.0 syq@0.7.1)

if ((EUID == 0)); then
	apt-get install -y --no-install-recommends "${packages[@]}"
else
	echo "not root, so not installed: ${packages[*]}" >&2
fi

if command -v javac >/dev/null; then
	mkdir -p "$here/../../build/bench/classes"
	javac -d "$here/../../build/bench/classes" "$here"/*.java
fi

if ! command -v cargo >/dev/null; then
	echo "cargo is missing, so these are not built: ${crates[*]} (Rust 1.91.1 or later)" >&2
	exit 1
fi
# rcp does not compile without this flag of tokio.
export RUSTFLAGS='--cfg tokio_unstable'
for crate in "${crates[@]}"; do
	cargo install --locked --root "$dir" --version "${crate#*@}" "${crate%@*}"
done
