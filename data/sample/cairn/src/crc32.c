#include "cairn/crc32.h"

uint32_t cairn_crc32(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *byte = data;

    crc = ~crc;
    while (size--) {
        crc ^= *byte++;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320u & -(crc & 1u));
    }
    return ~crc;
}
