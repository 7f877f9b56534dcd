#define _POSIX_C_SOURCE 200809L
#include "cairn/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cairn/record.h"

/* Read the log from the start, noting where each key was last written, and
 * cut off whatever follows the last good record. */
static int replay(struct cairn_log *log)
{
    struct cairn_record record;
    enum cairn_read status;

    while ((status = cairn_record_read(log->file, &record)) == CAIRN_READ_OK) {
        long at = record.value_size == CAIRN_TOMBSTONE ? CAIRN_ABSENT : log->end;
        int failed = cairn_table_set(&log->table, record.key, at);

        cairn_record_free(&record);
        if (failed)
            return -1;
        log->end = ftell(log->file);
    }
    if (fseek(log->file, 0, SEEK_END) != 0)
        return -1;
    log->dropped = ftell(log->file) - log->end;
    return log->dropped ? ftruncate(fileno(log->file), log->end) : 0;
}

int cairn_open(struct cairn_log *log, const char *path)
{
    memset(log, 0, sizeof *log);
    log->file = fopen(path, "r+b");
    if (!log->file)
        log->file = fopen(path, "w+b");
    if (!log->file || replay(log) != 0) {
        cairn_close(log);
        return -1;
    }
    return 0;
}

int cairn_put(struct cairn_log *log, const char *key, const char *value)
{
    struct cairn_record record = {
        .key_size = (uint32_t)strlen(key),
        .value_size = value ? (uint32_t)strlen(value) : CAIRN_TOMBSTONE,
        .key = (char *)key,
        .value = (char *)value,
    };

    if (fseek(log->file, log->end, SEEK_SET) != 0 || cairn_record_write(log->file, &record) != 0
        || fflush(log->file) != 0
        || cairn_table_set(&log->table, key, value ? log->end : CAIRN_ABSENT) != 0)
        return -1;
    log->end = ftell(log->file);
    return 0;
}

int cairn_delete(struct cairn_log *log, const char *key)
{
    return cairn_table_get(&log->table, key) == CAIRN_ABSENT ? 0 : cairn_put(log, key, NULL);
}

char *cairn_get(struct cairn_log *log, const char *key)
{
    struct cairn_record record;
    long at = cairn_table_get(&log->table, key);

    if (at == CAIRN_ABSENT || fseek(log->file, at, SEEK_SET) != 0
        || cairn_record_read(log->file, &record) != CAIRN_READ_OK)
        return NULL;
    free(record.key);
    return record.value;
}

void cairn_close(struct cairn_log *log)
{
    if (log->file)
        fclose(log->file);
    cairn_table_free(&log->table);
    memset(log, 0, sizeof *log);
}
