// Whom a mutex and a condition variable serve first when threads of several real-time priorities wait, and others.
//
//     priority
//
// Exit code 0: the highest priority first, oldest first among equals, all others after them. 77: the kernel gives this
// process no real-time priority.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// In the order in which they come; 0 is SCHED_OTHER.
static const int comes[] = {0, 20, 50, 10, 50, 0, 40, 30};
enum { WAITERS = sizeof comes / sizeof *comes };
static const int served[] = {2, 4, 6, 7, 1, 3};

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int order[WAITERS], n;
static int may_go;

static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}
static void *locks(void *p) {
    pthread_mutex_lock(&m);
    order[n++] = (int)(long)p;
    pthread_mutex_unlock(&m);
    return NULL;
}
static void *locks_recursive(void *p) {
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    order[n++] = (int)(long)p;
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    return NULL;
}
static void *locks_by_a_time(void *p) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 60;
    if (pthread_mutex_timedlock(&m, &t) != 0) return NULL;
    order[n++] = (int)(long)p;
    pthread_mutex_unlock(&m);
    return NULL;
}
// A deadline that is over before the mutex is free.
static void *gives_up(void *p) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20000000;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return pthread_mutex_timedlock(p, &t) == ETIMEDOUT ? NULL : p;
}
static void *waits(void *p) {
    pthread_mutex_lock(&m);
    while (!may_go) pthread_cond_wait(&c, &m);
    may_go--;
    order[n++] = (int)(long)p;
    pthread_mutex_unlock(&m);
    return NULL;
}

static int start(pthread_t *t, int priority, void *(*what)(void *), long with) {
    pthread_attr_t a;
    struct sched_param param = {.sched_priority = priority};
    pthread_attr_init(&a);
    if (priority) {
        pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED);
        pthread_attr_setschedpolicy(&a, priority == 30 ? SCHED_RR : SCHED_FIFO);
        pthread_attr_setschedparam(&a, &param);
    }
    int failed = pthread_create(t, &a, what, (void *)with);
    pthread_attr_destroy(&a);
    return failed;
}

static int wrong(const char *what, int serving) {
    int bad = n != WAITERS;
    for (int i = 0; i < serving && i < n; i++) bad |= order[i] != served[i];
    if (!bad) return 0;
    printf("%s: %d of %d served, in the order of priorities", what, n, WAITERS);
    for (int i = 0; i < n; i++) printf(" %d", comes[order[i]]);
    printf("\n");
    return 1;
}

static int by_mutex(const char *name, pthread_mutex_t *mutex, void *(*what)(void *)) {
    pthread_t t[WAITERS], late;
    n = 0;
    pthread_mutex_lock(mutex);
    for (long i = 0; i < WAITERS; i++) {
        if (start(&t[i], comes[i], what, i) != 0) exit(77);
        nap(20);
    }
    if (start(&late, 60, gives_up, (long)mutex) != 0) exit(77);
    void *result;
    pthread_join(late, &result);
    pthread_mutex_unlock(mutex);
    for (int i = 0; i < WAITERS; i++) pthread_join(t[i], NULL);
    if (result != NULL) printf("%s: a deadline was not kept\n", name);
    return wrong(name, 6) | (result != NULL);
}

static int by_condition(void) {
    pthread_t t[WAITERS];
    n = 0;
    for (long i = 0; i < WAITERS; i++) {
        if (start(&t[i], comes[i], waits, i) != 0) exit(77);
        nap(20);
    }
    for (int i = 0; i < WAITERS; i++) {
        pthread_mutex_lock(&m);
        may_go++;
        pthread_cond_signal(&c);
        pthread_mutex_unlock(&m);
        nap(20);
    }
    for (int i = 0; i < WAITERS; i++) pthread_join(t[i], NULL);
    return wrong("a condition variable", 6);
}

// Real-time threads and others in a crowd: exclusion, and nobody is left behind.
static long count;
static void *adds(void *p) {
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&m);
        long seen = count;
        if (i % 50 == 0) sched_yield();
        count = seen + 1;
        pthread_mutex_unlock(&m);
    }
    return p;
}
static int crowd(void) {
    pthread_t t[12];
    for (int i = 0; i < 12; i++)
        if (start(&t[i], i % 3 * 10, adds, 0) != 0) exit(77);
    for (int i = 0; i < 12; i++) pthread_join(t[i], NULL);
    if (count != 12 * 200) printf("the crowd counted to %ld\n", count);
    return count != 12 * 200;
}

int main(void) {
    alarm(60);
    int bad = by_mutex("a mutex", &m, locks);
    bad |= by_mutex("a recursive mutex", &recursive, locks_recursive);
    bad |= by_mutex("a mutex, by a time", &m, locks_by_a_time);
    bad |= by_condition();
    bad |= crowd();
    return bad;
}
