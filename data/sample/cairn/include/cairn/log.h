#pragma once

#include <stdio.h>

#include "cairn/table.h"

struct cairn_log {
    FILE *file;
    long end;     /* offset just past the last good record */
    long dropped; /* bytes of damaged tail found when the log was opened */
    struct cairn_table table;
};

/* All return 0 on success and -1 on error. Putting NULL is a delete. */
int cairn_open(struct cairn_log *log, const char *path);
int cairn_put(struct cairn_log *log, const char *key, const char *value);
int cairn_delete(struct cairn_log *log, const char *key);

/* The value of a key, to be freed by the caller; NULL if there is none. */
char *cairn_get(struct cairn_log *log, const char *key);

void cairn_close(struct cairn_log *log);
