#pragma once

#include <stddef.h>

/* Open-addressing hash table from key to file offset. */
struct cairn_slot {
    char *key; /* NULL when the slot has never been used */
    long offset;
};

struct cairn_table {
    struct cairn_slot *slots;
    size_t capacity; /* zero or a power of two */
    size_t used;
};

#define CAIRN_ABSENT (-1L)

/* Remember an offset; CAIRN_ABSENT marks the key as deleted. 0 or -1. */
int cairn_table_set(struct cairn_table *table, const char *key, long offset);
long cairn_table_get(const struct cairn_table *table, const char *key);
void cairn_table_free(struct cairn_table *table);
