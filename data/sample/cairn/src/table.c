#include "cairn/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hash(const char *key)
{
    uint32_t value = 2166136261u; /* FNV-1a */

    while (*key)
        value = (value ^ (unsigned char)*key++) * 16777619u;
    return value;
}

/* The slot that holds the key, or the free one where it would go. */
static struct cairn_slot *find(const struct cairn_table *table, const char *key)
{
    size_t mask = table->capacity - 1, at = hash(key) & mask;

    while (table->slots[at].key && strcmp(table->slots[at].key, key) != 0)
        at = (at + 1) & mask;
    return &table->slots[at];
}

static int grow(struct cairn_table *table)
{
    struct cairn_table bigger = {NULL, table->capacity ? table->capacity * 2 : 16, table->used};

    bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
    if (!bigger.slots)
        return -1;
    for (size_t i = 0; i < table->capacity; i++)
        if (table->slots[i].key)
            *find(&bigger, table->slots[i].key) = table->slots[i];
    free(table->slots);
    *table = bigger;
    return 0;
}

int cairn_table_set(struct cairn_table *table, const char *key, long offset)
{
    struct cairn_slot *slot;

    if (table->used * 4 >= table->capacity * 3 && grow(table) != 0)
        return -1;
    slot = find(table, key);
    if (!slot->key) {
        slot->key = malloc(strlen(key) + 1);
        if (!slot->key)
            return -1;
        strcpy(slot->key, key);
        table->used++;
    }
    slot->offset = offset;
    return 0;
}

long cairn_table_get(const struct cairn_table *table, const char *key)
{
    const struct cairn_slot *slot = table->capacity ? find(table, key) : NULL;

    return slot && slot->key ? slot->offset : CAIRN_ABSENT;
}

void cairn_table_free(struct cairn_table *table)
{
    for (size_t i = 0; i < table->capacity; i++)
        free(table->slots[i].key);
    free(table->slots);
    memset(table, 0, sizeof *table);
}
