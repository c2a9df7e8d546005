/* doctor_checks.h - what the files of the doctor's checks share; see doctor.c. */
#ifndef TRPI_NODE_DOCTOR_CHECKS_H
#define TRPI_NODE_DOCTOR_CHECKS_H

#include "cluster/node/doctor.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct trpi_doctor_check {
    const char *id;
    void (*look)(const trpi_doctor_facts *facts, trpi_doctor_finding *f);
    const char *advice;
} trpi_doctor_check;

extern const trpi_doctor_check trpi_doctor_node_checks[], trpi_doctor_cluster_checks[];
extern const size_t trpi_doctor_node_checks_count, trpi_doctor_cluster_checks_count;

/* Write the verdict. */
void trpi_doctor_found(trpi_doctor_finding *f, trpi_doctor_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The first case, and how many more there are; none: `ok`. */
void trpi_doctor_found_cases(trpi_doctor_finding *f, trpi_doctor_level level,
                             const trpi_doctor_cases *cases, const char *ok);

#endif
