/* config.c - two systems from one file, each with its part of it over what both share. */
#include <stdio.h>
#include <troupe/troupe.h>

static const char text[] = "app   { currency = EUR  fee = 250ms }\n"
                           "north { app { city = Oslo  currency = NOK } }\n"
                           "south { app { city = Rome } }\n";

static trp_err
teller_start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_config *config = trp_system_config(trp_ctx_system(ctx));
    const char *city = "?", *currency = "?";
    int64_t fee_ms = 0;
    (void)state;
    (void)args;
    trp_err err = trp_config_get_text(config, "app.city", &city, NULL);
    err = err ? err : trp_config_get_text(config, "app.currency", &currency, NULL);
    err = err ? err : trp_config_get_duration(config, "app.fee", &fee_ms, NULL);
    printf("%s: %s, %lld ms (%s)\n", city, currency, (long long)fee_ms,
           trp_config_origin(config, "app.currency"));
    trp_config_unref(config);
    trp_system_shutdown(trp_ctx_system(ctx));
    return err;
}
static trp_err
teller_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    (void)ctx, (void)state, (void)msg;
    return TRP_EUNHANDLED;
}
static const trp_behaviour teller = { sizeof teller, "teller", .receive = teller_receive,
                                      .pre_start = teller_start };

int
main(void)
{
    static const char *const names[] = { "north", "south" };
    trp_config *file, *part, *whole;
    trp_config_error error;
    if (trp_config_parse_text("bank.conf", text, &file, &error) != TRP_OK) {
        return fprintf(stderr, "%s\n", error.text), 78;
    }
    for (int i = 0; i < 2; i++) {
        trp_system_options options = TRP_SYSTEM_OPTIONS_INIT;
        trp_system *system;
        trp_ref ref;
        if (trp_config_get_subtree(file, names[i], &part) != TRP_OK ||
            trp_config_with_fallback(part, file, &whole) != TRP_OK ||
            (options.config = whole, trp_system_new(names[i], &options, &system)) != TRP_OK ||
            trp_system_spawn(system, &teller, NULL, &ref) != TRP_OK ||
            trp_system_await(system, 10000) != TRP_OK) {
            return 1;
        }
        trp_system_free(system);
        trp_config_unref(whole), trp_config_unref(part);
    }
    trp_config_unref(file);
    return 0;
}
