/* producer_test.c - what is sent to an endpoint, and what comes back. */
#include <fcntl.h>

#include "tests/unit/endpoint/keeper.h"

static keeper k, other;

static void
send_files(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "one", "a.txt", 1);
    keeper_send(ctx, of, "no", "../a", 2);
    keeper_send(ctx, of, "no", ".a", 3);
    keeper_send(ctx, of, "no", "", 4);
    keeper_send(ctx, of, "two", "a.txt", 5);
}

/* CAM-05; scheme-file-D2 */
static void
files_are_written_and_answered(void)
{
    trp_system *system = stage_open();
    folder_make();
    keeper_init(&k, "f", true);
    snprintf(k.uri, sizeof k.uri, "file:%s", keeper_folder);
    keeper_start(system, &k);
    keeper_do(system, &k, send_files);
    STAGE_EXPECT("f:TRP_OK f:done(1) f:error(2,TRP_EINVAL) f:error(3,TRP_EINVAL) "
                 "f:error(4,TRP_EINVAL) f:done(5)");
    UNIT_TRUE(folder_is("a.txt", "two"));
    UNIT_FALSE(folder_has(".a.txt.part"));
    stage_close(system);
    folder_remove();
}

static void
send_nameless(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "x", NULL, 1);
    keeper_send(ctx, of, "y", NULL, 2);
}

/* CAM-01: what one endpoint produces another one consumes. */
static void
a_consumer_gets_what_a_producer_has_written(void)
{
    trp_system *system = stage_open();
    folder_make();
    keeper_init(&k, "p", true);
    snprintf(k.uri, sizeof k.uri, "file:%s", keeper_folder);
    k.options.oneway = 1;
    keeper_start(system, &k);
    keeper_init(&other, "c", false);
    snprintf(other.uri, sizeof other.uri, "file:%s?delay=5", keeper_folder);
    keeper_start(system, &other);
    keeper_do(system, &k, send_nameless);
    UNIT_WAIT(atomic_load(&other.got) == 2, 60000);
    UNIT_EQUAL(atomic_load(&k.done), 0); /* oneway */
    stage_close(system);
    folder_remove();
}

static void
send_word(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "b\na\n", NULL, 7);
}

/* CAM-05, CAM-08 */
static void
a_program_replies_with_its_output(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/usr/bin/sort?arg=-r&arg=-u");
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    STAGE_EXPECT("x:TRP_OK x:got(0,b\na\n,7)");
    stage_close(system);
}

static void
send_nothing(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "", NULL, 8);
}

/* The status is the reply's, whatever it is; a program that reads nothing is no error. */
static void
a_program_that_fails_says_its_status(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/sh?arg=-c&arg=echo%%20$0;exit%%203&arg=;rm");
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    keeper_do(system, &k, send_nothing);
    STAGE_EXPECT("x:TRP_OK x:got(3,;rm\n,7) x:got(3,;rm\n,8)");
    stage_close(system);
}

/* More than two pipes hold goes through, and one byte too many ends the program. */
static void
send_large(trp_ctx *ctx, keeper *of)
{
    static uint8_t data[1 << 20];
    trp_bytes body;
    memset(data, 'x', sizeof data);
    for (size_t bytes = sizeof data; bytes >= sizeof data - 1; bytes--) {
        UNIT_EQUAL(trp_bytes_copy(data, bytes, &body), TRP_OK);
        UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, body, NULL, 0, bytes), TRP_OK);
        trp_bytes_unref(&body);
    }
}

static bool
input_was_counted(void)
{
    return folder_is("1", "1048576\n") && folder_is("2", "1048575\n");
}

/* scheme-exec-X4 */
static void
a_program_that_ends_its_output_first_reads_on(void)
{
    trp_system *system = stage_open();
    folder_make();
    keeper_init(&k, "x", true);
    snprintf(
        k.uri, sizeof k.uri,
        "exec:/bin/sh?arg=-c&arg=cd%%20$0;exec%%20%%3E%%26-;n=1;%%20[%%20-e%%201%%20]%%20%%26%%26"
        "%%20n=2;%%20wc%%20-c%%20%%3E$n&arg=%s",
        keeper_folder);
    keeper_start(system, &k);
    keeper_do(system, &k, send_large);
    UNIT_WAIT(atomic_load(&k.got) == 2, 60000);
    UNIT_TRUE(input_was_counted());
    stage_close(system);
    folder_remove();
}

/* A descriptor that some library has opened without O_CLOEXEC is none of the program's. */
static void
a_program_inherits_no_descriptors(void)
{
    enum { KNOWN = 200 };
    int fd = fcntl(STDIN_FILENO, F_DUPFD, KNOWN);
    UNIT_REQUIRE(fd >= KNOWN);
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri,
             "exec:/bin/sh?arg=-c&arg=[%%20-e%%20/proc/$$/fd/%d%%20]%%20||%%20echo%%20none", fd);
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    STAGE_EXPECT("x:TRP_OK x:got(0,none\n,7)");
    stage_close(system);
    close(fd);
}

static void
output_is_kept_up_to_its_bound(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/sh?arg=-c&arg=cat;echo");
    keeper_start(system, &k);
    keeper_do(system, &k, send_large);
    UNIT_WAIT(stage_has("x:error(1048576,TRP_EMSGSIZE)") && atomic_load(&k.got) == 1, 60000);
    stage_close(system);
}

/* scheme-exec-X1 */
static void
a_program_is_ended_when_its_time_is_over(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/sh?arg=-c&arg=sleep%%201000%%20|%%20cat");
    k.options.timeout_ms = 50;
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    STAGE_EXPECT("x:TRP_OK x:error(7,TRP_ETIMEDOUT)");
    stage_close(system);
}

/* producer-P1: with programs that run and messages that wait the endpoint ends at once. */
static void
send_three(trp_ctx *ctx, keeper *of)
{
    keeper_send(ctx, of, "1", NULL, 1);
    keeper_send(ctx, of, "2", NULL, 2);
    keeper_send(ctx, of, "3", NULL, 3);
}

static void
what_waits_when_an_endpoint_ends_fails(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/sleep?arg=1000&parallel=2");
    k.options.pending_max = 1;
    keeper_start(system, &k);
    keeper_do(system, &k, send_three);
    keeper_do(system, &k, send_word); /* one waits already */
    UNIT_WAIT(stage_has("x:error(7,TRP_EAGAIN)"), 60000);
    UNIT_EQUAL(trp_system_graceful_stop(system, k.endpoint, 60000), TRP_OK);
    STAGE_EXPECT("x:TRP_OK x:error(7,TRP_EAGAIN) x:error(1,TRP_ECLOSED) x:error(2,TRP_ECLOSED) "
                 "x:error(3,TRP_ECLOSED) x:stopped(TRP_OK)");
    stage_close(system);
}

static trp_err
text_shout(void *arg, trp_bytes in, trp_bytes *ret_out)
{
    return trp_bytes_join(in, *(const trp_bytes *)arg, ret_out);
}

static trp_err
text_refuse(void *arg, trp_bytes in, trp_bytes *ret_out)
{
    (void)arg;
    (void)in;
    (void)ret_out;
    return TRP_EDATA;
}

/* CAM-05 */
static void
messages_are_transformed_both_ways(void)
{
    static trp_bytes mark = { NULL, (const uint8_t *)"!", 1, 0 };
    trp_system *system = stage_open();
    keeper_init(&other, "o", false);
    snprintf(other.uri, sizeof other.uri, "timer:none?delay=1000000");
    keeper_start(system, &other);
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/cat");
    k.options.outgoing = k.options.incoming = text_shout;
    k.options.transform_arg = &mark;
    k.options.handler = other.self; /* replies are routed to another actor */
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    UNIT_WAIT(stage_has("o:got(0,b\na\n!!,7)"), 60000);
    stage_close(system);

    system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/cat");
    k.options.outgoing = text_refuse;
    keeper_start(system, &k);
    keeper_do(system, &k, send_word);
    STAGE_EXPECT("x:TRP_OK x:error(7,TRP_EDATA)");
    stage_close(system);
}

static void
send_badly(trp_ctx *ctx, keeper *of)
{
    trp_endpoint_header headers[TRP_ENDPOINT_HEADERS_MAX + 1];
    char value[TRP_ENDPOINT_HEADER_BYTES_MAX + 2];
    trp_endpoint_options bad = of->options;
    trp_ref ref;
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        headers[i] = (trp_endpoint_header){ "name", "value" };
    }
    memset(value, 'v', sizeof value);
    value[sizeof value - 1] = '\0';
    UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, TRP_BYTES_EMPTY, headers,
                                 TRP_ENDPOINT_HEADERS_MAX + 1, 0),
               TRP_EINVAL);
    headers[0].value = value;
    UNIT_EQUAL(trp_endpoint_send(ctx, of->endpoint, TRP_BYTES_EMPTY, headers, 1, 0), TRP_EINVAL);
    headers[0].value = value + 1;
    UNIT_EQUAL(
        trp_endpoint_send(ctx, of->endpoint, TRP_BYTES_EMPTY, headers, TRP_ENDPOINT_HEADERS_MAX, 9),
        TRP_OK);
    bad.pending_max = TRP_ENDPOINT_PENDING_MAX + 1;
    UNIT_EQUAL(trp_producer_open(ctx, of->uri, &bad, &ref), TRP_EINVAL);
    bad = of->options;
    bad.oneway = 2;
    UNIT_EQUAL(trp_producer_open(ctx, of->uri, &bad, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_producer_open(ctx, NULL, &of->options, &ref), TRP_EINVAL);
    UNIT_EQUAL(trp_consumer_open(ctx, of->uri, &of->options, &ref), TRP_EUNSUPPORTED);
}

static void
options_and_headers_out_of_range_are_refused(void)
{
    trp_system *system = stage_open();
    keeper_init(&k, "x", true);
    snprintf(k.uri, sizeof k.uri, "exec:/bin/cat");
    keeper_start(system, &k);
    keeper_do(system, &k, send_badly);
    STAGE_EXPECT("x:TRP_OK x:got(0,,9)");
    stage_close(system);
}

UNIT_BEGIN("producer")
UNIT(files_are_written_and_answered)
UNIT(a_consumer_gets_what_a_producer_has_written)
UNIT(a_program_replies_with_its_output)
UNIT(a_program_that_fails_says_its_status)
UNIT(a_program_that_ends_its_output_first_reads_on)
UNIT(a_program_inherits_no_descriptors)
UNIT(output_is_kept_up_to_its_bound)
UNIT(a_program_is_ended_when_its_time_is_over)
UNIT(what_waits_when_an_endpoint_ends_fails)
UNIT(messages_are_transformed_both_ways)
UNIT(options_and_headers_out_of_range_are_refused)
UNIT_END
