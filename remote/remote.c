/* remote.c - remoting of one system: start, timers, control frames.
 *
 * Limits. handshake_timeout, frame_bytes_max, lane_bytes_max, control_bytes_max,
 *         receiver_bytes_max, receivers_bytes_max,
 *         system_messages_max, ordinary_lanes, large_lane_bytes_max,
 *         peers_max, host_peers_max, host_nodes_max (strangers.c), pending_handshakes_max,
 *         handshake_bytes_max. Each has its error or its counter.
 * Tests.  tests/unit/remote/remote_test.c
 */
#include "remote/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/config.h"
#include "base/mutex.h"
#include "pattern/pattern.h"
#include "remote/association/clients.h"
#include "remote/association/conn.h"
#include "remote/association/inbound.h"
#include "remote/association/peer.h"
#include "remote/association/route.h"
#include "remote/nng/link_nng.h"
#include "remote/poll/link_poll.h"
#include "remote/security/secure.h"
#include "remote/transport.h"

/* ---- timers ---------------------------------------------------------------------------------- */

/* A timer has ended; remote may have been freed when this returns. */
static void
timer_over(void *arg)
{
    trpi_remote *remote = arg;
    pthread_mutex_lock(&remote->lock);
    remote->timers.running--;
    pthread_cond_broadcast(&remote->over);
    pthread_mutex_unlock(&remote->lock);
}

static void tick_soon(void *arg);

/* Schedule one more tick soon. Without memory for it the regular timer ticks. */
static bool
hurry_arm(trpi_remote *remote)
{
    uint64_t id = 0;
    return trpi_system_after(remote->system, TRPI_TICK_BUSY_MS, tick_soon, remote, &id) == TRP_OK;
}

static void
tick_soon(void *arg)
{
    trpi_remote *remote = arg;
    bool busy = trpi_remote_tick(remote);
    if (atomic_load_explicit(&remote->stopped, memory_order_acquire) || !busy ||
        !hurry_arm(remote)) {
        remote->timers.hurrying = false;
        timer_over(remote);
    }
}

/* The regular timer, which runs as long as remoting does and needs no memory. */
static bool
tick_beat(void *arg)
{
    trpi_remote *remote = arg;
    bool busy = trpi_remote_tick(remote);
    if (atomic_load_explicit(&remote->stopped, memory_order_acquire)) {
        return false;
    }
    if (busy && !remote->timers.hurrying) {
        pthread_mutex_lock(&remote->lock);
        remote->timers.running++;
        pthread_mutex_unlock(&remote->lock);
        remote->timers.hurrying = true;
        if (!hurry_arm(remote)) {
            remote->timers.hurrying = false;
            timer_over(remote);
        }
    }
    return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

static bool
is_wildcard(const char *host)
{
    static const char *const wild[] = {
        "0.0.0.0", "::", "[::]", "*", "0", "::0", "0:0:0:0:0:0:0:0"
    };
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        if (strcmp(host, wild[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void
or_default(uint32_t *option, uint32_t value)
{
    *option = *option != 0 ? *option : value;
}

/* An option that neither the caller nor a node's configuration sets has its default of the
 * reference configuration. */
static void
or_configured(uint32_t *value, const char *key)
{
    or_default(value, (uint32_t)trpi_config_int(NULL, key));
}

static void
or_configured_float(double *value, const char *key)
{
    *value = *value > 0 ? *value : trpi_config_float(NULL, key);
}

/* Set the defaults of failure detectors and redelivery. */
static void
options_defaults_detectors(trpi_remote_options *o)
{
#define WATCH "remote.watch-failure-detector."
#define LINK "remote.transport-failure-detector."
    or_configured_float(&o->watch_threshold, WATCH "threshold");
    or_configured(&o->watch_heartbeat_ms, WATCH "heartbeat-interval");
    or_configured(&o->watch_pause_ms, WATCH "acceptable-heartbeat-pause");
    or_configured(&o->watch_samples_max, WATCH "max-sample-size");
    or_configured(&o->watch_deviation_ms, WATCH "min-std-deviation");
    or_configured(&o->watch_expected_ms, WATCH "expected-response-after");
    or_configured_float(&o->link_threshold, LINK "threshold");
    or_configured(&o->link_heartbeat_ms, LINK "heartbeat-interval");
    or_configured(&o->link_pause_ms, LINK "acceptable-heartbeat-pause");
    or_configured(&o->link_samples_max, LINK "max-sample-size");
    or_configured(&o->link_deviation_ms, LINK "min-std-deviation");
    or_configured(&o->resend_ms, "remote.resend-interval");
    or_configured(&o->give_up_ms, "remote.give-up-system-message-after");
#undef WATCH
#undef LINK
}

static bool
detectors_make_sense(const trpi_remote_options *o)
{
    trpi_detector detector = { .kind = NULL };
    trpi_phi_options watch = { o->watch_threshold, o->watch_samples_max, o->watch_deviation_ms,
                               o->watch_heartbeat_ms, o->watch_pause_ms };
    trpi_phi_options link = { o->link_threshold, o->link_samples_max, o->link_deviation_ms,
                              o->link_heartbeat_ms, o->link_pause_ms };
    bool good = trpi_detector_init(&detector, o->watch_detector, &watch) == TRP_OK;
    trpi_detector_fini(&detector);
    good = good && trpi_detector_init(&detector, o->link_detector, &link) == TRP_OK;
    trpi_detector_fini(&detector);
    return good;
}

/* Set defaults, check the options, and set remote->address. */
static trp_err
options_check(trpi_remote *remote, const trpi_remote_options *options)
{
    trpi_remote_options *o = &remote->options;
    if (options != NULL) {
        *o = *options;
    }
    if (o->transport == NULL) {
        o->driver = o->driver != NULL ? o->driver : trpi_config_text(NULL, "remote.driver");
        o->transport = strcmp(o->driver, "poll") == 0 ? &trpi_link_poll_ops : &trpi_link_nng_ops;
    }
    o->host = o->host != NULL && o->host[0] != '\0' ? o->host : "127.0.0.1";
    o->bind_host = o->bind_host != NULL && o->bind_host[0] != '\0' ? o->bind_host : o->host;
    or_configured(&o->handshake_timeout_ms, "remote.handshake-timeout");
    or_configured(&o->frame_bytes_max, "remote.maximum-frame-size");
    or_configured(&o->lane_bytes_max, "remote.lane-buffer-size");
    or_configured(&o->ordinary_lanes, "remote.ordinary-lanes");
    or_configured(&o->large_threshold_bytes, "remote.large-message-threshold");
    or_configured(&o->large_lane_bytes_max, "remote.large-lane-buffer-size");
    or_configured(&o->lane_idle_ms, "remote.lane-idle-timeout");
    or_default(&o->wire_minor, TRPI_WIRE_MINOR);
    or_configured(&o->receiver_bytes_max, "remote.receiver-limit");
    or_configured(&o->receivers_bytes_max, "remote.receivers-limit");
    remote->flow.limits = (trpi_credit_limits){ o->receiver_bytes_max, o->receivers_bytes_max };
    or_configured(&o->control_bytes_max, "remote.control-buffer-size");
    or_configured(&o->system_messages_max, "remote.system-message-buffer-size");
    or_configured(&o->backoff_min_ms, "remote.retry-backoff-min");
    or_configured(&o->backoff_max_ms, "remote.retry-backoff-max");
    or_configured(&o->flush_on_shutdown_ms, "remote.flush-wait-on-shutdown");
    options_defaults_detectors(o);
    or_configured(&o->pending_handshakes_max, "remote.pending-handshakes-max");
    or_configured(&o->handshake_bytes_max, "remote.handshake-bytes-max");
    o->pending_handshakes_max = trpi_pending_places(o->pending_handshakes_max);
    or_configured(&o->unfinished_bytes_max, "remote.unfinished-frames-max");
    or_configured(&o->peer_watches_max, "remote.watches-per-peer");
    or_configured(&o->peers_max, "remote.peers-max");
    or_configured(&o->host_peers_max, "remote.peers-per-host");
    or_configured(&o->host_nodes_max, "remote.named-nodes-per-host");
    or_configured(&o->tls_old_end_ms, "remote.tls.old-connections-end-after");
    or_configured(&o->tls_warn_ms, "remote.tls.expiry-warning");
    if (is_wildcard(o->host) || o->frame_bytes_max < TRPI_FRAME_BYTES_LEAST ||
        o->backoff_max_ms < o->backoff_min_ms || o->bind_port > UINT16_MAX ||
        o->receiver_bytes_max < o->frame_bytes_max ||
        o->receivers_bytes_max < o->receiver_bytes_max || o->lane_bytes_max < o->frame_bytes_max ||
        o->large_lane_bytes_max < o->frame_bytes_max ||
        o->ordinary_lanes > TRPI_ORDINARY_LANES_MAX || o->wire_minor > TRPI_WIRE_MINOR ||
        o->control_bytes_max < TRPI_FRAME_BYTES_LEAST || !detectors_make_sense(o)) {
        return TRP_EINVAL;
    }
    char text[TRPI_ADDRESS_TEXT_BYTES];
    int length = snprintf(text, sizeof text,
                          strchr(o->host, ':') != NULL ? "troupe.%s%s://%s@[%s]:%u"
                                                       : "troupe.%s%s://%s@%s:%u",
                          o->test_adapters && o->adapters_in_address ? TRPI_FAULT_SCHEMES : "",
                          o->tls ? trpi_secure_tls_ops.scheme : o->transport->scheme,
                          trp_system_name(remote->system), o->host, o->port != 0 ? o->port : 1u);
    if (length < 0 || (size_t)length >= sizeof text) {
        return TRP_EINVAL;
    }
    trp_err err = trpi_address_parse(text, &remote->address, NULL, NULL);
    if (err == TRP_OK && o->nameless) {
        trpi_address_nameless(remote->uid, &remote->address);
        o->features_off |= TRPI_FEATURE_LANES; /* no lane is dialled by the peer, or closed idle */
    }
    return err;
}

static void
warn_if_open(trpi_remote *remote)
{
    if (remote->faults != NULL) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "remote.test-adapters is on next=\"every user who may send commands to this node "
                 "can inject network faults\"");
    }
    if (!trpi_untrusted_takes_clusters(remote)) {
        trpi_log(remote->system, TRP_LOG_INFO, "remote",
                 "remote.untrusted-mode is on next=\"no other node can be in a cluster with this "
                 "one, unless remote.trusted-selection-paths has " TRPI_TRUSTED_CLUSTER "\"");
    }
    if (strcmp(remote->ops->scheme, "tcp") == 0 && !remote->options.nameless &&
        !trpi_host_is_loopback(remote->options.bind_host)) {
        trpi_log(remote->system, TRP_LOG_WARNING, "remote",
                 "listening beyond loopback bind-host=%s next=\"the link is %s: "
                 "only let trusted networks reach it\"",
                 remote->options.bind_host,
                 remote->secure ? "not encrypted, so anybody on the network can read and change "
                                  "the traffic"
                 : remote->options.untrusted
                     ? "neither encrypted nor authenticated, so any host can send messages to "
                       "actors whose refs it has"
                     : "neither encrypted nor authenticated, so any host can send messages to "
                       "actors, stop and start them, join, and end members");
    }
}

static trp_err
listen_and_advertise(trpi_remote *remote)
{
    const trpi_remote_options *o = &remote->options;
    uint16_t bound = 0;
    trp_err err = trpi_remote_transport_open(remote);
    if (err != TRP_OK) {
        return err;
    }
    if (o->nameless) {
        trpi_remote_secure_self(remote);
        trpi_system_advertise(remote->system, &remote->address);
        return trpi_system_remote_set(remote->system, &trpi_route_remote_ops, remote);
    }
    const char *bind_host =
        is_wildcard(o->bind_host) && strchr(o->bind_host, ':') == NULL ? "*" : o->bind_host;
    err = remote->ops->listen(remote->transport,
                              strcmp(o->bind_host, "0.0.0.0") == 0 ? o->bind_host : bind_host,
                              o->bind_port >= 0 ? (uint16_t)o->bind_port : o->port, &bound);
    if (err != TRP_OK) {
        return err;
    }
    remote->address.port = o->port != 0 ? o->port : bound;
    trpi_remote_secure_self(remote);
    trpi_system_advertise(remote->system, &remote->address);
    return trpi_system_remote_set(remote->system, &trpi_route_remote_ops, remote);
}

static void
listening_log(trpi_remote *remote)
{
    char address[TRPI_ADDRESS_TEXT_BYTES];
    char text[2 * TRPI_ADDRESS_TEXT_BYTES];
    trp_remoting_event event;
    memset(&event, 0, sizeof(event));
    (void)trpi_address_format(&remote->address, address, sizeof address);
    if (remote->options.nameless) {
        (void)snprintf(text, sizeof text, "remoting started without a port address=%s", address);
    } else {
        (void)snprintf(text, sizeof text, "remoting listens address=%s bind-host=%s", address,
                       remote->options.bind_host);
    }
    trpi_lifecycle_log(remote, TRP_LOG_INFO, text);
    trpi_remoting_publish(remote, &trp_remoting_listen_type, &event);
}

/* The start failed: the caller gets the error, subscribers the event. */
static void
failure_publish(trpi_remote *remote, trp_err err)
{
    trp_remoting_event event;
    memset(&event, 0, sizeof(event));
    (void)snprintf(event.reason, sizeof event.reason, "%s", trp_strerror(err));
    trpi_remoting_publish(remote, &trp_remoting_error_type, &event);
}

/* Warn of configured bindings whose serializer is not there yet. */
static void
warn_of_waiting(trpi_remote *remote)
{
    char pattern[TRP_TYPE_NAME_BYTES_MAX + 1], name[TRP_SERIALIZER_NAME_BYTES_MAX + 1];
    for (uint32_t i = 0; trpi_serializers_waiting(remote->serializers, i, pattern, name); i++) {
        trpi_log(remote->system, TRP_LOG_WARNING, "serialization",
                 "bound types cannot be sent until the program adds their serializer types=%s "
                 "serializer=%s",
                 pattern, name);
    }
}

trp_err
trpi_remote_start(trp_system *system, const trpi_remote_options *options, trpi_remote **ret_remote)
{
    trpi_remote *remote = trpi_alloc(sizeof *remote);
    if (remote == NULL) {
        return TRP_ENOMEM;
    }
    remote->system = system;
    remote->world = trpi_system_world(system);
    remote->uid = trpi_system_self(system)->uid;
    atomic_init(&remote->references, 1);
    pthread_mutex_init(&remote->lock, NULL);
    pthread_cond_init(&remote->over, NULL);
    trpi_clients_begin(remote);
    for (int i = 0; i < TRPI_CHANNEL_COUNT; i++) {
        pthread_rwlock_init(&remote->channels[i].lock, NULL);
    }
    trp_err err = options_check(remote, options);
    err = err != TRP_OK ? err : trpi_serializers_of(system, &remote->serializers);
    err = err != TRP_OK ? err : trpi_untrusted_begin(remote);
    if (err == TRP_OK && remote->options.log_size_exceeding != 0) {
        remote->largest = trpi_alloc((TRP_TYPES_MAX + 1u) * sizeof *remote->largest);
        err = remote->largest != NULL ? TRP_OK : TRP_ENOMEM;
    }
    remote->traces_messages = remote->options.log_sent || remote->options.log_received ||
                              remote->options.log_size_exceeding != 0;
    remote->ops = remote->options.transport;
    remote->assoc_config =
        (trpi_assoc_config){ remote->options.handshake_timeout_ms, remote->options.backoff_min_ms,
                             remote->options.backoff_max_ms, TRPI_ASK_MS };
    err = err != TRP_OK ? err : trpi_reliable_receive(system);
    err = err != TRP_OK ? err : listen_and_advertise(remote);
    trpi_remote_tick_begin(remote);
    remote->timers.running = 1;
    err = err != TRP_OK ? err
                        : trpi_system_every(system, TRPI_TICK_MS, tick_beat, timer_over, remote,
                                            &remote->timers.beat_id);
    if (err != TRP_OK) {
        (void)trpi_system_remote_set(system, NULL, NULL);
        failure_publish(remote, err);
        if (remote->transport != NULL) {
            remote->ops->stop(remote->transport);
            remote->ops->free(remote->transport);
        }
        trpi_remote_unref(remote);
        return err;
    }
    listening_log(remote);
    warn_if_open(remote);
    warn_of_waiting(remote);
    /* The caller's texts are borrowed only for this call. */
    remote->options.host = remote->options.bind_host = NULL;
    remote->options.cookie = remote->options.cookie_before = remote->options.cookie_file = NULL;
    remote->options.tls_ca = remote->options.tls_cert = remote->options.tls_key = NULL;
    remote->options.tls_crl = remote->options.tls_ciphers = remote->options.why = NULL;
    remote->options.tls_allowed = NULL;
    if (!remote->options.accepts_later) {
        trpi_remote_accept(remote); /* last: handshakes need the port that was bound */
    }
    *ret_remote = remote;
    return TRP_OK;
}

void
trpi_remote_accept(trpi_remote *remote)
{
    if (!remote->options.nameless) {
        remote->ops->accept(remote->transport);
    }
}

const trpi_address *
trpi_remote_address(const trpi_remote *remote)
{
    return &remote->address;
}

/* ---- control frames -------------------------------------------------------------------------- */

void
trpi_remote_control_bind(trpi_remote *remote, enum trpi_control_channel channel, trpi_control_fn fn,
                         void *arg)
{
    trpi_assert(channel < TRPI_CHANNEL_COUNT);
    pthread_rwlock_wrlock(&remote->channels[channel].lock);
    remote->channels[channel].fn = fn;
    remote->channels[channel].arg = arg;
    pthread_rwlock_unlock(&remote->channels[channel].lock);
}

void
trpi_remote_beats_answer(trpi_remote *remote, trpi_beat_reply reply)
{
    atomic_store_explicit(&remote->beat_reply, reply, memory_order_release);
}

void
trpi_remote_beats_read(trpi_remote *remote, trpi_beat_asked asked)
{
    atomic_store_explicit(&remote->beat_asked, asked, memory_order_release);
}

/* Give a heartbeat to the thread for control lanes. false: it goes the general way. */
static bool
beat_send(trpi_peer *peer, const trpi_node_id *to, const void *bytes, size_t count)
{
    trpi_remote *remote = trpi_peer_remote(peer);
    trpi_waker *waker = NULL;
    if (to->uid != 0 && trpi_peer_carrier(peer) != NULL && trpi_peer_proved_uid(peer) == to->uid) {
        waker =
            trpi_beat_put(trpi_peer_beat_box(peer), to->uid, TRPI_CHANNEL_HEARTBEAT, bytes, count);
    }
    if (waker == NULL) {
        return false;
    }
    remote->ops->wake(remote->transport, waker);
    trpi_count(&remote->stats.frames_out, 1);
    return true;
}

trp_err
trpi_remote_control_send(trpi_remote *remote, const trpi_node_id *to,
                         enum trpi_control_channel channel, const void *bytes, size_t count)
{
    trpi_peer *peer = NULL;
    trpi_buffer frames = { 0 };
    trpi_deferred deferred = { 0 };
    if (count > remote->options.frame_bytes_max && count > TRPI_CONTROL_FRAME_BYTES_MAX) {
        return TRP_EMSGSIZE;
    }
    if (atomic_load_explicit(&remote->stopping, memory_order_relaxed)) {
        return TRP_ECLOSED;
    }
    if (trpi_address_equal(&to->address, &remote->address)) {
        return TRP_EINVAL;
    }
    trp_err err =
        trpi_peer_get(remote, &to->address, !trpi_address_is_nameless(&to->address), &peer);
    if (err == TRP_OK && channel == TRPI_CHANNEL_HEARTBEAT && beat_send(peer, to, bytes, count)) {
        trpi_peer_unpin(peer);
        return TRP_OK;
    }
    if (err == TRP_OK) {
        err = trpi_frame_append(&frames, TRPI_FRAME_CONTROL, to->uid == 0 ? TRPI_MESSAGE_ANYONE : 0,
                                (uint16_t)channel, bytes, count);
    }
    if (err != TRP_OK) {
        trpi_peer_unpin(peer);
        return err;
    }
    pthread_mutex_lock(&peer->lock);
    uint64_t next_ms = trpi_peer_next_ms(peer);
    bool gated = next_ms != 0 && trpi_remote_now_ms(remote) < next_ms;
    uint32_t features = trpi_agreed_features(&peer->agreed);
    uint32_t max = trpi_agreed_frame_bytes_max(&peer->agreed);
    if (count > trpi_control_frame_max(features, max)) {
        err = TRP_EMSGSIZE;
    } else if (gated) {
        err = to->uid != 0 && trpi_assoc_is_barred(&peer->assoc, to->uid) ? TRP_EQUARANTINED
                                                                          : TRP_EAGAIN;
    } else {
        err = trpi_peer_append(peer, TRPI_LANE_CONTROL, to->uid, &frames, false);
    }
    if (channel == TRPI_CHANNEL_GOSSIP) {
        trpi_watch_tell(&peer->watch);
    }
    trpi_peer_pump(peer, &deferred);
    trpi_peer_unlock(peer, &deferred);
    trpi_peer_unpin(peer);
    trpi_buffer_fini(&frames);
    if (err == TRP_OK) {
        trpi_count(&remote->stats.frames_out, 1);
    }
    return err;
}

void
trpi_remote_quarantine(trpi_remote *remote, const trpi_node_id *id, const char *reason)
{
    trpi_peer *peer = NULL;
    if (trpi_peer_get(remote, &id->address, true, &peer) == TRP_OK) {
        trpi_peer_quarantine(peer, id->uid, reason);
        trpi_peer_unpin(peer);
    }
}

void
trpi_remote_watch_delegate(trpi_remote *remote, const trpi_address *address, bool delegated)
{
    trpi_peer *peer = NULL;
    if (!trpi_address_equal(address, &remote->address) &&
        trpi_peer_get(remote, address, true, &peer) == TRP_OK) {
        pthread_mutex_lock(&peer->lock);
        trpi_watch_delegate(&peer->watch, delegated);
        trpi_peer_make_active(peer);
        trpi_peer_unshare(peer);
        if (delegated) {
            trpi_pending_member(peer);
        }
        pthread_mutex_unlock(&peer->lock);
        trpi_peer_unpin(peer);
    }
}
