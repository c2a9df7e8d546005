/* config_text.h - the text of a configuration with its includes, and the origin of its lines. */
#ifndef TRPI_BASE_CONFIG_TEXT_H
#define TRPI_BASE_CONFIG_TEXT_H

#include "base/buffer.h"
#include "base/config.h"

/* Lines of one file, from line `joined_line` of the joined text on, up to the next stretch. */
typedef struct trpi_config_stretch {
    int joined_line;
    int line;          /* of the file */
    uint32_t file;     /* index of files */
    uint32_t instance; /* counts the readings: a file that is included twice is read twice */
} trpi_config_stretch;

typedef struct trpi_config_text {
    trpi_buffer joined; /* comments are blanks, every include is its file's text; not terminated */
    char **files;       /* names, for display */
    uint32_t files_count, files_room;
    trpi_config_stretch *stretches;
    uint32_t stretches_count, stretches_room;
    int lines;       /* of the joined text so far */
    int lines_shown; /* of the outermost file: errors about its end name its last line */
} trpi_config_joined;

/* Put `text`, which stands in a file called name, and all that it includes into *ret_text, which
 * trpi_config_text_fini() frees, also after an error.
 * Errors: TRP_ECONFIG, TRP_ENOMEM; *ret_error says what. */
trp_err trpi_config_text_make(const char *name, const char *text, trpi_config_joined *ret_text,
                              trpi_config_error *ret_error);
void trpi_config_text_fini(trpi_config_joined *text);

/* Return the file and line of a line of the joined text. */
void trpi_config_text_at(const trpi_config_joined *text, int joined_line, const char **ret_file,
                         int *ret_line, uint32_t *ret_instance);

/* Read a file whole. Gives *ret_text (trpi_free). Errors: TRP_ENOENT, TRP_ECONFIG, TRP_ENOMEM. */
trp_err trpi_config_file_read(const char *path, char **ret_text, trpi_config_error *ret_error);

#endif
