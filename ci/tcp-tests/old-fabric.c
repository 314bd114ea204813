/* A libfabric of an older version, as far as a program learns that: its functions do nothing else. */
#include <stddef.h>
#include <stdint.h>

uint32_t fi_version(void) { return 1 << 16 | 11; }
const char *fi_strerror(int error) { return error ? "an error" : "success"; }
int fi_getinfo(uint32_t v, const char *n, const char *s, uint64_t f, const void *h, void **i)
{
    (void)v, (void)n, (void)s, (void)f, (void)h, (void)i;
    return -38;
}
void fi_freeinfo(void *info) { (void)info; }
void *fi_dupinfo(const void *info) { return (void)info, NULL; }
int fi_fabric(void *attributes, void **fabric, void *context)
{
    (void)attributes, (void)fabric, (void)context;
    return -38;
}
char *fi_tostr(const void *data, int type) { return (void)data, (void)type, NULL; }
