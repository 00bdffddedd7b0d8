// Whether the program and another side, which gets its functions in some other way, lock by the same rules.
//
//     bound WAY LIBRARY
//
//     linked     the library's references; it is linked to the program (built with -DLINKED)
//     plain      the same; it is loaded by dlopen
//     deepbind   the same; by dlopen with RTLD_DEEPBIND
//     dlmopen    the same; into a namespace of its own
//     dlsym      dlsym with libc's handle
//     dlvsym     dlvsym with libc's handle, of the versions that glibc 2.3.2 or 2.34 has as its default
//     next       dlsym with RTLD_NEXT, called by the library
//     nested     the references of a library that the library loads by dlmopen, in a namespace of its own
//     within     the same; by dlopen with RTLD_DEEPBIND
//     early      dlsym with libc's handle, called by the library's constructor
//
// Prints "excluded, woken", or what is not so. Exit code 0 for those two, else 1.
#define _GNU_SOURCE
#include "side.h"
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN(name, result, arguments) .name = pthread_##name,
static const struct side program_side = {FUNCTIONS(OWN)};
static const struct side *sides[2] = {&program_side, NULL};

// What cannot go on is ended: mutual exclusion or a wake-up was lost.
#define PATIENCE_S 20
#define MUST(what)                                                                             \
    do {                                                                                       \
        if (!(what)) {                                                                         \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                         \
            _exit(1);                                                                          \
        }                                                                                      \
    } while (0)

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

// What one side holds, the other does not get, and knows whose it is.
static void what_one_holds(const struct side *a, const struct side *b, int type) {
    pthread_mutex_t m;
    pthread_mutexattr_t of;
    pthread_mutexattr_init(&of);
    pthread_mutexattr_settype(&of, type);
    MUST(a->mutex_init(&m, &of) == 0);
    MUST(a->mutex_lock(&m) == 0);
    if (type == PTHREAD_MUTEX_RECURSIVE) {
        MUST(b->mutex_lock(&m) == 0);
        MUST(b->mutex_trylock(&m) == 0);
        MUST(a->mutex_unlock(&m) == 0);
        MUST(a->mutex_unlock(&m) == 0);
    } else {
        MUST(b->mutex_trylock(&m) == EBUSY);
        struct timespec real = in_ms(CLOCK_REALTIME, 1), steady = in_ms(CLOCK_MONOTONIC, 1);
        int wanted = type == PTHREAD_MUTEX_ERRORCHECK ? EDEADLK : ETIMEDOUT;
        MUST(b->mutex_timedlock(&m, &real) == wanted);
        MUST(b->mutex_clocklock(&m, CLOCK_MONOTONIC, &steady) == wanted);
        if (type == PTHREAD_MUTEX_ERRORCHECK) MUST(b->mutex_lock(&m) == EDEADLK);
    }
    MUST(b->mutex_unlock(&m) == 0);
    MUST(a->mutex_trylock(&m) == 0);
    MUST(b->mutex_destroy(&m) == EBUSY);
    MUST(a->mutex_unlock(&m) == 0);
    MUST(b->mutex_destroy(&m) == 0);
}

// Many of both sides count together, and sleep at the mutex.
static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER;
static long counted;
#define COUNTS 3000
static void *counts(void *p) {
    const struct side *side = p;
    for (int i = 0; i < COUNTS; i++) {
        MUST(side->mutex_lock(&shared) == 0);
        long seen = counted;
        if (i % 16 == 0) sched_yield();
        if (i % 256 == 0) usleep(50);
        counted = seen + 1;
        MUST(side->mutex_unlock(&shared) == 0);
    }
    return NULL;
}
static void mutexes(void) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    for (int i = 0; i < 4; i++)
        for (int from = 0; from < 2; from++) what_one_holds(sides[from], sides[!from], types[i]);
    pthread_t t[4];
    for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, counts, (void *)sides[i % 2]);
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
    MUST(counted == 4 * COUNTS);
}

// Two sides take turns: each wakes the other.
static pthread_cond_t turns = PTHREAD_COND_INITIALIZER;
static int turn;
#define TURNS 300
static void *takes_turns(void *p) {
    int mine = p == sides[1];
    const struct side *side = p;
    side->mutex_lock(&shared);
    for (int i = 0; i < TURNS; i++) {
        while (turn % 2 != mine) {
            struct timespec late = in_ms(i % 3 == 1 ? CLOCK_REALTIME : CLOCK_MONOTONIC, PATIENCE_S * 2000);
            int failed = i % 3 == 0   ? side->cond_wait(&turns, &shared)
                         : i % 3 == 1 ? side->cond_timedwait(&turns, &shared, &late)
                                      : side->cond_clockwait(&turns, &shared, CLOCK_MONOTONIC, &late);
            MUST(failed == 0);
        }
        turn++;
        MUST((i % 2 ? side->cond_signal : side->cond_broadcast)(&turns) == 0);
    }
    side->mutex_unlock(&shared);
    return NULL;
}
static void unlocks(void *p) { ((const struct side *)p)->mutex_unlock(&shared); }
static atomic_int waits;
static void *waits_for_ever(void *p) {
    const struct side *side = p;
    side->mutex_lock(&shared);
    pthread_cleanup_push(unlocks, p);
    waits = 1;
    for (;;) side->cond_wait(&turns, &shared);
    pthread_cleanup_pop(1);
    return NULL;
}
static void conditions(void) {
    pthread_t t[2];
    for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, takes_turns, (void *)sides[i]);
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    MUST(turn == 2 * TURNS);
    for (int i = 0; i < 2; i++) {
        const struct side *a = sides[i], *b = sides[!i];
        void *result;
        waits = 0;
        pthread_create(&t[0], NULL, waits_for_ever, (void *)a);
        while (!waits) sched_yield();
        MUST(b->mutex_lock(&shared) == 0);
        MUST(b->mutex_unlock(&shared) == 0);
        pthread_cancel(t[0]);
        pthread_join(t[0], &result);
        MUST(result == PTHREAD_CANCELED);
        MUST(b->mutex_trylock(&shared) == 0);
        MUST(b->mutex_unlock(&shared) == 0);
        pthread_cond_t c;
        MUST(a->cond_init(&c, NULL) == 0);
        MUST(b->cond_destroy(&c) == 0);
    }
}

// Apart, since what is lost ends in a hang or worse.
static int holds(void (*check)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE_S);
        check();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0;
}

#ifdef LINKED
const struct side *library_side(void), *library_early(void);
static const struct side *other(const char *way, const char *library) {
    (void)library;
    return strcmp(way, "early") == 0 ? library_early() : library_side();
}
#else
static const char *version(const char *name) {
    if (strcmp(name, "pthread_cond_clockwait") == 0 || strstr(name, "trylock") || strstr(name, "timedlock") || strstr(name, "clocklock"))
        return "GLIBC_2.34";
    return strstr(name, "cond") ? "GLIBC_2.3.2" : "GLIBC_2.2.5";
}
static void *look_up(const char *way, const char *name) {
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *found = strcmp(way, "dlvsym") ? dlsym(libc, name) : dlvsym(libc, name, version(name));
    if (!found) puts(dlerror());
    return found;
}
#define LOOK_UP(name, result, arguments) side.name = (result(*) arguments)look_up(way, "pthread_" #name);
static const struct side *other(const char *way, const char *library) {
    static struct side side;
    if (strcmp(way, "dlsym") == 0 || strcmp(way, "dlvsym") == 0) {
        FUNCTIONS(LOOK_UP)
        return &side;
    }
    int flags = RTLD_NOW | (strcmp(way, "deepbind") == 0 ? RTLD_DEEPBIND : 0);
    int nested = strcmp(way, "nested") == 0, within = strcmp(way, "within") == 0;
    void *handle = nested || within || strcmp(way, "dlmopen") == 0 ? dlmopen(LM_ID_NEWLM, library, flags) : dlopen(library, flags);
    const struct side *(*get)(const char *) = NULL;
    const char *name = nested ? "library_nested" : within ? "library_within" : strcmp(way, "next") == 0 ? "library_next" : "library_side";
    if (handle) get = (const struct side *(*)(const char *))dlsym(handle, name);
    if (get == NULL) {
        puts(dlerror());
        exit(2);
    }
    return get(library);
}
#endif

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    sides[1] = other(argv[1], argv[2]);
    if (sides[1] == NULL) return 2;
    int excluded = holds(mutexes), woken = holds(conditions);
    printf("%s, %s\n", excluded ? "excluded" : "NOT excluded", woken ? "woken" : "NOT woken");
    return !(excluded && woken);
}
