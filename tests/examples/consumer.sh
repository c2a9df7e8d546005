#!/bin/bash
# consumer.sh - programs of others, in C and in C++17, and a plugin, find an installed Troupe by pkg-config and by CMake
# (find_package(troupe)), wherever the tree stands; a version that does not fit is refused.
set -uo pipefail
destdir=${TROUPE_DESTDIR:?an installed Troupe}
prefix=$destdir/usr/local
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$work/log" 2>&1 </dev/null; then
        echo "PASS $name"
    else
        echo "FAIL $name"
        sed 's/^/    /' "$work/log" | tail -n 30
        status=1
    fi
    [ "$1" = says ] || cp "$work/log" "$work/said"
}
says() { tr -s '\n ' ' ' <"$work/said" | grep -F -- "$1" || { cat "$work/said"; return 1; }; } # what the check before printed

mkdir "$work/src"
cat >"$work/src/five.c" <<'END'
#include <stdio.h>
#include <troupe/troupe.h>

static trp_err
answer(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)state, (void)msg;
    trp_reply_text(ctx, "five");
    return TRP_OK;
}
static const trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("five", char, answer);

int
main(void)
{
    trp_system *system = NULL;
    trp_msg *reply = NULL;
    trp_ref ref;
    if (trp_system_new("five", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &behaviour, NULL, &ref) != TRP_OK ||
        trp_system_ask(system, ref, &trp_string_type, "?", 1, 60000, &reply) != TRP_OK) {
        return 1;
    }
    printf("%.*s of %s\n", (int)trp_msg_bytes(reply), (const char *)trp_msg_payload(reply), trp_version());
    trp_msg_free(reply);
    trp_system_free(system);
    return 0;
}
END
# C++17: a lambda is a behaviour, and the same headers are taken by it.
cat >"$work/src/five_cpp.cc" <<'END'
#include <cstdio>
#include <string_view>
#include <troupe/troupe.h>

static const trp_behaviour behaviour = TRP_BEHAVIOUR_INIT("five", char, [](trp_ctx *ctx, void *, const trp_msg *) {
    trp_reply_text(ctx, "five");
    return TRP_OK;
});

int
main()
{
    trp_system *system = nullptr;
    trp_msg *reply = nullptr;
    trp_ref ref = TRP_REF_NONE;
    if (trp_err err = trp_system_new("five", nullptr, &system); err != TRP_OK) {
        return 1;
    }
    if (trp_system_spawn(system, &behaviour, nullptr, &ref) != TRP_OK ||
        trp_system_ask(system, ref, &trp_string_type, "?", 1, 60000, &reply) != TRP_OK) {
        return 1;
    }
    std::string_view text(static_cast<const char *>(trp_msg_payload(reply)), trp_msg_bytes(reply));
    std::printf("%.*s of %s\n", static_cast<int>(text.size()), text.data(), trp_version());
    trp_msg_free(reply);
    trp_system_free(system);
    return 0;
}
END
cp "${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/examples/echo.c" "$work/src/echo.c"
cat >"$work/src/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.13)
project(consumer C CXX)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
add_compile_options(-Wall -Wextra -Wpedantic -Werror)
find_package(troupe ${WANTED} REQUIRED)
find_package(troupe REQUIRED) # a second time, as where two parts of a program ask for it
add_executable(five five.c)
target_link_libraries(five PRIVATE troupe::troupe)
add_executable(five_cpp five_cpp.cc)
target_link_libraries(five_cpp PRIVATE troupe::troupe)
add_library(echo MODULE echo.c)
set_target_properties(echo PROPERTIES PREFIX "")
target_link_libraries(echo PRIVATE troupe::troupe)
END
version=$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/troupe.pc")

# pkg-config
(
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$destdir LD_LIBRARY_PATH=$prefix/lib
    # shellcheck disable=SC2046 # words
    check pkg_config_compiles_c cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$work/src/five.c" $(pkg-config --cflags --libs troupe) -o "$work/five"
    check pkg_config_program_of_c_runs "$work/five"
    check pkg_config_program_of_c_says_five says "five of $version"
    # shellcheck disable=SC2046
    check pkg_config_compiles_cpp c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$work/src/five_cpp.cc" $(pkg-config --cflags --libs troupe) -o "$work/five_cpp"
    check pkg_config_program_of_cpp_runs "$work/five_cpp"
    check pkg_config_program_of_cpp_says_five says "five of $version"
    check pkg_config_has_the_version pkg-config "troupe = $version"
    exit $status
) || status=1

# CMake: in the tree where make install has put it, and in one that was moved.
unset PKG_CONFIG_PATH LD_LIBRARY_PATH
cp -a "$prefix" "$work/moved"
built() { # NAME PREFIX
    check "$1_is_configured" cmake -S "$work/src" -B "$work/$1" -DCMAKE_PREFIX_PATH="$2" -DWANTED="${version%.*}"
    check "$1_is_built" cmake --build "$work/$1"
    check "$1_program_of_c_runs" "$work/$1/five"
    check "$1_program_of_c_says_five" says "five of $version"
    check "$1_program_of_cpp_runs" "$work/$1/five_cpp"
    check "$1_program_of_cpp_says_five" says "five of $version"
    check "$1_uses_that_library" sh -c "ldd '$work/$1/five' | grep -qF '$2/lib/libtroupe.so'"
    check "$1_plugin_exports_its_symbol" sh -c "nm -D '$work/$1/echo.so' | grep -q 'trp_plugin_v1'"
}
built cmake "$prefix"
built cmake_moved "$work/moved"
refused() { # NAME TEXT WANTED
    check "$1" sh -c "! cmake -S '$work/src' -B '$work/$1' -DCMAKE_PREFIX_PATH='$work/moved' -DWANTED=$3"
    check "$1_says_why" says "$2"
}
refused cmake_refuses_another_major 'requested version "99.0"' 99.0
refused cmake_refuses_a_later_minor 'requested version "0.99"' 0.99
rm "$work/moved/lib/libtroupe.so"
refused cmake_says_what_is_missing "libtroupe.so" "${version%.*}"
exit $status
