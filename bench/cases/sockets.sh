# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A file to a TCP socket and back: what zero copy was invented for. {python} is not a rival here,
# but the plain receiver or sender that all contenders meet.

discard='{python} {bench}/lib/peer.py discard {host} {port} {size}'
send='{python} {bench}/lib/peer.py send {host} {port} {src} sendfile'

# IBM's table: the same sizes, its buffer of 4 KiB, ours of 8 KiB, and the kernel's own ways.
for place in loopback veth; do
	for bytes in 7M 21M 63M 98M 200M 350M 700M 1G; do
		begin "socket-$place-$bytes" 'read + send against sendfile, a receiver that discards'
		net $place; size $bytes; to none; asks tcp-listen; slow
		serve "$discard"
		with send-rw4k send-rw8k send-sendfile send-splice
		if [[ $place-$bytes == loopback-1G ]]; then
			bar wall send-sendfile send-rw4k 0.38
			bar cpu send-sendfile send-rw4k 0.30
		fi
	done
done

begin socket-send 'every sender, one receiver that discards'
net loopback; to none; asks tcp-listen
serve "$discard"
with send-auto send-nc send-ncat send-socat send-python-rw send-python-sendfile send-java-streams send-java-transfer
bar wall send-auto send-socat 0.50
bar wall send-auto send-nc 0.50
bar wall send-auto send-python-sendfile 0.95
bar wall send-auto send-java-transfer 0.95

begin socket-receive 'every receiver to a file, one sender'
net loopback; asks tcp-listen
dial "$send"
with receive-nc receive-fcopy receive-ncat receive-socat
bar wall receive-fcopy receive-nc 0.50
bar wall receive-fcopy receive-socat 0.50

begin socket-java "the Java twins at both ends: streams and transferTo"
net loopback; to none
serve 'java -cp {classes} TraditionalServer {port}' send-java-streams
serve 'java -cp {classes} TransferToServer {port}' send-java-transfer
with send-java-streams send-java-transfer

begin socket-course 'a file server with two ways, one client'
net loopback; to none; asks tcp-listen
serve '{python} {bench}/rivals/server.py {src} {port} read-send' serve-python-rw
serve '{python} {bench}/rivals/server.py {src} {port} sendfile' serve-python-sendfile
serve '{fcopy} -k {src} tcp-listen:{port} 1' serve-fcopy-rw
serve '{fcopy} -k {src} tcp-listen:{port} 2' serve-fcopy-sendfile
with serve-python-rw serve-python-sendfile serve-fcopy-rw serve-fcopy-sendfile

# A tenth of --size for each of a hundred clients: 1 GiB → 100 MiB each, 10 GiB in all.
for clients in one:1 hundred:100; do
	IFS=: read -r word count <<<"$clients"
	begin "socket-$word" "$count client(s) at once against nginx"
	net loopback; to none; asks tcp-listen
	((count == 1)) || { set_field size $((SIZE / 10)); volume 100; }
	serve '{fcopy} -k --max-clients=200 {src} tcp-listen:{port} sendfile' "$word-fcopy"
	serve '{bench}/lib/nginx.sh {port} {src} on {lab}/nginx' "$word-nginx"
	serve '{bench}/lib/nginx.sh {port} {src} off {lab}/nginx' "$word-nginx-copy"
	with "$word-nginx" "$word-nginx-copy" "$word-fcopy"
	# 0.9 of its throughput is 1.11 of its time.
	((count == 1)) || bar wall "$word-fcopy" "$word-nginx" 1.11
done

begin pipe-in 'from a pipe to a file'
asks 'standard input'
with pipe-in-cat pipe-in-fcopy pipe-in-pv
bar wall pipe-in-fcopy pipe-in-cat 0.80
bar wall pipe-in-fcopy pipe-in-pv 0.50

begin pipe-out 'from a file to a pipe'
asks 'standard input'; to none
with pipe-out-cat pipe-out-fcopy pipe-out-pv
bar wall pipe-out-fcopy pipe-out-cat 0.60
bar wall pipe-out-fcopy pipe-out-pv 1.05
