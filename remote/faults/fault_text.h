/* fault_text.h - fault rules as text: "blackhole", "lose=0.1 delay=20ms". Pure.
 *
 * One grammar for the command line, the control socket and the multi-node kit. Words, separated by
 * blanks, in any order: `pass`, `blackhole`, `rate=SIZE` (a second), `lose=P`, `repeat=P`,
 * `reorder=P` (0 to 1, or 0% to 100%), `delay=DURATION`, `jitter=DURATION`. A fault that is not
 * named is off.
 */
#ifndef TRPI_REMOTE_FAULT_TEXT_H
#define TRPI_REMOTE_FAULT_TEXT_H

#include <troupe/base.h>

#include "remote/faults/fault_shaper.h"

#define TRPI_FAULT_TEXT_BYTES 192 /* of any rule, and of any error text */

/* Errors: TRP_EINVAL; why names the word and says what to write. */
trp_err trpi_fault_rule_parse(const char *text, trpi_fault_rule *ret_rule,
                              char why[TRPI_FAULT_TEXT_BYTES]);
/* Write the text that trpi_fault_rule_parse() reads; "pass" for the rule that does nothing. Returns
 * out. */
char *trpi_fault_rule_format(const trpi_fault_rule *rule, char out[TRPI_FAULT_TEXT_BYTES]);

#endif
