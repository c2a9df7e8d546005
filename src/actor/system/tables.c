/* tables.c - the ops tables by which lower rooms call higher ones, filled here only.
 *
 * Tests.   tests/unit/actor/system_test.c
 */
#include "actor/system/tables.h"

#include "actor/distribution/distribution.h"
#include "actor/life/life.h"
#include "actor/life/routed.h"
#include "actor/nodes/nodes.h"

const trpi_kernel_ops trpi_tables_kernel = {
    .start = trpi_life_start,
    .order = trpi_life_system,
    .order_stale = trpi_life_system_stale,
    .order_drop = trpi_life_system_drop,
    .automatic = trpi_life_auto,
    .failed = trpi_life_failed,
    .front = trpi_life_front,
    .receive = trpi_life_receive,
    .touched = trpi_life_touched,
    .unaccepted = trpi_life_unhandled,
    .unhandled = trp_unhandled_msg,
    .routed_ended = trpi_routed_ended,
    .routed_take = trpi_routed_take,
    .dead = trpi_life_dead,
    .dead_of = trpi_dead_letter_of,
    .mark_reached = trpi_mark_reached,
    .round_trip = trpi_round_trip,
    .proxy = trpi_nodes_proxy,
    .proxy_slows = trpi_nodes_slows,
    .proxy_reserve = trpi_proxy_reserve,
    .proxy_unreserve = trpi_proxy_unreserve,
    .proxy_more = trpi_proxy_more,
    .proxy_wake = trpi_proxy_wake,
    .proxy_again = trpi_proxy_again,
    .proxy_gather = trpi_proxy_gather,
    .proxy_gathered = trpi_proxy_gathered,
    .proxy_carry = trpi_proxy_carry,
    .proxy_restore = trpi_proxy_restore,
    .proxy_reserve_each = trpi_proxy_reserve_each,
    .proxy_admits = trpi_proxy_admits,
    .path = trpi_path_local,
    .name_try = trpi_cell_name_try,
};

const trpi_life_ops trpi_tables_life = {
    .remote_guardian = &trpi_remote_guardian,
    .proxy_make = trpi_child_proxy_make,
    .proxy_free = trpi_child_proxy_free,
    .proxy_check = trpi_child_proxy_check,
    .proxy_start = trpi_child_proxy_start,
    .proxy_order = trpi_child_proxy_order,
    .proxy_automatic = trpi_child_proxy_automatic,
    .deployed_make = trpi_deployed_make,
    .deployed_drop = trpi_deployed_drop,
    .deployed_ended = trpi_deployed_ended,
};
