#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --exclude, --include, --exclude-from and --files-from: the same entries as with rsync.

load helper

make_source() {
	mkdir -p s/a/b/c s/foo/bar/foo s/x/foo.d s/.git/objects 's/sp ace/[q]' s/empty
	touch s/a/1.o s/a/b/2.o s/a/b/c/3.c s/foo/bar/foo/f s/foo/f s/x/foo s/x/foo.d/o s/.git/HEAD s/.git/objects/x \
		's/sp ace/[q]/*' s/top.o s/'back\slash' s/a/b/foo s/bar
	ln -s a s/link
}

# same OPTION…: rsync and fcopy copy the same names.
same() {
	rm -rf r f
	rsync -a "$@" s/ r/ || return
	expect 0 -aT "$@" s f
	diff <(cd r && find . | sort) <(cd f && find . | sort) || { echo "options: $*"; return 1; }
}

@test "patterns exclude the same entries as with rsync" {
	local pattern
	need rsync
	make_source
	for pattern in '*.o' foo foo/ /foo '/foo/' bar '/bar' 'foo/bar' 'bar/foo' '/bar/foo' 'a/*' '/a/*' 'a/**' 'a/***' '/a/***' \
		'**/foo' '**foo' '**/foo/**' 'foo/**/f' '/**/c' '*' '/*' '*/' '?ar' '[a-x]' '[!a]' '.*' '.git' '.git/' '.git/***' 'x/foo*' \
		'sp ace' 'sp\ ace' '\[q\]' '[[]q]' 'back\slash' 'back\\slash' 'link' 'link/' 'link/*' 'a/b/c/3.c' 'b/c' 'b/*/3*' 'a**c' \
		'/a**3.c' 'nothing' '*/*/*' '**' '***' 'foo.d' 'foo?d' '*.[oc]' 'a/./b' '//foo'; do
		same --exclude="$pattern"
	done
}

@test "** in brackets is no wildcard of its own, as with rsync" {
	local pattern
	need rsync
	mkdir -p s/d s/:
	touch s/{a,b]]b,']','*','[',"\\",d/a,d/']',d/'*','[]x]','[!]x]','[^]x]','[]x]]','[[:alpha:]x]','[x',:/x]}
	for pattern in '[**]' '[!**]' '[^**]' '[]**]' '[!]**]' '[^]**]' '[\]**]' '[!\]**]' '[[:alpha:]**]' '[![:alpha:]**]' \
		'[[**]' '[[:**]' '/[[:a]**]' '[a]**' '[]]**]' 'd/[]**]' '/d/[!]**]' 'b[]**][]**]b' '[]a]**[]**]'; do
		same --exclude="$pattern"
	done
}

@test "the first pattern that matches decides, and nothing below an excluded directory is copied" {
	need rsync
	make_source
	same --include='*.o' --exclude='*'
	same --include='*/' --include='*.o' --exclude='*'
	same --include='/a/' --include='/a/b/***' --exclude='*'
	same --exclude='/a/b' --include='3.c'
	same --exclude='- *.o' --exclude='+ foo' --exclude='foo*'
	printf '%s\n' '# comment' '; another' '' '+ /a/***' '- *' >list
	same --exclude-from=list
	printf '/a/\0*.o' >list
	same -0 --exclude-from=list
	expect 0 -rT --exclude-from=- s stdin < <(printf '/a/\n*.o\n')
	diff <(cd f && find . | sort) <(cd stdin && find . | sort)
	printf 'foo\n!\n/a/b/\r\n*.o\n' >list
	same --exclude=top --exclude-from=list
	same --exclude='*.o' --exclude='!' --exclude=foo
}

@test "--files-from copies the listed entries and the directories above them; a missing one is a failure" {
	need rsync
	make_source
	printf '%s\n' a/b/2.o ./x//foo.d foo link 'sp ace/[q]/*' >list
	same --files-from=list
	same -r --files-from=list
	printf 'a/b\0top.o\0' >list
	same -r --files-from=list -0
	expect 0 -r --files-from=list -0 --exclude='*.o' s excluded
	[ "$(cd excluded && find . -type f | sort | xargs)" = './a/b/c/3.c ./a/b/foo' ]
	printf 'nowhere/x\ntop.o\n' >list
	expect 1 -a --files-from=list s missing
	mentions "s/nowhere/x: stat: No such file or directory" "--resume and the same list of files"
	absent missing
	# What the part has depends on the list, not on its order.
	printf 'top.o\n' >other
	expect 1 -a --resume --files-from=other s missing
	mentions "begun with other options, another list of files, or another umask"
	printf 'top.o\nnowhere/x\n' >list
	mkdir s/nowhere
	touch s/nowhere/x
	expect 0 -a --resume --files-from=list s missing
	[ "$(cd missing && find . -type f | sort | xargs)" = './nowhere/x ./top.o' ]
}

@test "unusable patterns and lists are refused before anything is created" {
	mkdir s
	expect 2 -r --exclude=/ s d
	mentions "/: names nothing below SRC"
	expect 2 -r --exclude= s d
	echo ../x >list
	expect 2 -r --files-from=list s d
	mentions "../x: names nothing below SRC"
	expect 2 -r --files-from=list --files-from=list s d
	expect 2 -r --files-from=nowhere s d
	mentions "nowhere: open: No such file or directory"
	echo x >list
	expect 2 -r --files-from=list list d
	mentions "list: is not a directory, which --files-from requires"
	expect 2 --exclude=x list d
	says "fcopy: --exclude: requires -r or -a"
	expect 2 -r -0 s d
	printf 'a\0b' >list
	expect 2 -r --exclude-from=list s d
	mentions "list: contains a null byte: use --null"
	absent d
}

@test "--files-from with -r: a line that is SRC itself stands for everything in it" {
	mkdir -p s/a
	echo 1 >s/a/1
	echo 2 >s/2
	local line
	for line in . ./ / .//.; do
		rm -rf d
		echo "$line" >list
		expect 0 -aTr --files-from=list s d
		diff -r s d
	done
	rm -rf d
	printf '.\n2\n' >list
	expect 0 -aTr --files-from=list --exclude=1 s d
	holds 2 d/2
	absent d/a/1
	(cd s && find . -print0) >list
	rm -rf d
	expect 0 -aT -0 --files-from=list s d
	diff -r s d
}

@test "--files-from: a name below a symlink is refused with the reason, and copied with -L" {
	mkdir -p s/real/sub
	echo 1 >s/real/sub/a
	ln -s real s/link
	echo link/sub/a >list
	expect 1 -aT --files-from=list s d
	mentions "s/link/sub/a: is below link, a symlink that is not followed: use -L to follow it"
	expect 0 -aTL --files-from=list s e
	holds 1 e/link/sub/a
	echo real/none/a >list
	expect 1 -aT --files-from=list s g
	mentions "s/real/none/a: stat: No such file or directory"
}

@test "--files-from: an entry of SRC below a directory that is not entered is a failure, and not said to be absent" {
	mkdir -p s/dir d
	echo 1 >s/dir/x
	echo file >d/dir
	echo dir/x >list
	expect 1 -rT --files-from=list s d
	mentions "d/dir: is not a directory: a directory cannot replace it"
	mentions "s/dir/x: was not copied: its directory was not entered"
	holds file d/dir
	expect 1 -aT --files-from=list --exclude=dir s new
	mentions "s/dir/x: was not copied: its directory was not entered"
	absent new
}
