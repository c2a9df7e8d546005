/* embed.h - a file of the sources as a text of the program.
 *
 * Why.     Pages, scripts and texts of new projects stay files of what they are; an installed
 *          program needs none of them at run time.
 * Shape.   The assembler includes the file as it is (.incbin) and ends it with a 0. The symbol is
 *          global, and hidden: link-time optimisation, which takes functions apart, finds it.
 * Tests.   tests/system/new.sh, tests/system/demo.sh, tests/system/dashboard.sh
 */
#ifndef TRPI_EMBED_H
#define TRPI_EMBED_H

/* Define `const char symbol[]`. path: a string constant, from the top of the sources. */
#define TRPI_EMBED(symbol, path)                                                                   \
    __asm__(".pushsection .rodata\n"                                                               \
            ".globl " #symbol "\n"                                                                 \
            ".hidden " #symbol "\n"                                                                \
            ".type " #symbol ", %object\n" #symbol ":\n"                                           \
            ".incbin \"" path "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".size " #symbol ", . - " #symbol "\n"                                                 \
            ".popsection\n");                                                                      \
    extern const char symbol[] __attribute__((visibility("hidden")));

#endif
