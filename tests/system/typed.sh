#!/bin/bash
# typed.sh - what typed refs do not let pass does not compile, in C and in C++, and the compiler names function and types.
# Proves TYPED-4.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
cat >"$work/typed.c" <<'END'
#include <troupe/registry.h>
#include <troupe/typed.h>
#define TILL_PAY(F, S) F(S, i64, cents)
#define TILL_MESSAGES(M, P) M(P, pay, TILL_PAY) M(P, sum, TILL_PAY) M(P, reset, TRP_NO_FIELDS)
TRP_PROTOCOL(till, TILL_MESSAGES)
#define TILL_CALLS(C, O, P) C(P, pay, sum) O(P, reset)
TRP_TYPED(till, TILL_CALLS)
TRP_REGISTRY(till)
#define BELL_MESSAGES(M, P) M(P, ring, TRP_NO_FIELDS)
TRP_PROTOCOL(bell, BELL_MESSAGES)
#define BELL_CALLS(C, O, P) O(P, ring)
TRP_TYPED(bell, BELL_CALLS)
TRP_REGISTRY(bell)
void use(trp_ctx *ctx, till_ref till, bell_ref bell, trp_ref any, till_pay pay, bell_ring ring, const trp_msg *msg);
void
use(trp_ctx *ctx, till_ref till, bell_ref bell, trp_ref any, till_pay pay, bell_ring ring, const trp_msg *msg)
{
    trp_system *system = trp_ctx_system(ctx);
    till_registry_key tills = { "main" };
    bell_registry_key bells = { "main" };
    till_ref found[4];
    size_t count = 0;
    uint32_t listed = 0;
    (void)any;
    (void)bells;
    if (till_registry_add(system, tills, till) != TRP_OK || till_registry_find(system, tills, found, 4, &count) != TRP_OK ||
        till_registry_subscribe(system, tills, trp_self(ctx)) != TRP_OK) {
        return;
    }
    const till_ref *all = till_registry_listing_of(msg, tills, &listed);
    (void)all;
    till_pay_tell(ctx, till, pay);
    bell_ring_tell(ctx, bell, ring);
    TRY;
}
END
cp "$work/typed.c" "$work/typed.cc"
compiled() { # LANGUAGE STATEMENT
    case $1 in
    c) cc -std=c99 -pedantic-errors -Wall -Wextra -Werror=incompatible-pointer-types -I"$src/include" "-DTRY=$2" -fsyntax-only "$work/typed.c" ;;
    cpp) c++ -std=c++11 -Wall -Wextra -I"$src/include" "-DTRY=$2" -fsyntax-only "$work/typed.cc" ;;
    esac
}
refuses() { # WHAT STATEMENT
    local language
    for language in c cpp; do
        expect "${language}_refuses_$1" 1 compiled $language "$2"
    done
}
for language in c cpp; do
    expect "${language}_takes_the_right_types" 0 compiled $language '(void)0'
done
# TYPED-4: each for C and for C++
refuses another_message 'till_pay_tell(ctx, till, ring)'
refuses a_bare_value 'till_pay_tell(ctx, till, 5)'
refuses a_ref_of_another_protocol 'till_pay_tell(ctx, bell, pay)'
refuses a_ref_without_a_type 'till_pay_tell(ctx, any, pay)'
refuses a_message_that_is_no_call 'till_sum_tell(ctx, till, pay)'
refuses a_question_without_an_answer 'bell_ring_call(0, bell, ring, 1, 0)'
# TYPED-4: the registry by typed key
refuses to_register_a_ref_of_another_protocol '(void)!till_registry_add(system, tills, bell)'
refuses to_register_a_ref_without_a_type '(void)!till_registry_add(system, tills, any)'
refuses a_key_of_another_protocol '(void)!till_registry_find(system, bells, found, 4, &count)'
refuses a_key_without_a_type '(void)!till_registry_subscribe(system, "main", any)'
refuses refs_of_another_protocol '(void)!bell_registry_find(system, bells, found, 4, &count)'
refuses a_listing_of_another_protocol 'all = bell_registry_listing_of(msg, bells, &listed)'
# TYPED-4: what the compiler says
expect c_names_the_message 1 compiled c 'till_pay_tell(ctx, till, ring)'
has the_text_is_readable "till_pay_tell" "$work/err" && has both_types_are_named "bell_ring" "$work/err" && has the_right_one_too "till_pay" "$work/err"
test_end
