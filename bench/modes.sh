#!/bin/sh
# SPDX-License-Identifier: MIT
# modes.sh [--quick]: each mode on a file of 1 GiB; with --quick of 256 MiB in 6 rounds, in less than a minute.
[ "${1-}" != --quick ] || export SIZE="${SIZE:-256M}" ROUNDS="${ROUNDS:-6}"
exec "$(dirname "$(realpath "$0")")/bench.sh" modes
