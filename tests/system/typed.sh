#!/bin/bash
# typed.sh - what typed refs do not let pass does not compile, in C and in C++, and the compiler names function and types.
# Proves TYPED-4.
# shellcheck source=tests/system/lib.sh
. "$(cd "$(dirname "$0")" && pwd)/lib.sh"
test_begin
cat >"$work/typed.c" <<'END'
#include <troupe/typed.h>
#define TILL_PAY(F, S) F(S, i64, cents)
#define TILL_MESSAGES(M, P) M(P, pay, TILL_PAY) M(P, sum, TILL_PAY) M(P, reset, TRP_NO_FIELDS)
TRP_PROTOCOL(till, TILL_MESSAGES)
#define TILL_CALLS(C, O, P) C(P, pay, sum) O(P, reset)
TRP_TYPED(till, TILL_CALLS)
#define BELL_MESSAGES(M, P) M(P, ring, TRP_NO_FIELDS)
TRP_PROTOCOL(bell, BELL_MESSAGES)
#define BELL_CALLS(C, O, P) O(P, ring)
TRP_TYPED(bell, BELL_CALLS)
void use(trp_ctx *ctx, till_ref till, bell_ref bell, trp_ref any, till_pay pay, bell_ring ring);
void
use(trp_ctx *ctx, till_ref till, bell_ref bell, trp_ref any, till_pay pay, bell_ring ring)
{
    (void)any;
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
# TYPED-4: what the compiler says
expect c_names_the_message 1 compiled c 'till_pay_tell(ctx, till, ring)'
has the_text_is_readable "till_pay_tell" "$work/err" && has both_types_are_named "bell_ring" "$work/err" && has the_right_one_too "till_pay" "$work/err"
test_end
