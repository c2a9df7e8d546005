/* actor.h - the door of the actor room: what remote/, cluster/ and pattern/ may use beyond the
 * public API. Everything here is a value, a function or an ops struct that the upper room
 * registers.
 */
#ifndef TRPI_ACTOR_ACTOR_H
#define TRPI_ACTOR_ACTOR_H

#include "actor/distribution/open.h"
#include "actor/kernel/guard.h"
#include "actor/kernel/open.h"
#include "actor/life/open.h"
#include "actor/life/upgrade.h"
#include "actor/log/open.h"
#include "actor/naming/open.h"
#include "actor/nodes/open.h"
#include "actor/settings/settings.h"
#include "actor/system/open.h"
#include "actor/kernel/type.h"
#include "base/address.h"
#include "base/buffer.h"
#include "base/world.h"
#include "sched/sched.h"

#endif
