/* loaded_library.h - a library that is opened when it is used, so that all other uses of a program
 * neither need nor wait for it. It is never closed: threads and libraries of its own may point
 * into it. */
#ifndef TRPI_BASE_LOADED_LIBRARY_H
#define TRPI_BASE_LOADED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* One is static; what is not set here is loaded_library.c's. */
typedef struct trpi_loaded_library {
    const char *file;         /* "libcurl.so.4" */
    const char *package;      /* Debian's, which has it */
    const char *const *names; /* of functions */
    size_t count;
    void *functions;   /* the library's struct of so many pointers to functions, in their order */
    bool is_opened;    /* it was tried */
    const char *lacks; /* the first function that is missing; "": the library */
    char reason[512];  /* the linker's; "" none */
} trpi_loaded_library;

/* The names and the struct, of a table F(function_1) F(function_2) .... */
#define TRPI_LIBRARY_NAME(name) #name,
#define TRPI_LIBRARY_MEMBER(name) __typeof__(&name) name;

/* Open it, the first time; false: why says what is missing, and what to install. Thread: any. */
bool trpi_library_open(trpi_loaded_library *library, char *why, size_t why_bytes);

#endif
