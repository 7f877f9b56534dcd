#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC-32 (reflected, polynomial 0xEDB88320). Start with crc = 0; pass the
 * result back in to continue over more bytes. */
uint32_t cairn_crc32(uint32_t crc, const void *data, size_t size);
