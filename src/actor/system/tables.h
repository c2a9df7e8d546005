/* tables.h - private to the room: the tables by which lower rooms call higher ones. */
#ifndef TRPI_ACTOR_SYSTEM_TABLES_H
#define TRPI_ACTOR_SYSTEM_TABLES_H

#include "actor/kernel/kernel_ops.h"
#include "actor/life/life_ops.h"

extern const trpi_kernel_ops trpi_tables_kernel;
extern const trpi_life_ops trpi_tables_life;

#endif
