#!/bin/bash
# claims.sh - what README, guide, which-one.md and the page for readers of other libraries name is there: functions, macros and
# types in the installed headers, headers, files of the tree, commands and flags of the tool, keys of the configuration.
set -uo pipefail
top=${TROUPE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
destdir=${TROUPE_DESTDIR:?an installed Troupe}
export LD_LIBRARY_PATH=$destdir/usr/local/lib
include=$destdir/usr/local/include
troupe=$destdir/usr/local/bin/troupe
pages=("$top/README.md" "$top/docs/guide.md" "$top/docs/which-one.md" "$top"/docs/from-*.md)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
judge() { # judge NAME: stdin is what is missing
    if [ -s "$work/missing" ]; then
        echo "FAIL $1"
        sed 's/^/    /' "$work/missing" | head -n 30
        status=1
    else
        echo "PASS $1"
    fi
}

# Names of functions and macros; what the pages' own programs define (a protocol makes names, too) is theirs.
grep -ohE '\b(trp|TRP)_[A-Za-z0-9_]+' "${pages[@]}" | sort -u >"$work/names"
{
    grep -rohE '\b(trp|TRP)_[A-Za-z0-9_]+' "$include/troupe"
    sed -n 's/^ *E([0-9]*, \([A-Z_0-9]*\),.*/TRP_\1/p' "$include/troupe/base.h" # the table of errors
} | sort -u >"$work/declared"
grep -vxFf "$work/declared" "$work/names" >"$work/missing"
[ "$(wc -l <"$work/names")" -gt 100 ] || echo "only $(wc -l <"$work/names") names" >>"$work/missing"
judge every_name_in_the_pages_is_declared

grep -ohE '\btroupe/[a-z_]+\.h\b' "${pages[@]}" | sort -u | while read -r header; do
    [ -e "$include/$header" ] || echo "$header"
done >"$work/missing"
judge every_header_in_the_pages_is_installed

# Paths in backticks and links; `frontend.c` alone is of examples/.
{
    grep -ohE '`(examples|tests|docs|deploy|include|src|remote|cluster)/[A-Za-z0-9_./@-]+`' "${pages[@]}" | tr -d '`'
    grep -ohE '\]\([a-z/]*[A-Za-z0-9_.-]+\.md\)' "$top/README.md" | tr -d '()]'
    grep -ohE '\]\([A-Za-z0-9_./-]+\.md\)' "$top"/docs/guide.md | tr -d '()]' | sed 's|^|docs/|'
    grep -ohE '`[a-z_]+\.c`' "${pages[@]}" | tr -d '`' | sed 's|^|examples/|'
} | sort -u | while read -r path; do
    [ -e "$top/$path" ] || echo "$path"
done >"$work/missing"
judge every_file_in_the_pages_is_there

# Commands: `troupe NAME ...` in backticks, in the blocks and in the table.
"$troupe" help >"$work/help" 2>&1
grep -ohE '(^|`)troupe [a-z]+' "${pages[@]}" | tr -d '`' | awk '{ print $2 }' | sort -u | while read -r command; do
    grep -qE "^ +$command( |\$)" "$work/help" || [ "$command" = help ] || "$troupe" help "$command" >/dev/null 2>&1 || echo "troupe $command"
done >"$work/missing"
judge every_command_in_the_pages_exists
grep -ohE '(^|`)troupe [a-z]+ [^`#]*' "${pages[@]}" | tr -d '`' | while read -r _ command rest; do
    for flag in $(grep -oE -- '--[a-z-]+' <<<"$rest"); do
        "$troupe" help "$command" 2>&1 | grep -qF -- "$flag" || "$troupe" "$command" --help 2>&1 | grep -qF -- "$flag" ||
            "$troupe" help 2>&1 | grep -qF -- "$flag" || echo "troupe $command $flag"
    done
done | sort -u >"$work/missing"
judge every_flag_in_the_pages_exists

# Keys: `section.key` in backticks, with or without a value; or a section.
"$troupe" config show >"$work/keys" 2>&1
grep -ohE '`(actor|remote|cluster|log|control|scheduler|shutdown|metrics)\.[a-z.-]+[a-z]( = [^`]*)?`' "${pages[@]}" | tr -d '`' |
    awk '{ print $1 }' | sort -u | while read -r key; do
    grep -qE "^$key([ .]|\$)" "$work/keys" || echo "$key"
done >"$work/missing"
judge every_key_in_the_pages_exists

# Configurations: indented blocks outside of fences that begin like one; each as a file of its own.
awk -v work="$work" '
    FNR == 1 { fenced = 0; block = 0 }
    /^```/ { fenced = !fenced }
    /^    [a-z]/ && !fenced && !block && /^    (actor|app|cluster|coordinated-shutdown|deployment|dispatcher|log|mailbox|remote|system)[ "]/ {
        block = 1; file = work "/block" ++count ".conf" }
    !/^    / { block = 0 }
    block { print >file }
' "$top/docs/guide.md" "$top/docs/configuration.md" "$top/docs/remoting.md" "$top/docs/operating.md"
for file in "$work"/block*.conf; do
    "$troupe" config check --keys-only "$file" >"$work/said" 2>&1 || { cat "$work/said" "$file"; }
done >"$work/missing"
[ "$(find "$work" -name 'block*.conf' | wc -l)" -ge 4 ] || echo "only few blocks" >>"$work/missing"
judge every_configuration_in_the_pages_is_right

# Figures that the pages state.
: >"$work/missing"
sed -n '/"round-robin" (NULL)/,/or the name of/p' "$include/troupe/router.h" | grep -oE '"[a-z-]+"' | sort -u | wc -l >"$work/logics"
[ "$(cat "$work/logics")" -eq 8 ] || echo "README says eight logics, router.h names $(cat "$work/logics")" >"$work/missing"
judge there_are_as_many_routing_logics_as_said
exit $status
