// What the dynamic linker does for a program, a line for each.
//
//     loads LIBRARY            what `dlmopen` says; LIBRARY's folder is in this program's RUNPATH
//     loads --again LIBRARY    how often of 40 times it loads LIBRARY into a new namespace and gives it back
//     loads --same NAME...     whether a function is the same by every look-up: 0 if each is
//     loads --later LIBRARY    whether the C library's functions stay what they are when LIBRARY is loaded now: 0 if they do
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

// Without the name of the file, which need not be the one that is asked for.
static void say(const char *what, void *handle) {
    const char *error = handle ? NULL : dlerror();
    const char *colon = error ? strstr(error, ": ") : NULL;
    printf("%s: %s\n", what, handle ? "loaded" : colon ? colon + 2 : "not loaded");
}

static int same(char **names) {
    void *libc = dlopen("libc.so.6", RTLD_NOW), *there = dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW);
    int bad = libc == NULL || there == NULL;
    for (; *names; names++) {
        void *one = dlsym(RTLD_DEFAULT, *names);
        // Not every glibc has every one.
        if (dlsym(libc, *names) == NULL && dlsym(there, *names) == NULL) continue;
        if (dlsym(libc, *names) == one && dlsym(there, *names) == one && dlsym(RTLD_NEXT, *names) == one) continue;
        printf("%s is another by another look-up\n", *names);
        bad = 1;
    }
    return bad;
}

static int later(const char *library) {
    void *libc = dlopen("libc.so.6", RTLD_NOW), *before = dlsym(libc, "pthread_mutex_lock");
    void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    void *its = handle ? dlsym(handle, "pthread_mutex_lock") : NULL;
    if (its == NULL) puts(dlerror());
    return its == NULL || its == before || dlsym(libc, "pthread_mutex_lock") != before || dlsym(RTLD_DEFAULT, "pthread_mutex_lock") != before;
}

static int others(const char *library);
static int one_after_the_other(const char *library);
int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--same") == 0) return same(argv + 2);
    if (argc == 3 && strcmp(argv[1], "--later") == 0) return later(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--again") == 0) return one_after_the_other(argv[2]);
    return argc == 2 ? others(argv[1]) : 2;
}

static int one_after_the_other(const char *library) {
    const char *slash = strrchr(library, '/'), *bare = slash ? slash + 1 : library;
    int loaded = 0;
    // More than there are namespaces, one after the other; by path and by the caller's RUNPATH.
    for (int i = 0; i < 40; i++) {
        void *handle = dlmopen(LM_ID_NEWLM, i % 2 ? library : bare, i % 3 ? RTLD_NOW : RTLD_LAZY);
        if (handle) loaded++;
        if (handle && dlclose(handle) != 0) puts(dlerror());
    }
    printf("one after the other: %d\n", loaded);
    return 0;
}

// Everything else.
static int others(const char *library) {
    for (int i = 0; i < 40; i++)
        if (dlmopen(LM_ID_NEWLM, "/nowhere/missing.so", RTLD_NOW) == NULL && i == 39) puts(dlerror());
    const char *slash = strrchr(library, '/');
    void *bare = dlmopen(LM_ID_NEWLM, slash ? slash + 1 : library, RTLD_NOW);
    say("by the caller's RUNPATH", bare);
    if (bare) dlclose(bare);
    say("no file", dlmopen(LM_ID_NEWLM, NULL, RTLD_NOW));
    say("global", dlmopen(LM_ID_NEWLM, library, RTLD_NOW | RTLD_GLOBAL));
    say("no binding", dlmopen(LM_ID_NEWLM, library, 0));
    say("no such namespace", dlmopen(15, library, RTLD_NOW));
    say("not here yet", dlmopen(LM_ID_NEWLM, library, RTLD_NOW | RTLD_NOLOAD));
    say("beside the program", dlmopen(LM_ID_BASE, library, RTLD_NOW));
    say("deep beside the program", dlmopen(LM_ID_BASE, library, RTLD_NOW | RTLD_DEEPBIND));
    errno = 4711;
    void *first = dlmopen(LM_ID_NEWLM, library, RTLD_NOW);
    printf("errno %d\n", errno);
    say("a new one", first);
    if (first == NULL) return 1;
    Lmid_t id;
    if (dlinfo(first, RTLD_DI_LMID, &id) != 0) puts(dlerror());
    void *again = dlmopen(id, library, RTLD_NOW);
    say("once more", again);
    printf("the same: %d\n", again == first);
    say("libm there", dlmopen(id, "libm.so.6", RTLD_NOW));
    say("this program there", dlmopen(id, "/nowhere/else.so", RTLD_NOW));
    // Its own definitions come before the C library's.
    int (*own)(void) = (int (*)(void))dlsym(first, "library_own");
    printf("its own first: %d\n", own ? own() : -1);
    // As many as there can be, which depends on how often glibc could not give back the memory of one.
    int most = 0;
    while (most < 40 && dlmopen(LM_ID_NEWLM, library, RTLD_NOW)) most++;
    printf("at once: %s, then: %s\n", most > 0 ? "some" : "none", dlerror());
    printf("given back: %d %d\n", dlclose(again), dlclose(first));
    return 0;
}
