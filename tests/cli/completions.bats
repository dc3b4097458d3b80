#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Completions, in the real shells.

load helper
load terminal

COMPLETIONS=$BATS_TEST_DIRNAME/../../src/dist/completions
export LC_ALL=C.UTF-8

# Every long option of --help, sorted.
options() {
	"$FCOPY" --help | sed -nE 's/^  (-.,|   ) (--[a-z-]+).*/\2/p' | sort
}

# in_bash WORD…: what bash offers for the last word.
in_bash() {
	PATH=$(dirname "$FCOPY"):$PATH bash --norc -c '
		compopt() { :; }
		. "$0/fcopy.bash"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_fcopy fcopy
		printf "%s\n" "${COMPREPLY[@]}"' "$COMPLETIONS" "$@" | sort | xargs
}

@test "bash: options, all of them" {
	[ "$(in_bash fcopy --spar)" = --sparse ]
	[ "$(in_bash fcopy --)" = "$(options | xargs)" ]
}

@test "bash: values of options" {
	[ "$(in_bash fcopy --sparse = )" = "always auto never" ]
	[ "$(in_bash fcopy --reflink = n)" = never ]
	[ "$(in_bash fcopy -m sen)" = sendfile ]
	[ "$(in_bash fcopy --mode = ref)" = reflink ]
	[ "$(in_bash fcopy --preserve = x)" = xattr ]
	[ "$(in_bash fcopy --preserve = mode,x)" = mode,xattr ]
	[ "$(in_bash fcopy --no-preserve = mode,xattr,t)" = mode,xattr,timestamps ]
	mkdir reports
	[ "$(in_bash fcopy -t rep)" = reports ]
	touch report.json
	[ "$(in_bash fcopy -t rep)" = reports ]
	[ "$(in_bash fcopy --json = report.)" = report.json ]
	[ "$(in_bash fcopy --backup = n)" = "none numbered" ]
}

@test "bash: SRC and DST are files, the third operand is a mode" {
	touch alpha beta
	[ "$(in_bash fcopy al)" = alpha ]
	[ "$(in_bash fcopy -v --sparse = auto alpha be)" = beta ]
	[ "$(in_bash fcopy alpha beta re)" = "readwrite reflink" ]
	[ "$(in_bash fcopy -j 2 alpha beta par)" = parallel ]
	[ "$(in_bash fcopy --sparse = auto alpha beta 4)" = 4 ]
}

@test "bash: the third operand is a mode or a file; with -m, or an option for several SRC, only a file" {
	local options
	touch real
	mkdir readers
	[ "$(in_bash fcopy a b rea)" = "readers readwrite real" ]
	[ "$(in_bash fcopy -f a b rea)" = "readers readwrite real" ]
	[ "$(in_bash fcopy --strict --no-cache -- a b rea)" = "readers readwrite real" ]
	for options in "-t d" "-r" "-fa" "-m rw" "-mrw" "--target-directory = d" "--archive" "--rec" "--mode = rw" \
		-b -u -i -l -fs "-S .old" --mirror --backup "--suffix = .old" --update --inter --link --sym --parents --attributes-only --remove-destination; do
		# shellcheck disable=SC2086
		[ "$(in_bash fcopy $options a b rea)" = "readers real" ] || { echo "$options"; return 1; }
	done
	[ "$(in_bash fcopy a b c rea)" = "readers real" ]
	[ "$(in_bash fcopy readers b rea)" = "readers real" ]
}

@test "bash: where the value may be left out, the next word is a file and no value" {
	local option
	touch alpha beta
	for option in -p --preserve --reflink; do
		[ "$(in_bash fcopy $option '')" = "alpha beta" ]
		[ "$(in_bash fcopy $option alpha beta re)" = "readwrite reflink" ]
	done
	[ "$(in_bash fcopy --sparse al)" = always ]
}

@test "bash: the word after a long option that needs a value is that value" {
	touch alpha beta
	[ "$(in_bash fcopy --mode ref)" = reflink ]
	[ "$(in_bash fcopy --mode rw alpha be)" = beta ]
	[ "$(in_bash fcopy --threads 2 alpha beta par)" = parallel ]
}

@test "bash: at the prompt of an interactive shell" {
	touch alpha beta
	terminal 100
	type_in "PATH=\"$(dirname "$FCOPY")\":\$PATH; . \"$COMPLETIONS/fcopy.bash\"; clear; echo ready" Enter
	until_shown '^ready'
	until_shown '^\$$'
	type_in "fcopy alp" Tab "be" Tab "copy_" Tab "--lim" Tab
	until_shown '^\$ fcopy alpha beta copy_file_range --limit-rate'
}

@test "zsh: at the prompt of an interactive shell" {
	need zsh
	touch alpha beta
	terminal 100
	type_in "exec zsh -f" Enter
	type_in "PATH=\"$(dirname "$FCOPY")\":\$PATH PS1='\$ '; fpath=(\"$COMPLETIONS\" \$fpath)" Enter
	type_in "autoload -Uz compinit; compinit -u -d \"$T/dump\"; clear; echo ready" Enter
	until_shown '^ready'
	until_shown '^\$$'
	type_in "fcopy alp" Tab "be" Tab "copy_" Tab "--lim" Tab
	until_shown '^\$ fcopy alpha beta copy_file_range --limit-rate='
	type_in C-u "fcopy --sparse=n" Tab "-m spl" Tab
	until_shown '^\$ fcopy --sparse=never -m splice'
}

@test "zsh: where the value may be left out, neither the letter nor the next word is one" {
	local typed
	need zsh
	touch alpha beta
	terminal 100
	type_in "exec zsh -f" Enter
	type_in "PATH=\"$(dirname "$FCOPY")\":\$PATH PS1='\$ '; fpath=(\"$COMPLETIONS\" \$fpath)" Enter
	type_in "autoload -Uz compinit; compinit -u -d \"$T/dump\"; clear; echo ready" Enter
	until_shown '^ready'
	for typed in "-p a" "--reflink a" "--preserve a"; do
		type_in C-u "fcopy $typed" Tab "be" Tab
		until_shown "^\\$ fcopy ${typed%a}alpha beta"
	done
	type_in C-u "fcopy --preserve=x" Tab
	until_shown '^\$ fcopy --preserve=xattr'
	type_in C-u "fcopy --preserve=mode,x" Tab
	until_shown '^\$ fcopy --preserve=mode,xattr'
	type_in C-u "clear" Enter "fcopy -p" Tab
	until_shown '^-x ' # the other letters
	never grep -E 'xattr|-pmode' <(screen)
}

@test "zsh: the third operand is a mode or a file; with -m, or an option for several SRC, or if it is the fourth, only a file" {
	local typed
	need zsh
	touch alpha beta
	mkdir readers
	terminal 100
	type_in "exec zsh -f" Enter
	type_in "PATH=\"$(dirname "$FCOPY")\":\$PATH PS1='\$ '; fpath=(\"$COMPLETIONS\" \$fpath)" Enter
	type_in "autoload -Uz compinit; compinit -u -d \"$T/dump\"; clear; echo ready" Enter
	until_shown '^ready'
	type_in "fcopy alpha beta read" Tab
	until_shown '^\$ fcopy alpha beta read$'
	until_shown '^readers/'
	until_shown '^readwrite'
	for typed in "-r alpha beta" "-t alpha beta alpha" "-fa alpha beta" "-m rw alpha beta" "--mode=rw alpha beta" \
		"--recursive alpha beta" "alpha beta alpha" "readers beta" "-b alpha beta" "--mirror alpha beta" "--symbolic-link alpha beta" \
		"--parents alpha beta"; do
		type_in C-u "clear" Enter "fcopy $typed rea" Tab
		until_shown "^\\$ fcopy $typed readers/"
	done
	touch real
	type_in C-u "clear" Enter "fcopy -t rea" Tab
	until_shown '^\$ fcopy -t readers/'
}

# in_fish LINE: what fish offers.
in_fish() {
	HOME=$T PATH=$(dirname "$FCOPY"):$PATH fish --no-config -c \
		'source $argv[1]; complete -C $argv[2]' "$COMPLETIONS/fcopy.fish" "$1" | cut -f 1 | sort | xargs
}

@test "fish: options, values, files and modes" {
	need fish
	touch alpha beta
	[ "$(in_fish 'fcopy --spar')" = --sparse ]
	# Where the value may be left out fish offers both forms.
	[ "$(in_fish 'fcopy --' | tr -d = | tr ' ' '\n' | uniq | xargs)" = "$(options | xargs)" ]
	[ "$(in_fish 'fcopy --sparse=n')" = --sparse=never ]
	[ "$(in_fish 'fcopy -m sen')" = sendfile ]
	[ "$(in_fish 'fcopy al')" = alpha ]
	[ "$(in_fish 'fcopy alpha be')" = beta ]
	[ "$(in_fish 'fcopy -v alpha beta re')" = "readwrite reflink" ]
}

@test "fish: the third operand is a mode or a file; with -m, or an option for several SRC, only a file" {
	local options
	need fish
	touch real
	mkdir readers
	[ "$(in_fish 'fcopy a b rea')" = "readers/ readwrite real" ]
	[ "$(in_fish 'fcopy --strict a b rea')" = "readers/ readwrite real" ]
	for options in "-t d" -r -fa "-m rw" -mrw --target-directory=d --archive --mode=rw \
		-b -u -i -l -fs "-S .old" --mirror --backup --suffix=.old --update --interactive --link --symbolic-link --parents \
		--attributes-only --remove-destination; do
		[ "$(in_fish "fcopy $options a b rea")" = "readers/ real" ] || { echo "$options"; return 1; }
	done
	[ "$(in_fish 'fcopy a b c rea')" = "readers/ real" ]
	[ "$(in_fish 'fcopy readers b rea')" = "readers/ real" ]
}

@test "fish: directories, the names of a list after a comma, and the other values" {
	need fish
	touch real
	mkdir readers
	[ "$(in_fish 'fcopy -t rea')" = readers/ ]
	[ "$(in_fish 'fcopy --link-dest=rea')" = --link-dest=readers/ ]
	[ "$(in_fish 'fcopy --exclude-from=rea')" = "--exclude-from=readers/ --exclude-from=real" ]
	[ "$(in_fish 'fcopy --preserve=mode,x')" = --preserve=mode,xattr ]
	[ "$(in_fish 'fcopy --no-preserve mode,xattr,t')" = mode,xattr,timestamps ]
	[ "$(in_fish 'fcopy --backup=n')" = "--backup=none --backup=numbered" ]
}

@test "fish: the word after an option that needs a value is no operand" {
	need fish
	touch alpha beta
	[ "$(in_fish 'fcopy -m rw alpha be')" = beta ]
	[ "$(in_fish 'fcopy --threads 2 - be')" = beta ]
	[ "$(in_fish 'fcopy -j 2 - beta par')" = parallel ]
}

@test "fish: where the value may be left out, neither the letter nor the next word is one" {
	local option
	need fish
	touch alpha beta
	for option in -p --preserve --reflink; do
		[ "$(in_fish "fcopy $option al")" = alpha ]
	done
	[ "$(in_fish 'fcopy --preserve=x')" = --preserve=xattr ]
	[ "$(in_fish 'fcopy --reflink=n')" = --reflink=never ]
	never grep -q mode <<<"$(in_fish 'fcopy -p')"
	[ "$(in_fish 'fcopy --sparse n')" = never ]
}
