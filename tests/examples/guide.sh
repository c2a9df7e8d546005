#!/bin/bash
# guide.sh - each snippet of docs/guide.md belongs to a program that compiles with what pkg-config says and prints what the
# guide says. `<!-- file: NAME.c -->` above a block appends it to that file, `<!-- prints: NAME.c -->` is its output.
# Proves HEADLINE-3, SUP-19, SERIAL-16, TCP-21, TCP-29, UDP-04.
set -uo pipefail
top=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
destdir=${TROUPE_DESTDIR:?an installed Troupe}
export PKG_CONFIG_PATH=$destdir/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$destdir
export LD_LIBRARY_PATH=$destdir/usr/local/lib
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() {
    echo "FAIL $1"
    sed 's/^/    /' | head -n 30
    status=1
}

awk -v work="$work" '
    /^<!-- (file|prints): [a-z]+\.cc? -->$/ { kind = $2; name = $3; next }
    /^```/ && !open { open = 1; to = "";
        if (name != "") to = work "/" name (kind == "file:" ? "" : ".expected")
        else print FILENAME ":" FNR ": a block that is of no program" >(work "/loose")
        name = ""; next }
    /^```/ && open { open = 0; next }
    open && to != "" { print >>to }
' "$top/docs/guide.md"
if [ -s "$work/loose" ]; then
    fail "guide: every snippet is of a program" <"$work/loose"
else
    echo "PASS guide: every snippet is of a program"
fi

missing=$(for topic in Hello "Messages and types" "Typed refs" "Supervision: let it crash" Watching "Asking without waiting" Timers \
    "Become and stash" "State machines" Transactions "Mailboxes and dispatchers" "Circuit breakers" "Persistent actors" Routers Sockets "Events and logs" Testing Configuration "A node of a cluster" "From C++" \
    "Rules for good actors"; do
    # the heading, and more than a line below it
    awk -v want="## $topic" '$0 == want { on = 1; next } /^## / { on = 0 } on { words += NF } END { exit words < 30 }' \
        "$top/docs/guide.md" || echo "$topic"
done)
if [ -z "$missing" ]; then
    # SYS-37, SYS-38, CB-07, UJ-30, TYPED-3, TYPED-6
    echo "PASS the_guide_has_each_topic"
else
    fail the_guide_has_each_topic <<<"$missing"
fi

read -ra flags <<<"$(pkg-config --cflags --libs troupe)"
programs=0
for source in "$work"/*.c "$work"/*.cc; do
    [ -e "$source" ] || continue
    name=$(basename "${source%.*}")
    compiler=(cc)
    [ "${source##*.}" = c ] || compiler=(c++ -std=c++11 -pedantic-errors -Wextra)
    programs=$((programs + 1))
    if ! "${compiler[@]}" -Wall -Werror -o "$work/$name" "$source" "${flags[@]}" >"$work/log" 2>&1; then
        fail "guide: $name compiles" <"$work/log"
    elif ! (cd "$work" && timeout 30 "./$name" >"$work/out" 2>"$work/err" </dev/null) ||
        ! diff "$source.expected" "$work/out" >"$work/log" 2>&1; then
        cat "$work/log" "$work/err" 2>/dev/null | fail "guide: $name prints what the guide says"
    else
        echo "PASS guide: $name prints what the guide says"
    fi
done
if [ "$programs" -ge 5 ]; then
    echo "PASS guide: it has programs"
else
    fail "guide: it has programs" <<<"only $programs"
fi
exit $status
