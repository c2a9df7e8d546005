/* troupe/troupe.h - all public headers at once. */
#ifndef TROUPE_TROUPE_H
#define TROUPE_TROUPE_H

#include <troupe/actor.h>
#include <troupe/alias.h>
#include <troupe/base.h>
#include <troupe/breaker.h>
#include <troupe/bus.h>
#include <troupe/category.h>
#include <troupe/cluster.h>
#include <troupe/config.h>
#include <troupe/dispatcher.h>
#include <troupe/durable.h>
#include <troupe/embedded.h>
#include <troupe/extension.h>
#include <troupe/failure_detector.h>
#include <troupe/future.h>
#include <troupe/inbox.h>
#include <troupe/interaction.h>
#include <troupe/lease.h>
#include <troupe/live.h>
#include <troupe/log.h>
#include <troupe/mailbox.h>
#include <troupe/message.h>
#include <troupe/metrics.h>
#include <troupe/multinode.h>
#include <troupe/node.h>
#include <troupe/path.h>
#include <troupe/payload.h>
#include <troupe/pending.h>
#include <troupe/plugin.h>
#include <troupe/protobuf.h>
#include <troupe/reliable_proxy.h>
#include <troupe/remoting.h>
#include <troupe/resource.h>
#include <troupe/router.h>
#include <troupe/scheduler.h>
#include <troupe/seeded.h>
#include <troupe/sim.h>
#include <troupe/serialization.h>
#include <troupe/shutdown.h>
#include <troupe/subject.h>
#include <troupe/system.h>
#include <troupe/testkit.h>
#include <troupe/throttler.h>

#endif
