#pragma once

#include <stdio.h>
#include <stdlib.h>

static inline void check_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    exit(1);
}

#define CHECK(condition) \
    ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
