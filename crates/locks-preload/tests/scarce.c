// A program whose malloc takes a mutex, and one without memory.
//
//     scarce malloc     the very first lock is taken inside malloc
//     scarce memory     the first lock is taken, and waited for, when no memory can be had any more
//
// Exit code 0: all went well.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// As jemalloc does: every call takes a lock of its own.
static pthread_mutex_t arena_lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(16) char arena[1 << 20];
static size_t used;
static int locked_malloc;
static void *get(size_t size) {
    if (locked_malloc) pthread_mutex_lock(&arena_lock);
    size_t at = (used + 31) & ~(size_t)15;
    void *p = NULL;
    if (size <= sizeof arena - at) {
        memcpy(arena + at - sizeof size, &size, sizeof size);
        used = at + size;
        p = arena + at;
    }
    if (locked_malloc) pthread_mutex_unlock(&arena_lock);
    return p;
}
void *malloc(size_t size) { return get(size); }
void *calloc(size_t n, size_t size) { return get(n * size); }
void free(void *p) { (void)p; }
void *realloc(void *p, size_t size) {
    void *to = get(size);
    size_t before = 0;
    if (p) memcpy(&before, (char *)p - sizeof before, sizeof before);
    if (to && p) memcpy(to, p, before < size ? before : size);
    return to;
}

enum { THREADS = 6, ROUNDS = 300 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static atomic_int go;
static long count;
static void *adds(void *unused) {
    while (!go) usleep(1000);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&m);
        long seen = count;
        if (i % 10 == 0) usleep(20);
        count = seen + 1;
        pthread_cond_broadcast(&c);
        pthread_mutex_unlock(&m);
    }
    return unused;
}

int main(int argc, char **argv) {
    alarm(60);
    if (argc > 1 && strcmp(argv[1], "malloc") == 0) {
        locked_malloc = 1;
        char *p = malloc(100);
        return p == NULL;
    }
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, adds, NULL) != 0) return 3;
    volatile char stack[1 << 16];
    memset((char *)stack, 1, sizeof stack);
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_AS, &none) != 0) return 4;
    go = 1;
    pthread_mutex_lock(&m);
    while (count < THREADS * ROUNDS) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    return count != THREADS * ROUNDS;
}
