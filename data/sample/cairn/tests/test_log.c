#include <string.h>

#include "cairn/log.h"
#include "check.h"

static const char *PATH = "build/test.log";

static int holds(struct cairn_log *log, const char *key, const char *want)
{
    char *value = cairn_get(log, key);
    int same = want ? value && strcmp(value, want) == 0 : !value;

    free(value);
    return same;
}

int main(void)
{
    struct cairn_log log;
    char key[16];
    FILE *file;

    remove(PATH);
    CHECK(cairn_open(&log, PATH) == 0);
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof key, "k%d", i);
        CHECK(cairn_put(&log, key, "old") == 0);
    }
    CHECK(cairn_put(&log, "k7", "new") == 0 && cairn_delete(&log, "k8") == 0);
    cairn_close(&log);

    file = fopen(PATH, "ab"); /* a write that was cut short */
    CHECK(file && fputs("half a record", file) >= 0 && fclose(file) == 0);

    CHECK(cairn_open(&log, PATH) == 0 && log.dropped == 13);
    CHECK(holds(&log, "k7", "new") && holds(&log, "k8", NULL) && holds(&log, "k99", "old"));
    CHECK(cairn_put(&log, "k8", "again") == 0);
    cairn_close(&log);

    CHECK(cairn_open(&log, PATH) == 0 && log.dropped == 0 && holds(&log, "k8", "again"));
    cairn_close(&log);
    remove(PATH);
    puts("test_log: ok");
    return 0;
}
