/* registry.h - the singletons and proxies of one node by name, and their frames; private to
 * cluster/singleton. */
#ifndef TRPI_CLUSTER_SINGLETON_REGISTRY_H
#define TRPI_CLUSTER_SINGLETON_REGISTRY_H

#include <pthread.h>

#include "actor/actor.h"
#include "cluster/shell/lease.h"
#include "cluster/singleton/manager_engine.h"
#include "cluster/singleton/singleton.h"

/* Words of proxies, besides trpi_singleton_word. Numbers of the wire. */
enum {
    SINGLETON_WHERE = 7, /* to the oldest member: tell this node when it runs, and when it stops */
    SINGLETON_HERE = 8,  /* it runs: slot, generation */
    SINGLETON_GONE = 9   /* it does not run here any more */
};

typedef struct singleton_frame {
    uint32_t word;
    char name[TRP_SINGLETON_NAME_BYTES_MAX + 1];
    uint64_t round;
    uint32_t slot, generation;
    const uint8_t *data; /* borrowed */
    size_t data_bytes;
} singleton_frame;
/* frame.c. Append the bytes of a frame. Errors: TRP_ENOMEM, TRP_ELIMIT. */
trp_err singleton_frame_encode(const singleton_frame *frame, trpi_buffer *out);
/* Unknown keys are skipped. *ret_doc owns data: trpi_pack_doc_free. Errors: TRP_EDATA,
 * TRP_ENOMEM. */
struct trpi_pack_doc;
trp_err singleton_frame_decode(const uint8_t *bytes, size_t count, singleton_frame *ret_frame,
                               struct trpi_pack_doc **ret_doc);

typedef struct singleton_note { /* a frame, in the mailbox of a manager or a proxy */
    trpi_node_id from;
    uint32_t word;
    uint32_t slot, generation;
    uint32_t data_bytes;
    uint64_t round;
    uint8_t data[];
} singleton_note;

struct singleton_registry;
typedef struct singleton_entry {  /* of one manager or one proxy; freed with the registry */
    struct singleton_entry *next; /* by name; the registry's lock, as what follows */
    struct singleton_registry *registry;
    bool is_proxy;
    bool closed; /* its actor has ended */
    trp_ref actor;
    char name[TRP_SINGLETON_NAME_BYTES_MAX + 1];
    char role[TRP_ROLE_BYTES]; /* "": any */
    trpi_singleton_status status;
    uint64_t host_since_ms, state_since_ms;
    uint64_t waits_until_ms; /* for the sentence of status.waits; 0: no time stands in it */
    void (*free)(struct singleton_entry *entry);
    void *own; /* the manager's or proxy's */
} singleton_entry;

typedef struct singleton_registry { /* an extension of the system */
    trp_system *system;
    pthread_mutex_t lock; /* a leaf, but for the locks of remoting; held while a frame is sent */
    trpi_remote *remote;  /* NULL: closed */
    trpi_node_id self;
    singleton_entry *entries;
    uint32_t entries_count;
    uint64_t cluster_ends_ms; /* until when; 0: it does not end */
} singleton_registry;

/* NULL: there is none. */
singleton_registry *singleton_registry_get(trp_system *system);
uint64_t singleton_now_ms(const singleton_registry *registry);
/* Add an entry; a second manager of one name is TRP_EEXIST. Takes entry, on success only. Errors:
 * TRP_ELIMIT, TRP_EEXIST, TRP_ESTATE. */
trp_err singleton_entry_add(singleton_registry *registry, singleton_entry *entry);
/* Its actor could not be made: take it out and free it. */
void singleton_entry_drop(singleton_entry *entry);
void singleton_entry_close(singleton_entry *entry);
/* Send to a node, or give to the actors of this one. A lost frame is sent again by those that
 * wait. Thread: an actor's. */
void singleton_send_frame(singleton_registry *registry, const trpi_node_id *to,
                          const singleton_frame *frame);

/* Messages of managers and proxies. */
extern trp_type singleton_note_type, singleton_tick_type, singleton_lease_type, singleton_exit_type,
    singleton_ends_type;
extern const trp_protocol singleton_protocol;
/* Is it an event of the cluster, or its state? */
bool singleton_is_event(const trp_msg *msg);
/* Members with the role, in order; gives *ret_members (trpi_free). Errors: TRP_ENOMEM, TRP_ESTATE.
 */
typedef struct singleton_member {
    trpi_aged aged;
    bool reachable;
} singleton_member;
trp_err singleton_members_read(const singleton_entry *entry, singleton_member **ret_members,
                               uint32_t *ret_count);

extern const trp_behaviour singleton_manager_behaviour, singleton_proxy_behaviour;

#endif
