# SPDX-License-Identifier: MIT
# fish: options and modes come from the program itself, so they are always right.

function __fcopy_modes
    fcopy --list | while read -l number name alias summary
        test "$number" = MODE; and continue
        printf '%s\t%s\n' $name (string trim -- $summary) $number $name
        # As an operand a mode has no alias.
        test "$alias" = - -o "$argv[1]" = operand; or printf '%s\t%s\n' $alias $name
    end
end

# True if SRC, which is no directory, and DST stand before the cursor, and no option that makes the
# third operand another SRC or DST.
function __fcopy_takes_mode
    set -l n 0
    set -l before
    for word in (commandline -opc)[2..]
        string match -qr -- '^-([^-]*[rRatmbSuils]|-(rec|a|mi|ta|mo|ba|su|u|int|link|sy|pa|rem))' $word; and return 1
        if not string match -qr -- '^-.' $word; and not contains -- "$before" $__fcopy_takers
            set n (math $n + 1)
            test $n -eq 1 -a -d "$word"; and return 1
        end
        set before $word
    end
    test $n -eq 2
end

function __fcopy_words
    fcopy --help | string replace -rf "^$argv[1]: " '' | string split ', '
end

function __fcopy_values
    switch $argv[1]
        case WHEN WHICH CONTROL
            __fcopy_words $argv[1]
        case MODE
            __fcopy_modes
        case SHARE
            echo auto
        case DIR
            __fish_complete_directories (commandline -ct | string replace -r '^--[a-z-]+=' '')
        case LIST # after a comma, the next name
            set -l before (commandline -ct | string replace -r '^--[a-z-]+=' '' | string match -r '^.*,')
            printf "$before%s\n" (__fcopy_words LIST)
        case SIZE
            printf '%s\n' 64K 1M 16M 128M 1G
    end
end

# The options whose value is the next word.
set -g __fcopy_takers

# "  -m, --mode=MODE          the same as …"
fcopy --help | while read -l line
    string match -qr -- '^ *(-(?<letter>.), )?--(?<name>[a-z-]+)(\[?=(?<value>[A-Z]+)\]?)? +(?<help>.*)$' $line
    or continue
    set -l options -c fcopy -l $name -d "$help"
    test -z "$value"; or contains -- $value FILE; or set -a options -f -a "(__fcopy_values $value)"
    # The letter has no value where the value may be left out.
    if string match -qr -- '\[=' $line
        test -z "$letter"; or complete -c fcopy -s $letter -d "$help"
    else
        test -z "$letter"; or set -a options -s $letter
        test -z "$value"; or set -a options -r
        test -z "$value"; or set -a __fcopy_takers --$name -$letter
    end
    complete $options
end
complete -c fcopy -n __fcopy_takes_mode -a '(__fcopy_modes operand)'
