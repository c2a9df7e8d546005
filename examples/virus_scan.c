/* virus_scan.c - look through a tree of directories for suspicious files (after µJavaActors).
 * Actors that read files wait, so they have threads of their own: four, behind one reference.
 *     ./virus_scan [DIRECTORY]      without one: a tree of its own, whose findings it checks */
#include "article.h"
#include "scan.h"
static trp_err
scan(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    const int64_t found = is_suspicious(trp_msg_payload(msg));
    (void)state;
    trp_reply(ctx, &trp_i64_type, &found, 0);
    return TRP_OK;
}
static const trp_behaviour scanner = { sizeof scanner, "scanner", .receive = scan };
static const trp_resource_options four = { sizeof four, .parallel = 4 };

static trp_err
walk(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    walker *w = state;
    trp_err err = TRP_OK;
    if (trp_msg_is(msg, &trp_i64_type)) { /* an answer */
        w->suspicious += (int)*(const int64_t *)trp_msg_payload(msg);
        w->scanned++;
    } else {
        char *const roots[] = { (char *)(uintptr_t)trp_msg_payload(msg), NULL };
        FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
        w->client = trp_sender(ctx);
        err = trp_resource_spawn(ctx, &scanner, &four, &w->scanners);
        for (FTSENT *at; tree != NULL && (at = fts_read(tree)) != NULL;) {
            if (at->fts_info == FTS_F && fnmatch("*.txt", at->fts_name, 0) == 0) {
                w->told++;
                trp_tell(ctx, w->scanners, &trp_string_type, at->fts_path, at->fts_pathlen + 1u);
            }
        }
        err = tree == NULL || fts_close(tree) != 0 ? TRP_EIO : err;
    }
    if (w->scanned == w->told) {
        trp_tell(ctx, w->client, &trp_bytes_type, w, sizeof *w);
    }
    return err;
}

int
main(int argc, char **argv)
{
    const trp_behaviour it = { sizeof it, "it", .receive = walk, .state_bytes = sizeof(walker) };
    char root[] = "/tmp/troupe-scan-XXXXXX";
    const char *path = argc > 1 ? argv[1] : sample_make(root);
    article a = article_begin("scan", &it);
    trp_inbox_tell(a.inbox, a.first, &trp_string_type, path, strlen(path) + 1);
    trp_msg *msg = article_next(&a);
    const walker *w = trp_msg_payload(msg);
    printf("%d files scanned, %d suspicious\n", w->scanned, w->suspicious);
    int wrong = argc < 2 && (!sample_remove(root) || w->scanned != 20 || w->suspicious != 3);
    trp_msg_free(msg);
    return article_end(&a, wrong);
}
