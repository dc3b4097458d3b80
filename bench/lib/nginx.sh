#!/bin/sh
# SPDX-License-Identifier: MIT
# nginx.sh PORT FILE on|off DIR: nginx in the foreground, answering every request with FILE; state in DIR.
set -eu
mkdir -p "$4"
cat >"$4/nginx.conf" <<CONF
daemon off;
pid $4/nginx.pid;
error_log $4/error.log;
worker_processes auto;
$([ "$(id -u)" -ne 0 ] || echo 'user root;')
events { worker_connections 1024; }
http {
	access_log off;
	sendfile $3;
	client_body_temp_path $4/body;
	proxy_temp_path $4/proxy;
	fastcgi_temp_path $4/fastcgi;
	uwsgi_temp_path $4/uwsgi;
	scgi_temp_path $4/scgi;
	server {
		listen 127.0.0.1:$1 backlog=1024;
		root $(dirname "$2");
		location / { try_files /$(basename "$2") =404; }
	}
}
CONF
exec nginx -e "$4/error.log" -p "$4" -c "$4/nginx.conf"
