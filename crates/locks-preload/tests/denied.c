// A system that forbids to change how memory is mapped. The dynamic linker has a function of its own for that.
#include <errno.h>
#include <stddef.h>

int mprotect(void *at, size_t bytes, int how) {
    (void)at;
    (void)bytes;
    (void)how;
    errno = EACCES;
    return -1;
}
