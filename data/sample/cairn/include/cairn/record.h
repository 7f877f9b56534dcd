#pragma once

#include <stdint.h>
#include <stdio.h>

#define CAIRN_HEADER_SIZE 12
#define CAIRN_TOMBSTONE 0xffffffffu
#define CAIRN_MAX_FIELD (16u << 20)

struct cairn_record {
    uint32_t key_size;
    uint32_t value_size; /* CAIRN_TOMBSTONE for a delete */
    char *key;           /* owned, NUL-terminated for convenience */
    char *value;         /* owned, NUL-terminated; NULL for a delete */
};

enum cairn_read { CAIRN_READ_OK, CAIRN_READ_END, CAIRN_READ_BAD };

/* Write one record at the current position; 0 on success, -1 on error. */
int cairn_record_write(FILE *file, const struct cairn_record *record);

/* Read the record at the current position. A short or damaged record gives
 * CAIRN_READ_BAD; only CAIRN_READ_OK fills *record, which must be freed. */
enum cairn_read cairn_record_read(FILE *file, struct cairn_record *record);

void cairn_record_free(struct cairn_record *record);
