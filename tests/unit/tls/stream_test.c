/* stream_test.c - two sessions over two bounded pipes that take and give random amounts: nothing is
 * lost, nothing waits for ever, no bound is passed. A seed that is printed is played again by
 * putting it in the place of the row's. */
#include "tests/unit/tls/ends.h"

enum { PIPE_MAX = 40000, STALL_MAX = 20000, KEY_UPDATES_MAX = 20 };
enum { WRITE_MAX = 20000, NOISE = 65521 }; /* after so many bytes they come again */

typedef struct row {
    const char *name;
    size_t pipe;      /* bytes that each direction holds */
    size_t wire_max;  /* 0: as large as it may be */
    size_t bytes[2];  /* that each end writes: the client, the server */
    bool tls_1_2;     /* the server knows no other */
    bool key_updates; /* both ask for new keys at times, of the other end, too */
    uint64_t seed;
} row;

typedef struct way { /* one direction of the connection */
    uint8_t bytes[PIPE_MAX];
    size_t count, max;
} way;

typedef struct side {
    end e;
    way *in, *out;
    size_t to_write, written, read, to_read;
    int full; /* the calls of write() that found `wire` full */
    int key_updates;
    bool closed, ended;
} side;

static uint64_t state;

static size_t
drawn(size_t below)
{
    state = trpi_hash_u64(state + 1);
    return below == 0 ? 0 : (size_t)(state >> 8) % below;
}

/* An end writes these bytes from this place on: WRITE_MAX of them at least. */
static const uint8_t *
bytes_at(const side *writer, size_t at)
{
    static uint8_t noise[NOISE + WRITE_MAX];
    for (size_t i = 0; noise[0] == 0 && i < sizeof noise; i++) {
        size_t place = sizeof noise - 1 - i; /* the first one is the last that is made */
        noise[place] = (uint8_t)(trpi_hash_u64(place % NOISE) | (place % NOISE == 0));
    }
    return noise + (at + writer->to_write) % NOISE;
}

/* Take some bytes of the pipe into the session; read what they say. Returns the bytes moved. */
static size_t
side_read(side *self, const side *other)
{
    uint8_t out[6000], copy[PIPE_MAX]; /* on the heap's edge for the sanitizer: exact sizes */
    size_t given = drawn(self->in->count + 1), got = 0, unread;
    memcpy(copy, self->in->bytes, given);
    trpi_tls_session_input(self->e.session, copy, given);
    trpi_tls_result result = trpi_tls_session_handshake(self->e.session, &self->e.wire);
    if (result == TRPI_TLS_OK) {
        result =
            trpi_tls_session_read(self->e.session, out, 1 + drawn(sizeof out), &got, &self->e.wire);
        UNIT_TRUE(self->e.wire.count <= self->e.session->wire_max);
        self->ended = self->ended || result == TRPI_TLS_ENDED;
    }
    unread = trpi_tls_session_input_end(self->e.session);
    UNIT_TRUE(memcmp(out, bytes_at(other, self->read), got) == 0);
    UNIT_TRUE(result != TRPI_TLS_FAILED);
    self->read += got;
    size_t used = given - unread;
    memmove(self->in->bytes, self->in->bytes + used, self->in->count - used);
    self->in->count -= used;
    return used + got;
}

static size_t
side_write(side *self)
{
    uint8_t in[WRITE_MAX];
    if (self->closed) {
        return 0;
    }
    size_t rest = self->to_write - self->written, done = 0;
    size_t count = drawn((rest < sizeof in ? rest : sizeof in) + 1);
    memcpy(in, bytes_at(self, self->written), count);
    trpi_tls_result result =
        trpi_tls_session_write(self->e.session, in, count, &done, &self->e.wire);
    UNIT_TRUE(result == TRPI_TLS_OK || result == TRPI_TLS_FULL || result == TRPI_TLS_MORE);
    UNIT_TRUE(result != TRPI_TLS_OK || done == count);
    UNIT_TRUE(result == TRPI_TLS_MORE || self->e.wire.count <= self->e.session->wire_max);
    self->full += result == TRPI_TLS_FULL;
    self->written += done;
    if (self->written == self->to_write && !self->closed && result != TRPI_TLS_MORE) {
        result = trpi_tls_session_close(self->e.session, &self->e.wire);
        UNIT_TRUE(result == TRPI_TLS_OK || result == TRPI_TLS_FULL);
        self->closed = result == TRPI_TLS_OK;
        done += self->closed;
    }
    return done;
}

static size_t
side_send(side *self)
{
    size_t room = self->out->max - self->out->count, count = self->e.wire.count;
    count = drawn((count < room ? count : room) + 1);
    if (count == 0) {
        return 0;
    }
    memcpy(self->out->bytes + self->out->count, self->e.wire.data, count);
    self->out->count += count;
    trpi_buffer_drop(&self->e.wire, count);
    return count;
}

static void
side_key_update(side *self)
{
    if (self->e.session->open && !self->closed && self->key_updates < KEY_UPDATES_MAX &&
        SSL_is_init_finished(self->e.session->ssl) && drawn(30) == 0) {
        self->key_updates++;
        UNIT_EQUAL(SSL_key_update(self->e.session->ssl, drawn(2) == 0
                                                            ? SSL_KEY_UPDATE_REQUESTED
                                                            : SSL_KEY_UPDATE_NOT_REQUESTED),
                   1);
    }
}

static bool
side_is_done(const side *self)
{
    return self->closed && self->ended && self->e.wire.count == 0;
}

/* Write at both ends until nothing moves any more: pipes, wires, everything is full. */
static void
fill(side sides[2])
{
    size_t moved;
    int still = 0;
    while (still < 200) {
        moved = side_write(&sides[0]) + side_write(&sides[1]) + side_send(&sides[0]) +
                side_send(&sides[1]);
        still = moved > 0 ? 0 : still + 1;
    }
    UNIT_TRUE(sides[0].full > 0 && sides[1].full > 0);
    UNIT_EQUAL(sides[0].out->count, sides[0].out->max);
    UNIT_EQUAL(sides[1].out->count, sides[1].out->max);
}

static void
play(const ends_files *f, const row *r, const trpi_tls_options *client,
     const trpi_tls_options *server)
{
    static way ways[2];
    side sides[2] = { { .in = &ways[1], .out = &ways[0], .to_write = r->bytes[0] },
                      { .in = &ways[0], .out = &ways[1], .to_write = r->bytes[1] } };
    int still = 0;
    bool filled = false;
    size_t least = r->bytes[0] < r->bytes[1] ? r->bytes[0] : r->bytes[1];
    bool fills = r->wire_max != 0 && least >= 2 * (r->pipe + r->wire_max);
    ways[0].count = ways[1].count = 0;
    ways[0].max = ways[1].max = r->pipe;
    end_start(&sides[0].e, f, client, "echo.example", r->wire_max);
    end_start(&sides[1].e, f, server, NULL, r->wire_max);
    if (r->tls_1_2) {
        UNIT_EQUAL(SSL_set_max_proto_version(sides[1].e.session->ssl, TLS1_2_VERSION), 1);
    }
    state = r->seed;
    unsigned failures = unit_failures();
    while (!(side_is_done(&sides[0]) && side_is_done(&sides[1])) && still < STALL_MAX &&
           unit_failures() == failures) {
        side *self = &sides[drawn(2)];
        const side *other = self == &sides[0] ? &sides[1] : &sides[0];
        if (!filled && sides[0].e.session->open && sides[1].e.session->open && sides[0].read > 0 &&
            sides[1].read > 0 && fills) {
            fill(sides);
            filled = true;
        }
        size_t moved = 0;
        switch (drawn(3)) {
        case 0:
            moved = side_read(self, other);
            break;
        case 1:
            moved = side_write(self);
            break;
        default:
            moved = side_send(self);
            break;
        }
        if (r->key_updates) {
            side_key_update(self);
        }
        still = moved > 0 ? 0 : still + 1;
    }
    bool fits = UNIT_TRUE(still < STALL_MAX); /* or both wait for each other */
    fits = UNIT_EQUAL(sides[0].read, r->bytes[1]) && fits;
    fits = UNIT_EQUAL(sides[1].read, r->bytes[0]) && fits;
    fits = UNIT_EQUAL(filled, fills) && fits;
    fits = UNIT_EQUAL(trpi_tls_session_end(sides[0].e.session), TRPI_TLS_ENDED) && fits;
    fits = UNIT_EQUAL(trpi_tls_session_end(sides[1].e.session), TRPI_TLS_ENDED) && fits;
    if (!fits || unit_failures() != failures) {
        printf("  row \"%s\", seed %llu\n", r->name, (unsigned long long)r->seed);
    }
    end_stop(&sides[0].e);
    end_stop(&sides[1].e);
}

static void
both_directions_blocked_lose_nothing_and_go_on(void)
{
    static const row rows[] = {
        { "one byte at a time", 1, 2048, { 5000, 6000 }, false, false, 1 },
        { "small", 900, 2048, { 60000, 50000 }, false, false, 2 },
        { "small, key updates", 900, 2048, { 60000, 50000 }, false, true, 3 },
        { "small, TLS 1.2", 900, 2048, { 60000, 50000 }, true, false, 4 },
        { "a record and a half", 25000, 24000, { 300000, 250000 }, false, true, 5 },
        { "large", PIPE_MAX, 0, { 400000, 300000 }, false, true, 6 },
        { "one end writes little", 3000, 4096, { 5000, 200000 }, false, true, 7 },
        { "nothing is written back", PIPE_MAX, 0, { 0, 100000 }, false, false, 8 },
    };
    ends_files f;
    ends_files_start(&f);
    trpi_tls_options client = ends_client(&f), server = ends_server(&f);
    client.cert = ends_path(&f, "client.pem");
    client.key = ends_path(&f, "client.key");
    client.version_min = server.version_min = TRPI_TLS_1_2;
    server.peer = TRPI_TLS_PEER_REQUIRED;
    server.ca = ends_path(&f, "ca.pem");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint64_t k = 0; k < 3; k++) {
            row r = rows[i];
            r.seed += 100 * k;
            play(&f, &r, &client, &server);
        }
    }
    pki_end(&f.pki);
}

UNIT_BEGIN("stream")
UNIT(both_directions_blocked_lose_nothing_and_go_on)
UNIT_END
