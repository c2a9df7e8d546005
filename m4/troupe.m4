# troupe.m4 - the probes of configure.ac.

# TROUPE_PROBE_CFLAG(VARIABLE, FLAG): append FLAG to VARIABLE if the compiler takes it.
AC_DEFUN([TROUPE_PROBE_CFLAG], [
    AC_MSG_CHECKING([whether $CC takes $2])
    troupe_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
        [AC_MSG_RESULT([yes])
         $1="$$1 $2"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$troupe_saved_cflags
])

# TROUPE_PROBE_LDFLAG(VARIABLE, FLAG): append FLAG to VARIABLE if the linker takes it.
AC_DEFUN([TROUPE_PROBE_LDFLAG], [
    AC_MSG_CHECKING([whether the linker takes $2])
    troupe_saved_ldflags=$LDFLAGS
    LDFLAGS="$LDFLAGS -Werror $2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()],
        [AC_MSG_RESULT([yes])
         $1="$$1 $2"],
        [AC_MSG_RESULT([no])])
    LDFLAGS=$troupe_saved_ldflags
])

# TROUPE_PROBE_FORTIFY(VARIABLE): append -D_FORTIFY_SOURCE=2, where the C library checks what it is
# given by it, the compiler optimizes, and nobody has set it already (Debian's build flags do).
AC_DEFUN([TROUPE_PROBE_FORTIFY], [
    AC_MSG_CHECKING([whether _FORTIFY_SOURCE works and is not set])
    troupe_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror -D_FORTIFY_SOURCE=2"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([
#include <string.h>
#ifndef __OPTIMIZE__
#error no optimization
#endif
], [char text[[8]]; return (int)strlen(strcpy(text, "x"));])],
        [AC_MSG_RESULT([yes])
         $1="$$1 -D_FORTIFY_SOURCE=2"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$troupe_saved_cflags
])

# TROUPE_REQUIRE_FLAG(FLAG): stop if the compiler or its linker refuses FLAG.
AC_DEFUN([TROUPE_REQUIRE_FLAG], [
    AC_MSG_CHECKING([whether $CC compiles and links with $1])
    troupe_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS $1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$CC cannot do $1 (libFuzzer needs: ./configure CC=clang; apt-get install clang)])])
    CFLAGS=$troupe_saved_cflags
])

# TROUPE_DEFINE_IF_NOT(VARIABLE, MACRO, FLAG): gcc defines MACRO when FLAG is given; a compiler that does not
# (clang) is told to, so that the code has one question to ask.
AC_DEFUN([TROUPE_DEFINE_IF_NOT], [
    troupe_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS $3"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([
#ifndef $2
#error not defined
#endif
])], [], [$1="$$1 -D$2=1"])
    CFLAGS=$troupe_saved_cflags
])

# TROUPE_LIBRARY(VARIABLE, PKG-CONFIG NAME, HEADER, LIBRARY, FUNCTION, DEBIAN PACKAGE)
# Sets VARIABLE_CFLAGS and VARIABLE_LIBS. Falls back to header and library, because Debian ships no
# nng.pc and msgpack's name differs between releases. A missing one is collected, so that configure
# names all of them at once.
AC_DEFUN([TROUPE_LIBRARY], [
    PKG_CHECK_MODULES([$1], [$2], [], [
        troupe_saved_libs=$LIBS
        AC_CHECK_HEADER([$3], [
            AC_CHECK_LIB([$4], [$5], [$1_LIBS=-l$4], [$1_LIBS=])], [$1_LIBS=])
        LIBS=$troupe_saved_libs
        AS_IF([test -z "$$1_LIBS"], [troupe_missing="$troupe_missing
  $2 not found: apt-get install $6"])
    ])
])

AC_DEFUN([TROUPE_MISSING_STOP], [
    AS_IF([test -n "$troupe_missing"], [
        AC_MSG_ERROR([$troupe_missing
  (deploy/bootstrap installs everything at once)])])
])
