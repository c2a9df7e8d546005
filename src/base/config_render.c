/* config_render.c - a configuration as a file again; of no configuration at all, the reference.
 *
 * Why.     Defaults in the code, their documentation and the output of `config show --reference`
 *          are one table (keys.c of each room). This file writes it as text.
 * Shape.   Every key becomes an item, a list of elements: cluster / role "db" / min-nr-of-members.
 *          Items are written section by section, in the order of the table, then of the file. A row
 *          with a title that has no value is written as a comment: its section exists only for
 *          titles that the file names.
 * Must hold.
 *   config-render-I1  the text that is written reads back as the same configuration
 * Tests.   tests/unit/base/config_tree_test.c
 */
#include <stdio.h>
#include <string.h>

#include <troupe/config.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/config.h"
#include "base/config_store.h"

#define ELEMENTS_MAX 16                 /* a key of app has TRPI_CONFIG_APP_DEPTH_MAX and a few */
#define TEXT_LIMIT TRPI_BUFFER_NO_LIMIT /* about as long as the text that was read */
#define COLUMNS 88

_Static_assert(ELEMENTS_MAX >= TRPI_CONFIG_APP_DEPTH_MAX + 3, "subtree, app and the key itself");

typedef struct element {
    const char *text;
    size_t bytes;
    const char *title; /* NULL: none */
    size_t title_bytes;
} element;

typedef struct item {
    const char *key;
    const trpi_config_row *row;   /* NULL: none */
    const trpi_config_slot *slot; /* NULL: the default */
    element elements[ELEMENTS_MAX];
    size_t elements_count;
    bool is_done;
    bool is_example; /* of a row with a title */
} item;

typedef struct renderer {
    trpi_buffer out;
    trp_err err;
    unsigned flags;
    item *items;
    size_t count;
    bool in_example;
    size_t example_depth; /* where the section of the example stands */
} renderer;

/* ---- elements -------------------------------------------------------------------------------- */

static void
elements_split(item *it, const char *from, const char *to)
{
    while (from < to && it->elements_count < ELEMENTS_MAX) {
        element *e = &it->elements[it->elements_count++];
        const char *dot = memchr(from, '.', (size_t)(to - from));
        e->text = from;
        e->bytes = (size_t)((dot ? dot : to) - from);
        from = dot ? dot + 1 : to;
    }
}

/* Only the row shows where the title is: a title may have dots itself. */
static void
item_fill(item *it)
{
    const char *end = it->key + strlen(it->key);
    const char *star = it->row ? strchr(it->row->key, '*') : NULL;
    size_t before = star ? (size_t)(star - it->row->key) : 0;
    size_t after = star ? strlen(star + 1) : 0;
    const char *own = it->key;
    if (star && strncmp(own, it->row->key, before) != 0) {
        own = strchr(own, '.') ? strchr(own, '.') + 1 : own; /* behind the name of the subtree */
    }
    if (!star || strncmp(own, it->row->key, before) != 0 || (size_t)(end - own) < before + after) {
        elements_split(it, it->key, end);
        return;
    }
    elements_split(it, it->key, own + before - 1);
    element *last = &it->elements[it->elements_count - 1];
    last->title = own + before;
    last->title_bytes = (size_t)(end - own) - before - after;
    elements_split(it, end - after + 1, end);
}

static bool
element_equal(const element *a, const element *b)
{
    return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0 &&
           !a->title == !b->title && a->title_bytes == b->title_bytes &&
           (!a->title || memcmp(a->title, b->title, a->title_bytes) == 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
put_bytes(renderer *r, const char *text, size_t bytes)
{
    if (r->err == TRP_OK) {
        r->err = trpi_buffer_append(&r->out, text, bytes, TEXT_LIMIT);
    }
}

static void
put_text(renderer *r, const char *text)
{
    put_bytes(r, text, strlen(text));
}

static void
put_indent(renderer *r, size_t depth)
{
    for (size_t i = 0; i < depth; i++) {
        put_text(r, r->in_example && i == r->example_depth ? "# " : "");
        put_text(r, "    ");
    }
    put_text(r, r->in_example && depth == r->example_depth ? "# " : "");
}

static void
put_quoted(renderer *r, const char *text, size_t bytes)
{
    put_text(r, "\"");
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '\n') {
            put_text(r, "\\n");
            continue;
        }
        if (strchr("\"\\$", text[i])) {
            put_text(r, "\\");
        }
        put_bytes(r, text + i, 1);
    }
    put_text(r, "\"");
}

static void
put_value(renderer *r, const char *text)
{
    static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (*text && text[strspn(text, bare)] == '\0') {
        put_text(r, text);
    } else {
        put_quoted(r, text, strlen(text));
    }
}

/* The sentence, broken into lines. */
static void
put_doc(renderer *r, size_t depth, const char *doc)
{
    size_t room = COLUMNS - 4 * depth;
    while (*doc) {
        size_t bytes = strlen(doc);
        if (bytes > room) {
            for (bytes = room; bytes > 0 && doc[bytes] != ' '; bytes--) {
            }
            bytes = bytes ? bytes : room;
        }
        put_indent(r, depth);
        put_text(r, "# ");
        put_bytes(r, doc, bytes);
        put_text(r, "\n");
        doc += bytes;
        doc += *doc == ' ';
    }
}

static const char *
akka_name(const char *ours)
{
    for (const trpi_config_alias *alias = NULL; (alias = trpi_config_alias_next(alias)) != NULL;) {
        bool of_akka = strncmp(alias->akka, "tls.", 4) != 0; /* this alias is not Akka's */
        if (of_akka && strcmp(alias->ours, ours) == 0) {
            return alias->akka;
        }
    }
    return NULL;
}

static void
put_choices(renderer *r, const trpi_config_row *row, size_t depth)
{
    bool is_number = row->type == TRPI_CONFIG_INT || row->type == TRPI_CONFIG_SIZE;
    char text[512];
    size_t count = (size_t)snprintf(text, sizeof text, is_number ? "Or: " : "One of: ");
    for (const char *c = row->choices; *c && count + 4 < sizeof text; c++) {
        text[count++] = *c == '|' ? ',' : *c;
        if (*c == '|') {
            text[count++] = ' ';
        }
    }
    (void)snprintf(text + count, sizeof text - count, ".");
    put_doc(r, depth, text);
}

static void
put_item_docs(renderer *r, const item *it, size_t depth)
{
    if ((r->flags & TRP_CONFIG_RENDER_DOCS) && it->row) {
        const char *akka = akka_name(it->row->key);
        put_doc(r, depth, it->row->doc);
        if (it->row->choices) {
            put_choices(r, it->row, depth);
        }
        if (akka) {
            put_indent(r, depth);
            put_text(r, "# May also be written with its name in Akka, ");
            put_text(r, akka);
            put_text(r, ".\n");
        }
    }
}

static void
put_item(renderer *r, const item *it, size_t depth)
{
    const element *name = &it->elements[it->elements_count - 1];
    bool is_list = it->row ? it->row->type == TRPI_CONFIG_LIST : it->slot && it->slot->count != 1;
    put_item_docs(r, it, depth);
    put_indent(r, depth);
    put_bytes(r, name->text, name->bytes);
    put_text(r, " = ");
    if (is_list) {
        put_text(r, "{");
        for (size_t i = 0; it->slot && i < it->slot->count; i++) {
            put_text(r, i ? ", " : " ");
            put_value(r, it->slot->values[i]);
        }
        put_text(r, it->slot && it->slot->count ? " }" : "}");
    } else {
        put_value(r, it->slot ? it->slot->values[0] : it->row->initial);
    }
    if (r->flags & TRP_CONFIG_RENDER_ORIGINS) {
        put_text(r, " # ");
        put_text(r, it->slot ? it->slot->origin : "default");
    }
    put_text(r, "\n");
}

/* All items that share the first `depth` elements with items[first]. */
static void
put_section(renderer *r, size_t first, size_t depth)
{
    const item *model = &r->items[first];
    for (size_t i = first; i < r->count && r->err == TRP_OK; i++) {
        item *it = &r->items[i];
        bool inside = !it->is_done && it->elements_count > depth;
        for (size_t e = 0; inside && e < depth; e++) {
            inside = element_equal(&it->elements[e], &model->elements[e]);
        }
        if (!inside) {
            continue;
        }
        if (it->elements_count == depth + 1) {
            put_item(r, it, depth);
            it->is_done = true;
            continue;
        }
        const element *e = &it->elements[depth];
        bool was_example = r->in_example;
        put_text(r, depth == 0 ? "\n" : "");
        if (!was_example && e->title && it->is_example) {
            r->in_example = true;
            r->example_depth = depth;
        }
        put_indent(r, depth);
        put_bytes(r, e->text, e->bytes);
        if (e->title) {
            put_text(r, " ");
            put_quoted(r, e->title, e->title_bytes);
        }
        put_text(r, " {\n");
        put_section(r, i, depth + 1);
        put_indent(r, depth);
        put_text(r, "}\n");
        r->in_example = was_example;
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void
item_add(renderer *r, const char *key, const trpi_config_row *row, const trpi_config_slot *slot)
{
    item *it = &r->items[r->count++];
    it->key = key;
    it->row = row;
    it->slot = slot;
    it->is_example = !slot && strchr(key, '*') != NULL;
    item_fill(it);
}

/* Return whether the slot belongs to a row of the schema: not in a subtree, and not lifted. */
static bool
slot_is_placed(const trpi_config_slot *slot)
{
    return slot->row && trpi_config_row_find(slot->key) == slot->row;
}

static void
items_gather(renderer *r, const trp_config *config)
{
    size_t slots = config ? config->slots.count : 0;
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        bool any = false;
        for (size_t i = 0; i < slots; i++) {
            const trpi_config_slot *slot = &config->slots.slots[i];
            if (slot->row == row && slot_is_placed(slot)) {
                any = true;
                if (slot->layer != TRPI_CONFIG_DEFAULT || (r->flags & TRP_CONFIG_RENDER_DEFAULTS)) {
                    item_add(r, slot->key, row, slot);
                }
            }
        }
        if (!any && (r->flags & TRP_CONFIG_RENDER_DEFAULTS)) {
            item_add(r, row->key, row, NULL);
        }
    }
    for (size_t i = 0; i < slots; i++) {
        if (!slot_is_placed(&config->slots.slots[i])) {
            item_add(r, config->slots.slots[i].key, config->slots.slots[i].row,
                     &config->slots.slots[i]);
        }
    }
}

trp_err
trp_config_render(const trp_config *config, unsigned flags, char **ret_text)
{
    renderer r;
    size_t room = config ? config->slots.count : 0;
    if (!ret_text) {
        return TRP_EINVAL;
    }
    memset(&r, 0, sizeof r);
    r.flags = flags;
    for (const trpi_config_row *row = NULL; (row = trpi_config_row_next(row)) != NULL;) {
        room++;
    }
    r.items = trpi_alloc(room * sizeof *r.items);
    r.err = r.items ? TRP_OK : TRP_ENOMEM;
    if (r.items) {
        items_gather(&r, config);
        put_section(&r, 0, 0);
    }
    char *text = r.err == TRP_OK ? trpi_buffer_take_text(&r.out) : NULL;
    trpi_buffer_fini(&r.out);
    trpi_free(r.items);
    if (!text) {
        return TRP_ENOMEM;
    }
    *ret_text = text;
    return TRP_OK;
}

void
trp_config_text_free(char *text)
{
    trpi_free(text);
}
