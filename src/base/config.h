/* config.h - the configuration of a node as one flat table of dotted keys.
 *
 * Why.    Flags, environment, file and built-in defaults set the same keys; each key has one type,
 *         one range and one sentence of documentation, and each value remembers where it came from.
 * Layers. --set and flags > TROUPE_* environment > file > defaults, whatever the order of loading.
 * Errors. Every mistake is refused with its place and, where there is one, the nearest right name.
 */
#ifndef TRPI_BASE_CONFIG_H
#define TRPI_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/config.h>

#define TRPI_CONFIG_KEY_BYTES_MAX 191            /* a dotted key, without the NUL */
#define TRPI_CONFIG_TEXT_BYTES_MAX 4095          /* one value as text, without the NUL */
#define TRPI_CONFIG_LIST_MAX 256                 /* values of a list */
#define TRPI_CONFIG_APP_KEYS_MAX 256             /* keys and sections below app { } */
#define TRPI_CONFIG_APP_DEPTH_MAX 8              /* sections inside one another below app { } */
#define TRPI_CONFIG_FILE_BYTES_MAX (1024 * 1024) /* of a file with all that it includes */
#define TRPI_CONFIG_INCLUDES_MAX 64              /* files of one reading, the first one counted */
#define TRPI_CONFIG_INCLUDE_DEPTH_MAX 8
#define TRPI_CONFIG_DEPLOYMENT_DEPTH_MAX 32 /* elements of deployment "/a/b/..." */
#define TRPI_CONFIG_SUBTREES_MAX 16         /* myapp1 { } beside the sections */
#define TRPI_CONFIG_TITLES_MAX 1024         /* deployment "..." { } and the like, of each kind */

typedef enum trpi_config_type {
    TRPI_CONFIG_TEXT = 1,
    TRPI_CONFIG_INT,
    TRPI_CONFIG_FLOAT,
    TRPI_CONFIG_DURATION, /* milliseconds; written with ms s m h d */
    TRPI_CONFIG_SIZE,     /* bytes; written with B KiB MiB GiB */
    TRPI_CONFIG_BOOL,     /* on off yes no true false */
    TRPI_CONFIG_CHOICE,   /* one word of `choices` */
    TRPI_CONFIG_LIST      /* of text */
} trpi_config_type;

typedef enum trpi_config_layer {
    TRPI_CONFIG_DEFAULT = 0,
    TRPI_CONFIG_FILE = 1,
    TRPI_CONFIG_ENV = 2,
    TRPI_CONFIG_FLAG = 3
} trpi_config_layer;

typedef struct trpi_config_row {
    const char *key; /* "*" as a whole element stands for a section title */
    trpi_config_type type;
    const char *initial; /* the default, as it would be written; "" with INT: none, reads as -1 */
    double min, max;     /* both 0: not checked; durations in ms, sizes in bytes */
    /* "a|b|c"; of INT and SIZE: "on|off", "unlimited", which read as max, min, max; of TEXT: usual
     * words, so that a misspelt one is refused; of LIST: the words that each value may be */
    const char *choices;
    const char *doc;
    bool is_secret; /* shown as "(secret)" */
} trpi_config_row;

/* A key that has another name in Akka may be written with Akka's name, too. */
typedef struct trpi_config_alias {
    const char *akka, *ours;
} trpi_config_alias;

/* The keys that a room contributes (config_keys.h). */
typedef struct trpi_config_part {
    const trpi_config_row *rows; /* in the order in which they are shown; NULL key at the end */
    size_t count;
    const trpi_config_alias *aliases; /* NULL akka at the end; NULL: none */
} trpi_config_part;

/* One value, as config show prints it. Borrowed until the config is changed or freed. */
typedef struct trpi_config_entry {
    const char *key;
    const char *const *values;
    size_t count;          /* 1 unless it is a list */
    trpi_config_type type; /* TRPI_CONFIG_LIST below app when there is another count than 1 */
    trpi_config_layer layer;
    const char *origin;         /* "default", "FILE:LINE", "environment TROUPE_X", "--set" */
    const char *doc;            /* NULL below app */
    const trpi_config_row *row; /* NULL below app */
} trpi_config_entry;

typedef struct trp_config trpi_config; /* the public one, still being filled */
typedef trp_config_error trpi_config_error;

/* The parts of all rooms, NULL at the end: the uppermost room has the list
 * (cluster/node/keys.c). */
extern const trpi_config_part *const trpi_config_parts[];
/* Return the row, or alias, after this one in the list of all parts; NULL is before the first one
 * and after the last one. */
const trpi_config_row *trpi_config_row_next(const trpi_config_row *row);
const trpi_config_alias *trpi_config_alias_next(const trpi_config_alias *alias);

/* A config with the defaults. Gives *ret_config. Errors: TRP_ENOMEM. */
trp_err trpi_config_new(trpi_config **ret_config);
void trpi_config_free(trpi_config *config); /* lets go of one share; NULL is fine */

/* Load a file, or text as if it stood in a file called name. Nothing is changed on failure.
 * Errors: TRP_ECONFIG (*ret_error says what), TRP_ENOENT (no such file), TRP_ENOMEM. Loading is
 * serialized in the process: the scanner of libconfuse is global. Thread: any. */
trp_err trpi_config_load_file(trpi_config *config, const char *path, trpi_config_error *ret_error);
trp_err trpi_config_load_text(trpi_config *config, const char *name, const char *text,
                              trpi_config_error *ret_error);
/* Take every TROUPE_* variable that names a key; one that looks like a key and is none is
 * refused. */
trp_err trpi_config_load_env(trpi_config *config, char *const *environment,
                             trpi_config_error *ret_error);
/* "key=value"; lists: values separated by commas. origin: "--set", "--port". */
trp_err trpi_config_set(trpi_config *config, const char *assignment, const char *origin,
                        trpi_config_error *ret_error);
/* Replace a list, or one value. */
trp_err trpi_config_put(trpi_config *config, trpi_config_layer layer, const char *key,
                        const char *const *values, size_t count, const char *origin,
                        trpi_config_error *ret_error);

/* Getters: key must be one of the table (asserted) and have the type asked for. A key that is not
 * set has the table's default. config NULL: the defaults. */
const char *trpi_config_text(const trpi_config *config, const char *key); /* also CHOICE */
int64_t trpi_config_int(const trpi_config *config, const char *key);      /* INT, DURATION, SIZE */
double trpi_config_float(const trpi_config *config, const char *key);
bool trpi_config_bool(const trpi_config *config, const char *key);
size_t trpi_config_list_count(const trpi_config *config, const char *key);
const char *trpi_config_list_at(const trpi_config *config, const char *key, size_t index);

/* Return value `index` of an entry for display: a secret that is set is "(secret)". */
const char *trpi_config_shown(const trpi_config_entry *entry, size_t index);
/* Return whether key is set in a layer above the defaults. */
bool trpi_config_is_set(const trpi_config *config, const char *key);
/* Look any key up, also below app and with titles. false: not set and no default. */
bool trpi_config_find(const trpi_config *config, const char *key, trpi_config_entry *ret_entry);
/* Walk all entries in the order of the table, then titles and app in the order of the file. */
size_t trpi_config_count(const trpi_config *config);
void trpi_config_at(const trpi_config *config, size_t index, trpi_config_entry *ret_entry);

/* Read a value of a type from text. Errors: TRP_ECONFIG; *ret_what describes the mistake. */
trp_err trpi_config_parse_number(trpi_config_type type, const char *text, double *ret_number,
                                 const char **ret_what);
/* The key nearest to name among the table, or NULL when nothing is near. */
const char *trpi_config_nearest(const char *name);
/* "cluster.gossip-interval" -> "TROUPE_CLUSTER_GOSSIP_INTERVAL". Returns buffer. */
char *trpi_config_env_name(const char *key, char *buffer, size_t bytes);

#endif
