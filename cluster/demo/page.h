/* page.h - the files of the page of a demonstration. */
#ifndef TRPI_DEMO_PAGE_H
#define TRPI_DEMO_PAGE_H

#include "cluster/demo/http.h"

/* Answer with the file of a path. false: there is none. */
bool trpi_demo_page_get(const char *path, trpi_demo_answer *ret_answer);

#endif
