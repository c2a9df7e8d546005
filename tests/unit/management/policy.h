/* policy.h - what the suites of the management room share: settings of a server on loopback, and a
 * plain request. */
#ifndef TESTS_UNIT_MANAGEMENT_POLICY_H
#define TESTS_UNIT_MANAGEMENT_POLICY_H

#include <string.h>

#include "cluster/management/access.h"
#include "cluster/management/routes.h"
#include "tests/unit/unit.h"

#define WRITER_TOKEN "writer-0123456789abcdef0123456789abcdef"
#define READER_TOKEN "reader-0123456789abcdef0123456789abcdef"

static trpi_management_tokens policy_tokens;

/* Loopback, writes allowed, one token of each level. */
static inline trpi_management_policy
policy_make(void)
{
    trpi_management_policy policy = {
        .bound = "127.0.0.1", .is_local = true, .tokens = &policy_tokens, .request_ms = 10000
    };
    policy_tokens.count = 0;
    UNIT_EQUAL(trpi_management_tokens_add(&policy_tokens, WRITER_TOKEN, strlen(WRITER_TOKEN),
                                          TRPI_MANAGEMENT_WRITER),
               TRP_OK);
    UNIT_EQUAL(trpi_management_tokens_add(&policy_tokens, READER_TOKEN, strlen(READER_TOKEN),
                                          TRPI_MANAGEMENT_READER),
               TRP_OK);
    return policy;
}

static inline trpi_management_request
request_make(const char *method, const char *path)
{
    return (trpi_management_request){
        .method = method, .path = path, .query = "", .host = "127.0.0.1:8558"
    };
}

static inline void
request_form(trpi_management_request *request, const char *form)
{
    request->content_type = "application/x-www-form-urlencoded";
    request->body = (const uint8_t *)form;
    request->body_bytes = strlen(form);
}

#endif
