/* keys.c - the keys of actors, mailboxes, dispatchers, the log and the scheduler. */
#include "actor/settings/settings.h"

#include <troupe/actor.h>
#include <troupe/dispatcher.h>
#include <troupe/log.h>
#include <troupe/mailbox.h>
#include <troupe/scheduler.h>

#include "base/config_keys.h"

#define REQUIREMENTS                                                                               \
    "unbounded|bounded|deque|multi-consumer|priority|stable|durable|control-aware|counted"

/* clang-format off */
/* Of every system, its actors and their deployment. */
static const trpi_config_row actor_rows[] = {
    { "system", TEXT, "demo", 0, 0, NULL,
      "Name of the actor system; all members of a cluster have the same name." },
    { "version", TEXT, "", 0, 0, NULL,
      "Version of Troupe that the file was written for, \"0.1\" or \"0.1.0\"; a node of another "
      "version refuses the file. empty: any version." },
    { "log-config-on-start", BOOL, "off", 0, 0, NULL,
      "on: log every key with its value and its origin, at level info." },
    { "plugins", LIST, "", 0, 0, NULL,
      "Shared objects to load, each PATH or PATH:ARGUMENTS (--load)." },
    { "extensions", LIST, "", 0, 0, NULL,
      "Shared objects to load as extensions: every system starts the trp_extension_v1 of each; "
      "each a PATH." },

    { "actor.default-dispatcher.workers", INT, "0", 0, 64, NULL,
      "Worker threads that run actors; 0: one per core." },
    { "actor.default-dispatcher.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1,
      TRP_THROUGHPUT_MAX, NULL,
      "Messages that an actor may handle in one turn before other actors run; Akka's default is "
      "5." },
    { "actor.default-dispatcher.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "Longest time of one turn: an actor also yields its worker after this time; 0ms: no "
      "deadline." },
    { "actor.default-dispatcher.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "Properties that the mailbox of each of its actors must have; the words are those of "
      "dispatcher \"*\" { }." },
    { "actor.actors-max", INT, "100000000", 16, 2000000000, NULL,
      "Largest number of live actors." },
    { "actor.guardian-supervisor-strategy", CHOICE, "default", 0, 0, "default|stopping",
      "Supervision strategy of /user, which decides what happens when a top-level actor fails." },
    { "actor.fault-trap", CHOICE, "off", 0, 0, "off|report|on",
      "on: SIGSEGV, SIGBUS or SIGFPE in an actor's own code is a failure of that actor; report: "
      "the process still crashes, and its last line names the actor (what `troupe node` does when "
      "this key is not set); off: neither." },
    { "actor.serialization-bindings", LIST, "", 0, 0, NULL,
      "Serializers of message types, each \"TYPE=NAME\". TYPE: the name of a type, \"protocol.*\" "
      "or \"*\"; NAME: raw, json, msgpack, text, protobuf, a serializer of the program, or none." },
    { "actor.serialize-messages", BOOL, "off", 0, 0, NULL,
      "For tests: each message to an actor of this system is serialized and deserialized, as if it "
      "came from another node." },
    { "actor.serialize-creators", BOOL, "off", 0, 0, NULL,
      "For tests: serialize and deserialize the arguments of each actor that is spawned." },

    { "actor.stall-warning", DURATION, MS_OF(TRP_STALL_WARNING_DEFAULT_MS), 0, HOURS, NULL,
      "Log and publish an actor that has blocked its worker for this time with one message; 0ms: "
      "off." },

    { "actor.debug.receive", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, the messages that arrive at actors which called trp_log_receive()." },
    { "actor.debug.autoreceive", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, messages that the runtime handles for an actor, such as poison pills "
      "and kills." },
    { "actor.debug.fsm", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, events and transitions of state machines, changes of an actor's "
      "behaviour (become, unbecome), and its timers." },
    { "actor.debug.lifecycle", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, starts, restarts, watches and stops of actors." },
    { "actor.debug.event-stream", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, subscriptions to the event stream that begin and end." },
    { "actor.debug.unhandled", BOOL, "off", 0, 0, NULL,
      "Log, at level debug, messages that their actor did not handle." },
    { "actor.debug.misuse", BOOL, "off", 0, 0, NULL,
      "Abort the process, and print where, when the program sends a message twice, uses a message "
      "after it was freed, or uses a ctx after its call has returned. Each tell costs more with "
      "it." },
    { "actor.debug.router-misconfiguration", BOOL, "off", 0, 0, NULL,
      "Log a warning when a deployment section sets router and the code makes a plain actor." },
    { "actor.default-mailbox.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted",
      "Mailbox of actors for which neither their code, their deployment nor their dispatcher names "
      "one." },
    { "actor.default-mailbox.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Largest number of messages in a bounded mailbox." },
    { "actor.default-mailbox.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits while a bounded mailbox is full; 0ms: not at all; -1s: without "
      "limit, which may deadlock." },
    { "actor.default-mailbox.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "When the mailbox is still full after that time: drop: the message becomes a dead letter; "
      "notify: trp_try_tell() refuses the message, and tells the sender when there is room "
      "again." },
    { "actor.default-mailbox.stash-capacity", INT, "-1", -1, 1000000000, NULL,
      "Messages that an actor may stash, when its code sets no bound; 0 or less: unbounded." },

    { "actor.mailbox.requirements.unbounded", TEXT, "unbounded", 0, 0, NULL,
      "Mailbox of actors that require an unbounded mailbox and for which no other one is "
      "configured." },
    { "actor.mailbox.requirements.bounded", TEXT, "bounded", 0, 0, NULL,
      "Mailbox of actors that require a bounded mailbox." },
    { "actor.mailbox.requirements.deque", TEXT, "unbounded-deque", 0, 0, NULL,
      "Mailbox of actors that require a deque: a mailbox that also takes messages at its front." },
    { "actor.mailbox.requirements.multi-consumer", TEXT, "unbounded", 0, 0, NULL,
      "Mailbox of actors that require multi-consumer: several actors may take messages from it." },
    { "actor.mailbox.requirements.priority", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require priority: it orders messages; empty: the default mailbox, "
      "which does not." },
    { "actor.mailbox.requirements.stable", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require stable: messages of equal priority keep their order; empty: "
      "the default mailbox." },
    { "actor.mailbox.requirements.durable", TEXT, "", 0, 0, NULL,
      "Mailbox of actors that require durable: its messages survive the process; empty: the "
      "default mailbox, whose messages do not." },
    { "actor.mailbox.requirements.control-aware", TEXT, "control-aware", 0, 0, NULL,
      "Mailbox of actors that require control-aware: control messages are delivered first." },
    { "actor.mailbox.requirements.counted", TEXT, "counted", 0, 0, NULL,
      "Mailbox of actors that require counted: its length is known without counting." },

    { "mailbox.*.mailbox-type", CHOICE, "unbounded", 0, 0,
      "unbounded|bounded|control-aware|bounded-control-aware|counted|peek",
      "Type of the mailbox that the section's title names." },
    { "mailbox.*.mailbox-capacity", INT, TEXT_OF(TRP_MAILBOX_CAPACITY_DEFAULT), 1,
      TRP_MAILBOX_CAPACITY_MAX, NULL, "Largest number of messages in a bounded mailbox." },
    { "mailbox.*.mailbox-push-timeout-time", DURATION,
      MS_OF(TRP_MAILBOX_PUSH_TIMEOUT_DEFAULT_MS), -1000, HOURS, NULL,
      "How long a sender waits while a bounded mailbox is full; 0ms: not at all; -1s: without "
      "limit, which may deadlock." },
    { "mailbox.*.overflow", CHOICE, "drop", 0, 0, "drop|notify",
      "When the mailbox is still full after that time: drop: the message becomes a dead letter; "
      "notify: trp_try_tell() refuses the message, and tells the sender when there is room "
      "again." },
    { "mailbox.*.max-retries", INT, TEXT_OF(TRP_MAILBOX_RETRIES_DEFAULT), 1,
      TRP_MAILBOX_RETRIES_MAX, NULL,
      "peek: how often a message is delivered again while trp_mailbox_ack() has not been called "
      "for it." },
    { "mailbox.*.max-tries", INT, TEXT_OF(TRP_MAILBOX_RETRIES_DEFAULT), 1,
      TRP_MAILBOX_RETRIES_MAX, NULL,
      "Another name of max-retries; when both are set, max-retries counts." },

    { "dispatcher.*.type", CHOICE, "pool", 0, 0,
      "pool|pinned|blocking|affinity|balancing|calling-thread|dispatcher|pinneddispatcher|"
      "balancingdispatcher",
      "Type of the dispatcher that the section's title names: dispatcher \"my-pool\" { type = pool "
      "}. Akka's Dispatcher is a pool, its PinnedDispatcher is pinned." },
    { "dispatcher.*.attempt-teamwork", BOOL, "on", 0, 0, NULL,
      "balancing: a message wakes any idle actor that shares the mailbox; off: only the actor that "
      "it was sent to." },
    { "dispatcher.*.throughput", INT, TEXT_OF(TRP_THROUGHPUT_DEFAULT), 1, TRP_THROUGHPUT_MAX, NULL,
      "Messages that an actor may handle in one turn before other actors run; if not set, that of "
      "the default dispatcher." },
    { "dispatcher.*.throughput-deadline-time", DURATION, "0ms", 0, HOURS, NULL,
      "Longest time of one turn: an actor also yields its worker after this time; 0ms: no "
      "deadline." },
    { "dispatcher.*.mailbox-type", TEXT, "", 0, 0, NULL,
      "Mailbox of its actors, by name; empty: the mailbox that they require, or the default "
      "mailbox." },
    { "dispatcher.*.mailbox-requirement", LIST, "", 0, 0, REQUIREMENTS,
      "Properties that the mailbox of each of its actors must have: any of unbounded, bounded, "
      "deque, multi-consumer, priority, stable, durable, control-aware, counted. The spawn of an "
      "actor whose mailbox lacks one is refused." },
    { "dispatcher.*.fork-join-executor.parallelism-min", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_MIN_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Smallest number of threads of a pool; if not set, 1 for affinity and the maximum for "
      "blocking." },
    { "dispatcher.*.fork-join-executor.parallelism-factor", FLOAT,
      TEXT_OF(TRP_DISPATCHER_THREADS_FACTOR_DEFAULT), 0.001,
      TRP_DISPATCHER_THREADS_FACTOR_MAX, NULL,
      "Threads for each core, within the minimum and maximum; if not set, 1.0 for affinity." },
    { "dispatcher.*.fork-join-executor.parallelism-max", INT,
      TEXT_OF(TRP_DISPATCHER_THREADS_CAP_DEFAULT), 1, TRP_DISPATCHER_THREADS_MAX, NULL,
      "Largest number of threads; threads are started when they are needed." },
    { "dispatcher.*.thread-pool-executor.keep-alive-time", DURATION,
      MS_OF(TRP_DISPATCHER_KEEP_ALIVE_DEFAULT_MS), 1, DAYS, NULL,
      "An idle thread ends after this time, except with affinity." },
    { "dispatcher.*.shutdown-timeout", DURATION, MS_OF(TRP_DISPATCHER_SHUTDOWN_DEFAULT_MS), 1, DAYS,
      NULL, "When a dispatcher has had no actors for this time, its threads end." },

    { "deployment.*.dispatcher", TEXT, "", 0, 0, NULL,
      "Dispatcher of the actors with this path: deployment \"/service/*\" { dispatcher = pinned }; "
      "overrides the dispatcher that the code names; empty: the code decides. For a router: the "
      "dispatcher of its routees." },
    { "deployment.*.mailbox", TEXT, "", 0, 0, NULL,
      "Mailbox of these actors, by name; empty: the code or the dispatcher decides." },
    { "deployment.*.remote", TEXT, "", 0, 0, NULL,
      "Node on which the actors with this path are started: troupe.tcp://system@host:port." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

static const trpi_config_alias actor_aliases[] = {
    { "loglevel", "log.level" },
    { "stdout-loglevel", "log.stdout-level" },
    { "log-dead-letters", "log.dead-letters" },
    { "log-dead-letters-during-shutdown", "log.dead-letters-during-shutdown" },
    { "loggers", "log.loggers" },
    { "logger-startup-timeout", "log.logger-startup-timeout" },
    { NULL, NULL },
};

const trpi_config_part trpi_actor_keys = KEYS_OF(actor_rows, actor_aliases);

/* Of the log and of the timers. */
static const trpi_config_row log_rows[] = {
    { "log.level", CHOICE, "info", 0, 0, "error|warning|info|debug|off",
      "Lowest level that is logged." },
    { "log.stdout-level", CHOICE, "warning", 0, 0, "error|warning|info|debug|off",
      "Lowest level that is logged while no logger runs: at the start and at the end of a "
      "system." },
    { "log.format", CHOICE, "text", 0, 0, "text|json|journald",
      "Format of a log line: text, a JSON object, or text with the priority that journald reads "
      "(<4>)." },
    { "log.file", TEXT, "", 0, 0, NULL,
      "File to which `troupe node` appends its log lines; empty: standard error. After a rotation, "
      "SIGUSR1 makes the node open the file again." },
    { "log.dead-letters", INT, "10", 0, 4294967294, "on|off",
      "Number of dead letters that are logged, at level info; on: all; off: none." },
    { "log.dead-letters-during-shutdown", BOOL, "on", 0, 0, NULL,
      "off: dead letters of a system that is stopping are counted, but not logged." },
    { "log.loggers", LIST, "default", 0, 0, NULL,
      "Loggers, in this order: default, and names of loggers that the program registered; if not "
      "set, default and those that its code starts." },
    { "log.logger-startup-timeout", DURATION, MS_OF(TRP_LOGGER_START_MS_DEFAULT), 1, HOURS, NULL,
      "How long a logger of the program may take to report that it is ready." },
    { "log.queue-size", INT, TEXT_OF(TRP_LOG_QUEUE_DEFAULT), 1, 1000000000, NULL,
      "Log lines that may be queued for one logger; further lines are dropped and counted." },

    { "scheduler.tick-duration", DURATION, MS_OF(TRP_TICK_MS_DEFAULT), 1, TRP_TICK_MS_MAX, NULL,
      "Resolution of the timers: a timer fires at the first tick after it is due; Akka's default "
      "is 10ms." },
    { "scheduler.ticks-per-wheel", INT, TEXT_OF(TRP_WHEEL_TICKS_DEFAULT), TRP_WHEEL_TICKS_MIN,
      TRP_WHEEL_TICKS_MAX, NULL,
      "Slots of each timer wheel, a power of two; Akka's default is 512 in one wheel." },
    { "scheduler.schedules-max", INT, "16777216", 16, TRP_SCHEDULES_MAX, NULL,
      "Largest number of schedules at one time, including the timers of actors and of the "
      "system." },
    { "scheduler.shutdown-timeout", DURATION, MS_OF(TRP_SCHEDULER_STOP_MS_DEFAULT), 1, HOURS, NULL,
      "How long the end of a system waits for scheduled functions that are running." },
    { NULL, TEXT, NULL, 0, 0, NULL, NULL, false },
};

const trpi_config_part trpi_log_keys = KEYS_OF(log_rows, NULL);
/* clang-format on */
