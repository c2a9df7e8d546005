/* entities.h - for tests: a system whose entities keep what they are in a journal in memory, or in
 * LMDB, that stays when the system is started again. */
#ifndef TESTS_UNIT_CLUSTER_ENTITIES_H
#define TESTS_UNIT_CLUSTER_ENTITIES_H

#include <stdlib.h>
#include <unistd.h>

#include <troupe/journal.h>
#include <troupe/journal_lmdb.h>
#include <troupe/persistence.h>
#include <troupe/sharding.h>
#include <troupe/system.h>

#include "cluster/sharding/region.h"
#include "tests/unit/unit.h"

typedef struct entities {
    trp_system *system;
    trp_journal_memory *memory;        /* NULL: it is in LMDB */
    const trp_journal_driver *journal; /* in LMDB: the system's */
    char directory[64];
    char why[512];
} entities;

static inline void
entities_system(entities *e)
{
    trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
    UNIT_REQUIRE(trp_system_new("entities", &options, &e->system) == TRP_OK);
}

static inline void
entities_begin_without(entities *e)
{
    *e = (entities){ 0 };
    UNIT_REQUIRE(trp_journal_memory_new(&e->memory) == TRP_OK);
    e->journal = trp_journal_memory_driver(e->memory);
    entities_system(e);
}

static inline void
entities_begin(entities *e)
{
    entities_begin_without(e);
    UNIT_REQUIRE(trp_persistence_start(e->system, e->journal, NULL) == TRP_OK);
}

static inline trp_err
entities_lmdb(entities *e)
{
    trp_journal_lmdb_options options = TRP_JOURNAL_LMDB_OPTIONS_INIT;
    trp_persistence_options enough = TRP_PERSISTENCE_OPTIONS_INIT;
    options.directory = e->directory;
    enough.local_store_is_enough = 1;
    trp_err err = trp_journal_lmdb_open(&options, &e->journal, e->why, sizeof e->why);
    return err != TRP_OK ? err : trp_persistence_start(e->system, e->journal, &enough);
}

/* false: this build has no LMDB. */
static inline bool
entities_begin_lmdb(entities *e)
{
    *e = (entities){ 0 };
    (void)snprintf(e->directory, sizeof e->directory, "/tmp/entities-XXXXXX");
    UNIT_REQUIRE(mkdtemp(e->directory) != NULL);
    entities_system(e);
    trp_err err = entities_lmdb(e);
    if (err == TRP_EUNSUPPORTED) {
        UNIT_EQUAL(trp_system_stop(e->system, 10000), TRP_OK);
        trp_system_free(e->system);
        (void)rmdir(e->directory);
        return false;
    }
    UNIT_REQUIRE(err == TRP_OK);
    return true;
}

static inline void
entities_stop(entities *e)
{
    UNIT_EQUAL(trp_system_stop(e->system, 10000), TRP_OK);
    trp_system_free(e->system);
}

static inline void
entities_start(entities *e)
{
    entities_system(e);
    if (e->memory != NULL) {
        UNIT_REQUIRE(trp_persistence_start(e->system, e->journal, NULL) == TRP_OK);
    } else {
        UNIT_REQUIRE(entities_lmdb(e) == TRP_OK);
    }
}

static inline void
entities_restart(entities *e)
{
    entities_stop(e);
    entities_start(e);
}

static inline void
entities_end(entities *e)
{
    static const char *const files[] = { "data.mdb", "lock.mdb", "owner" };
    char path[128];
    entities_stop(e);
    trp_journal_memory_free(e->memory);
    for (size_t i = 0; e->directory[0] != '\0' && i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", e->directory, files[i]);
        (void)unlink(path);
    }
    if (e->directory[0] != '\0') {
        UNIT_EQUAL(rmdir(e->directory), 0);
    }
}

static inline trp_entity
entities_named(const char *type, const char *id)
{
    return trp_entity_of(trp_entity_type(type), id, strlen(id));
}

static inline trpi_region *
entities_region(const entities *e, const char *type)
{
    trpi_sharding *sharding = NULL;
    UNIT_REQUIRE(trpi_sharding_of(e->system, &sharding) == TRP_OK);
    return trpi_region_find(sharding, trp_entity_type(type));
}

/* Claim a scope as another node would. */
static inline uint64_t
entities_claim(const entities *e, const char *scope)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_CLAIM;
    op.scope = scope;
    op.writer = "another node";
    UNIT_EQUAL(trp_journal_call(e->journal, &op), TRP_OK);
    return op.ret_epoch;
}

/* The highest number of a persistence id. */
static inline uint64_t
entities_events(const entities *e, const char *id)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    op.kind = TRP_JOURNAL_EVENTS;
    op.id = id;
    op.from = 1;
    UNIT_EQUAL(trp_journal_call(e->journal, &op), TRP_OK);
    return op.ret_number;
}

typedef struct entities_look {
    const char *scope;
    uint64_t epoch;
} entities_look;

static inline trp_err
entities_scope_given(trp_journal_op *op, const trp_journal_event *item)
{
    entities_look *look = op->user;
    look->epoch = strcmp(item->id, look->scope) == 0 ? item->number : look->epoch;
    return TRP_OK;
}

/* Epoch of a scope; 0: it was never claimed. */
static inline uint64_t
entities_scope(const entities *e, const char *scope)
{
    trp_journal_op op = TRP_JOURNAL_OP_INIT;
    entities_look look = { scope, 0 };
    op.kind = TRP_JOURNAL_SCOPES;
    op.give = entities_scope_given;
    op.user = &look;
    UNIT_EQUAL(trp_journal_call(e->journal, &op), TRP_OK);
    return look.epoch;
}

#endif
