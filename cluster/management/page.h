/* page.h - the dashboard: the files of cluster/management/page, as they are served. */
#ifndef TRPI_MANAGEMENT_PAGE_H
#define TRPI_MANAGEMENT_PAGE_H

#include "cluster/management/request.h"

/* The rules that a browser keeps for the page: it loads nothing from elsewhere, runs no script that
 * stands in it, and is framed by nobody. */
#define TRPI_MANAGEMENT_PAGE_POLICY                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

/* Answer with the file of a path. path: "/", or "/dashboard" and what follows it in a route. */
void trpi_management_page_answer(const char *path, trpi_management_answer *ret_answer);

#endif
