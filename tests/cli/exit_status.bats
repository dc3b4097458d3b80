#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The table of exit statuses in fcopy(1): each of its rows is caused here, in each way that the row names.

load helper

# The rows of the manual as "CAUSE = STATUS", in plain text.
rows() {
	sed -n '/^\.Sh EXIT STATUS/,/^\.El/p' "${BATS_TEST_DIRNAME}/../../src/man/fcopy.1" |
		sed -n 's/^\.It \(.*\) Ta \([12]\)$/\1 = \2/p' |
		sed -E 's/Fl -?([a-z-]+)/-\1/g; s/-(link|clean|files|exclude|update|json|log)/--\1/g' |
		sed -E 's/ Ns = Ns Cm /=/g; s/\b(No|Ar|Pa) //g'
}

# Each case: arguments, with the status that the row demands. All find the same files, which must not change.
walk() {
	local row args in_manual
	in_manual=$'\n'$(rows)$'\n'
	while IFS="|" read -r row args; do
		[ -n "$row" ] || continue
		row=${row% }
		[[ $in_manual == *$'\n'"$row = $1"$'\n'* ]] || { echo "no row '$row = $1' in the manual:$in_manual"; return 1; }
		echo "$row" >>walked
		# shellcheck disable=SC2086
		eval "expect $1 $args" </dev/null || { echo "row: $row; arguments: $args"; return 1; }
	done
}

make_files() {
	echo a >a
	echo b >b
	echo h >h
	ln h h2
	ln -s nowhere dangling
	ln -s loop loop
	ln -s a link
	mkdir -p s/below d/a d/s m full empty/d
	echo x >s/x
	ln -s nowhere s/dangling
	echo file >m/s
	mkdir -m 700 part.fcopy-part
	mkfifo fifo
	long=$(printf 'n%.0s' {1..300})
}

@test "each row of the table in the manual has its status" {
	make_files
	find . ! -name walked ! -name . -printf '%p %y %i %s %m\n' | sort >../"${T##*/}".before
	walk 2 <<-'EOF'
		an invalid option, value or combination | --nonsense a new
		an invalid option, value or combination | --buffer-size=0 a new
		an invalid option, value or combination | -m nonsense a new
		an invalid option, value or combination | -T a b d
		an invalid option, value or combination | a
		a stream that the mode or an option does not support | --verify a -
		a stream that the mode or an option does not support | -m mmap fifo new
		SRC does not exist, or is an empty name | nothing new
		SRC does not exist, or is an empty name | -r nothing new
		SRC does not exist, or is an empty name | -t d nothing
		SRC does not exist, or is an empty name | nothing nowhere d
		SRC does not exist, or is an empty name | --mirror nothing d
		SRC does not exist, or is an empty name | --parents s/nothing d
		SRC does not exist, or is an empty name | a/x new
		SRC does not exist, or is an empty name | '' new
		SRC does not exist, or is an empty name | -r '' new
		SRC does not exist, or is an empty name | $long new
		SRC does not exist, or is an empty name | --shard=1/2 nothing new
		SRC or DST is a dangling or looping symlink | dangling new
		SRC or DST is a dangling or looping symlink | loop new
		SRC or DST is a dangling or looping symlink | -rL dangling new
		SRC or DST is a dangling or looping symlink | -rL loop new
		SRC is a directory, without -r | s new
		SRC is a directory, without -r | s d m
		the directory of DST is missing, or is a file | a new/x
		the directory of DST is missing, or is a file | -r a new/x
		the directory of DST is missing, or is a file | -r s new/x
		the directory of DST is missing, or is a file | a a/x
		the directory of DST is missing, or is a file | -r s a/x
		the directory of DST is missing, or is a file | -t new a
		the directory of DST is missing, or is a file | a new/
		the directory of DST is missing, or is a file | --parents a new
		DST is an empty name, or too long | a ''
		DST is an empty name, or too long | -r s ''
		DST is an empty name, or too long | a $long
		DST is an empty name, or too long | -r s $long
		SRC or DST is a dangling or looping symlink | a dangling
		SRC or DST is a dangling or looping symlink | -r a dangling
		SRC or DST is a dangling or looping symlink | --inplace -f a dangling
		SRC or DST is a dangling or looping symlink | -r s dangling
		SRC or DST is a dangling or looping symlink | a loop
		SRC or DST is a dangling or looping symlink | -r a loop
		DST is a directory, and has to be a file, or the reverse | -T a d
		DST is a directory, and has to be a file, or the reverse | a d
		DST is a directory, and has to be a file, or the reverse | -r a d
		DST is a directory, and has to be a file, or the reverse | --mirror a d
		DST is a directory, and has to be a file, or the reverse | -r s a
		DST is a directory, and has to be a file, or the reverse | -rT s a
		DST is a directory, and has to be a file, or the reverse | -r s m
		DST is a directory, and has to be a file, or the reverse | -t a b
		DST is a directory, and has to be a file, or the reverse | a b/
		DST is a directory, and has to be a file, or the reverse | -r a b h
		DST has other hard links | a h
		DST has other hard links | -r a h
		DST has other hard links | -m1 a h
		SRC and DST are the same file, or DST is inside SRC | a a
		SRC and DST are the same file, or DST is inside SRC | a link
		SRC and DST are the same file, or DST is inside SRC | -r a a
		SRC and DST are the same file, or DST is inside SRC | h h2
		SRC and DST are the same file, or DST is inside SRC | -rT s s
		SRC and DST are the same file, or DST is inside SRC | fifo fifo
		SRC and DST are the same file, or DST is inside SRC | -s a a
		SRC and DST are the same file, or DST is inside SRC | -r s s/new
		SRC and DST are the same file, or DST is inside SRC | -r s s
		SRC and DST are the same file, or DST is inside SRC | --mirror s s/below
		a file or directory that an option reads is missing | -a --link-dest=nothing s new
		a file or directory that an option reads is missing | -a --link-dest=a s new
		a file or directory that an option reads is missing | --clean nothing
		a file or directory that an option reads is missing | --clean a
		a file or directory that an option reads is missing | -a --files-from=nothing s new
		a file or directory that an option reads is missing | -a --exclude-from=nothing s new
	EOF
	walk 1 <<-'EOF'
		a call fails: I/O error, full disk, refused connection | a /dev/full
		a call fails: I/O error, full disk, refused connection | /proc/self/mem new
		a call fails: I/O error, full disk, refused connection | a tcp:127.0.0.1:1
		the storage does not support a mode or an option | -m reflink /proc/version new
		the storage does not support a mode or an option | --reflink=always /proc/version new
		an earlier or another copy has its .fcopy-part | -r s part
		DST exists, with --update=none-fail or no to -i | --update=none-fail a b
		DST exists, with --update=none-fail or no to -i | -i a b
		--json or --log-file cannot be written | --json=nothing/x a new
		--json or --log-file cannot be written | --log-file=nothing/x a new
	EOF
	find . ! -name walked ! -name . -printf '%p %y %i %s %m\n' | sort | diff ../"${T##*/}".before -
	rm ../"${T##*/}".before
	walk 1 <<-'EOF'
		some of several SRC were copied, others refused | a nothing empty
		some of several SRC were copied, others refused | nothing b empty
		some of several SRC were copied, others refused | s a m
		an entry below a directory fails | -rL s empty
		an entry below a directory fails | -rL --keep-going s new
	EOF
	echo secret >unreadable
	chmod 0 unreadable
	mkdir -m 777 open
	as_nobody 1 unreadable open/new
	as_nobody 1 -r unreadable open/new
	chmod 644 unreadable
	! is_root || as_nobody 1 a unreadable
	echo "a permission, a flag or another user forbids the copy" >>walked
	rows | sed 's/ = [12]$//' | sort -u | diff - <(sort -u walked)
}

@test "the same refusals under the name cp: each has the status 1" {
	make_files
	ln -s "$FCOPY" cp
	local args
	for args in "nothing new" "dangling new" "s new" "a new/x" "a dangling" "-T a d" "-r s a" "a a" "-r s s/new" "--nonsense a b"; do
		# shellcheck disable=SC2086
		run --separate-stderr ./cp $args
		[ "$status" = 1 ] || { echo "cp $args | $status"; return 1; }
	done
}

@test "a mode that needs a file refuses standard output with 2, also if that is a file" {
	echo a >a
	for mode in copy_file_range direct parallel reflink; do
		run -2 sh -c "exec \"\$FCOPY\" a - $mode >out"
		[ ! -s out ]
	done
}
