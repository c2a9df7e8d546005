/* scan.h - for virus_scan.c: suspicious patterns, and a tree of files to scan. */
#include <fnmatch.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const patterns[] = { "X5O!P%@AP", "rm -rf /", "EVIL" };

typedef struct walker {
    trp_ref client, scanners;
    int told, scanned, suspicious; /* files */
} walker;

static int
is_suspicious(const char *path)
{
    char bytes[65536] = ""; /* of each file the beginning */
    FILE *file = fopen(path, "rb");
    int found = 0;
    if (file != NULL) {
        bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
        fclose(file);
    }
    for (int i = 0; i < 3; i++) {
        found |= strstr(bytes, patterns[i]) != NULL;
    }
    return found;
}

/* Make 5 folders with 4 text files each, 3 of the 20 suspicious, and a file that is no text. */
static const char *
sample_make(char *root)
{
    char path[128];
    int ok = mkdtemp(root) != NULL;
    for (int i = 0; ok && i < 25; i++) {
        snprintf(path, sizeof path, "%.99s/d%d", root, i / 5);
        ok = i % 5 != 0 || mkdir(path, 0700) == 0;
        snprintf(path, sizeof path, "%.99s/d%d/f%d.%s", root, i / 5, i % 5, i % 5 ? "txt" : "bin");
        FILE *file = fopen(path, "w");
        ok = ok && file != NULL &&
             fputs(i % 5 == 0 || i % 11 == 1 ? patterns[i % 3] : "harmless", file) >= 0 &&
             fclose(file) == 0;
    }
    return ok ? root : "";
}

static int
sample_remove(char *root)
{
    char *const roots[] = { root, NULL };
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *at; tree != NULL && (at = fts_read(tree)) != NULL;) {
        (void)(at->fts_info != FTS_D && remove(at->fts_path)); /* folders when they are left */
    }
    return tree != NULL && fts_close(tree) == 0;
}
