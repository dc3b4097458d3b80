#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# sockets.sh [SIZE]: a file to a socket and back, every rival; the largest file is SIZE.
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
exec "$here/bench.sh" sockets --size "${1:-1G}"
