// No function of ours leaves its mark in errno: glibc's do not, and a program may lock between a call that fails and the
// use of errno.
//
//     errno [THREADS]      default 8
//
// Each call is made with errno at a value that no system call gives. A line for each function that changed it, with how often
// and to what; exit code 1 if there is one.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SENTINEL 7654321
// Every function that the library exports, by place.
enum { INIT, DESTROY, LOCK, TRYLOCK, TIMEDLOCK, CLOCKLOCK, UNLOCK, C_INIT, C_DESTROY, C_WAIT, C_TIMEDWAIT, C_CLOCKWAIT, C_SIGNAL, C_BROADCAST, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
    "pthread_mutex_init", "pthread_mutex_destroy", "pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock",
    "pthread_mutex_clocklock", "pthread_mutex_unlock", "pthread_cond_init", "pthread_cond_destroy", "pthread_cond_wait",
    "pthread_cond_timedwait", "pthread_cond_clockwait", "pthread_cond_signal", "pthread_cond_broadcast"};
static atomic_long calls[FUNCTIONS], changed[FUNCTIONS];
static atomic_int to[FUNCTIONS];
#define CALL(function, call)                                                                   \
    ({                                                                                         \
        errno = SENTINEL;                                                                      \
        int result_ = (call);                                                                  \
        int now_ = errno;                                                                      \
        calls[function]++;                                                                     \
        if (now_ != SENTINEL) {                                                                \
            changed[function]++;                                                               \
            to[function] = now_;                                                               \
        }                                                                                      \
        result_;                                                                               \
    })

static int threads = 8;
static atomic_int stop, running;
static pthread_mutex_t before_all = PTHREAD_MUTEX_INITIALIZER;

static struct timespec in_us(clockid_t clock, long us) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += us % 1000000 * 1000;
    t.tv_sec += us / 1000000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}
static void burn(long us) {
    struct timespec until = in_us(CLOCK_MONOTONIC, us), now;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
}

// What all threads want: each type of ours, and what is glibc's.
#define KINDS 8
static pthread_mutex_t mutexes[KINDS];
static pthread_cond_t conds[2][KINDS]; // private and shared between processes, for each mutex
static void make(pthread_mutex_t *m, int kind) {
    static const int types[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    if (kind < 4) pthread_mutexattr_settype(&a, types[kind]);
    if (kind == 4) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    if (kind == 5) pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    if (kind == 6) pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    CALL(INIT, pthread_mutex_init(m, kind == 7 ? NULL : &a));
    pthread_mutexattr_destroy(&a);
}
static void make_cond(pthread_cond_t *c, int shared) {
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    if (shared) pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    CALL(C_INIT, pthread_cond_init(c, &a));
    pthread_condattr_destroy(&a);
}

static int get(pthread_mutex_t *m, unsigned how) {
    struct timespec real = in_us(CLOCK_REALTIME, 30), steady = in_us(CLOCK_MONOTONIC, 30), past = {-1, 0};
    switch (how % 6) {
    case 0: return CALL(TRYLOCK, pthread_mutex_trylock(m));
    case 1: return CALL(TIMEDLOCK, pthread_mutex_timedlock(m, &real));
    case 2: return CALL(CLOCKLOCK, pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &steady));
    case 3: return CALL(TIMEDLOCK, pthread_mutex_timedlock(m, &past));
    default: return CALL(LOCK, pthread_mutex_lock(m));
    }
}
static void wait_a_while(pthread_cond_t *c, pthread_mutex_t *m, unsigned how) {
    struct timespec real = in_us(CLOCK_REALTIME, 200), steady = in_us(CLOCK_MONOTONIC, 200), past = {-1, 0};
    switch (how % 8) {
    case 0: CALL(C_WAIT, pthread_cond_wait(c, m)); break;
    case 1:
    case 3: CALL(C_TIMEDWAIT, pthread_cond_timedwait(c, m, &real)); break;
    case 2:
    case 4: CALL(C_CLOCKWAIT, pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, &steady)); break;
    default: CALL(C_TIMEDWAIT, pthread_cond_timedwait(c, m, &past));
    }
}
static void *worker(void *number) {
    unsigned seed = (unsigned)(size_t)number * 2654435761u + 1;
    while (!stop) {
        unsigned how = (unsigned)rand_r(&seed) >> 8, kind = how & 0x10000 ? 0 : (unsigned)rand_r(&seed) % KINDS;
        pthread_mutex_t *m = &mutexes[kind];
        if (get(m, how) != 0) continue;
        if (how % 64 == 1) burn(20);
        if (how % 64 == 2) sched_yield();
        // A shared condition variable with a mutex of ours takes a helper's thread: seldom.
        if (how % 50 == 0) wait_a_while(&conds[0][kind], m, how >> 8);
        if (how % 1009 == 0) wait_a_while(&conds[1][kind], m, how >> 8);
        if (how % 3 == 0) CALL(C_SIGNAL, pthread_cond_signal(&conds[how % 2][kind]));
        if (how % 11 == 0) CALL(C_BROADCAST, pthread_cond_broadcast(&conds[how % 2][kind]));
        CALL(UNLOCK, pthread_mutex_unlock(m));
        if (how % 13 == 0) {
            pthread_mutex_t own;
            pthread_cond_t c;
            make(&own, (int)kind);
            make_cond(&c, how & 1);
            CALL(LOCK, pthread_mutex_lock(&own));
            CALL(DESTROY, pthread_mutex_destroy(&own));
            CALL(UNLOCK, pthread_mutex_unlock(&own));
            CALL(DESTROY, pthread_mutex_destroy(&own));
            CALL(C_DESTROY, pthread_cond_destroy(&c));
        }
    }
    running--;
    return NULL;
}

// Signals interrupt sleeps.
static void nothing(int signal) { (void)signal; }

static int report(const char *where) {
    int bad = 0;
    for (int f = 0; f < FUNCTIONS; f++) {
        if (changed[f]) {
            bad = 1;
            printf("%s: %s changed errno in %ld of %ld calls, to %d (%s)\n", where, names[f], changed[f], calls[f], to[f], strerror(to[f]));
        } else if (calls[f] == 0 && strcmp(where, "load") == 0) {
            bad = 1;
            printf("%s: %s was not called\n", where, names[f]);
        }
    }
    return bad;
}

int main(int argc, char **argv) {
    if (argc > 1) threads = atoi(argv[1]);
    alarm(100);
    setvbuf(stdout, NULL, _IOLBF, 0);
    // The first lock of the process reads the environment and more.
    CALL(LOCK, pthread_mutex_lock(&before_all));
    CALL(UNLOCK, pthread_mutex_unlock(&before_all));
    for (int i = 0; i < KINDS; i++) make(&mutexes[i], i);
    for (int i = 0; i < 2 * KINDS; i++) make_cond(&conds[i / KINDS][i % KINDS], i / KINDS);
    struct sigaction quiet = {.sa_handler = nothing};
    sigaction(SIGUSR1, &quiet, NULL);
    pthread_t t[64];
    if (threads > 64) threads = 64;
    running = threads;
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, worker, (void *)(size_t)i);
    for (int round = 0; round < 800; round++) {
        usleep(1000);
        for (int i = 0; i < 2 * KINDS; i++) CALL(C_BROADCAST, pthread_cond_broadcast(&conds[i / KINDS][i % KINDS]));
        pthread_kill(t[round % threads], SIGUSR1);
    }
    stop = 1;
    while (running) {
        for (int i = 0; i < 2 * KINDS; i++) CALL(C_BROADCAST, pthread_cond_broadcast(&conds[i / KINDS][i % KINDS]));
        usleep(1000);
    }
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    int bad = report("load");
    // A child repairs what the fork left behind.
    CALL(LOCK, pthread_mutex_lock(&before_all));
    pid_t child = fork();
    if (child == 0) {
        memset(changed, 0, sizeof changed);
        CALL(UNLOCK, pthread_mutex_unlock(&before_all));
        CALL(C_SIGNAL, pthread_cond_signal(&conds[0][0]));
        CALL(LOCK, pthread_mutex_lock(&mutexes[1]));
        _exit(report("child"));
    }
    int status;
    waitpid(child, &status, 0);
    long all = 0;
    for (int f = 0; f < FUNCTIONS; f++) all += calls[f];
    printf("%ld calls\n", all);
    return bad || status != 0;
}
