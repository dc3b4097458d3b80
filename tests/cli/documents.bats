#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The examples of README and manual pages run as printed, and the documents know every option.

load helper

REPOSITORY=$(realpath "$BATS_TEST_DIRNAME/../..")
PAGES=$REPOSITORY/src/man

# examples: each command of the documents on one line, also those that the page continues after a
# backslash, but those that install packages or build and test the program.
examples() {
	awk '/^```/ { code = /^```sh$/ } code && /^\.\/fcopy/' "$REPOSITORY/README.md"
	awk '
		/^\.Bd -literal/ { code = 1 }
		/^\.Ed/ { code = 0 }
		joined { sub(/^ +/, "") }
		joined || sub(/^\.Dl \$ /, "") || code && sub(/^\$ /, "") { joined = sub(/\\e$/, ""); printf "%s%s", $0, joined ? "" : "\n" }
	' "$PAGES"/*.[1-8] | sed 's/\\e/\\/g; s/\\-/-/g; s/\\&//g'
}

# block FIRST-LINE: the literal block of the pages that begins so.
block() {
	awk -v first="$1" '/^\.Bd -literal/ { getline; on = index($0, first) == 1 } /^\.Ed/ { on = 0 } on' \
		"$PAGES"/*.[1-8] | sed 's/\\e/\\/g'
}

# The launchers, as far as the examples use them: each starts the processes one after the other.
# gnuplot: checks what it would draw.
launchers() {
	mkdir stubs
	cat >stubs/srun <<-'END'
		#!/bin/bash
		n=$2
		for ((i = 0; i < n; i++)); do SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=$n "${@:3}" || exit; done
	END
	cat >stubs/sbatch <<-'END'
		#!/bin/bash
		for word; do [ "${word#--array=}" = "$word" ] || array=${word#--array=}; done
		[ -n "$array" ] || exec sh -c "${@: -1}"
		tasks=(${array//,/ })
		[ "${array#*-}" = "$array" ] || tasks=($(seq "${array%-*}" "${array#*-}"))
		for i in "${tasks[@]}"; do
			SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=${#tasks[@]} SLURM_ARRAY_TASK_MIN=${tasks[0]} \
				SLURM_ARRAY_TASK_STEP=1 sh -c "${@: -1}" >&2 || exit
		done
		echo 17
	END
	cat >stubs/mpirun <<-'END'
		#!/bin/bash
		n=$2
		for ((i = 0; i < n; i++)); do OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=$n "${@:3}" || exit; done
	END
	cat >stubs/parallel <<-'END'
		#!/bin/bash
		while read -r i; do PARALLEL_SEQ=$i sh -c "${@: -1}" || exit; done
	END
	cat >stubs/gnuplot <<-'END'
		#!/bin/sh
		exec awk 'NF == 2 && $2 > 0 { n++ } END { exit n < 5 }' times
	END
	chmod +x stubs/*
	ln -s "$FCOPY" stubs/fcopy
	ln -s "$FCOPY" fcopy
}

# Runs in separate namespaces: /mnt has the directories of the examples, the host names are
# this machine, and no port is in use.
run_examples() {
	ip link set lo up
	mount -t tmpfs none /mnt
	mkdir /mnt/backup /mnt/usb
	# A whole /etc: a bare system has no /etc/hosts to mount over. What this user may not read stays out.
	cp -rP /etc etc 2>/dev/null || true
	echo '127.0.0.1 localhost receiver server' >hosts
	mv -f hosts etc/hosts
	mount --bind etc /etc
	while IFS= read -r line; do
		rm -rf SRC DST DST.* dst copy.iso log
		cp big.iso SRC
		case $line in
		*-listen:*)
			port=${line##*:}
			port=${port%% *}
			bash -c "exec $line" 2>listening &
			for ((i = 0; i < 600; i++)); do
				grep -q "$(printf ':%04X 00000000:0000 0A' "$port")" /proc/net/tcp && break
				sleep 0.1
			done
			;;
		*jq* | *shard=finish*) bash -c "$before; $line" ;; # needs the line before
		*) bash -c "$line" ;;
		esac </dev/null >out 2>err || { echo "$line: $(cat err)"; exit 1; }
		case $line in
		*shard*) cmp SRC DST ;;
		*"tcp:receiver"*) wait; cmp big.iso copy.iso ;;
		*"http://receiver"*) cmp big.iso copy.iso ;;
		esac
		case $line in *jq*) ;; *) before=$line ;; esac
		echo "$line" >>ran
	done <examples
	kill -TERM $(jobs -p)
	wait
	rm -rf dst
	bash -e script
	diff -r src dst
	rm -rf dst
	python3 program
	diff -r src dst
	diff -r photos /mnt/backup/photos
}

@test "each example of the README and of the manual pages runs as printed" {
	need jq python3 curl ip unshare
	local what=(unshare --mount --net)
	is_root || what+=(--user --map-root-user)
	"${what[@]}" true 2>/dev/null || skip "no namespaces of our own"
	mkdir photos photos/.cache src
	random big.iso 300000
	cp big.iso disk.img
	echo photo | tee photos/a src/a >photos/.cache/b
	launchers
	examples >examples
	block 'fcopy -a --keep-going' >script
	block 'import json' >program
	[ "$(wc -l <examples)" -gt 15 ]
	[ -s script ]
	[ -s program ]
	run env -u PARALLEL_SEQ PATH="$PWD/stubs:$PATH" timeout $HANG "${what[@]}" bash -euc "$(declare -f run_examples); run_examples"
	[ "$status" = 0 ] || { echo "$output"; return 1; }
	[ "$(wc -l <ran)" = "$(wc -l <examples)" ]
}

@test "no command of a manual page is broken at 80 columns, except after a backslash" {
	need mandoc
	local page
	for page in "$PAGES"/*.[1-8]; do
		mandoc -Tascii -O width=78 "$page" | col -bx >shown
		sed -n 's/^\.Dl \(\$ .*\)/\1/p' "$page" | sed 's/\\e/\\/g; s/\\-/-/g; s/\\&//g' >commands
		while IFS= read -r line; do
			grep -qxF -e "           $line" shown || { echo "$page: broken: $line"; return 1; }
		done <commands
		awk -v page="$page" 'length > 80 { print page ": too long: " $0; bad = 1 } END { exit bad }' shown
	done
}

@test "the object that fcopy-json(5) shows has the keys of the object of that command" {
	need jq
	random big.iso 5000000
	block '{"fcopy": ' >shown
	expect 0 --json big.iso copy.iso sendfile
	local keys='[paths | map(tostring) | join(".")]'
	diff <(jq "$keys" shown) <(jq "$keys" <<<"$output")
	[ "$(jq '.bytes, .mode, .done' shown)" = "$(jq '.bytes, .mode, .done' <<<"$output")" ]
	# ... and the line of an entry is that of such a file.
	block '{"entry": ' >shown
	mkdir -p src/a
	printf 1234 >src/a/b
	expect 0 -a --json=lines src dst
	diff <(jq -c . shown) <(jq -c 'select(.path == "a/b")' <<<"$output")
}

@test "each revision that the results of the long tests name exists" {
	need git
	local git=(git -c safe.directory="$REPOSITORY" -C "$REPOSITORY")
	[ "$("${git[@]}" rev-parse --is-shallow-repository 2>/dev/null)" = false ] || skip "no whole repository"
	sed -nE '/<!-- proofs -->/,/<!-- .proofs -->/s/.* \| ([0-9a-f]{7,}) \|$/\1/p' "$REPOSITORY/tests/long/RESULTS.md" >revisions
	[ "$(wc -l <revisions)" -gt 15 ]
	while read -r revision; do
		"${git[@]}" cat-file -e "$revision^{commit}" || { echo "no such revision: $revision"; return 1; }
	done <revisions
}

@test "each test that promises.md names exists" {
	local tests=$REPOSITORY/tests change n=0
	"$tests/promises.sh"
	# It would notice a test that is gone, a key that is unknown or unused, and a cell too many.
	for change in '/^| n-old /s/existing/other/' '/^| rules /s/refuses/refused/' '/^| long-kill /s/kill/kills/2' \
		'/^| n-old /s/cli/cmd/' '/^| `-n` never/s/n-old/n-new/' '/^- (a) /s/(a)/(z)/' '/^| n-old /s/n-old/n-old2/' \
		'/^| `-n` never/s/n-two/| n-two/' '/^| long-x-file /s/file-new/file-news/' '/^| key /d'; do
		((++n))
		sed "$change" "$tests/promises.md" >changed.$n
		never cmp -s "$tests/promises.md" changed.$n
	done
	never "$tests/promises.sh" changed.* >why
	while [ $n -gt 0 ]; do
		grep -q "^changed.$n:" why || { echo "not noticed: changed.$n"; return 1; }
		((n--)) || true
	done
}

@test "the map in fcopy.c names each source file, in its directory" {
	local room words file
	for room in "$REPOSITORY"/src/*/; do
		room=$(basename "$room")
		words=$(awk -v room="$room/" '/^ \*\/$/ { exit } /^ \*   [a-z]/ { on = $2 == room } on' "$REPOSITORY/fcopy.c" | tr -cs a-z_0-9 ' ')
		for file in "$REPOSITORY/src/$room"/*.c; do
			[ -f "$file" ] || continue
			file=$(basename "$file" .c)
			[[ " $words " == *" $file "* ]] || { echo "the map does not name src/$room/$file.c"; return 1; }
		done
	done
}

@test "tests neither read nor write the user's home, and leave nothing beside their source" {
	need tmux python3
	mkdir home tmp
	seq 2000 >home/.bash_history
	echo 'echo "from home" >&2' | tee home/.bashrc home/.bash_profile >home/.profile
	cp -r "$REPOSITORY/tests" .
	rm tests/cli/*.bats
	# shellcheck disable=SC2016
	sed 's/^@/@test/' >tests/cli/inner.bats <<-'END'
		load helper
		load terminal

		@ "a shell with a history, and a module of Python" {
			terminal 80
			type_in "echo one; ls -d ~" Enter
			until_shown '^one$'
			never until_shown "$USERS" 0
			type_in exit Enter
			await gone
			(cd "$BATS_TEST_DIRNAME/../tools" && python3 -c 'import random_tree')
		}

		gone() { ! tmux_ has-session 2>/dev/null; }
	END
	(cd tests && find .) | sort >before
	local how
	for how in tests/run.sh bats; do
		run env -i PATH="${PATH//"$BATS_LIBEXEC:"/}" HOME="$T/home" USERS="$T/home" TMPDIR="$T/tmp" FCOPY="$FCOPY" $how tests/cli/inner.bats
		[ "$status" = 0 ] || { echo "$output"; return 1; }
		[[ $output != *skip\ no* ]]
		[ "$(ls -A home)" = $'.bash_history\n.bash_profile\n.bashrc\n.profile' ]
		seq 2000 | cmp - home/.bash_history
		(cd tests && find .) | sort | diff before -
	done
}

# install.bats compares --help with fcopy(1), completions.bats with what the shells offer.
@test "every option of --help has the form that completions read, and stands in the dictionary of the fuzzer" {
	local name
	for name in $("$FCOPY" --help | sed -nE 's/^  (-.,|   ) --([a-z-]+).*/\2/p'); do
		grep -qE "\"--$name=?\"" "$REPOSITORY/tests/fuzz/command_line.dict" || { echo "no --$name in the dictionary"; return 1; }
	done
	# The completions read --help: its lines must have the form that they expect.
	"$FCOPY" --help | grep -cE '^  (-., |    )--[a-z]' >lines
	"$FCOPY" --help | sed -nE 's/^  (-.|  )[, ] (--[a-z-]+)(\[?)=?([A-Z]*)\]? .*/\2/p' | wc -l >seen
	cmp lines seen
	# What an option adds to the report has a key in the schema.
	need jq
	for name in shard resume benchmark; do
		jq -e --arg name "$name" '[.. | objects | keys[]] | any(startswith($name))' \
			"$REPOSITORY/src/dist/fcopy.schema.json" >/dev/null || { echo "the schema lacks $name"; return 1; }
	done
}
