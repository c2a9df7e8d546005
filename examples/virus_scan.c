/* virus_scan.c - look through a tree of directories for suspicious files (µJavaActors' example).
 *
 *     ./virus_scan [DIRECTORY]      without one: a tree of its own, whose findings it checks
 *
 * Reading files is not computing: the scanners are actors of the "blocking" dispatcher, in a
 * category, so that each file goes to the one with the least to do. Only ".txt" files are looked
 * at, to bound their number, and of each the first megabyte.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <troupe/troupe.h>
#include <unistd.h>

enum { SCANNERS = 4, BYTES_MAX = 1 << 20 };
static const char *const patterns[] = { "X5O!P%@AP", "rm -rf /", "EVIL" };

#define SCANNED(F, S) F(S, bool, suspicious) F(S, text512, path)
#define TOTALS(F, S) F(S, u32, files) F(S, u32, suspicious)
#define SCAN(M, P)                                                                                 \
    M(P, file, SCANNED) M(P, tree, SCANNED) M(P, scanned, SCANNED) M(P, totals, TOTALS)
TRP_PROTOCOL(scan, SCAN)
static const trp_protocol *const accepted[] = { &scan_protocol, NULL };

static int
is_suspicious(const char *path)
{
    static _Thread_local char bytes[BYTES_MAX + 1];
    FILE *file = fopen(path, "rb");
    size_t count = file == NULL ? 0 : fread(bytes, 1, BYTES_MAX, file);
    if (file != NULL) {
        fclose(file);
    }
    bytes[count] = 0;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strstr(bytes, patterns[i]) != NULL) {
            return 1;
        }
    }
    return 0;
}

static trp_err
scanner_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    scan_scanned done = *(const scan_scanned *)trp_msg_payload(msg);
    (void)state;
    done.suspicious = (uint8_t)is_suspicious(done.path);
    trp_reply(ctx, &scan_scanned_type, &done, sizeof done);
    return TRP_OK;
}
static const trp_behaviour scanner = { .size = sizeof(trp_behaviour),
                                       .name = "scanner",
                                       .version = 1,
                                       .receive = scanner_receive,
                                       .accepts = accepted };

typedef struct walker {
    scan_totals totals;
    uint32_t open; /* directories and files that are not done */
    trp_ref client;
} walker;

static trp_err
start(trp_ctx *ctx, void *state, const trp_msg *args)
{
    trp_spawn_options options = TRP_SPAWN_OPTIONS_INIT;
    trp_ref ref;
    (void)state;
    (void)args;
    options.dispatcher = "blocking";
    for (int i = 0; i < SCANNERS; i++) {
        if (trp_spawn(ctx, &scanner, &options, &ref) != TRP_OK ||
            trp_category_join(trp_ctx_system(ctx), "scanners", ref) != TRP_OK) {
            return TRP_EINIT;
        }
    }
    return TRP_OK;
}

/* One directory: files to the scanners, directories to itself. */
static trp_err
walk(trp_ctx *ctx, walker *w, const char *path)
{
    DIR *directory = opendir(path);
    trp_err err = TRP_OK;
    struct dirent *entry;
    while (err == TRP_OK && directory != NULL && (entry = readdir(directory)) != NULL) {
        scan_file next = { 0, "" };
        size_t bytes = strlen(entry->d_name);
        int written = snprintf(next.path, sizeof next.path, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.' || written < 0 || (size_t)written >= sizeof next.path) {
            continue;
        }
        if (entry->d_type == DT_DIR) {
            w->open++;
            trp_tell(ctx, trp_self(ctx), &scan_tree_type, &next, sizeof next);
        } else if (bytes > 4 && strcmp(entry->d_name + bytes - 4, ".txt") == 0) {
            w->open++;
            err = trp_category_send(ctx, "scanners", &scan_file_type, &next, sizeof next, NULL);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return err;
}

static trp_err
walker_receive(trp_ctx *ctx, void *state, const trp_msg *msg)
{
    walker *w = state;
    const scan_scanned *what = trp_msg_payload(msg);
    trp_err err = TRP_OK;
    if (trp_msg_tag(msg) == scan_scanned_tag) {
        w->totals.files++;
        w->totals.suspicious += what->suspicious;
        if (what->suspicious) {
            printf("suspicious: %s\n", what->path);
        }
    } else {
        if (w->open == 0) {
            w->client = trp_sender(ctx);
            w->open = 1;
        }
        err = walk(ctx, w, what->path);
    }
    if (--w->open == 0) {
        trp_tell(ctx, w->client, &scan_totals_type, &w->totals, sizeof w->totals);
    }
    return err;
}
static const trp_behaviour walker_behaviour = { .size = sizeof(trp_behaviour),
                                                .name = "walker",
                                                .version = 1,
                                                .state_bytes = sizeof(walker),
                                                .receive = walker_receive,
                                                .pre_start = start,
                                                .accepts = accepted };

/* 5 directories with 4 text files each, and one other; 3 of the text files are suspicious. */
static int
sample_make(char *root, int make)
{
    char path[128];
    for (int d = 0; d < 5; d++) {
        snprintf(path, sizeof path, "%s/d%d", root, d);
        if (make && mkdir(path, 0700) != 0) {
            return -1;
        }
        for (int f = 0; f < 5; f++) {
            snprintf(path, sizeof path, "%s/d%d/f%d.%s", root, d, f, f == 4 ? "bin" : "txt");
            FILE *file = make ? fopen(path, "w") : NULL;
            if (file != NULL) {
                fprintf(file, "%s\n", f == d && d < 3 ? patterns[d] : f == 4 ? "EVIL" : "harmless");
                fclose(file);
            } else if (!make) {
                unlink(path);
            }
        }
        snprintf(path, sizeof path, "%s/d%d", root, d);
        if (!make) {
            rmdir(path);
        }
    }
    return make ? 0 : rmdir(root);
}

int
main(int argc, char **argv)
{
    char root[] = "/tmp/troupe-scan-XXXXXX";
    scan_tree tree = { 0, "" };
    trp_system *system;
    trp_msg *reply;
    trp_ref ref;
    int wrong = 1;
    if (trp_protocol_register(&scan_protocol) != TRP_OK ||
        trp_system_new("scan", NULL, &system) != TRP_OK ||
        trp_system_spawn(system, &walker_behaviour, NULL, &ref) != TRP_OK ||
        (argc < 2 && (mkdtemp(root) == NULL || sample_make(root, 1) != 0))) {
        return 1;
    }
    snprintf(tree.path, sizeof tree.path, "%s", argc < 2 ? root : argv[1]);
    if (trp_system_ask(system, ref, &scan_tree_type, &tree, sizeof tree, 60000, &reply) == TRP_OK) {
        const scan_totals *totals = trp_msg_payload(reply);
        printf("%u files scanned, %u suspicious\n", totals->files, totals->suspicious);
        wrong = argc < 2 && (totals->files != 20 || totals->suspicious != 3);
        trp_msg_free(reply);
    }
    if (argc < 2) {
        wrong |= sample_make(root, 0) != 0;
    }
    if (trp_system_stop(system, 5000) == TRP_OK) {
        trp_system_free(system);
    }
    return wrong;
}
