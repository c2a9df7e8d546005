/* scheme_http_server.c - http: and https: that are consumed from: each request is a message to the
 * handler, whose reply is the response.
 *
 * Shape.   request -> message -> trp_endpoint_reply() -> response
 *          acknowledged alone: 204; failed: 500; refused by `incoming`: 400; no word in time: 504
 * Must hold.
 *   scheme-http-W1  Each request that the thread has told is settled by one job.
 * Limits.  Those of web_http.c.
 * Tests.   tests/unit/endpoint/web_server_test.c
 * Sources. CAM-01, -02, -03, -04, -10
 */
#include <stdio.h>

#include "base/alloc.h"
#include "endpoint/endpoint.h"
#include "endpoint/web.h"

static trp_err
http_check(const trpi_uri *uri, char ret_reason[TRP_ENDPOINT_REASON_BYTES])
{
    trpi_web_settings settings;
    return trpi_web_settings_read(uri, false, &settings, ret_reason);
}

static trp_err
http_consume(trp_ctx *ctx, trpi_endpoint *e)
{
    trpi_web *web;
    trp_err err = trpi_web_open(ctx, e, TRPI_WEB_HTTP, &web);
    if (err == TRP_OK) {
        e->state = web;
        trpi_web_where(web, e->reason);
    }
    return err;
}

static void
web_stop(trp_ctx *ctx, trpi_endpoint *e)
{
    (void)ctx;
    trpi_web_close(e->state);
    e->state = NULL;
}

static bool
http_poll(trp_ctx *ctx, trpi_endpoint *e)
{
    return trpi_web_poll(ctx, e, e->state);
}

/* Write the response of a handler that has replied, or said that it is done or has failed. */
static trp_err
response_write(trpi_endpoint *e, trpi_web_job *job, trp_err err, const trpi_endpoint_send *reply)
{
    const char *status = err == TRP_OK          ? "204"
                         : err == TRP_ETIMEDOUT ? "504"
                         : err == TRP_EINVAL    ? "400"
                                                : "500";
    const trp_endpoint_header own = { "http.status", status };
    if (err == TRP_OK && reply != NULL) {
        job->body = trp_bytes_ref(reply->body);
        return trpi_web_head_write(reply->headers, reply->headers_count,
                                   trp_bytes_length(reply->body), &job->head, &job->bodiless,
                                   e->reason);
    }
    return trpi_web_head_write(&own, 1, 0, &job->head, &job->bodiless, e->reason);
}

/* scheme-http-W1 */
static trp_err
http_settle(trp_ctx *ctx, trpi_endpoint *e, uint64_t token, trp_err err,
            const trpi_endpoint_send *reply)
{
    char reason[TRP_ENDPOINT_REASON_BYTES];
    trpi_web_job *job = trpi_web_job_new(token);
    if (job == NULL) {
        trp_fail(ctx, TRP_ENOMEM, "no memory for a response");
    }
    job->answers = true;
    bool live = trpi_web_is_live(e->state, token);
    trp_err own = response_write(e, job, err, reply);
    if (own != TRP_OK) { /* the handler's word is none of HTTP */
        trp_bytes_unref(&job->body);
        trpi_buffer_clear(&job->head);
        (void)snprintf(reason, sizeof reason, "%s", e->reason);
        if (response_write(e, job, TRP_EFAILED, NULL) != TRP_OK) {
            trp_fail(ctx, TRP_ENOMEM, "no memory for a response");
        }
        (void)snprintf(e->reason, sizeof e->reason, "%s", reason);
    } else if (!live) {
        own = TRP_ECLOSED;
        (void)snprintf(e->reason, sizeof e->reason, "the client has closed the connection");
    }
    trpi_web_post(e->state, job);
    return own;
}

static const char *const http_options[] = { "connections", "headers", "idle",
                                            "prefix",      "header",  NULL };
static const char *const https_options[] = { "connections", "headers", "idle", "prefix", "header",
                                             "cert",        "key",     "ca",   NULL };
const trpi_scheme trpi_scheme_http_server = { .name = "http",
                                              .awaits = true,
                                              .consumer_options = http_options,
                                              .check = http_check,
                                              .consume = http_consume,
                                              .stop = web_stop,
                                              .poll = http_poll,
                                              .settle = http_settle };
const trpi_scheme trpi_scheme_https_server = { .name = "https",
                                               .awaits = true,
                                               .consumer_options = https_options,
                                               .check = http_check,
                                               .consume = http_consume,
                                               .stop = web_stop,
                                               .poll = http_poll,
                                               .settle = http_settle };
