#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# modes.sh [SIZE] [DIR]: each mode, three destinations, warm and (as root) cold, in files of SIZE in DIR.
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
exec "$here/bench.sh" modes --size "${1:-1G}" --dir "${2:-$here/../build/bench}"
