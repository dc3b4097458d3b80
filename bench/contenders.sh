# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Who is measured. contender NAME PROGRAM COMMAND [VERSION COMMAND]; {prog} is PROGRAM's path.

contender fcopy            fcopy '{prog} {src} {dst}'
contender fcopy-inplace    fcopy '{prog} --inplace {src} {dst}'
# The same without an atomic commit: plainly into an empty file.
contender fcopy-plain      fcopy '{prog} --inplace --preallocate=always {src} {dst}'
contender fcopy-plain-small fcopy '{prog} --inplace {src} {dst}'
contender fcopy-no-reflink fcopy '{prog} --reflink=never {src} {dst}'
contender fcopy-fsync      fcopy '{prog} --fsync {src} {dst}'
contender fcopy-direct     fcopy '{prog} --fsync {src} {dst} direct'

# The modes, and the same into an existing inode.
for mode in 0:auto 1:readwrite 2:sendfile 3:splice 4:copy_file_range 5:mmap 6:direct 7:parallel 8:reflink; do
	contender "$mode"         fcopy "{prog} {src} {dst} ${mode%:*}"
	contender "$mode-inplace" fcopy "{prog} --inplace {src} {dst} ${mode%:*}"
done

# Copiers that a user could pick instead.
contender cp            cp         '{prog} {src} {dst}'
contender cp-no-reflink cp         '{prog} --reflink=never {src} {dst}'
contender cp-sync       cp         '{prog} {src} {dst} && sync {dst}'
contender cat           cat        '{prog} {src} > {dst}'
contender dd-8K         dd         '{prog} if={src} of={dst} bs=8K status=none'
contender dd-1M         dd         '{prog} if={src} of={dst} bs=1M status=none'
contender uutils-cp     rivals/cp '{prog} {src} {dst}'
contender uutils-cp-no-reflink rivals/cp '{prog} --reflink=never {src} {dst}'
contender xcp           rivals/xcp '{prog} --no-progress {src} {dst}'
contender fcp           rivals/fcp '{prog} {src} {dst}'
contender rsync         rsync      '{prog} --whole-file {src} {dst}'
contender pv            pv         '{prog} -q {src} > {dst}'
contender socat         socat      '{prog} -u OPEN:{src} CREATE:{dst}' '{prog} -V | grep version'
contender python        python3    '{prog} -c "import shutil, sys; shutil.copyfile(*sys.argv[1:])" {src} {dst}'
contender java-streams  java       '{prog} -cp {classes} JioChannel {src} {dst} 1'
contender java-transfer java       '{prog} -cp {classes} JioChannel {src} {dst} 2'

# The bound: the same bytes moved once by the CPU, in memory that was touched before.
contender memcpy python3 '{prog} {bench}/lib/memcpy.py {size}'
OWN_CLOCK[memcpy]=yes

# Senders to a socket.
contender send-rw4k     fcopy   '{prog} --buffer-size=4K {src} tcp:{host}:{port} readwrite'
contender send-rw8k     fcopy   '{prog} {src} tcp:{host}:{port} readwrite'
contender send-sendfile fcopy   '{prog} {src} tcp:{host}:{port} sendfile'
contender send-splice   fcopy   '{prog} {src} tcp:{host}:{port} splice'
contender send-auto     fcopy   '{prog} {src} tcp:{host}:{port}'
contender send-nc       nc      '{prog} -N {host} {port} < {src}' 'dpkg -s netcat-openbsd | grep ^Version'
contender send-ncat     ncat    '{prog} --send-only {host} {port} < {src}'
contender send-socat    socat   '{prog} -u OPEN:{src} TCP:{host}:{port}' '{prog} -V | grep version'
contender send-python-rw       python3 '{prog} {bench}/lib/peer.py send {host} {port} {src} read-send'
contender send-python-sendfile python3 '{prog} {bench}/lib/peer.py send {host} {port} {src} sendfile'
contender send-java-streams    java    '{prog} -cp {classes} TraditionalClient {host} {port} {src}'
contender send-java-transfer   java    '{prog} -cp {classes} TransferToClient {host} {port} {src}'

# Receivers to a file.
contender receive-fcopy fcopy '{prog} tcp-listen:{port} {dst}'
contender receive-nc    nc    '{prog} -l 127.0.0.1 {port} > {dst}' 'dpkg -s netcat-openbsd | grep ^Version'
contender receive-ncat  ncat  '{prog} --recv-only -l 127.0.0.1 {port} > {dst}'
contender receive-socat socat '{prog} -u TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr CREATE:{dst}' '{prog} -V | grep version'

# Clients, each the same for all servers: serve lines in cases/sockets.sh tell who those are.
for server in fcopy-rw fcopy-sendfile python-rw python-sendfile; do
	[[ $server == python-* ]] && version='{prog} --version' || version='{fcopy} --version'
	contender "serve-$server" python3 '{prog} {bench}/rivals/benchmark_client.py {host} {port}' "$version"
	served "serve-$server"
done
for server in fcopy nginx nginx-copy; do
	[[ $server == fcopy ]] && ask='' version='{fcopy} --version' || ask=' http' version='nginx -v'
	for count in one:1 hundred:100; do
		who=${count%:*}-$server
		contender "$who" python3 "{prog} {bench}/lib/peer.py fetch {host} {port} ${count#*:} {size}$ask" "$version"
		served "$who"
	done
done

# Pipes: bytes that come from a producer, or go to a consumer.
contender pipe-in-fcopy cat '{prog} {src} | {fcopy} - {dst}' '{fcopy} --version'
contender pipe-in-cat   cat '{prog} {src} | {prog} > {dst}'
contender pipe-in-pv    pv  'cat {src} | {prog} -q > {dst}'
contender pipe-out-fcopy fcopy '{prog} {src} - | cat > /dev/null'
contender pipe-out-cat   cat   '{prog} {src} | cat > /dev/null'
contender pipe-out-pv    pv    '{prog} -q {src} | cat > /dev/null'
