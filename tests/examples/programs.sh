#!/bin/bash
# programs.sh - each program of examples/ compiles with what pkg-config says and nothing else, is short, and prints what
# tests/examples/NAME.out says: a line of it is a pattern of the shell, of which * and ? mean something.
set -uo pipefail
top=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
destdir=${TROUPE_DESTDIR:?an installed Troupe}
export PKG_CONFIG_PATH=$destdir/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$destdir
export LD_LIBRARY_PATH=$destdir/usr/local/lib
# Those that need a second process or a cluster, and those of the µJavaActors article, have tests of their own
# (tests/multinode/examples.sh, tests/system/dev.sh, ujavaactors.sh) and may be longer.
others=" cluster counter echo ping command countdown map_reduce producer_consumer virus_scan "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "FAIL $1"
    sed 's/^/    /' | head -n 30
    status=1
}
pass() { echo "PASS $1"; }

# matches PATTERNS TEXT: line by line, and as many
matches() {
    local pattern line
    exec 3<"$1" 4<"$2"
    while IFS= read -r pattern <&3; do
        IFS= read -r line <&4 || return 1
        # shellcheck disable=SC2053 # it is a pattern
        [[ $line == ${pattern//[/\\[} ]] || return 1
    done
    ! IFS= read -r line <&4
}

read -ra flags <<<"$(pkg-config --cflags --libs troupe)"
for source in "$top"/examples/*.c; do
    name=$(basename "$source" .c)
    kind=()
    grep -q '^TRP_PLUGIN(' "$source" && kind=(-shared -fPIC)
    if ! cc "${kind[@]}" -Wall -Wno-format-truncation -Werror -o "$work/$name" "$source" "${flags[@]}" >"$work/log" 2>&1; then
        fail "example $name compiles" <"$work/log"
        continue
    fi
    pass "example $name compiles"
    [[ $others == *" $name "* ]] && continue
    if [ "$(wc -l <"$source")" -le 60 ]; then
        pass "example $name has at most 60 lines"
    else
        wc -l "$source" | fail "example $name has at most 60 lines"
    fi
    if (cd "$work" && timeout 30 "./$name" >"$work/out" 2>"$work/err" </dev/null) &&
        matches "$top/tests/examples/$name.out" "$work/out"; then
        pass "example $name prints what it promises"
    else
        cat "$work/out" "$work/err" | fail "example $name prints what it promises"
    fi
    if ! grep -qF "\`$name.c\`" "$top/examples/README.md"; then
        fail "example $name stands in examples/README.md" <<<"it does not"
    fi
done
exit $status
