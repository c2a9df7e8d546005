/* troupe/sim.h - whole clusters in one thread, under one seed, in virtual time.
 *
 * What runs is the production membership engine, failure detector and codec; the network, the
 * clocks and the fate of processes are simulated. A seed means the same events on every machine.
 */
#ifndef TROUPE_SIM_H
#define TROUPE_SIM_H

#include <troupe/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Run the program `troupe sim`: parse its options (argv[0] is the name of the command), simulate,
 * print each seed with its trace hash, and for a broken invariant the command that replays it.
 * Return the exit code.
 *
 * Ownership: borrows argv.
 * Errors:    none; the exit code says.
 * Thread:    the main thread; may block until all seeds have run; never from a behaviour.
 * Source:    DESIGN 6, the simulator is a product.  Since: 0.1 */
TRP_API int trp_sim_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif /* TROUPE_SIM_H */
