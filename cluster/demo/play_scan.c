/* play_scan.c - the articles' virus scan: text files of a directory tree are searched for patterns.
 *
 * Why.     It is the demonstration whose actors wait for a disk, not for a processor.
 * Limits.  TRPI_DEMO_FILES_MAX files of one scan, of each the first READ_BYTES.
 * Tests.   tests/unit/demo/run_test.c, tests/system/demo.sh
 * Sources. UJ-42.
 */
#include <fnmatch.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "cluster/demo/demo.h"

enum { READ_BYTES = 65536, FOLDERS = 5, PER_FOLDER = 12 };

static const char *const patterns[] = { "X5O!P%@AP", "rm -rf /", "EVIL" };
#define PATTERNS (sizeof patterns / sizeof patterns[0])

/* ---- a tree of its own ----------------------------------------------------------------------- */

static bool
file_make(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fputs(text, file) >= 0;
    return file != NULL && fclose(file) == 0 && ok;
}

/* Make a tree with some suspicious files, and some that are no text. */
static trp_err
tree_make(trpi_demo *demo)
{
    char path[sizeof demo->tree + 32];
    (void)snprintf(demo->tree, sizeof demo->tree, "/tmp/troupe-demo-XXXXXX");
    bool ok = mkdtemp(demo->tree) != NULL;
    if (!ok) {
        demo->tree[0] = '\0';
    }
    for (unsigned i = 0; i < FOLDERS * PER_FOLDER && ok; i++) {
        (void)snprintf(path, sizeof path, "%s/d%u", demo->tree, i / PER_FOLDER);
        ok = i % PER_FOLDER != 0 || mkdir(path, 0700) == 0;
        (void)snprintf(path, sizeof path, "%s/d%u/f%u.%s", demo->tree, i / PER_FOLDER,
                       i % PER_FOLDER, i % PER_FOLDER == 0 ? "bin" : "txt");
        ok = ok && file_make(path, i % 11 == 1 ? patterns[i % PATTERNS] : "harmless");
    }
    return ok ? TRP_OK : TRP_EIO;
}

static void
tree_remove(const char *tree)
{
    char *const roots[] = { (char *)(uintptr_t)tree, NULL };
    FTS *all = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *at; all != NULL && (at = fts_read(all)) != NULL;) {
        if (at->fts_info != FTS_D) { /* folders when they are left */
            (void)remove(at->fts_path);
        }
    }
    if (all != NULL) {
        (void)fts_close(all);
    }
}

void
trpi_demo_scan_end(trpi_demo *demo)
{
    for (uint32_t i = 0; i < demo->files_count; i++) {
        trpi_free(demo->files[i]);
    }
    demo->files_count = 0;
    if (demo->tree[0] != '\0') {
        tree_remove(demo->tree);
        demo->tree[0] = '\0';
    }
}

/* ---- the play -------------------------------------------------------------------------------- */

/* List the text files; beyond TRPI_DEMO_FILES_MAX they are left out, which the trace says. */
static trp_err
files_list(trpi_demo *demo, const char *directory)
{
    char *const roots[] = { (char *)(uintptr_t)directory, NULL };
    FTS *all = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    trp_err err = all != NULL ? TRP_OK : TRP_EIO;
    for (FTSENT *at; err == TRP_OK && (at = fts_read(all)) != NULL;) {
        if (at->fts_info != FTS_F || fnmatch("*.txt", at->fts_name, 0) != 0) {
            continue;
        }
        if (demo->files_count == TRPI_DEMO_FILES_MAX) {
            trpi_demo_trace(demo, 'W', "%u files are scanned, there are more", TRPI_DEMO_FILES_MAX);
            break;
        }
        char *path = trpi_strdup(at->fts_path);
        if (path == NULL) {
            err = TRP_ENOMEM;
        } else {
            demo->files[demo->files_count++] = path;
        }
    }
    if (all != NULL) {
        (void)fts_close(all);
    }
    return err;
}

trp_err
trpi_demo_scan_play(trpi_demo *demo)
{
    char name[TRPI_STAGE_NAME_BYTES];
    uint32_t walker = 0;
    trp_err err = demo->directory == NULL ? tree_make(demo) : TRP_OK;
    err = err == TRP_OK ? files_list(demo, demo->directory == NULL ? demo->tree : demo->directory)
                        : err;
    err =
        err == TRP_OK ? trpi_demo_spawn(demo, NULL, TRPI_STAGE_WALKER, "virusScan", &walker) : err;
    for (uint32_t i = 0; i < TRPI_DEMO_SCANNERS && err == TRP_OK; i++) {
        (void)snprintf(name, sizeof name, "scanner%u", i);
        err = trpi_demo_spawn(demo, NULL, TRPI_STAGE_SCANNER, name, &demo->scanners[i]);
    }
    if (err == TRP_OK) {
        trpi_demo_tell(demo, NULL, TRPI_STAGE_OUTSIDE, walker, TRPI_DEMO_INIT, demo->files_count,
                       0);
    }
    return err;
}

static bool
is_suspicious(const char *path)
{
    char *bytes = trpi_alloc(READ_BYTES);
    FILE *file = bytes != NULL ? fopen(path, "rbe") : NULL;
    bool found = false;
    if (file != NULL) {
        bytes[fread(bytes, 1, READ_BYTES - 1, file)] = '\0';
        (void)fclose(file);
        for (size_t i = 0; i < PATTERNS; i++) {
            found |= strstr(bytes, patterns[i]) != NULL;
        }
    }
    trpi_free(bytes);
    return found;
}

void
trpi_demo_scan_turn(trpi_demo *demo, trp_ctx *ctx, trpi_demo_cell *cell, const trpi_demo_msg *msg)
{
    uint32_t self = (uint32_t)(cell - demo->cells);
    if (cell->kind == TRPI_STAGE_SCANNER) {
        bool found = is_suspicious(demo->files[msg->count]);
        trpi_demo_work(demo, 50);
        if (found) {
            trpi_demo_trace(demo, 'W', "scan:suspicious: %s", demo->files[msg->count]);
        }
        trpi_demo_tell(demo, ctx, self, msg->from, TRPI_DEMO_SCANNED, msg->count, found ? 1 : 0);
    } else if (msg->subject == TRPI_DEMO_INIT) {
        if (msg->count == 0) {
            trpi_demo_trace(demo, 'W', "scan:there is no file *.txt");
        }
        for (uint32_t i = 0; i < msg->count; i++) {
            trpi_demo_tell(demo, ctx, self, demo->scanners[i % TRPI_DEMO_SCANNERS], TRPI_DEMO_SCAN,
                           i, 0);
        }
    } else {
        cell->found += msg->item;
        if (++cell->done == demo->files_count) {
            trpi_demo_trace(demo, 'T', "**** %u files scanned, %u suspicious", cell->done,
                            cell->found);
        }
    }
}
