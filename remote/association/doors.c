/* doors.c - how many clients are accepted, and the actors that they may send to.
 *
 * Must hold. clients-C1, clients-C2 (clients.c)
 * Limits.    clients_max connections of clients; TRPI_DOORS_MAX doors of all clients.
 * Threads.   lock guards the doors; a leaf.
 * Tests.     tests/unit/remote/clients_test.c
 */
#include "remote/association/clients.h"

#include "base/hash.h"
#include "base/mutex.h"

/* ---- accepting ------------------------------------------------------------------------------- */

void
trpi_clients_accept(trpi_remote *remote, uint32_t clients_max)
{
    atomic_store_explicit(&remote->clients.max, clients_max, memory_order_relaxed);
}

uint32_t
trpi_clients_count(trpi_remote *remote)
{
    return atomic_load_explicit(&remote->clients.count, memory_order_relaxed);
}

const char *
trpi_clients_refusal(trpi_remote *remote, const trpi_address *address, uint64_t uid)
{
    trpi_address named = *address;
    uint32_t max = atomic_load_explicit(&remote->clients.max, memory_order_relaxed);
    trpi_address_nameless(uid, &named);
    if (max == 0) {
        return "you advertise no host and port"; /* clients-C1 */
    }
    if (!trpi_address_equal(address, &named)) {
        return "your name is not made of your uid";
    }
    return trpi_clients_count(remote) >= max
               ? "cluster.client.receptionist.clients-max clients are connected"
               : NULL;
}

void
trpi_clients_came(trpi_remote *remote)
{
    atomic_fetch_add_explicit(&remote->clients.count, 1, memory_order_relaxed);
}

void
trpi_clients_went(trpi_remote *remote)
{
    atomic_fetch_sub_explicit(&remote->clients.count, 1, memory_order_relaxed);
}

/* ---- doors ----------------------------------------------------------------------------------- */

typedef struct door {
    uint32_t slot, generation;
    uint64_t uid; /* of the client; never 0 */
} door;

static bool
door_is_empty(const void *element)
{
    return ((const door *)element)->uid == 0;
}

static uint64_t
door_hash(const void *arg, const void *element)
{
    (void)arg;
    return trpi_hash_u64(((const door *)element)->slot);
}

static bool
door_is(const void *arg, const void *element, const void *key)
{
    (void)arg;
    return ((const door *)element)->slot == ((const door *)key)->slot;
}

static const trpi_table_kind doors_kind = { sizeof(door), door_is_empty, door_hash, door_is };

void
trpi_clients_begin(trpi_remote *remote)
{
    pthread_mutex_init(&remote->clients.lock, NULL);
}

void
trpi_clients_end(trpi_remote *remote)
{
    trpi_table_fini(&remote->clients.doors);
    trpi_mutex_destroy(&remote->clients.lock);
}

trp_err
trpi_door_open(trpi_remote *remote, trp_ref ref, uint64_t uid)
{
    const door key = { ref.slot, ref.generation, uid };
    trp_err err = TRP_ELIMIT;
    pthread_mutex_lock(&remote->clients.lock);
    door *found =
        trpi_table_find(&doors_kind, &remote->clients.doors, NULL, door_hash(NULL, &key), &key);
    if (found != NULL) { /* of an actor that had this slot before */
        *found = key;
        err = TRP_OK;
    } else if (remote->clients.doors.count < TRPI_DOORS_MAX) {
        found =
            trpi_table_add(&doors_kind, &remote->clients.doors, NULL, door_hash(NULL, &key), &key);
        err = found == NULL ? TRP_ENOMEM : TRP_OK;
        if (found != NULL) {
            *found = key;
        }
    }
    pthread_mutex_unlock(&remote->clients.lock);
    return err;
}

void
trpi_door_close(trpi_remote *remote, trp_ref ref)
{
    const door key = { ref.slot, ref.generation, 0 };
    pthread_mutex_lock(&remote->clients.lock);
    door *found =
        trpi_table_find(&doors_kind, &remote->clients.doors, NULL, door_hash(NULL, &key), &key);
    if (found != NULL && found->generation == ref.generation) {
        trpi_table_remove(&doors_kind, &remote->clients.doors, NULL, found);
    }
    pthread_mutex_unlock(&remote->clients.lock);
}

bool
trpi_door_is(trpi_remote *remote, uint32_t slot, uint32_t generation, uint64_t uid)
{
    const door key = { slot, generation, uid };
    pthread_mutex_lock(&remote->clients.lock);
    const door *found =
        trpi_table_find(&doors_kind, &remote->clients.doors, NULL, door_hash(NULL, &key), &key);
    bool is = found != NULL && found->generation == generation && found->uid == uid;
    pthread_mutex_unlock(&remote->clients.lock);
    return is;
}
