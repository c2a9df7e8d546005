/* endpoint.h - one transfer to a management API; shared by the files of --endpoint. */
#ifndef TRPI_CLI_ENDPOINT_H
#define TRPI_CLI_ENDPOINT_H

#ifdef HAVE_LIBCURL

#include "base/cookie_reader.h"
#include "base/curl.h"
#include "cluster/cli/cli.h"

typedef struct trpi_transfer {
    trpi_cli *cli;
    const trpi_curl *curl;
    CURL *easy;
    struct curl_slist *headers;
    trpi_buffer url, in;
    char *body; /* of an order; cJSON_free() */
    const char *base;
    size_t base_bytes; /* of base, without a slash at its end */
    bool is_tls, is_loopback, too_large;
    bool has_credential; /* of the command line, or the token of loopback */
    char cookie_file[TRPI_COOKIE_FILE_PATH_BYTES]; /* of which that token is made; "": not yet */
    char no_token[640];                            /* why there is none; "": it was not needed */
    char reason[CURL_ERROR_SIZE];
} trpi_transfer;

/* Check the target, load libcurl, add the credential. 0, or the exit code with the reason printed;
 * trpi_transfer_end() in any case. */
int trpi_transfer_begin(trpi_transfer *t, trpi_cli *cli);
void trpi_transfer_end(trpi_transfer *t);
/* Add a header, a value of the query (first: it is that), the options. false: out of memory, or
 * libcurl lacks something. */
bool trpi_transfer_header(trpi_transfer *t, const char *header);
bool trpi_transfer_query(trpi_transfer *t, const cJSON *item, bool first);
bool trpi_transfer_options(trpi_transfer *t);
/* Print why no answer has come; returns the exit code. */
int trpi_transfer_fail(trpi_transfer *t, CURLcode code);
/* Turn a refusal of the management API into one of the control protocol. NULL: out of memory. */
cJSON *trpi_transfer_refusal(const trpi_transfer *t, long status, const cJSON *answer);

#endif
#endif
