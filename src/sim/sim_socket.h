/* sim_socket.h - what the files of the simulated network share. Private to sim_*.c. */
#ifndef TRPI_SIM_SIM_SOCKET_H
#define TRPI_SIM_SIM_SOCKET_H

#include "sim/sim_net.h"

typedef struct sim_socket sim_socket;

enum { SIM_SHUT_READ = 1, SIM_SHUT_WRITE = 2, SIM_SHUT_BOTH = 3 };
enum sim_state { SIM_CLOSED, SIM_LISTENING, SIM_CONNECTING, SIM_CONNECTED };
/* As the machine tells a connect() that is called again. */
enum sim_told { SIM_UNTOLD, SIM_TOLD_WAIT, SIM_TOLD_CONNECTED };

#define SIM_OPTIONS_MAX 32

/* One direction of a stream, towards the socket that holds it: bytes that have arrived, then those
 * on their way, then those that wait for room. */
typedef struct sim_flow {
    uint8_t *bytes; /* a ring */
    size_t room, first, count;
    size_t arrived, flying;
    uint64_t due_ns;  /* of the last event: never decreases */
    bool end_written; /* the sender has ended it; the end goes behind the bytes */
    bool end_flying, end_arrived;
    bool broken;   /* a link swallows it */
    bool squeezed; /* the sender's buffer is full, by chance, until an event */
} sim_flow;

typedef struct sim_datagram {
    trpi_net_address from;
    struct sim_datagram *next;
    size_t bytes;
    uint8_t data[];
} sim_datagram;

typedef struct sim_queue { /* of datagrams, or of connections that wait for accept */
    void *first, *last;
    size_t count, bytes;
} sim_queue;

struct sim_socket {
    trpi_sim_net *net;
    sim_socket *next, **link; /* of all */
    sim_socket *place_next;   /* of the host's listeners and bound datagram sockets */
    int number;
    int references; /* open handle, peer, place in a queue, events */
    uint32_t host;
    int family, type;
    enum sim_state state;
    enum sim_told told;
    uint32_t shut;
    int error; /* SO_ERROR */
    bool open; /* the user has not closed it */
    bool placed;
    bool bound_by_user, port_held;
    bool embryo;        /* not accepted yet */
    bool full;          /* a write, or a report, has found no room: room is an edge */
    bool time_waits;    /* the port is held for a minute */
    bool dialled;       /* and not accepted */
    uint16_t tries;     /* of a connect */
    uint32_t backlog;   /* listening */
    sim_queue accepted; /* sim_socket, by accept_next */
    sim_socket *accept_next;
    sim_queue received; /* sim_datagram */
    size_t sending;     /* bytes of datagrams on their way */
    sim_socket *peer;   /* counted */
    sim_flow in;
    trpi_net_address local, remote;
    int options[SIM_OPTIONS_MAX];
    uint64_t options_set; /* bits */
    struct linger linger;
    /* readiness */
    trpi_net_set *set;
    uint64_t key;
    bool pending;
    sim_socket *pending_next;
};

enum sim_event_kind {
    SIM_EVENT_DIAL,        /* a connect arrives */
    SIM_EVENT_ESTABLISHED, /* its answer */
    SIM_EVENT_FAIL,        /* what = errno */
    SIM_EVENT_BYTES,       /* what = count */
    SIM_EVENT_END,
    SIM_EVENT_RESET,
    SIM_EVENT_ROOM,    /* a squeezed buffer has room again */
    SIM_EVENT_FREE,    /* the end of TIME_WAIT */
    SIM_EVENT_DATAGRAM /* to `address`; socket is the sender */
};

typedef struct sim_event {
    uint64_t due_ns, number;
    enum sim_event_kind kind;
    uint32_t host_a, host_b; /* whose sets it may concern */
    sim_socket *socket;      /* counted */
    size_t what;
    sim_datagram *datagram;
    trpi_net_address address;
} sim_event;

typedef struct sim_name { /* of a Unix-domain socket */
    struct sim_name *next;
    uint32_t host;
    sim_socket *socket;
    trpi_net_address address;
} sim_name;

typedef struct sim_host {
    char name[TRPI_SIM_HOST_BYTES];
    uint32_t open, open_max;
    sim_socket *places;
    uint16_t *ports[2]; /* of each port the sockets that hold it: streams, datagrams */
    uint16_t port_next;
    uint32_t autobinds;
} sim_host;

struct trpi_sim_net {
    trpi_world *world;
    uint64_t random;
    trpi_sim_faults faults;
    trpi_mem_fault_fn link;
    void *link_arg;
    sim_event *events; /* a heap by (due, number) */
    uint32_t events_count, events_room;
    uint64_t events_number;
    bool advancing;
    uint64_t event_ns;    /* of the event that is carried out, which may be late */
    sim_socket **numbers; /* by number */
    uint32_t numbers_count, numbers_room;
    sim_socket *sockets;
    uint32_t sockets_count;
    trpi_net_set *sets;
    sim_name *names;
    uint64_t misuses;
    sim_host hosts[TRPI_SIM_HOSTS_MAX];
};

struct trpi_net_set {
    trpi_sim_net *net;
    uint32_t host;
    void (*on_due)(void *arg, uint64_t in_ns);
    void *arg;
    uint64_t due_ns; /* of the earliest on_due that is to come */
    sim_socket *first, *last;
    trpi_net_set *next;
};

/* ---- sim_net.c ------------------------------------------------------------------------------- */
uint64_t trpi_sim_now(const trpi_sim_net *net);
uint64_t trpi_sim_draw(trpi_sim_net *net);
bool trpi_sim_chance(trpi_sim_net *net, uint32_t of_1000);
trpi_sim_net *trpi_sim_of(trpi_world *world);
/* Make room for `more` events beside the few that each socket may need. */
bool trpi_sim_events_reserve(trpi_sim_net *net, uint32_t more);
void trpi_sim_event_add(trpi_sim_net *net, const sim_event *event);
void trpi_sim_advance(trpi_sim_net *net);
/* The fault of the link between two hosts, and its delay. */
trpi_mem_verdict trpi_sim_link(trpi_sim_net *net, const sim_socket *from, uint32_t to,
                               uint16_t port, bool connect, size_t bytes, uint64_t *ret_due_ns);
int trpi_sim_socket_new(trpi_sim_net *net, uint32_t host, int family, int type, sim_socket **ret);
int trpi_sim_socket_number(sim_socket *s); /* a number for the user; counted as open */
sim_socket *trpi_sim_socket_of(trpi_world *world, int number);
void trpi_sim_socket_unref(sim_socket *s);
/* ---- sim_set.c: readiness -------------------------------------------------------------------- */
uint32_t trpi_sim_mask(sim_socket *s); /* what is ready now */
void trpi_sim_wake(sim_socket *s);     /* something has changed: report it */
void trpi_sim_sets_due(trpi_sim_net *net, const sim_event *event);
void trpi_sim_set_forget(sim_socket *s);
int trpi_sim_set_new(trpi_world *world, void (*on_due)(void *arg, uint64_t in_ns), void *arg,
                     trpi_net_set **ret_set);
void trpi_sim_set_free(trpi_net_set *set);
int trpi_sim_set_add(trpi_net_set *set, int number, uint64_t key);
void trpi_sim_set_remove(trpi_net_set *set, int number);
int trpi_sim_set_wait(trpi_net_set *set, trpi_net_report *ret_reports, int most,
                      uint64_t timeout_ns);
void trpi_sim_set_wake(trpi_net_set *set);
/* ---- sim_address.c --------------------------------------------------------------------------- */
int trpi_sim_bind(sim_socket *s, const trpi_net_address *address);
int trpi_sim_bind_some(sim_socket *s, const trpi_net_address *towards); /* a port of its own */
/* The host of an address as seen by s: 0, or -errno; TRPI_SIM_HOSTS_MAX: nobody has it. */
int trpi_sim_host_of(const sim_socket *s, const trpi_net_address *address, uint32_t *ret_host);
uint16_t trpi_sim_port(const trpi_net_address *address);
sim_socket *trpi_sim_place_find(trpi_sim_net *net, uint32_t host, int type,
                                const trpi_net_address *to, const trpi_net_address *from);
bool trpi_sim_listen_conflicts(const sim_socket *s);
void trpi_sim_place_add(sim_socket *s);
void trpi_sim_place_remove(sim_socket *s);
void trpi_sim_port_hold(sim_socket *s);
void trpi_sim_port_release(sim_socket *s);
sim_name *trpi_sim_name_find(trpi_sim_net *net, uint32_t host, const trpi_net_address *address);
void trpi_sim_name_release(sim_socket *s);
void trpi_sim_address_complete(sim_socket *s); /* of a connect: no wildcards */
void trpi_sim_address_reset(sim_socket *s);    /* what connect has chosen */
trpi_net_address trpi_sim_address_as(const trpi_net_address *address, int family);
/* ---- sim_option.c ---------------------------------------------------------------------------- */
int trpi_sim_option_set(trpi_world *world, int number, int level, int name, const void *value,
                        socklen_t bytes);
int trpi_sim_option_get(trpi_world *world, int number, int level, int name, void *ret_value,
                        socklen_t *bytes);
bool trpi_sim_option_on(const sim_socket *s, int level, int name);
size_t trpi_sim_buffer(const sim_socket *s, int name); /* SO_SNDBUF, SO_RCVBUF: bytes that fit */
void trpi_sim_buffers_draw(sim_socket *s);
uint64_t trpi_sim_patience_ns(const sim_socket *s); /* until unanswered bytes end a connection */
void trpi_sim_options_inherit(sim_socket *to, const sim_socket *from);
/* ---- sim_stream.c ---------------------------------------------------------------------------- */
uint32_t trpi_sim_stream_mask(sim_socket *s);
int trpi_sim_stream_listen(sim_socket *s, int backlog);
int trpi_sim_stream_accept(sim_socket *s, trpi_net_address *ret_peer);
int trpi_sim_stream_connect(sim_socket *s, const trpi_net_address *address);
ssize_t trpi_sim_stream_read(sim_socket *s, const struct iovec *iov, int count);
ssize_t trpi_sim_stream_write(sim_socket *s, const struct iovec *iov, int count);
int trpi_sim_stream_shutdown(sim_socket *s, uint32_t how);
void trpi_sim_stream_close(sim_socket *s);
void trpi_sim_stream_event(sim_event *event);
void trpi_sim_stream_reset(sim_socket *s); /* both ends, now */
ssize_t trpi_sim_send_file(trpi_world *world, int number, int file, off_t *offset, size_t count);
int trpi_sim_error_take(sim_socket *s); /* as getsockopt(SO_ERROR): 0, or -errno */
void trpi_sim_accepted_put(sim_socket *listener, sim_socket *s);
sim_socket *trpi_sim_accepted_take(sim_socket *listener);
void trpi_sim_detach(sim_socket *s); /* part two ends that nobody needs any more */
/* ---- sim_local.c: Unix-domain streams -------------------------------------------------------- */
uint32_t trpi_sim_local_mask(sim_socket *s);
int trpi_sim_local_connect(sim_socket *s, const trpi_net_address *address);
ssize_t trpi_sim_local_read(sim_socket *s, const struct iovec *iov, int count);
ssize_t trpi_sim_local_write(sim_socket *s, const struct iovec *iov, int count);
int trpi_sim_local_shutdown(sim_socket *s, uint32_t how);
void trpi_sim_local_close(sim_socket *s);
/* ---- sim_flow.c ------------------------------------------------------------------------------ */
bool trpi_sim_flow_append(sim_flow *flow, const struct iovec *iov, size_t bytes);
void trpi_sim_flow_take(sim_flow *flow, const struct iovec *iov, size_t bytes);
void trpi_sim_flow_cut(sim_flow *flow);
/* ---- sim_datagram.c -------------------------------------------------------------------------- */
uint32_t trpi_sim_datagram_mask(sim_socket *s);
int trpi_sim_datagram_connect(sim_socket *s, const trpi_net_address *address);
ssize_t trpi_sim_datagram_receive(sim_socket *s, const struct iovec *iov, int count,
                                  trpi_net_address *ret_from, int *ret_flags);
ssize_t trpi_sim_datagram_send(sim_socket *s, const struct iovec *iov, int count,
                               const trpi_net_address *to);
int trpi_sim_datagram_shutdown(sim_socket *s, uint32_t how);
void trpi_sim_datagram_close(sim_socket *s);
void trpi_sim_datagram_event(sim_event *event);

static inline bool
trpi_sim_is_local(const sim_socket *s)
{
    return s->family == AF_UNIX;
}

static inline size_t
trpi_sim_iov_bytes(const struct iovec *iov, int count)
{
    size_t bytes = 0;

    for (int i = 0; i < count; i++) {
        bytes += iov[i].iov_len;
    }
    return bytes;
}

#endif
