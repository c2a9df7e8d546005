/* payload_test.c - messages of variable length: types, builders, accessors, what is checked. */
#include <stdlib.h>

#include <troupe/actor.h>
#include <troupe/payload.h>

#include "base/alloc.h"
#include "base/payload.h"
#include "tests/unit/unit.h"

#define PT_POINT(F, S) F(S, i32, x) F(S, i32, y)
#define PT_TAG(F, S) F(S, text, name) F(S, bytes, data)
#define PT_FIXED(F, S) F(S, struct(pt_point), from) F(S, u64, n)
#define PT_LINE(F, S) F(S, bool, last) F(S, text, text) F(S, array(struct(pt_tag)), tags)
#define PT_ALL(F, S)                                                                               \
    F(S, u32, number)                                                                              \
    F(S, text, title)                                                                              \
    F(S, bytes, blob)                                                                              \
    F(S, struct(pt_point), at)                                                                     \
    F(S, struct(pt_tag), tag)                                                                      \
    F(S, array(i64), values)                                                                       \
    F(S, array(text), names)                                                                       \
    F(S, array(struct(pt_line)), lines) F(S, array(ref), refs) F(S, array(text32), fixed)
#define PT_WHO(F, S) F(S, ref, who)
#define PT_KNOWN(F, S) F(S, array(ref), refs) F(S, array(struct(pt_who)), others)
#define PT_MESSAGES(M, P)                                                                          \
    M(P, fixed, PT_FIXED) M(P, line, PT_LINE) M(P, all, PT_ALL) M(P, known, PT_KNOWN)
TRP_STRUCT(pt, point, PT_POINT)
TRP_STRUCT(pt, who, PT_WHO)
TRP_STRUCT(pt, tag, PT_TAG)
TRP_PROTOCOL(pt, PT_MESSAGES)

/* A message over a payload, as a receiver has it. */
static trp_msg *
message_of(const trp_type *type, const void *payload, size_t bytes)
{
    trp_msg *msg;
    void *place;
    UNIT_REQUIRE(trp_protocol_register(&pt_protocol) == TRP_OK);
    UNIT_EQUAL(trp_msg_new(type, bytes, &msg, &place), TRP_OK);
    memcpy(place, payload, bytes);
    return msg;
}

static void
all_fill(trp_builder *b, pt_all *all, uint32_t lines)
{
    char text[64];
    all->number = 7;
    all->at = (pt_point){ -1, 2 };
    trp_build_text(b, &all->title, "title");
    trp_build_bytes(b, &all->blob, "\0\1\2", 3);
    trp_build_text(b, &all->tag.name, "tag");
    int64_t *values = TRP_BUILD_ARRAY(b, &all->values, 3);
    for (int i = 0; i < 3; i++) {
        values[i] = INT64_MIN + i;
    }
    trp_field_text *names = TRP_BUILD_ARRAY(b, &all->names, 2);
    trp_build_text(b, &names[0], "first");
    trp_build_text_n(b, &names[1], "second and more", 6);
    pt_line *line = TRP_BUILD_ARRAY(b, &all->lines, lines);
    for (uint32_t i = 0; i < lines; i++) {
        (void)snprintf(text, sizeof text, "line %u", i);
        trp_build_text(b, &line[i].text, text);
        line[i].last = i + 1 == lines;
        pt_tag *tag = TRP_BUILD_ARRAY(b, &line[i].tags, 1);
        trp_build_bytes(b, &tag->data, &i, sizeof i);
    }
    trp_ref *refs = TRP_BUILD_ARRAY(b, &all->refs, 1);
    refs[0] = (trp_ref){ 1, 2, 3, 0 };
    trp_field_text32 *fixed = TRP_BUILD_ARRAY(b, &all->fixed, 1);
    (void)snprintf(fixed[0], sizeof fixed[0], "fixed");
}

static void
all_check(const trp_msg *msg, uint32_t lines)
{
    const pt_all *all = trp_msg_payload(msg);
    size_t count = 0, bytes = 0;
    char text[64];
    UNIT_EQUAL(all->number, 7);
    UNIT_EQUAL(all->at.y, 2);
    UNIT_TEXT(trp_msg_text(msg, all->title, &bytes), "title");
    UNIT_EQUAL(bytes, 5);
    UNIT_TRUE(memcmp(trp_msg_data(msg, all->blob, &bytes), "\0\1\2", 3) == 0 && bytes == 3);
    UNIT_TEXT(trp_msg_text(msg, all->tag.name, NULL), "tag");
    UNIT_TRUE(trp_msg_data(msg, all->tag.data, &bytes) == NULL && bytes == 0);
    const int64_t *values = TRP_MSG_ARRAY(msg, all->values, &count);
    UNIT_REQUIRE(count == 3);
    UNIT_EQUAL(values[2], INT64_MIN + 2);
    const trp_field_text *names = TRP_MSG_ARRAY(msg, all->names, &count);
    UNIT_REQUIRE(count == 2);
    UNIT_TEXT(trp_msg_text(msg, names[0], NULL), "first");
    UNIT_TEXT(trp_msg_text(msg, names[1], NULL), "second");
    const pt_line *line = TRP_MSG_ARRAY(msg, all->lines, &count);
    UNIT_REQUIRE(count == lines);
    for (uint32_t i = 0; i < lines; i++) {
        (void)snprintf(text, sizeof text, "line %u", i);
        UNIT_TEXT(trp_msg_text(msg, line[i].text, NULL), text);
        UNIT_EQUAL(line[i].last, i + 1 == lines);
        const pt_tag *tag = TRP_MSG_ARRAY(msg, line[i].tags, &count);
        UNIT_REQUIRE(count == 1);
        const void *data = trp_msg_data(msg, tag->data, &bytes);
        UNIT_TRUE(bytes == sizeof i && memcmp(data, &i, sizeof i) == 0);
    }
    const trp_ref *refs = TRP_MSG_ARRAY(msg, all->refs, &count);
    UNIT_TRUE(count == 1 && refs[0].slot == 2);
    const trp_field_text32 *fixed = TRP_MSG_ARRAY(msg, all->fixed, &count);
    UNIT_REQUIRE(count == 1);
    UNIT_TEXT(fixed[0], "fixed");
}

static void
what_a_builder_wrote_is_read_in_place(void)
{
    /* within the builder, over one chunk of the heap, over several */
    static const uint32_t lines[] = { 0, 1, 20, 3000 };
    UNIT_EQUAL(trp_protocol_register(&pt_protocol), TRP_OK);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        trp_builder b;
        pt_all *all = TRP_BUILD(&b, pt_all);
        all_fill(&b, all, lines[i]);
        UNIT_EQUAL(trp_build_err(&b), TRP_OK);
        size_t bytes = trp_built_bytes(&b);
        const void *payload = trp_built(&b);
        UNIT_EQUAL(trpi_payload_check(&pt_all_type, payload, bytes), TRP_OK);
        trp_msg *msg = message_of(&pt_all_type, payload, bytes);
        trp_build_free(&b);
        all_check(msg, lines[i]);
        trp_msg_free(msg);
    }
}

/* The same calls make the same bytes, whatever was on the stack: none of it leaks into a
 * message. */
static void
no_byte_of_a_block_is_left_to_chance(void)
{
    trp_builder b[2];
    for (int i = 0; i < 2; i++) {
        memset(&b[i], 0x55 + i, sizeof b[i]);
        all_fill(&b[i], TRP_BUILD(&b[i], pt_all), 40);
    }
    UNIT_REQUIRE(trp_built_bytes(&b[0]) == trp_built_bytes(&b[1]));
    UNIT_TRUE(memcmp(trp_built(&b[0]), trp_built(&b[1]), trp_built_bytes(&b[0])) == 0);
    trp_build_free(&b[0]);
    trp_build_free(&b[1]);
}

static void
a_type_varies_if_a_field_does(void)
{
    UNIT_EQUAL(pt_fixed_type.flags & TRP_TYPE_VARIABLE, 0);
    UNIT_EQUAL(pt_fixed_type.bytes, sizeof(pt_fixed));
    UNIT_EQUAL(pt_line_type.flags & TRP_TYPE_VARIABLE, TRP_TYPE_VARIABLE);
    UNIT_EQUAL(pt_all_type.bytes, sizeof(pt_all));
    UNIT_EQUAL(pt_point_varies, 0);
    UNIT_EQUAL(pt_tag_varies, 1);
}

static void
a_builder_keeps_its_first_error(void)
{
    trp_builder b;
    pt_line *line = TRP_BUILD(&b, pt_line);
    trp_build_text_n(&b, &line->text, "a\0b", 3);
    UNIT_EQUAL(trp_build_err(&b), TRP_EDATA);
    trp_build_text(&b, &line->text, "ok");
    UNIT_TRUE(trp_built(&b) == NULL);
    UNIT_EQUAL(trp_built_bytes(&b), 0);
    UNIT_EQUAL(trp_build_err(&b), TRP_EDATA);
    trp_build_free(&b);

    /* nothing is added to what was taken */
    line = TRP_BUILD(&b, pt_line);
    UNIT_TRUE(TRP_BUILD_ARRAY(&b, &line->tags, 100) != NULL);
    UNIT_TRUE(trp_built(&b) != NULL);
    trp_build_text(&b, &line->text, "late");
    UNIT_EQUAL(trp_build_err(&b), TRP_EINVAL);
    UNIT_TRUE(trp_built(&b) == NULL && trp_built_bytes(&b) == 0);
    trp_build_free(&b);
}

static void
a_block_has_at_most_payload_bytes_max(void)
{
    char *text = malloc(TRP_PAYLOAD_BYTES_MAX + 1u);
    UNIT_REQUIRE(text != NULL);
    memset(text, 'x', TRP_PAYLOAD_BYTES_MAX);
    for (uint32_t more = 0; more < 2; more++) {
        trp_builder b;
        pt_line *line = TRP_BUILD(&b, pt_line);
        /* the struct, rounded up to 16, then the text and its NUL */
        size_t struct_bytes = (sizeof *line + 15) / 16 * 16;
        trp_build_text_n(&b, &line->text, text, TRP_PAYLOAD_BYTES_MAX - struct_bytes - 1 + more);
        UNIT_EQUAL(trp_build_err(&b), more == 0 ? TRP_OK : TRP_EMSGSIZE);
        UNIT_EQUAL(trp_built_bytes(&b), more == 0 ? TRP_PAYLOAD_BYTES_MAX : 0);
        trp_build_free(&b);
        line = TRP_BUILD(&b, pt_line);
        UNIT_TRUE(TRP_BUILD_ARRAY(&b, &line->tags, SIZE_MAX / 2) == NULL);
        UNIT_EQUAL(trp_build_err(&b), TRP_EMSGSIZE);
        trp_build_free(&b);
    }
    free(text);
}

static void
a_builder_without_memory_says_so(void)
{
    trp_builder b;
    pt_line *line = TRP_BUILD(&b, pt_line);
    trpi_alloc_fail_here_after(0);
    UNIT_TRUE(TRP_BUILD_ARRAY(&b, &line->tags, 100) == NULL);
    trpi_alloc_fail_here_after(-1);
    UNIT_EQUAL(trp_build_err(&b), TRP_ENOMEM);
    trp_build_free(&b);
    line = TRP_BUILD(&b, pt_line);
    UNIT_TRUE(TRP_BUILD_ARRAY(&b, &line->tags, 100) != NULL);
    trpi_alloc_fail_here_after(0); /* when the two pieces are put together */
    UNIT_EQUAL(trp_built_bytes(&b), 0);
    trpi_alloc_fail_here_after(-1);
    UNIT_TRUE(trp_built(&b) == NULL);
    UNIT_EQUAL(trp_build_err(&b), TRP_ENOMEM);
    trp_build_free(&b);
}

/* ---- blocks made by hand --------------------------------------------------------------------- */

typedef struct hand {
    pt_line line;
    char rest[64];
} hand;

/* A bad block can be told, reads as empty, and is refused where it is checked as a whole. */
static void
check_line(const char *what, hand *h, size_t bytes, bool good, const char *text)
{
    trp_msg *msg = message_of(&pt_line_type, h, bytes);
    const pt_line *line = trp_msg_payload(msg);
    size_t count = 99, length = 99;
    if ((trpi_payload_check(&pt_line_type, line, bytes) == TRP_OK) != good ||
        strcmp(trp_msg_text(msg, line->text, &length), text) != 0 || length < strlen(text)) {
        printf("  %s\n", what);
        UNIT_TRUE(false);
    }
    (void)TRP_MSG_ARRAY(msg, line->tags, &count);
    UNIT_TRUE(count != 99);
    trp_msg_free(msg);
}

static hand
hand_make(void)
{
    hand h;
    memset(&h, 0, sizeof h);
    memcpy(h.rest, "hello", 6);
    h.line.text = (trp_field_text){ sizeof(pt_line), 5 };
    return h;
}

static void
a_text_that_leads_out_of_its_payload_is_empty(void)
{
    size_t bytes = sizeof(pt_line) + 6;
    hand h = hand_make();
    check_line("good", &h, bytes, true, "hello");
    check_line("its NUL is cut", &h, bytes - 1, false, "");
    h.line.text.bytes = 4;
    check_line("no NUL behind", &h, bytes, false, "");
    h.line.text.bytes = UINT32_MAX;
    check_line("length", &h, bytes, false, "");
    h = hand_make();
    h.line.text.at = UINT32_MAX - 2;
    check_line("offset", &h, bytes, false, "");
    h = hand_make();
    h.line.text.at = (uint32_t)bytes;
    check_line("behind the end", &h, bytes, false, "");
    h = hand_make();
    h.rest[2] = 0;
    check_line("NUL inside", &h, bytes, false, "he");
}

static void
an_array_that_leads_out_of_its_payload_is_empty(void)
{
    static const struct {
        uint32_t at, count;
        bool good;
    } cases[] = { { sizeof(pt_line), 2, true },
                  { sizeof(pt_line), 3, true },
                  { sizeof(pt_line), 4, true },
                  { sizeof(pt_line), 5, false },
                  { sizeof(pt_line) + 8, 4, false },
                  { sizeof(pt_line) + 4, 1, false }, /* not aligned */
                  { sizeof(pt_line), UINT32_MAX, false },
                  { UINT32_MAX - 7, 1, false },
                  { 0, 0, true } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hand h;
        size_t count = 99;
        memset(&h, 0, sizeof h);
        h.line.tags.array = (trp_array){ cases[i].at, cases[i].count };
        trp_msg *msg = message_of(&pt_line_type, &h, sizeof h);
        const pt_line *line = trp_msg_payload(msg);
        const pt_tag *tags = TRP_MSG_ARRAY(msg, line->tags, &count);
        UNIT_EQUAL(count, cases[i].good ? cases[i].count : 0);
        UNIT_TRUE((tags != NULL) == (count != 0));
        UNIT_EQUAL(trpi_payload_check(&pt_line_type, line, sizeof h),
                   cases[i].good ? TRP_OK : TRP_EDATA);
        trp_msg_free(msg);
    }
    UNIT_EQUAL(sizeof(pt_tag), 16);
}

/* A few bytes must not name one long text again and again: that would be sent as often. */
static void
slices_do_not_add_up_to_more_than_the_block(void)
{
    hand h = hand_make();
    pt_tag tag = { { sizeof(pt_line), 5 }, { 0, 0 } };
    UNIT_EQUAL(sizeof tag, 16);
    memcpy(h.rest + 16, &tag, sizeof tag);
    h.line.tags.array = (trp_array){ sizeof(pt_line) + 16, 1 };
    UNIT_EQUAL(trpi_payload_check(&pt_line_type, &h, sizeof h), TRP_OK);
    h.line.text.bytes = 5;
    for (int i = 0; i < 3; i++) { /* the tags name the same text: 4 * 6 bytes and 48 of elements */
        memcpy(h.rest + 16 + 16 * i, &tag, sizeof tag);
    }
    h.line.tags.array.count = 3;
    UNIT_EQUAL(trpi_payload_check(&pt_line_type, &h, sizeof h), TRP_EDATA);
}

typedef struct writing {
    uint8_t *from, *to; /* where refs may stand */
    uint32_t calls;
} writing;

static trp_err
ref_write(void *arg, uint8_t *ref)
{
    static const trp_ref other = { 1u << 20, 1000, 1, 0 };
    writing *w = arg;
    w->calls++;
    if (ref < w->from || ref + sizeof other > w->to) {
        return TRP_ESTATE; /* old bytes of somebody else */
    }
    memcpy(ref, &other, sizeof other);
    return TRP_OK;
}

/* Restoring a block writes its refs; one of them may lie over the length of an array of the
 * block. */
static void
a_ref_that_is_written_over_a_slice_leads_nowhere(void)
{
    struct {
        pt_known known;
        uint8_t rest[64];
    } h;
    writing w = { (uint8_t *)&h, (uint8_t *)(&h + 1), 0 };
    memset(&h, 0, sizeof h);
    UNIT_REQUIRE(trp_protocol_register(&pt_protocol) == TRP_OK);
    h.known.refs.array = (trp_array){ offsetof(pt_known, others), 1 };
    h.known.others.array = (trp_array){ 32, 1 };
    UNIT_REQUIRE(trpi_payload_check(&pt_known_type, &h, sizeof h) == TRP_OK);
    UNIT_EQUAL(trpi_payload_refs(&pt_known_type, &h, sizeof h, ref_write, &w), TRP_EDATA);
    UNIT_EQUAL(w.calls, 1);
    h.known.refs.array.at = 48; /* each its own */
    h.known.others.array = (trp_array){ 32, 1 };
    UNIT_EQUAL(trpi_payload_refs(&pt_known_type, &h, sizeof h, ref_write, &w), TRP_OK);
    UNIT_EQUAL(w.calls, 3);
}

static void
a_payload_shorter_than_its_struct_is_no_message(void)
{
    trp_msg *msg = NULL;
    void *place = NULL;
    UNIT_REQUIRE(trp_protocol_register(&pt_protocol) == TRP_OK);
    UNIT_EQUAL(trp_msg_new(&pt_line_type, sizeof(pt_line) - 1, &msg, &place), TRP_EINVAL);
    UNIT_EQUAL(trp_msg_new(&pt_line_type, sizeof(pt_line), &msg, &place), TRP_OK);
    trp_msg_free(msg);
    UNIT_EQUAL(trpi_payload_check(&pt_line_type, &(pt_line){ 0 }, sizeof(pt_line) - 1), TRP_EDATA);
}

/* ---- types ----------------------------------------------------------------------------------- */

static trp_err
register_one(trp_type *type)
{
    static trp_type *types[32]; /* what is registered is borrowed for good */
    static trp_protocol protocols[32];
    static uint32_t count;
    UNIT_TRUE(count < 32);
    types[count] = type;
    protocols[count] = (trp_protocol){ "pt-odd", &types[count], 1 };
    return trp_protocol_register(&protocols[count++]);
}

static void
a_type_nests_at_most_nesting_max_structs(void)
{
    static trp_field fields[TRP_TYPE_NESTING_MAX + 1];
    static trp_type types[TRP_TYPE_NESTING_MAX + 1];
    static const char *const names[] = { "pt-odd.five", "pt-odd.four" };
    fields[0] = (trp_field){ "n", TRP_FIELD_i64, 0, NULL };
    for (int i = 0; i <= TRP_TYPE_NESTING_MAX; i++) {
        types[i] = (trp_type){ "pt-odd.part", 8, 0, 0, &fields[i], 1, 0 };
        if (i > 0) {
            fields[i] = (trp_field){ "part", TRP_FIELD_STRUCT, 0, &types[i - 1] };
        }
    }
    types[TRP_TYPE_NESTING_MAX].name = names[0];
    UNIT_EQUAL(register_one(&types[TRP_TYPE_NESTING_MAX]), TRP_ELIMIT);
    types[TRP_TYPE_NESTING_MAX - 1].name = names[1];
    UNIT_EQUAL(register_one(&types[TRP_TYPE_NESTING_MAX - 1]), TRP_OK);

    static trp_type itself = { "pt-odd.itself", 8, 0, TRP_TYPE_VARIABLE, NULL, 1, 0 };
    static trp_field own = { "more", TRP_FIELD_ARRAY | TRP_FIELD_STRUCT, 0, &itself };
    itself.fields = &own;
    UNIT_EQUAL(register_one(&itself), TRP_ELIMIT);
}

static void
a_field_that_is_not_within_its_type_is_refused(void)
{
    static const struct {
        trp_field field;
        uint16_t flags;
    } cases[] = {
        { { "n", TRP_FIELD_i64, 1, NULL }, 0 },
        { { "n", 99, 0, NULL }, 0 },
        { { "n", TRP_FIELD_text, 0, NULL }, 0 }, /* but it varies */
        { { "n", TRP_FIELD_i64, 0, NULL }, TRP_TYPE_VARIABLE },
        { { "n", TRP_FIELD_STRUCT, 0, NULL }, 0 },
        { { "n", TRP_FIELD_ARRAY | 99, 0, NULL }, TRP_TYPE_VARIABLE },
        { { NULL, TRP_FIELD_i64, 0, NULL }, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        trp_type type = { "pt-odd.bad", 8, 0, cases[i].flags, &cases[i].field, 1, 0 };
        UNIT_EQUAL(register_one(&type), TRP_EINVAL);
    }
}

static void
two_types_of_one_name_agree_in_their_structs_too(void)
{
    static const trp_field inner[2] = { { "x", TRP_FIELD_i32, 0, NULL },
                                        { "z", TRP_FIELD_i32, 4, NULL } };
    static const trp_type part = { "pt.point", 8, 0, 0, inner, 2, 0 };
    static trp_field fields[2];
    static trp_type other;
    UNIT_EQUAL(trp_protocol_register(&pt_protocol), TRP_OK);
    memcpy(fields, pt_fixed_type.fields, sizeof fields);
    other = pt_fixed_type;
    other.number = 0;
    other.fields = fields;
    UNIT_EQUAL(register_one(&other), TRP_OK);
    fields[0].of = &part; /* point has y */
    UNIT_EQUAL(register_one(&other), TRP_EEXIST);
}

UNIT_BEGIN("payload")
UNIT(what_a_builder_wrote_is_read_in_place)
UNIT(no_byte_of_a_block_is_left_to_chance)
UNIT(a_type_varies_if_a_field_does)
UNIT(a_builder_keeps_its_first_error)
UNIT(a_block_has_at_most_payload_bytes_max)
UNIT(a_builder_without_memory_says_so)
UNIT(a_text_that_leads_out_of_its_payload_is_empty)
UNIT(an_array_that_leads_out_of_its_payload_is_empty)
UNIT(slices_do_not_add_up_to_more_than_the_block)
UNIT(a_ref_that_is_written_over_a_slice_leads_nowhere)
UNIT(a_payload_shorter_than_its_struct_is_no_message)
UNIT(a_type_nests_at_most_nesting_max_structs)
UNIT(a_field_that_is_not_within_its_type_is_refused)
UNIT(two_types_of_one_name_agree_in_their_structs_too)
UNIT_END
