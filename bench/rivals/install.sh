#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# install.sh [DIR]: the rivals, at pinned versions, from the package registries that this machine's
# own clients are set up for. DIR (default: build/rivals) receives what is built from crates.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
dir=${1:-$here/../../build/rivals}

# The distribution pins these: its release is named in every result.
packages=(hyperfine jq gnuplot-nox python3 rsync pv socat ncat netcat-openbsd nginx-light
	default-jdk-headless time iproute2 xfsprogs btrfs-progs gcc libc6-dev)
crates=(uu_cp@0.12.0 xcp@0.24.9 fcp@0.2.2)

if ((EUID == 0)); then
	apt-get install -y --no-install-recommends "${packages[@]}"
else
	echo "not root, so not installed: ${packages[*]}" >&2
fi

if ! command -v cargo >/dev/null; then
	echo "cargo is missing, so these are not built: ${crates[*]}; rustup installs a cargo that is new enough" >&2
	exit 1
fi
for crate in "${crates[@]}"; do
	cargo install --locked --root "$dir" --version "${crate#*@}" "${crate%@*}"
done
