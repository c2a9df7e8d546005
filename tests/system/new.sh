#!/bin/bash
# new.sh - `troupe new`: which files it makes, and what it refuses. tests/examples/new.sh builds what it makes.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
mkdir "$work/here"
cd "$work/here" || exit 1
made() { (cd "$1" && find . -type f | sed 's|^\./||' | LC_ALL=C sort | tr '\n' ' '); }

expect app_is_made 0 "$troupe" new app shop
is app_says_its_files "$(LC_ALL=C sort "$work/out")" "$(find shop -type f | LC_ALL=C sort)"
has app_says_what_is_next "next: cd shop && make check" "$work/err"
is app_has_its_files "$(made shop)" ".gitignore Makefile README.md main.c shop.c shop.h shop_test.c "
expect actor_is_made 0 "$troupe" new actor till --lang=c++
is actor_has_its_files "$(made till)" ".gitignore Makefile README.md till.cc till.h till_test.cc "
expect plugin_is_made 0 "$troupe" new -q plugin price-list --lang c
is plugin_has_its_files "$(made price-list)" \
    ".gitignore Makefile README.md price-list.c price-list.h price-list_node_test.c price-list_plugin.c price-list_test.c "
is quiet_says_no_more "$(cat "$work/err")" ""
check each_word_is_replaced sh -c '! grep -rE "@[A-Za-z]+@" .'
check identifiers_have_no_hyphen grep -q 'price_list_behaviour = TRP_BEHAVIOUR_INIT("price-list", price_list_state' price-list/price-list.c
expect dry_run_makes_nothing 0 "$troupe" new app later --dry-run
has dry_run_says_the_files later/main.c
check dry_run_has_made_nothing test ! -e later

# What is there is not written into, whatever it is.
expect second_time 74 "$troupe" new app shop
has second_time_says_why "shop: there is something of that name" "$work/err"
touch file && ln -s nowhere link
expect over_a_file 74 "$troupe" new app file
expect over_a_dead_link 74 "$troupe" new app link
expect over_it_in_a_dry_run 74 "$troupe" new app shop --dry-run
# No file may have a byte.
full() { bash -c 'trap "" XFSZ; ulimit -f 0; exec "$0" new app big 2>&1' "$troupe" | cat >&2; return "${PIPESTATUS[0]}"; }
expect full_disk 74 full
has full_disk_says_what "big/Makefile: File too large; nothing is left" "$work/err"
check full_disk_leaves_nothing test ! -e big
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod 555 closed
    expect closed_directory 74 bash -c 'cd closed && exec "$0" new app shop' "$troupe"
fi

# Usage: 64, and what to write instead.
expect no_name 64 "$troupe" new app
expect no_such_kind 64 "$troupe" new program shop2
has no_such_kind_says_which "there are: app, actor, plugin" "$work/err"
expect no_such_language 64 "$troupe" new app shop2 --lang rust
has no_such_language_says_which "c or c++, not 'rust'" "$work/err"
refused=
for name in '' Shop 2shop shop- -shop ./shop a/b 'a b' 'a$b' größe main all errno trp trp_shop trp-shop "$(printf 'a%.0s' {1..41})"; do
    "$troupe" new app -- "$name" >/dev/null 2>"$work/err"
    [ $? -eq 64 ] && grep -q 'cannot be the name' "$work/err" || refused+=" '$name'"
done
is bad_names_are_refused "$refused" ""
is bad_names_make_nothing "$(ls | tr '\n' ' ')" "$([ -d closed ] && echo 'closed ')file link price-list shop till "
expect longest_name 0 "$troupe" new app "$(printf 'a%.0s' {1..40})"
has longest_name_is_whole "$(printf 'a%.0s' {1..40})_test.c"
test_end
