# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Which system calls of a trace to fail, and how; for a proof that has made work.

# Prints the errnos that a call may really give. Nothing for those that cannot be injected, that the
# C library knows never to fail, and for brk, which answers with an address. ENXIO is no failure of
# lseek, but its answer that nothing but holes follows: for a file with data it is wrong.
errnos_of() {
	case $1 in
	exit | exit_group | brk | rt_* | futex | rseq | set_robust_list | set_tid_address) ;;
	read* | pread*) echo EIO EINTR EAGAIN ENOMEM EINVAL ;;
	write* | pwrite*) echo EIO EINTR EAGAIN ENOSPC EDQUOT EFBIG EINVAL ;;
	sendfile | splice | copy_file_range)
		echo EIO EINTR EAGAIN ENOSPC ENOMEM EINVAL EXDEV ENOSYS EOPNOTSUPP ETXTBSY ;;
	io_uring_*) echo EINTR EAGAIN ENOMEM EPERM ENOSYS EINVAL EBUSY ;;
	ioctl) echo EIO ENOSPC EDQUOT ENOTTY EOPNOTSUPP EXDEV EINVAL ETXTBSY ;;
	open* | dup* | pipe*) echo EMFILE ENFILE ENOMEM EACCES ENOENT ELOOP EINTR EIO EOPNOTSUPP ;;
	fallocate) echo ENOSPC EDQUOT EOPNOTSUPP ENOSYS EINTR EFBIG EIO ;;
	*truncate) echo EIO EINTR ENOSPC EFBIG EPERM ;;
	f*sync | close) echo EIO EINTR ENOSPC EDQUOT ;;
	link* | rename*) echo EIO ENOSPC EDQUOT EEXIST EXDEV EPERM EACCES ENOENT EMLINK EROFS ;;
	lseek) echo EINVAL EIO EOVERFLOW ;;
	*xattr) echo ENODATA EOPNOTSUPP EPERM ENOSPC ERANGE ;;
	clone*) echo EAGAIN ENOMEM EPERM ENOSYS ;;
	mmap | mremap | mprotect | munmap) echo ENOMEM EAGAIN ;;
	*) echo EIO ENOMEM EPERM EACCES EINVAL ENOSYS ;;
	esac
}

# faster FAULT: prints the option with which strace stops only at the calls that it traces. strace 6.1 then sends no signals.
faster() { [[ $1 == *:signal=* ]] || echo --seccomp-bpf; }

# shellcheck disable=SC2154 # work: see make_work
# Prints "CALL N" for the calls in the trace to fail: of each thread the first, second and last one
# since SRC was opened. strace counts from the start of each thread: an N that the main thread has
# passed before would hit the loader. With "all", every call of each thread.
list_calls() {
	awk -v src="\"$1/src\"" -v all="${2-}" '
	match($2, /^[a-z_0-9]+\(/) {
		call = substr($2, 1, RLENGTH - 1)
		n[$1 " " call]++
		if (index($0, src) && call ~ /^open/)
			opened = 1
		if (!opened)
			before[call]++
	}
	END {
		for (key in n) {
			split(key, part)
			call = part[2]
			for (i = 1; i <= (all ? n[key] : 2); i++)
				if (before[call] + i <= n[key])
					print call, before[call] + i
			if (!all && before[call] < n[key])
				print call, n[key]
		}
	}' "$work/trace" | sort -u
}
