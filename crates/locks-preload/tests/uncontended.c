// Locks and unlocks a mutex that nobody else wants: uncontended ROUNDS [threads]. Prints millions a second. With `threads`
// another thread sleeps meanwhile, so that the C library cannot leave out atomic instructions.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long count;
static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1000;
    pthread_t other;
    if (argc > 2 && pthread_create(&other, NULL, sleeps, NULL) != 0) return 1;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < rounds; i++) {
        pthread_mutex_lock(&m);
        count++;
        pthread_mutex_unlock(&m);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) * 1e-9;
    printf("%.1f\n", (double)count / s * 1e-6);
    return count != rounds;
}
