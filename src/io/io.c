/* io.c - the sockets of a system: an extension of it, with an actor for each transport.
 *
 * Tests.   tests/unit/io/tcp_test.c
 * Sources. IO-02, IO-17
 */
#include "io/io.h"

#include <string.h>

#include <troupe/extension.h>
#include <troupe/tcp_pipeline.h>

#include "base/alloc.h"
#include "io/lookup.h"

static trp_err
manager_spawn(trpi_io *io, const char *name, const char *dispatcher, const trp_behaviour *behaviour,
              trp_ref *ret_ref)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;

    options.name = name;
    options.dispatcher = dispatcher;
    options.args_type = &trp_bytes_type;
    options.args = &io;
    options.args_bytes = sizeof io;
    return trpi_system_spawn_internal(io->system, behaviour, &options, ret_ref);
}

static void
io_release(void *instance)
{
    trpi_io *io = instance;

    trpi_io_lookups_end(io->lookups);
    trpi_io_buffers_end(io->buffers);
    trpi_free(io);
}

static trp_err
io_create(trp_system *system, void *arg, void **ret_instance)
{
    trpi_world *world = trpi_system_world(system);
    trpi_poller *poller;
    trpi_io *io;
    trp_err err;

    (void)arg;
    if (trpi_world_net(world) == NULL) {
        return TRP_EUNSUPPORTED;
    }
    err = trpi_system_poller(system, &poller);
    err = err == TRP_OK ? trp_protocol_register(&trp_tcp_protocol) : err;
    err = err == TRP_OK ? trp_protocol_register(&trp_udp_protocol) : err;
    err = err == TRP_OK ? trp_protocol_register(&trp_tcp_pipeline_protocol) : err;
    if (err != TRP_OK) {
        return err;
    }
    io = trpi_alloc(sizeof *io);
    if (io == NULL) {
        return TRP_ENOMEM;
    }
    io->system = system;
    io->world = world;
    io->net = trpi_world_net(world);
    io->poller = poller;
    trpi_io_settings_read(trpi_system_config(system), &io->settings);
    err = trpi_io_buffers_new(io->settings.tcp.read_bytes, io->settings.tcp.buffers_kept,
                              &io->buffers);
    err = err == TRP_OK ? trpi_io_lookups_new(system, world, trpi_resolve_blocking, &io->lookups)
                        : err;
    err = err != TRP_OK ? err
                        : manager_spawn(io, "io-tcp", io->settings.tcp.manager_dispatcher,
                                        &trpi_tcp_manager_behaviour, &io->tcp);
    err = err == TRP_OK ? manager_spawn(io, "io-udp", io->settings.udp_manager_dispatcher,
                                        &trpi_udp_manager_behaviour, &io->udp)
                        : err;
    if (err != TRP_OK) {
        io_release(io);
        return err;
    }
    *ret_instance = io;
    return TRP_OK;
}

static const trp_extension io_extension = {
    sizeof(trp_extension), "troupe-io", io_create, NULL, io_release, NULL
};

trp_err
trpi_io_get(trp_system *system, trpi_io **ret_io)
{
    void *instance;
    trp_err err = trp_extension_get(system, &io_extension, &instance);

    if (err == TRP_OK) {
        *ret_io = instance;
    }
    return err;
}

trp_err
trp_tcp_manager(trp_system *system, trp_ref *ret_manager)
{
    trpi_io *io;
    trp_err err;

    if (system == NULL || ret_manager == NULL) {
        return TRP_EINVAL;
    }
    err = trpi_io_get(system, &io);
    if (err == TRP_OK) {
        *ret_manager = io->tcp;
    }
    return err;
}
