// The other side of `bound.c`: a library that locks.
#define _GNU_SOURCE
#include "side.h"
#include <dlfcn.h>
#include <stddef.h>

// By its own references.
#define OWN(name, result, arguments) .name = pthread_##name,
const struct side *library_side(void) {
    static const struct side side = {FUNCTIONS(OWN)};
    return &side;
}

// By what comes after this library.
#define NEXT(name, result, arguments) side.name = (result(*) arguments)dlsym(RTLD_NEXT, "pthread_" #name);
const struct side *library_next(void) {
    static struct side side;
    FUNCTIONS(NEXT)
    return &side;
}

// By the C library's handle, before most constructors have run.
static struct side early;
#define BY_HANDLE(name, result, arguments) early.name = (result(*) arguments)dlsym(handle, "pthread_" #name);
__attribute__((constructor)) static void begin(void) {
    void *handle = dlopen("libc.so.6", RTLD_NOW);
    FUNCTIONS(BY_HANDLE)
}
const struct side *library_early(void) { return &early; }

// By a library that this one loads: into one more namespace, or beside itself with its own libraries first.
static const struct side *from(void *handle) {
    const struct side *(*get)(void) = NULL;
    if (handle) get = (const struct side *(*)(void))dlsym(handle, "library_side");
    return get ? get() : NULL;
}
const struct side *library_nested(const char *library) { return from(dlmopen(LM_ID_NEWLM, library, RTLD_NOW)); }
const struct side *library_within(const char *library) { return from(dlopen(library, RTLD_NOW | RTLD_DEEPBIND)); }

// A definition of what the C library has as well, and a use of it.
int atoi(const char *digits) { return digits[0] == '7' ? 4711 : 0; }
int library_own(void) {
    int (*volatile converts)(const char *) = atoi;
    return converts("7");
}
