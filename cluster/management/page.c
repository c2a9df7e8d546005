/* page.c - the files of the dashboard.
 *
 * Shape.   Files of HTML, CSS and JavaScript, embedded as they are (base/embed.h).
 * Tests.   tests/unit/management/sessions_test.c, tests/system/dashboard.sh
 */
#include "cluster/management/page.h"

#include <string.h>

#include "base/assert.h"
#include "base/embed.h"
#include "base/json.h"

#define TEXT(symbol, file) TRPI_EMBED(trpi_page_##symbol, "cluster/management/page/" file)

TEXT(html, "dashboard.html")
TEXT(css, "dashboard.css")
TEXT(live, "live.js")
TEXT(draw, "draw.js")
TEXT(ring, "ring.js")
TEXT(main, "main.js")
TEXT(icon, "icon.svg")

#define SCRIPT "text/javascript; charset=utf-8"

static const struct {
    const char *path, *type, *text;
} files[] = {
    { "/", "text/html; charset=utf-8", trpi_page_html },
    { "/dashboard", "text/html; charset=utf-8", trpi_page_html },
    { "/dashboard/dashboard.css", "text/css; charset=utf-8", trpi_page_css },
    { "/dashboard/live.js", SCRIPT, trpi_page_live },
    { "/dashboard/draw.js", SCRIPT, trpi_page_draw },
    { "/dashboard/ring.js", SCRIPT, trpi_page_ring },
    { "/dashboard/main.js", SCRIPT, trpi_page_main },
    { "/dashboard/icon.svg", "image/svg+xml", trpi_page_icon },
};
#define FILES_COUNT (sizeof files / sizeof files[0])

void
trpi_management_page_answer(const char *path, trpi_management_answer *ret_answer)
{
    size_t path_bytes = strlen(path);
    path_bytes -= path_bytes > 1 && path[path_bytes - 1] == '/' ? 1 : 0;
    for (size_t i = 0; i < FILES_COUNT; i++) {
        if (strlen(files[i].path) == path_bytes && memcmp(files[i].path, path, path_bytes) == 0) {
            size_t bytes = strlen(files[i].text) + 1;
            *ret_answer = (trpi_management_answer){ .status = 200,
                                                    .content_type = files[i].type,
                                                    .policy = TRPI_MANAGEMENT_PAGE_POLICY,
                                                    .body = cJSON_malloc(bytes) };
            if (ret_answer->body != NULL) {
                memcpy(ret_answer->body, files[i].text, bytes);
            }
            return;
        }
    }
    trpi_management_answer_error(ret_answer, 404, "not-found", "see /openapi.json");
}
