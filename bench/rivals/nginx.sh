#!/bin/sh
# SPDX-License-Identifier: MIT
#
# nginx.sh NGINX PORT DIR: it serves DIR on loopback by sendfile(2), in one process, until SIGTERM.
# nginx removes its pid file, whatever that is.
set -eu
config=$(mktemp)
cat >"$config" <<END
daemon off;
master_process off;
pid $config.pid;
error_log stderr;
events {}
http {
	access_log off;
	sendfile on;
	server {
		listen 127.0.0.1:$2;
		root "$3";
	}
}
END
exec 3<"$config"
rm "$config"
exec "$1" -c /proc/self/fd/3
