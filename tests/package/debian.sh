#!/bin/bash
# debian.sh - the Debian packages: built by dpkg-buildpackage from the tarball that `make dist` makes, without a word of
# lintian, with the files and relations that they must have; and a node of the unpacked packages starts, takes a plugin,
# answers and leaves. With `tests/run --long` (phase package), for it takes minutes.
#
# The packages stay in $TROUPE_PACKAGES (default: packages, in the build), for tests/package/container.sh.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/../system/lib.sh"
packages=${TROUPE_PACKAGES:-}
test_begin
packages=${packages:-$build/packages}
for tool in dpkg-buildpackage dh lintian; do
    command -v $tool >/dev/null || { fail "$tool is there" "deploy/bootstrap --packages installs it"; test_end; }
done
version=$(sed -n 's/^AC_INIT(\[troupe\], \[\(.*\)\])$/\1/p' "$src/configure.ac")
series=$(dpkg --print-architecture)

# ---- build -------------------------------------------------------------------------------------------
rm -rf "$packages"
mkdir -p "$packages/logs"
quietly() { # NAME COMMAND...: its log stays
    local name=$1
    shift
    if "$@" >"$packages/logs/$name" 2>&1 </dev/null; then pass "$name"; else fail "$name"; tail -n 60 "$packages/logs/$name"; test_end; fi
}
quietly tarball_is_made make -C "$build" dist-gzip
mv "$build/troupe-$version.tar.gz" "$packages/troupe_$version.orig.tar.gz"
tar -xzf "$packages/troupe_$version.orig.tar.gz" -C "$packages"
check man_pages_are_in_the_tarball test -f "$packages/troupe-$version/docs/man/pages/man3/trp_tell.3"
cp -R "$packages/troupe-$version/deploy/debian" "$packages/troupe-$version/debian"
build_packages() { cd "$packages/troupe-$version" && nice dpkg-buildpackage --no-sign -j"$(nproc)"; }
quietly packages_are_built build_packages
is changelog_has_the_version "$(dpkg-parsechangelog -l "$src/deploy/debian/changelog" -S Version)" "$version-1"

# ---- what lintian says: nothing. Where a tag is overridden, the reason stands beside it. ---------------
allow=()
[ "$(id -u)" -ne 0 ] || allow=(--allow-root)
check lintian_has_no_error_and_no_warning lintian "${allow[@]}" --fail-on error,warning "$packages"/*.changes
grep -E '^[EW]: ' "$work/out" | sed 's/^/    /'
for overrides in "$src"/deploy/debian/*.lintian-overrides "$src"/deploy/debian/source/lintian-overrides; do
    [ -e "$overrides" ] || continue
    check "reasons_of_$(basename "$overrides")" awk '/^#/ { reason = 1; next } NF { if (!reason) exit 1 } !NF { reason = 0 }' "$overrides"
done

# ---- what is in them ---------------------------------------------------------------------------------
deb() { echo "$packages/$1_$version-1_${2:-$series}.deb"; }
for package in libtroupe0 libtroupe-dev troupe; do
    check "${package}_is_there" test -f "$(deb $package)"
done
check troupe-doc_is_there test -f "$(deb troupe-doc all)"
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
files() { dpkg-deb -c "$(deb "$@")" | awk '{ print $6 }' | sed 's|^\./||'; }
is recommended_for_the_library "$(field libtroupe0 Recommends)" "libpq5, libwebsockets17"
is recommended_for_the_tool "$(field troupe Recommends)" "libcurl4, libdw1" # --endpoint, stacks of doctor
field libtroupe0 Depends >"$work/out"
lacks libwebsockets_is_no_dependency libwebsockets
lacks libpq_is_no_dependency libpq
has libnng_is_a_dependency libnng
is the_same_library "$(field troupe Depends | grep -o "libtroupe0 (= [^)]*)")" "libtroupe0 (= $version-1)"
inside() { # PACKAGE PATTERN...: a regular expression of the shell's grep for each file that must be there
    local package=$1 pattern missing=
    shift
    files "$package" "$([ "$package" = troupe-doc ] && echo all || echo "$series")" >"$work/files"
    for pattern in "$@"; do grep -qE "^$pattern$" "$work/files" || missing+=" $pattern"; done
    is "${package}_has_its_files" "$missing" ""
}
inside libtroupe0 'usr/lib/[^/]*/libtroupe\.so\.0' 'usr/lib/[^/]*/libtroupe\.so\.0\.[0-9.]*'
check library_is_alone sh -c "! grep -qE 'bin/|include|man' '$work/files'"
inside libtroupe-dev 'usr/lib/[^/]*/libtroupe\.so' 'usr/include/troupe/troupe\.h' 'usr/lib/[^/]*/pkgconfig/troupe\.pc' \
    'usr/lib/[^/]*/cmake/troupe/troupe-config\.cmake' 'usr/share/man/man3/trp_tell\.3\.gz'
inside troupe usr/bin/troupe usr/bin/trouped 'lib/systemd/system/troupe@\.service' etc/troupe/ 'usr/share/man/man1/troupe\.1\.gz' \
    'usr/share/man/man5/troupe\.conf\.5\.gz' 'usr/share/man/man7/troupe-http\.7\.gz' 'usr/share/man/man7/troupe-address\.7\.gz' 'usr/share/man/man8/trouped\.8\.gz' \
    usr/share/bash-completion/completions/troupe 'usr/lib/[^/]*/troupe/echo\.so' usr/share/doc/troupe/troupe.conf
inside troupe-doc usr/share/doc/troupe/guide.md'(\.gz)?' usr/share/doc/troupe/operating.md'(\.gz)?'
dpkg-deb --ctrl-tarfile "$(deb libtroupe0)" | tar -xO ./symbols >"$work/symbols"
has symbols_name_their_version "trp_tell@Base 0.1.0" "$work/symbols"

# ---- a node of them starts ---------------------------------------------------------------------------
root=$work/root
for package in libtroupe0 troupe; do dpkg-deb -x "$(deb $package)" "$root"; done
library=$(dirname "$root"/usr/lib/*/libtroupe.so.0)
installed() { LD_LIBRARY_PATH=$library "$root/usr/bin/troupe" --socket "$work/node.sock" "$@"; }
check tool_says_its_version installed version
has tool_says_that_version "$version"
LD_LIBRARY_PATH=$library background "$root/usr/bin/trouped" --config "$root/usr/share/doc/troupe/troupe.conf" --port 0 --seed self \
    --socket "$work/node.sock" --load "$(dirname "$library"/troupe/echo.so)/echo.so" >"$work/node.log" 2>&1
node=$started
check node_becomes_up installed wait --members 1 --timeout 60s
check node_is_available installed is-available
expect its_plugin_answers 0 installed ask /user/echo hello
has its_plugin_says hello
expect node_leaves 0 installed leave --timeout 60s
ended node_ends "$node" 0
test_end
