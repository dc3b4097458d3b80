# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# Copies that a power cut interrupts. Their sources are on tmpfs. After each cut, what is there must be
# what fcopy(1) and fcopy-part(5) promise, and the same command must complete the copy.

data=${data:?}                # of lib.sh
interrupted=/run/interrupted  # the sources; old: what the mirrors replace
cuts_max=$(cat /check/cuts)   # of each copy at a flush; and as many that lose writes
boot=/proc/sys/kernel/random/boot_id
copies=(plain file tree mirror mirror-fsync file-shards tree-shards)

# again COPY AT PREFIX…: the command of this copy. The prefix starts it, and may end in an option.
again() {
	local from=$interrupted to=$2/$1 run=("${@:3}")
	case $1 in
	plain) "${run[@]}" "$from/file" "$to" ;;
	file) "${run[@]}" --resume --fsync "$from/file" "$to" ;;
	tree) "${run[@]}" -aT --resume "$from/tree" "$to" ;;
	mirror) "${run[@]}" --mirror "$from/tree" "$to" ;;
	mirror-fsync) "${run[@]}" --mirror --fsync "$from/tree" "$to" ;;
	file-shards) both "${run[@]}" "$from/file" "$to" ;;
	tree-shards) both "${run[@]}" -aT "$from/tree" "$to" ;;
	esac
}

# both COMMAND…: two shards at once.
both() {
	local status=0
	"$@" --shard=0/2 &
	"$@" --shard=1/2 || status=$?
	wait $! && return $status
}

# fill_interrupted AT
fill_interrupted() {
	local i old=$interrupted/old
	rm -rf $interrupted
	mkdir $interrupted
	head -c 2500000 "$data/large" >$interrupted/file
	cp -a "$data/tree" $interrupted/tree
	rm $interrupted/tree/2/fifo
	cp -a $interrupted/tree $old
	for i in {5..12}; do
		head -c $((i * i * 500)) "$data/old" >"$old/$((i % 4))/$((i % 3))/$i"
	done
	rm -r $old/0/2
	mkdir $old/extra
	cp "$data/small" $old/extra/file
	cp "$data/small" $old/0/extra
	cp -a $old "$1/mirror"
	cp -a $old "$1/mirror-fsync"
	echo 11111111-2222-4333-8444-555555555555 >/run/other_boot
}

# write_back AT: brings to the disk what the copies have written by now, in two ways: the names and sizes
# without the bytes, as a flush of another file does, and everything.
write_back() {
	while [ ! -e $interrupted/end ]; do
		sleep 0.2
		dd if=/dev/zero of="$1/other" bs=1 count=1 conv=notrunc,fsync status=none
		sleep 0.2
		dd if=/dev/zero of="$1/other" bs=1 count=1 conv=notrunc,fsync status=none
		sync -f "$1"
	done
}

# interrupted_copies AT: each one is stopped, killed, and completed.
interrupted_copies() {
	local name status=0 writer signal limit
	write_back "$1" &
	writer=$!
	for name in "${copies[@]}"; do
		mark "begin:$name"
		case $name in
		mirror*) limit=60K ;;
		tree*) limit=100K ;;
		*) limit=400K ;;
		esac
		for signal in TERM KILL; do
			again "$name" "$1" timeout -s $signal 2 /check/bin/fcopy -q --limit-rate=$limit
		done
		again "$name" "$1" f -q || status=1
		case $name in
		plain | tree) sync -f "$1" ;; # which are not flushed
		esac
		mark "done:$name"
	done
	: >$interrupted/end
	wait $writer
	return $status
}

# whole COPY AT
whole() {
	case $1 in
	plain | file | file-shards) cmp $interrupted/file "$2/$1" ;;
	*) diff -rq --no-dereference --exclude='.fcopy-*' $interrupted/tree "$2/$1" ;;
	esac
}

# unlike FROM TO: prints the paths in FROM that are not the same in TO.
unlike() {
	diff -rq --no-dereference "$1" "$2" |
		sed -n "s|^Files $1\(/.*\) and .* differ\$|\1|p; s|^Only in $1\(.*\): \(.*\)|\1/\2|p" | sort
}

# flushed_facts JOURNAL: prints what it says was flushed: how many bytes of a file, or the paths of a tree.
flushed_facts() {
	awk '$2 == "run" {
			end = 0
			for (p in path) if (path[p] > flushed) delete path[p] # a flush covers only its own run
		}
		$2 == "done" && NF == 4 && $3 <= end + 0 { end = $3 + $4 }
		$2 == "done" && NF == 8 { path[$8] = NR }
		$2 == "again" { delete path[$3] }
		$2 == "flushed" { flushed = NR; bytes = end }
		END {
			if (bytes) print bytes
			for (p in path) if (path[p] < flushed) print "/" p
		}' "$1" | sort
}

# is_sound COPY AT: whether what the cut left is promised.
is_sound() {
	local to=$2/$1 path data
	case $1 in
	plain | mirror) return ;; # nothing until it was flushed
	mirror-fsync)
		[ -z "$(comm -12 <(unlike $interrupted/tree "$to") <(unlike $interrupted/old "$to"))" ]
		return
		;;
	esac
	[ ! -e "$to" ] || whole "$1" "$2" || return
	[ ! -e "$to.fcopy-part/journal" ] || flushed_facts "$to.fcopy-part/journal" >facts || return
	[ -s facts ] || return 0
	case $1 in
	file) cmp -n "$(cat facts)" $interrupted/file "$to.fcopy-part/data" ;;
	tree) # a name that is absent, or has another size, is copied again
		while read -r path; do
			data=$to.fcopy-part/data$path
			[ "$(stat -c %s "$data" 2>/dev/null)" = "$(stat -c %s "$interrupted/tree$path")" ] || continue
			cmp "$data" "$interrupted/tree$path" && continue
			tail -n 20 "$to.fcopy-part/journal"
			return 1
		done <facts
		;;
	esac
}

# completes COPY AT: the same command. A power cut starts the system again; a disk that was pulled out does
# not, and --resume must notice that, too.
completes() {
	local status=0 other=''
	# This command refuses a tree that is complete.
	[ "$1" != tree ] || [ ! -e "$2/$1" ] || [ -e "$2/$1.fcopy-part" ] || return 0
	case $1 in
	file | tree) [ $((RANDOM % 2)) = 0 ] || other=yes ;;
	*) other=yes ;;
	esac
	[ -z "$other" ] || mount --bind /run/other_boot $boot
	again "$1" "$2" f -q || status=$?
	[ -z "$other" ] || umount $boot
	if [ $status != 0 ]; then
		echo "status $status, another boot: ${other:-no}"
		stat -c '%n: inode %i, %s bytes, %y' "$2/$1"*
		tail -n 5 "$2/$1.fcopy-part/journal"
	fi
	[ $status = 0 ] && whole "$1" "$2"
}

# plan LOG-LISTING: prints a line for each cut: BASE TO COPY. Entries before BASE are on the disk, and those
# before TO may be lost. Without TO, the copy was completed just before.
plan() {
	awk -v max="$cuts_max" -v seed=$RANDOM '
		BEGIN { srand(seed) }
		FNR == 1 { base = copy = "" }
		$2 == "mark" && $3 ~ /^begin:/ { copy = substr($3, 7) }
		$2 == "mark" && $3 ~ /^done:/ {
			copy = ""
			if (NR > FNR) print base, "-", substr($3, 6)
		}
		/ (flush|fua)/ && copy != "" {
			if (NR == FNR) {
				count[copy]++
			} else {
				if (base != "" && base < $1 && rand() < max / count[copy])
					print base, base + 1 + int(rand() * ($1 - base)), copy
				if (rand() < max / count[copy]) print $1 + 1, $1 + 1, copy
			}
		}
		/ (flush|fua)/ { base = $1 + 1 }' "$1" "$1"
}

# cut_power FS FROM BASE TO SEED: mounts what is left as /mnt/cut.
cut_power() {
	local options=loop
	[ "$1" != xfs ] || options+=,nouuid
	/check/bin/replay /dev/vdd /mnt/scratch/disk "$2" "$3"
	cp --reflink=always /mnt/scratch/disk /mnt/scratch/cut
	[ "$4" = - ] || [ "$4" = "$3" ] || /check/bin/replay /dev/vdd /mnt/scratch/cut "$3" "$4" "$5"
	mount -t "$1" -o $options /mnt/scratch/cut /mnt/cut
}

# check_interrupted FS
check_interrupted() {
	local base to copy from=0 seed=$RANDOM vouching=0 lossy=0
	local -A cuts
	RANDOM=$seed
	/check/bin/replay /dev/vdd >listing
	plan listing >cuts
	while read -r base to copy; do
		rm -f facts
		cut_power "$1" "$from" "$base" "$to" $((++seed))
		from=$base
		if [ "$to" = - ]; then
			whole "$copy" /mnt/cut >why || { echo "$copy is lost: $(head -n 1 why)" && return 1; }
		else
			cuts[$copy]=$((${cuts[$copy]-0} + 1))
			[ "$to" = "$base" ] || lossy=$((lossy + 1))
			is_sound "$copy" /mnt/cut || { echo "$copy after the cut: base $base, to $to, seed $seed" && return 1; }
			[ ! -s facts ] || vouching=$((vouching + 1))
			completes "$copy" /mnt/cut || { echo "$copy again: base $base, to $to, seed $seed" && return 1; }
		fi
		umount /mnt/cut
		rm /mnt/scratch/cut
	done <cuts
	for copy in "${copies[@]}"; do
		printf '%s %s, ' "$copy" "${cuts[$copy]-0}"
		[ "${cuts[$copy]-0}" -gt 0 ]
	done
	echo "$lossy lost writes, $vouching with flushed facts"
	[ $vouching -gt 0 ]
}
