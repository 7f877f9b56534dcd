#include <string.h>

#include "cairn/crc32.h"
#include "cairn/record.h"
#include "check.h"

int main(void)
{
    struct cairn_record in = {3, 5, "key", "value"}, out;
    FILE *file = tmpfile();

    CHECK(cairn_crc32(0, "123456789", 9) == 0xCBF43926u);
    CHECK(file && cairn_record_write(file, &in) == 0);
    rewind(file);
    CHECK(cairn_record_read(file, &out) == CAIRN_READ_OK);
    CHECK(strcmp(out.key, "key") == 0 && strcmp(out.value, "value") == 0);
    cairn_record_free(&out);
    CHECK(cairn_record_read(file, &out) == CAIRN_READ_END);
    fseek(file, -1, SEEK_END);
    fputc('E', file);
    rewind(file);
    CHECK(cairn_record_read(file, &out) == CAIRN_READ_BAD);
    fclose(file);
    puts("test_record: ok");
    return 0;
}
