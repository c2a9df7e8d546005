#!/bin/bash
# new.sh - each kind of project that `troupe new` makes, in C and in C++, builds with what pkg-config says and passes its
# own tests without an edit, also with warnings as errors; and the program and the plugin that come out run.
set -uo pipefail
destdir=${TROUPE_DESTDIR:?an installed Troupe}
export PKG_CONFIG_PATH=$destdir/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$destdir
export LD_LIBRARY_PATH=$destdir/usr/local/lib PATH=$destdir/usr/local/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export STATE_DIRECTORY=$work/state XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$work/state" "$work/run"
cd "$work" || exit 1
status=0
# check NAME WANTED COMMAND...: it succeeds and prints that line
check() {
    local name=$1 wanted=$2
    shift 2
    if "$@" >"$work/log" 2>&1 </dev/null && grep -qxF -- "$wanted" "$work/log"; then
        echo "PASS $name"
    else
        echo "FAIL $name"
        sed 's/^/    /' "$work/log" | tail -n 30
        status=1
    fi
}
strict='-O1 -Wall -Wextra -Wpedantic -Wshadow -Werror'
# A name of several words is an identifier of C, too.
for language in c c++; do
    for kind in app actor plugin; do
        name=my-$kind-${language/c++/cc}
        check "${kind}_in_${language}_is_made" "$name/Makefile" troupe new $kind "$name" --lang $language
        check "${kind}_in_${language}_passes_its_test" "PASS $name" make -C "$name" check CFLAGS="$strict" CXXFLAGS="$strict"
    done
    check "plugin_in_${language}_loads" "PASS my-plugin-${language/c++/cc}.so" make -C "my-plugin-${language/c++/cc}" check
    check "app_in_${language}_is_a_node" "usage: my-app-${language/c++/cc}/my-app-${language/c++/cc} [OPTION]..." "my-app-${language/c++/cc}/my-app-${language/c++/cc}" --help
done
# As it stands: no flags from outside, and nothing is left after clean.
troupe new -q app plain >made
check app_builds_with_its_own_flags "PASS plain" make -C plain check
make -s -C plain clean
if [ "$(find plain -type f | sort)" = "$(sort made)" ]; then
    echo "PASS clean_leaves_the_sources"
else
    echo "FAIL clean_leaves_the_sources"
    status=1
fi
exit $status
