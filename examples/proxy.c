/* proxy.c - a page over HTTP, and a proxy in front of it that changes what passes.
 *
 *     proxy          asks the proxy for the page itself, and ends
 *     proxy URI      serves at URI (http://127.0.0.1:8875/, https:...) until it is ended
 */
#include <stdio.h>
#include <string.h>
#include <troupe/troupe.h>

struct proxy {
    trp_ref page, front, back, client;
};
static const char *front_uri; /* NULL: any port, and one request of our own */

/* Of the proxy: change what comes from the page, before it is passed on. */
static trp_err
page_change(void *arg, trp_bytes in, trp_bytes *ret_out)
{
    char text[1024];
    size_t bytes = trp_bytes_copy_out(in, 0, text, sizeof text);
    (void)arg;
    if (bytes >= 7 && memcmp(text, "Welcome", 7) == 0) {
        memcpy(text, "WELCOME", 7);
    }
    return trp_bytes_copy(text, bytes, ret_out);
}

static trp_err
proxy_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    struct proxy *p = state;
    (void)args;
    return trp_consumer_open(ctx, "http://127.0.0.1:0/camel/welcome", NULL, &p->page);
}

/* An endpoint listens: open what stands before it. */
static trp_err
proxy_open_next(trp_ctx *ctx, struct proxy *p, const char *address)
{
    trp_endpoint_options change = TRP_ENDPOINT_OPTIONS_INIT;
    char uri[256];
    trp_bytes name;
    if (trp_ref_equal(trp_sender(ctx), p->page)) {
        const char *front = front_uri != NULL ? front_uri : "http://127.0.0.1:0/?prefix=1";
        snprintf(uri, sizeof uri, "http://%s/camel/welcome", address);
        change.incoming = page_change;
        trp_err err = trp_producer_open(ctx, uri, &change, &p->back);
        return err == TRP_OK ? trp_consumer_open(ctx, front, NULL, &p->front) : err;
    }
    if (!trp_ref_equal(trp_sender(ctx), p->front)) {
        return TRP_OK; /* a producer */
    }
    if (front_uri != NULL) {
        printf("the proxy listens at %s\n", address);
        fflush(stdout);
        return TRP_OK;
    }
    snprintf(uri, sizeof uri, "http://%s/", address);
    if (trp_producer_open(ctx, uri, NULL, &p->client) != TRP_OK) {
        return TRP_EFAILED;
    }
    trp_err err = trp_bytes_copy("Anke", 4, &name);
    if (err == TRP_OK) {
        err = trp_endpoint_send(ctx, p->client, name, NULL, 0, 0);
        trp_bytes_unref(&name);
    }
    return err;
}

static trp_err
page_reply(trp_ctx *ctx, const struct proxy *p, const trp_endpoint_message *m)
{
    const trp_endpoint_header type = { "content-type", "text/plain" };
    char name[200], text[256];
    trp_bytes body;
    int length = (int)trp_bytes_copy_out(m->body, 0, name, sizeof name);
    int bytes = snprintf(text, sizeof text, "Welcome - %.*s -\n", length, name);
    trp_err err = trp_bytes_copy(text, (size_t)bytes, &body);
    if (err == TRP_OK) {
        err = trp_endpoint_reply(ctx, p->page, m->exchange, body, &type, 1);
        trp_bytes_unref(&body);
    }
    return err;
}

static trp_err
proxy_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    struct proxy *p = state;
    const trp_endpoint_message *m = trp_endpoint_message_of(msg);
    trp_ref from = trp_sender(ctx);
    if (m != NULL && trp_ref_equal(from, p->page)) {
        return page_reply(ctx, p, m);
    } else if (m != NULL && trp_ref_equal(from, p->front)) { /* its number goes there and back */
        return trp_endpoint_send(ctx, p->back, m->body, NULL, 0, m->exchange);
    } else if (m != NULL && trp_ref_equal(from, p->back)) {
        return trp_endpoint_reply(ctx, p->front, m->ack, m->body, m->headers, m->headers_count);
    } else if (m != NULL) {
        printf("%.*s", (int)trp_bytes_length(m->body), (const char *)trp_bytes_flat(m->body));
        trp_system_shutdown(trp_ctx_system(ctx));
    } else if (trp_msg_is(msg, &trp_endpoint_event_type)) {
        const trp_endpoint_event *e = trp_msg_payload(msg);
        if (e->event == TRP_ENDPOINT_STARTED) {
            return proxy_open_next(ctx, p, e->reason);
        }
        fprintf(stderr, "an endpoint has ended: %s\n", e->reason);
    } else if (trp_msg_is(msg, &trp_endpoint_error_type)) {
        const trp_endpoint_error *e = trp_msg_payload(msg);
        trp_endpoint_fail(ctx, p->front, e->ack, e->reason); /* 500 */
    }
    return TRP_OK;
}

int
main(int argc, char **argv)
{
    trp_behaviour proxy = TRP_BEHAVIOUR_INIT("proxy", struct proxy, proxy_receive);
    trp_system *system;
    trp_ref ref;
    front_uri = argc > 1 ? argv[1] : NULL;
    if (trp_system_new("proxy", NULL, &system) != TRP_OK) {
        return 1;
    }
    proxy.pre_start = proxy_start;
    trp_err err = trp_system_spawn(system, &proxy, NULL, &ref);
    err = err == TRP_OK ? trp_system_await(system, front_uri != NULL ? 600000 : 20000) : err;
    trp_system_free(system);
    return err == TRP_OK ? 0 : 1;
}
