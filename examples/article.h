/* article.h - shared by the examples of the µJavaActors article: a system with its first actor,
 * an inbox for main, and dice. (Those of one feature need none of it.) */
#ifndef ARTICLE_H
#define ARTICLE_H
#include <stdio.h>
#include <stdlib.h>
#include <troupe/troupe.h>

typedef struct article {
    trp_system *system;
    trp_inbox *inbox; /* main's */
    trp_ref first;
} article;

/* Start a system and its first actor (NULL: none), or end the program. */
static inline article
article_begin(const char *name, const trp_behaviour *behaviour)
{
    article a;
    if (trp_system_new(name, NULL, &a.system) != TRP_OK ||
        trp_inbox_open(a.system, NULL, &a.inbox) != TRP_OK ||
        (behaviour != NULL && trp_system_spawn(a.system, behaviour, NULL, &a.first) != TRP_OK)) {
        exit(70);
    }
    return a;
}

/* Wait for the next message to main; trp_msg_free() it. None for a minute ends the program. */
static inline trp_msg *
article_next(article *a)
{
    trp_msg *msg;
    trp_ref sender;
    if (trp_inbox_receive(a->inbox, 60000, &msg, &sender) != TRP_OK) {
        exit(70);
    }
    return msg;
}

/* Return the exit code of main: 0 when nothing was wrong. */
static inline int
article_end(article *a, int wrong)
{
    trp_inbox_close(a->inbox);
    trp_system_free(a->system);
    return wrong != 0;
}

/* A number from 0 to sides - 1. */
static inline uint32_t
article_dice(uint32_t *seed, uint32_t sides)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % sides;
}
#endif
