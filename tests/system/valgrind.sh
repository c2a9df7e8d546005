#!/bin/bash
# valgrind.sh - a program with Troupe is clean under valgrind with the suppressions that are installed.
. "$(dirname "$0")/lib.sh"
test_begin
command -v valgrind > /dev/null || skip "no valgrind"
[ -z "$sanitizer" ] || skip "the sanitizers and valgrind exclude each other"
[ -e "$build/.libs/libtroupe.so" ] || skip "no shared library"
"${CC:-cc}" -I"$src/include" -o "$work/hello" "$src/examples/hello.c" -L"$build/.libs" -ltroupe || {
    echo "FAIL valgrind:hello_is_built"
    exit 1
}
hello() {
    LD_LIBRARY_PATH=$build/.libs valgrind --leak-check=full --error-exitcode=9 "$@" "$work/hello"
}
expect with_the_suppressions_a_program_is_clean 0 hello --suppressions="$src/deploy/troupe.supp"
has nothing_is_definitely_lost 'definitely lost: 0 bytes' "$work/err"
test_end
