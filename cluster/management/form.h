/* form.h - fields of a form in a request's body, and of a query. Thread: any. */
#ifndef TRPI_MANAGEMENT_FORM_H
#define TRPI_MANAGEMENT_FORM_H

#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

#include "cluster/management/request.h"

/* Find the field `name` of a body. content_type: application/x-www-form-urlencoded, or
 * multipart/form-data (curl -F).
 * Errors: TRP_ENOENT (no such field), TRP_EDATA (no form, the field twice, a NUL, no UTF-8),
 *         TRP_EMSGSIZE (its value is too long), TRP_EVERSION (another content type). */
trp_err trpi_management_form_get(const char *content_type, const uint8_t *body, size_t bytes,
                                 const char *name, char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX]);

/* Find the value of `name` in a query that is decoded already. Errors: TRP_ENOENT, TRP_EMSGSIZE,
 * TRP_EDATA (twice). */
trp_err trpi_management_query_get(const char *query, const char *name,
                                  char ret_value[TRPI_MANAGEMENT_FIELD_BYTES_MAX]);

#endif
