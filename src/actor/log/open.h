/* open.h - what the rooms above src/actor may use of the room log: part of actor/actor.h. */
#ifndef TRPI_ACTOR_LOG_OPEN_H
#define TRPI_ACTOR_LOG_OPEN_H

#include "actor/kernel/open.h"

/* Log a line of a room: level, room, event text with key=value pairs. */
void trpi_log(trp_system *system, trp_log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Built-in types (log_types.c). */
extern const struct trpi_type_part trpi_log_types;

#endif
