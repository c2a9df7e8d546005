/* new_files.h - the files of a new project (`troupe new`), as the program carries them along.
 *
 * They stand in cluster/cli/new as they are, with @words@ that new_files.c replaces:
 *   @name@  the project's name        @id@  with _ for -        @ID@  that in capitals
 *   @ext@ c or cc   @CC@ CC or CXX   @FLAGS@ CFLAGS or CXXFLAGS   @std@ c11 or c++17
 *   @null@ NULL or nullptr   @state@, @answer@  a state and a payload, cast as C or C++ does
 */
#ifndef TRPI_CLI_NEW_FILES_H
#define TRPI_CLI_NEW_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

#define TRPI_NEW_NAME_BYTES_MAX 40u
#define TRPI_NEW_FILES_MAX 8u

typedef struct trpi_new_project {
    const char *kind; /* app, actor, plugin */
    const char *name;
    bool cpp;
} trpi_new_project;

/* Return NULL, or why the name cannot be that of a project, as the end of a sentence. */
const char *trpi_new_name_fault(const char *name);
bool trpi_new_kind_is(const char *kind);
/* Make the text of file `index` of the project and its name (at most name_bytes, with its NUL).
 * Errors: TRP_ENOENT  the project has no more files
 *         TRP_ENOMEM */
trp_err trpi_new_file(const trpi_new_project *project, size_t index, char *name, size_t name_bytes,
                      trpi_buffer *text);

#endif
