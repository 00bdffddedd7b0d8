// Many threads sleep at one mutex, and then each locks it once: crowd THREADS. Prints how often a thread went to sleep meanwhile, in
// hundredths: a wake-up that is another's shows as one more.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void *once(void *unused) {
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return unused;
}

static long sleeps(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t small;
    if (threads == NULL || pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, 65536) != 0) return 1;
    pthread_mutex_lock(&m);
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], &small, once, NULL) != 0) return 1;
    }
    // Until none goes to sleep any more.
    for (long before = -1; before != sleeps();) {
        before = sleeps();
        usleep(200000);
        // This thread's own.
        if (sleeps() == before + 1) break;
    }
    long before = sleeps();
    pthread_mutex_unlock(&m);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", (sleeps() - before) * 100 / count);
    return 0;
}
