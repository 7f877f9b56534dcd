#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/log.h"

static int usage(void)
{
    fputs("usage: cairn FILE get KEY | put KEY VALUE | del KEY\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct cairn_log log;
    char *value = NULL;
    int status;

    if (argc < 4)
        return usage();
    if (cairn_open(&log, argv[1]) != 0) {
        perror(argv[1]);
        return 1;
    }
    if (log.dropped > 0)
        fprintf(stderr, "cairn: dropped %ld damaged bytes at the end\n", log.dropped);
    if (argc == 4 && strcmp(argv[2], "get") == 0)
        status = !(value = cairn_get(&log, argv[3])) || puts(value) < 0;
    else if (argc == 5 && strcmp(argv[2], "put") == 0)
        status = cairn_put(&log, argv[3], argv[4]) != 0;
    else if (argc == 4 && strcmp(argv[2], "del") == 0)
        status = cairn_delete(&log, argv[3]) != 0;
    else
        status = usage();
    free(value);
    cairn_close(&log);
    return status;
}
