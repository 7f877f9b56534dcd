#include "cairn/record.h"

#include <stdlib.h>
#include <string.h>

#include "cairn/crc32.h"

static void store32(unsigned char *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint32_t load32(const unsigned char *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static uint32_t stored_size(uint32_t value_size)
{
    return value_size == CAIRN_TOMBSTONE ? 0 : value_size;
}

static uint32_t checksum(const unsigned char *header, const struct cairn_record *record)
{
    uint32_t crc = cairn_crc32(0, header + 4, CAIRN_HEADER_SIZE - 4);

    crc = cairn_crc32(crc, record->key, record->key_size);
    return cairn_crc32(crc, record->value, stored_size(record->value_size));
}

int cairn_record_write(FILE *file, const struct cairn_record *record)
{
    unsigned char header[CAIRN_HEADER_SIZE];
    size_t value_size = stored_size(record->value_size);

    if (record->key_size > CAIRN_MAX_FIELD || value_size > CAIRN_MAX_FIELD)
        return -1;
    store32(header + 4, record->key_size);
    store32(header + 8, record->value_size);
    store32(header, checksum(header, record));
    if (fwrite(header, 1, sizeof header, file) != sizeof header
        || fwrite(record->key, 1, record->key_size, file) != record->key_size
        || (value_size && fwrite(record->value, 1, value_size, file) != value_size))
        return -1;
    return 0;
}

static char *read_field(FILE *file, uint32_t size)
{
    char *field = size <= CAIRN_MAX_FIELD ? malloc((size_t)size + 1) : NULL;

    if (field && fread(field, 1, size, file) == size) {
        field[size] = '\0';
        return field;
    }
    free(field);
    return NULL;
}

enum cairn_read cairn_record_read(FILE *file, struct cairn_record *record)
{
    unsigned char header[CAIRN_HEADER_SIZE];
    struct cairn_record found = {0};
    size_t got = fread(header, 1, sizeof header, file);

    if (got == 0)
        return CAIRN_READ_END;
    if (got < sizeof header)
        return CAIRN_READ_BAD;
    found.key_size = load32(header + 4);
    found.value_size = load32(header + 8);
    found.key = read_field(file, found.key_size);
    if (found.key && found.value_size != CAIRN_TOMBSTONE)
        found.value = read_field(file, found.value_size);
    if (!found.key || (found.value_size != CAIRN_TOMBSTONE && !found.value)
        || checksum(header, &found) != load32(header)) {
        cairn_record_free(&found);
        return CAIRN_READ_BAD;
    }
    *record = found;
    return CAIRN_READ_OK;
}

void cairn_record_free(struct cairn_record *record)
{
    free(record->key);
    free(record->value);
    memset(record, 0, sizeof *record);
}
