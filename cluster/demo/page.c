/* page.c - the files of the page, embedded as they are.
 *
 * Tests.   tests/system/demo.sh
 */
#include "cluster/demo/page.h"

#include <string.h>

#include "base/embed.h"

#define TEXT(symbol, file) TRPI_EMBED(trpi_demo_page_##symbol, "cluster/" file)

TEXT(html, "demo/page/demo.html")
TEXT(css, "demo/page/demo.css")
TEXT(main, "demo/page/demo.js")
TEXT(draw, "demo/page/draw.js")
TEXT(icon, "management/page/icon.svg")

static const struct {
    const char *path, *type, *text;
} files[] = {
    { "/", "text/html; charset=utf-8", trpi_demo_page_html },
    { "/demo.css", "text/css; charset=utf-8", trpi_demo_page_css },
    { "/demo.js", "text/javascript; charset=utf-8", trpi_demo_page_main },
    { "/draw.js", "text/javascript; charset=utf-8", trpi_demo_page_draw },
    { "/icon.svg", "image/svg+xml", trpi_demo_page_icon },
};

bool
trpi_demo_page_get(const char *path, trpi_demo_answer *ret_answer)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(files[i].path, path) == 0) {
            trp_err err =
                trpi_buffer_append_text(&ret_answer->body, files[i].text, TRPI_BUFFER_NO_LIMIT);
            ret_answer->status = err == TRP_OK ? 200 : 500;
            ret_answer->type = files[i].type;
            return true;
        }
    }
    return false;
}
