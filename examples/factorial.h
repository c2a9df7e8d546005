/* factorial.h - the messages between the two plugins of the factorial sample. */
#ifndef FACTORIAL_H
#define FACTORIAL_H

#include <troupe/troupe.h>

#define FACTORIAL_JOB(F, S) F(S, u32, batch) F(S, u32, n)
#define FACTORIAL_RESULT(F, S) F(S, u32, batch) F(S, u32, n) F(S, u32, digits)
#define FACTORIAL_MESSAGES(M, P) M(P, job, FACTORIAL_JOB) M(P, result, FACTORIAL_RESULT)
TRP_PROTOCOL(factorial, FACTORIAL_MESSAGES)

#endif
