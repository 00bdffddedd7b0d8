// Every mutex type, call and error of POSIX, condition variables, fork, cancellation and ends of threads, told
// by effect. Exit code 0: all as POSIX has it; else each difference on a line.
//
//     posix [THREADS [glibc]]
//
// With fewer than 4 threads everything is done with few: for locks that spin and never sleep.
// `glibc` leaves out what glibc itself fails: after a fork the child cannot release a recursive mutex that it
// brought along, destroying a condition variable that others waited for never returns there, and a signal that another
// process gives to a private one is lost there for a waiter of this.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static atomic_int failures, checks;
static int plain;
static int few;
#define IS(what, wanted)                                                                       \
    do {                                                                                       \
        long got_ = (long)(what), wanted_ = (long)(wanted);                                    \
        checks++;                                                                              \
        if (got_ != wanted_) {                                                                 \
            failures++;                                                                        \
            printf("line %d: %s is %ld, expected %ld\n", __LINE__, #what, got_, wanted_);      \
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
static void nap(long ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

// Runs a call in another thread.
struct call {
    int (*what)(void *);
    void *with;
    int result;
};
static void *run_call(void *p) {
    struct call *c = p;
    c->result = c->what(c->with);
    return NULL;
}
static int elsewhere(int (*what)(void *), void *with) {
    struct call c = {what, with, -1};
    pthread_t t;
    pthread_create(&t, NULL, run_call, &c);
    pthread_join(t, NULL);
    return c.result;
}
static int try_it(void *m) {
    int r = pthread_mutex_trylock(m);
    if (r == 0) pthread_mutex_unlock(m);
    return r;
}
static int unlock_it(void *m) { return pthread_mutex_unlock(m); }
static int timed_it(void *m) {
    struct timespec t = in_ms(CLOCK_REALTIME, 30);
    int r = pthread_mutex_timedlock(m, &t);
    if (r == 0) pthread_mutex_unlock(m);
    return r;
}
static int clock_it(void *m) {
    struct timespec t = in_ms(CLOCK_MONOTONIC, 30);
    int r = pthread_mutex_clocklock(m, CLOCK_MONOTONIC, &t);
    if (r == 0) pthread_mutex_unlock(m);
    return r;
}
static int bad_time_it(void *m) {
    struct timespec t = {time(NULL) + 10, 1000000000};
    return pthread_mutex_timedlock(m, &t);
}
static int past_it(void *m) {
    struct timespec t = {-5, 0};
    return pthread_mutex_timedlock(m, &t);
}
static int bad_clock_it(void *m) {
    struct timespec t = in_ms(CLOCK_REALTIME, 30);
    return pthread_mutex_clocklock(m, CLOCK_PROCESS_CPUTIME_ID, &t);
}

static void held_elsewhere(pthread_mutex_t *m, int glibcs) {
    struct timespec from = in_ms(CLOCK_MONOTONIC, 0), to;
    IS(elsewhere(try_it, m), EBUSY);
    IS(elsewhere(timed_it, m), ETIMEDOUT);
    to = in_ms(CLOCK_MONOTONIC, 0);
    IS((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000 >= 29, 1);
    IS(elsewhere(clock_it, m), ETIMEDOUT);
    IS(elsewhere(bad_time_it, m), EINVAL);
    // For priority protocols glibc says EINVAL.
    if (!glibcs) IS(elsewhere(past_it, m), ETIMEDOUT);
    IS(elsewhere(bad_clock_it, m), EINVAL);
}

static void mutex_of(int type, pthread_mutex_t *m, int robust, int shared, int protocol) {
    pthread_mutexattr_t a;
    IS(pthread_mutexattr_init(&a), 0);
    IS(pthread_mutexattr_settype(&a, type), 0);
    if (robust) IS(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), 0);
    if (shared) IS(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), 0);
    if (protocol) IS(pthread_mutexattr_setprotocol(&a, protocol), 0);
    IS(pthread_mutex_init(m, &a), 0);
    IS(pthread_mutexattr_destroy(&a), 0);
}

static void types(void) {
    static pthread_mutex_t s_normal = PTHREAD_MUTEX_INITIALIZER;
    static pthread_mutex_t s_recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t s_check = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
    static pthread_mutex_t s_adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    int of[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_ADAPTIVE_NP};
    pthread_mutex_t made[4], *statics[4] = {&s_normal, &s_recursive, &s_check, &s_adaptive};
    for (int i = 0; i < 8; i++) {
        pthread_mutex_t *m = i < 4 ? &made[i] : statics[i - 4];
        int type = of[i % 4];
        if (i < 4) mutex_of(type, m, 0, 0, 0);
        IS(pthread_mutex_lock(m), 0);
        IS(pthread_mutex_destroy(m), EBUSY);
        held_elsewhere(m, 0);
        if (type == PTHREAD_MUTEX_RECURSIVE) {
            struct timespec t = in_ms(CLOCK_REALTIME, 10);
            IS(pthread_mutex_lock(m), 0);
            IS(pthread_mutex_trylock(m), 0);
            IS(pthread_mutex_timedlock(m, &t), 0);
            IS(pthread_mutex_clocklock(m, CLOCK_REALTIME, &t), 0);
            for (int k = 0; k < 4; k++) IS(pthread_mutex_unlock(m), 0);
            IS(elsewhere(try_it, m), EBUSY);
            IS(elsewhere(unlock_it, m), EPERM);
        } else if (type == PTHREAD_MUTEX_ERRORCHECK) {
            struct timespec t = in_ms(CLOCK_REALTIME, 10);
            IS(pthread_mutex_lock(m), EDEADLK);
            IS(pthread_mutex_trylock(m), EBUSY);
            IS(pthread_mutex_timedlock(m, &t), EDEADLK);
            IS(pthread_mutex_clocklock(m, CLOCK_REALTIME, &t), EDEADLK);
            IS(elsewhere(unlock_it, m), EPERM);
        } else {
            IS(pthread_mutex_trylock(m), EBUSY);
            struct timespec t = in_ms(CLOCK_REALTIME, 10);
            IS(pthread_mutex_timedlock(m, &t), ETIMEDOUT);
        }
        IS(pthread_mutex_unlock(m), 0);
        if (type == PTHREAD_MUTEX_RECURSIVE || type == PTHREAD_MUTEX_ERRORCHECK) IS(pthread_mutex_unlock(m), EPERM);
        IS(elsewhere(try_it, m), 0);
        IS(elsewhere(timed_it, m), 0);
        IS(elsewhere(clock_it, m), 0);
        int ceiling;
        IS(pthread_mutex_getprioceiling(m, &ceiling), EINVAL);
        IS(pthread_mutex_consistent(m), EINVAL);
        IS(pthread_mutex_destroy(m), 0);
        if (type == PTHREAD_MUTEX_ERRORCHECK) IS(pthread_mutex_lock(m), EINVAL);
        IS(pthread_mutex_init(m, NULL), 0);
        IS(pthread_mutex_lock(m), 0);
        IS(pthread_mutex_unlock(m), 0);
        IS(pthread_mutex_destroy(m), 0);
    }
    // A moved-out lock: destroyed while unlocked by another thread, memory reused at once.
    for (int i = 0; i < 200; i++) {
        pthread_mutex_t *m = malloc(sizeof *m);
        pthread_mutex_init(m, NULL);
        pthread_mutex_lock(m);
        pthread_mutex_unlock(m);
        pthread_mutex_destroy(m);
        memset(m, 0xff, sizeof *m);
        free(m);
    }
}

static pthread_mutex_t robust_one;
static void *dies_holding(void *p) {
    pthread_mutex_lock(p);
    return NULL;
}
// A shared condition variable with a private mutex: whoever signals, in whichever process, and nothing is lost.
struct across {
    pthread_cond_t c;
    int ready;
};
static pthread_mutex_t pm;
static atomic_int across_waits, across_cleaned, across_holding;
static int says_ready(void *p) {
    struct across *s = p;
    pthread_mutex_lock(&pm);
    s->ready++;
    int r = pthread_cond_signal(&s->c);
    pthread_mutex_unlock(&pm);
    return r;
}
static void across_cleanup(void *unused) {
    (void)unused;
    across_cleaned = 1;
    across_holding = pthread_mutex_unlock(&pm) == 0;
}
static void *across_for_ever(void *p) {
    struct across *s = p;
    pthread_mutex_lock(&pm);
    pthread_cleanup_push(across_cleanup, NULL);
    across_waits = 1;
    for (;;) pthread_cond_wait(&s->c, &pm);
    pthread_cleanup_pop(0);
    return NULL;
}
static void *signals(void *p) {
    for (int i = 0; i < 20; i++) says_ready(p);
    return NULL;
}
static void shared_condition(void) {
    struct across *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    IS(pthread_cond_init(&s->c, &a), 0);
    for (int type = 0; type < 2; type++) {
        mutex_of(type ? PTHREAD_MUTEX_ERRORCHECK : PTHREAD_MUTEX_NORMAL, &pm, 0, 0, 0);
        // From another process, which does not need the mutex.
        s->ready = 0;
        pid_t child = fork();
        if (child == 0) {
            nap(30);
            __atomic_store_n(&s->ready, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST) == 1) {
                pthread_cond_signal(&s->c);
                nap(5);
            }
            _exit(0);
        }
        pthread_mutex_lock(&pm);
        while (!__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST)) IS(pthread_cond_wait(&s->c, &pm), 0);
        __atomic_store_n(&s->ready, 2, __ATOMIC_SEQ_CST);
        IS(elsewhere(try_it, &pm), EBUSY);
        pthread_mutex_unlock(&pm);
        int status = -1;
        waitpid(child, &status, 0);
        IS(status, 0);
        // From this one, where each signal counts: one for each wait, given once the mutex is had.
        pthread_t t;
        s->ready = 0;
        pthread_mutex_lock(&pm);
        pthread_create(&t, NULL, signals, s);
        for (int i = 1; i <= 20; i++)
            while (s->ready < i) IS(pthread_cond_wait(&s->c, &pm), 0);
        pthread_mutex_unlock(&pm);
        pthread_join(t, NULL);
        // Deadlines.
        pthread_mutex_lock(&pm);
        struct timespec at = in_ms(CLOCK_REALTIME, 20);
        IS(pthread_cond_timedwait(&s->c, &pm, &at), ETIMEDOUT);
        at = in_ms(CLOCK_MONOTONIC, 20);
        IS(pthread_cond_clockwait(&s->c, &pm, CLOCK_MONOTONIC, &at), ETIMEDOUT);
        at.tv_nsec = 1000000000;
        IS(pthread_cond_timedwait(&s->c, &pm, &at), EINVAL);
        IS(elsewhere(try_it, &pm), EBUSY);
        IS(pthread_mutex_unlock(&pm), 0);
        if (type) {
            void *result;
            across_waits = across_cleaned = across_holding = 0;
            pthread_create(&t, NULL, across_for_ever, s);
            // It holds the mutex from before it says so until it waits. One that is never given back ends in the alarm.
            while (!across_waits || elsewhere(try_it, &pm) != 0) nap(1);
            IS(pthread_cancel(t), 0);
            pthread_join(t, &result);
            IS(result == PTHREAD_CANCELED, 1);
            IS(across_cleaned, 1);
            IS(across_holding, 1);
            IS(elsewhere(try_it, &pm), 0);
        }
        IS(pthread_mutex_destroy(&pm), 0);
    }
    IS(pthread_cond_destroy(&s->c), 0);
}

static void glibcs(void) {
    // Robust: the owner's death is told.
    mutex_of(PTHREAD_MUTEX_NORMAL, &robust_one, 1, 0, 0);
    pthread_t t;
    pthread_create(&t, NULL, dies_holding, &robust_one);
    pthread_join(t, NULL);
    IS(pthread_mutex_lock(&robust_one), EOWNERDEAD);
    IS(pthread_mutex_consistent(&robust_one), 0);
    IS(pthread_mutex_unlock(&robust_one), 0);
    IS(pthread_mutex_destroy(&robust_one), 0);
    // Inheriting and with a ceiling.
    pthread_mutex_t m;
    mutex_of(PTHREAD_MUTEX_NORMAL, &m, 0, 0, PTHREAD_PRIO_INHERIT);
    IS(pthread_mutex_lock(&m), 0);
    held_elsewhere(&m, 1);
    IS(pthread_mutex_unlock(&m), 0);
    IS(pthread_mutex_destroy(&m), 0);
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT);
    IS(pthread_mutex_init(&m, &a), 0);
    int ceiling = 0;
    IS(pthread_mutex_getprioceiling(&m, &ceiling), 0);
    IS(pthread_mutex_destroy(&m), 0);
    // Shared between processes, with a shared condition variable.
    struct both {
        pthread_mutex_t m;
        pthread_cond_t c;
        int ready;
    } *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mutex_of(PTHREAD_MUTEX_NORMAL, &s->m, 0, 1, 0);
    pthread_condattr_t ca;
    pthread_condattr_init(&ca);
    pthread_condattr_setpshared(&ca, PTHREAD_PROCESS_SHARED);
    IS(pthread_cond_init(&s->c, &ca), 0);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(&s->m);
        s->ready = 1;
        pthread_cond_signal(&s->c);
        pthread_mutex_unlock(&s->m);
        _exit(0);
    }
    pthread_mutex_lock(&s->m);
    while (!s->ready) IS(pthread_cond_wait(&s->c, &s->m), 0);
    pthread_mutex_unlock(&s->m);
    waitpid(child, NULL, 0);
    IS(pthread_cond_destroy(&s->c), 0);
    IS(pthread_mutex_destroy(&s->m), 0);
}

// Exclusion, by all ways of locking at once.
static struct {
    pthread_mutex_t m;
    long a, b;
    atomic_int inside;
} shared = {.m = PTHREAD_MUTEX_INITIALIZER};
static void *mixed(void *p) {
    unsigned seed = (unsigned)(long)p * 2654435761u;
    long done = 0;
    for (int i = 0; i < (few ? 50 : 300); i++) {
        seed = seed * 1664525 + 1013904223;
        int r;
        struct timespec t;
        switch (seed >> 28 & 7) {
        case 0: r = pthread_mutex_trylock(&shared.m); break;
        case 1: t = in_ms(CLOCK_REALTIME, seed >> 16 & 1); r = pthread_mutex_timedlock(&shared.m, &t); break;
        case 2: t = in_ms(CLOCK_MONOTONIC, seed >> 16 & 1); r = pthread_mutex_clocklock(&shared.m, CLOCK_MONOTONIC, &t); break;
        default: r = pthread_mutex_lock(&shared.m);
        }
        if (r != 0) continue;
        if (shared.inside++ != 0) failures++;
        shared.a++;
        if ((seed >> 10 & 127) == 0) sched_yield();
        shared.b++;
        shared.inside--;
        done++;
        pthread_mutex_unlock(&shared.m);
    }
    return (void *)done;
}
static int crowd_size = 8;
static void crowd(void) {
    long total = 0;
    for (int round = 0; round < 4; round++) {
        pthread_t t[64];
        for (long i = 0; i < crowd_size; i++) pthread_create(&t[i], NULL, mixed, (void *)(i + round * 64 + 1));
        for (int i = 0; i < crowd_size; i++) {
            void *done;
            pthread_join(t[i], &done);
            total += (long)done;
        }
    }
    IS(shared.a, total);
    IS(shared.b, total);
}

// Condition variables.
static pthread_mutex_t qm = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t qc = PTHREAD_COND_INITIALIZER;
static int tickets, waiting, served;
static void *takes_ticket(void *unused) {
    pthread_mutex_lock(&qm);
    waiting++;
    while (tickets == 0) pthread_cond_wait(&qc, &qm);
    tickets--;
    served++;
    pthread_mutex_unlock(&qm);
    return unused;
}
static void wait_until(int *what, int is) {
    for (;;) {
        pthread_mutex_lock(&qm);
        int now = *what;
        pthread_mutex_unlock(&qm);
        if (now == is) return;
        nap(1);
    }
}
static pthread_mutex_t cm;
static pthread_cond_t cc = PTHREAD_COND_INITIALIZER;
static atomic_int cleaned, cleaned_holding;
static void cleanup(void *unused) {
    (void)unused;
    cleaned = 1;
    // Error-checking: only the holder may release.
    cleaned_holding = pthread_mutex_unlock(&cm) == 0;
}
static void *waits_for_ever(void *unused) {
    pthread_mutex_lock(&cm);
    pthread_cleanup_push(cleanup, NULL);
    for (;;) pthread_cond_wait(&cc, &cm);
    pthread_cleanup_pop(0);
    return unused;
}
static void *waits_a_while(void *unused) {
    pthread_mutex_lock(&cm);
    pthread_cleanup_push(cleanup, NULL);
    struct timespec t = in_ms(CLOCK_REALTIME, 60000);
    for (;;) pthread_cond_timedwait(&cc, &cm, &t);
    pthread_cleanup_pop(0);
    return unused;
}
static void conditions(void) {
    pthread_t t[10];
    int n = few ? 2 : 10;
    for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, takes_ticket, NULL);
    wait_until(&waiting, n);
    pthread_mutex_lock(&qm);
    tickets = 1;
    pthread_cond_signal(&qc);
    pthread_mutex_unlock(&qm);
    wait_until(&served, 1);
    pthread_mutex_lock(&qm);
    tickets = n - 1;
    pthread_cond_broadcast(&qc);
    pthread_mutex_unlock(&qm);
    for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    IS(served, n);
    IS(pthread_cond_signal(&qc), 0);
    // Deadlines, by every clock.
    pthread_mutex_lock(&qm);
    struct timespec at = in_ms(CLOCK_REALTIME, 30);
    IS(pthread_cond_timedwait(&qc, &qm, &at), ETIMEDOUT);
    IS(elsewhere(try_it, &qm), EBUSY);
    at = in_ms(CLOCK_MONOTONIC, 30);
    IS(pthread_cond_clockwait(&qc, &qm, CLOCK_MONOTONIC, &at), ETIMEDOUT);
    at = in_ms(CLOCK_REALTIME, 30);
    IS(pthread_cond_clockwait(&qc, &qm, CLOCK_REALTIME, &at), ETIMEDOUT);
    IS(pthread_cond_clockwait(&qc, &qm, CLOCK_PROCESS_CPUTIME_ID, &at), EINVAL);
    at.tv_nsec = 1000000000;
    IS(pthread_cond_timedwait(&qc, &qm, &at), EINVAL);
    at.tv_nsec = -1;
    IS(pthread_cond_timedwait(&qc, &qm, &at), EINVAL);
    at = (struct timespec){-1, 0};
    IS(pthread_cond_timedwait(&qc, &qm, &at), ETIMEDOUT);
    IS(elsewhere(try_it, &qm), EBUSY);
    pthread_mutex_unlock(&qm);
    pthread_condattr_t a;
    pthread_cond_t mono;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    IS(pthread_cond_init(&mono, &a), 0);
    pthread_mutex_lock(&qm);
    at = in_ms(CLOCK_MONOTONIC, 30);
    IS(pthread_cond_timedwait(&mono, &qm, &at), ETIMEDOUT);
    pthread_mutex_unlock(&qm);
    IS(pthread_cond_destroy(&mono), 0);
    // Only the holder of an error-checking mutex may wait.
    mutex_of(PTHREAD_MUTEX_ERRORCHECK, &cm, 0, 0, 0);
    IS(pthread_cond_wait(&cc, &cm), EPERM);
    // Cancelling: the mutex is held when the handlers run.
    void *(*waiters[])(void *) = {waits_for_ever, waits_a_while};
    for (int i = 0; i < 2; i++) {
        cleaned = cleaned_holding = 0;
        pthread_t c;
        void *result;
        pthread_create(&c, NULL, waiters[i], NULL);
        nap(20);
        IS(pthread_cancel(c), 0);
        pthread_join(c, &result);
        IS(result == PTHREAD_CANCELED, 1);
        IS(cleaned, 1);
        IS(cleaned_holding, 1);
        IS(elsewhere(try_it, &cm), 0);
    }
    // Nobody is left behind in the list.
    IS(pthread_cond_destroy(&cc), 0);
    IS(pthread_cond_destroy(&qc), 0);
    // A private condition variable with a mutex of glibc's.
    pthread_mutex_t inherit;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    mutex_of(PTHREAD_MUTEX_NORMAL, &inherit, 0, 0, PTHREAD_PRIO_INHERIT);
    pthread_mutex_lock(&inherit);
    at = in_ms(CLOCK_REALTIME, 20);
    IS(pthread_cond_timedwait(&c, &inherit, &at), ETIMEDOUT);
    IS(elsewhere(try_it, &inherit), EBUSY);
    pthread_mutex_unlock(&inherit);
    IS(pthread_cond_destroy(&c), 0);
}

// Acquiring is no point of cancellation, however the lock makes this thread wait.
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static atomic_int kept_busy;
static int acquired;
static void *keeps_busy(void *unused) {
    for (int n = 0; kept_busy; n++) {
        // This is not about fairness: under a lock that is not fair, a thread that yields meets a gap at times.
        if (n % 64 == 63) usleep(100);
        pthread_mutex_lock(&busy);
        struct timespec t, until = in_ms(CLOCK_MONOTONIC, 0);
        until.tv_nsec += 20000;
        do clock_gettime(CLOCK_MONOTONIC, &t);
        while ((t.tv_sec - until.tv_sec) * 1000000000 + t.tv_nsec - until.tv_nsec < 0);
        pthread_mutex_unlock(&busy);
    }
    return unused;
}
static void *acquires_with_a_cancellation_pending(void *timed) {
    pthread_cancel(pthread_self());
    for (int i = 0; i < 20; i++) {
        struct timespec t = in_ms(CLOCK_REALTIME, 60000);
        int failed = timed ? pthread_mutex_timedlock(&busy, &t) : pthread_mutex_lock(&busy);
        acquired += !failed;
        pthread_mutex_unlock(&busy);
    }
    pthread_testcancel();
    return NULL;
}
static void pending_cancellation(void) {
    for (int timed = 0; timed < 2; timed++) {
        pthread_t holder, c;
        void *result;
        kept_busy = 1;
        acquired = 0;
        pthread_create(&holder, NULL, keeps_busy, NULL);
        pthread_create(&c, NULL, acquires_with_a_cancellation_pending, timed ? &busy : NULL);
        pthread_join(c, &result);
        kept_busy = 0;
        pthread_join(holder, NULL);
        IS(result == PTHREAD_CANCELED, 1);
        IS(acquired, 20);
    }
}

// A queue of one place: nothing may be lost, with deadlines going off all the time.
static int place, produced, consumed, stop;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER, empty = PTHREAD_COND_INITIALIZER;
static void *producer(void *unused) {
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&qm);
        while (place) pthread_cond_wait(&empty, &qm);
        place = 1;
        produced++;
        pthread_cond_signal(&full);
        pthread_mutex_unlock(&qm);
    }
    return unused;
}
static void *consumer(void *unused) {
    for (;;) {
        pthread_mutex_lock(&qm);
        while (!place && !stop) {
            struct timespec t = in_ms(CLOCK_REALTIME, 1);
            pthread_cond_timedwait(&full, &qm, &t);
        }
        if (!place && stop) break;
        place = 0;
        consumed++;
        pthread_cond_signal(&empty);
        pthread_mutex_unlock(&qm);
    }
    pthread_mutex_unlock(&qm);
    return unused;
}
static void queue(void) {
    pthread_t p[3], c[3];
    int n = few ? 1 : 3;
    for (int i = 0; i < n; i++) {
        pthread_create(&p[i], NULL, producer, NULL);
        pthread_create(&c[i], NULL, consumer, NULL);
    }
    for (int i = 0; i < n; i++) pthread_join(p[i], NULL);
    pthread_mutex_lock(&qm);
    stop = 1;
    pthread_cond_broadcast(&full);
    pthread_mutex_unlock(&qm);
    for (int i = 0; i < n; i++) pthread_join(c[i], NULL);
    IS(produced, 500 * n);
    IS(consumed, 500 * n);
}

// Destroyed and overwritten while those who were signalled, and one who is cancelled, have yet to return.
static pthread_mutex_t gm = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gone;
static int gone_waiting, gone_go;
static void unlocks_gm(void *unused) {
    (void)unused;
    pthread_mutex_unlock(&gm);
}
static void *waits_gone(void *unused) {
    pthread_mutex_lock(&gm);
    pthread_cleanup_push(unlocks_gm, NULL);
    gone_waiting++;
    while (!gone_go) pthread_cond_wait(&gone, &gm);
    pthread_cleanup_pop(1);
    return unused;
}
static void gone_at_once(void) {
    for (int round = 0; round < (few ? 8 : 40); round++) {
        pthread_t t[3];
        int n = few ? 2 : 3;
        pthread_cond_init(&gone, NULL);
        gone_waiting = gone_go = 0;
        for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, waits_gone, NULL);
        pthread_mutex_lock(&gm);
        while (gone_waiting < n) {
            pthread_mutex_unlock(&gm);
            sched_yield();
            pthread_mutex_lock(&gm);
        }
        gone_go = 1;
        if (round % 4 == 1) pthread_cancel(t[0]);
        pthread_cond_signal(&gone);
        if (round % 4 == 2) pthread_cancel(t[0]);
        for (int i = 1; i < n; i++) pthread_cond_signal(&gone);
        if (round % 4 == 3) pthread_cancel(t[0]);
        if (round % 8 >= 4) pthread_cond_broadcast(&gone);
        IS(pthread_cond_destroy(&gone), 0);
        memset(&gone, 0xa5, sizeof gone);
        pthread_mutex_unlock(&gm);
        for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
        for (size_t i = 0; i < sizeof gone; i++) IS(((unsigned char *)&gone)[i], 0xa5);
    }
}

// Fork with the mutex held and a crowd waiting for it: the child goes on alone.
static pthread_mutex_t fm = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t fr = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t fc = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t fcm = PTHREAD_MUTEX_INITIALIZER;
static void *waits_fm(void *unused) {
    pthread_mutex_lock(&fm);
    pthread_mutex_unlock(&fm);
    return unused;
}
static void *waits_fc(void *unused) {
    pthread_mutex_lock(&fcm);
    struct timespec t = in_ms(CLOCK_REALTIME, 300);
    pthread_cond_timedwait(&fc, &fcm, &t);
    pthread_mutex_unlock(&fcm);
    return unused;
}
static int child_of(int depth) {
    alarm(20);
    failures = 0;
    IS(pthread_mutex_trylock(&fm), EBUSY);
    IS(pthread_mutex_unlock(&fm), 0);
    IS(pthread_mutex_unlock(&fcm), 0);
    if (!plain) IS(pthread_mutex_unlock(&fr), 0);
    for (int i = 0; i < (few ? 3 : 20); i++) {
        pthread_t t[4];
        pthread_mutex_lock(&fm);
        for (int k = 0; k < (few ? 1 : 4); k++) pthread_create(&t[k], NULL, waits_fm, NULL);
        if (i == 0) nap(5);
        pthread_mutex_unlock(&fm);
        for (int k = 0; k < (few ? 1 : 4); k++) pthread_join(t[k], NULL);
    }
    pthread_t t;
    pthread_create(&t, NULL, waits_fc, NULL);
    nap(20);
    pthread_cond_signal(&fc);
    pthread_join(t, NULL);
    if (!plain) IS(pthread_cond_destroy(&fc), 0);
    if (depth > 0 && !plain) {
        pthread_mutex_lock(&fr);
        pthread_mutex_lock(&fm);
        pthread_mutex_lock(&fcm);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            memset(&fc, 0, sizeof fc);
            _exit(child_of(depth - 1));
        }
        int status;
        waitpid(grandchild, &status, 0);
        IS(status, 0);
    }
    return failures != 0;
}
static void forks(void) {
    for (int i = 0; i < (few ? 2 : 5); i++) {
        pthread_t t[6], w;
        pthread_mutex_lock(&fm);
        pthread_mutex_lock(&fr);
        for (int k = 0; k < (few ? 1 : 6); k++) pthread_create(&t[k], NULL, waits_fm, NULL);
        pthread_create(&w, NULL, waits_fc, NULL);
        nap(i * 3);
        // If another thread held it, it would be locked in the child for ever.
        pthread_mutex_lock(&fcm);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            int bad = child_of(i == 0);
            fflush(stdout);
            _exit(bad);
        }
        pthread_mutex_unlock(&fcm);
        int status;
        waitpid(child, &status, 0);
        IS(status, 0);
        pthread_mutex_unlock(&fr);
        pthread_mutex_unlock(&fm);
        for (int k = 0; k < (few ? 1 : 6); k++) pthread_join(t[k], NULL);
        pthread_join(w, NULL);
    }
}

// A condition variable of one process in memory of two: each has signals for its own waiters alone.
struct apart {
    pthread_cond_t c;
    atomic_int waits, parent_is_done, woken;
};
static void *waits_apart(void *p) {
    struct apart *s = p;
    pthread_mutex_lock(&fm);
    s->waits = 1;
    while (!s->woken) pthread_cond_wait(&s->c, &fm);
    pthread_mutex_unlock(&fm);
    return NULL;
}
static int apart_child(struct apart *s) {
    alarm(20);
    pthread_t t;
    pthread_create(&t, NULL, waits_apart, s);
    while (!s->waits) sched_yield();
    pthread_mutex_lock(&fm);
    s->waits = 2;
    pthread_mutex_unlock(&fm);
    while (!s->parent_is_done) sched_yield();
    pthread_mutex_lock(&fm);
    s->woken = 1;
    pthread_cond_signal(&s->c);
    pthread_mutex_unlock(&fm);
    return pthread_join(t, NULL);
}
static void processes_apart(void) {
    struct apart *s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    IS(pthread_cond_init(&s->c, NULL), 0);
    pid_t child = fork();
    if (child == 0) _exit(apart_child(s));
    while (s->waits < 2) sched_yield();
    for (int i = 0; i < 100; i++) {
        IS(pthread_cond_signal(&s->c), 0);
        IS(pthread_cond_broadcast(&s->c), 0);
    }
    s->parent_is_done = 1;
    int status = -1;
    waitpid(child, &status, 0);
    IS(status, 0);
    munmap(s, 4096);
}

// Locks in the destructors of a thread's end.
static pthread_key_t key;
static atomic_int ended;
static void at_end(void *p) {
    (void)p;
    pthread_mutex_lock(&qm);
    ended++;
    pthread_mutex_unlock(&qm);
}
static void *ends(void *p) {
    pthread_setspecific(key, p);
    return NULL;
}
static void thread_ends(void) {
    pthread_key_create(&key, at_end);
    for (int round = 0; round < 10; round++) {
        pthread_t t[20];
        int n = few ? 2 : 20;
        for (int i = 0; i < n; i++) pthread_create(&t[i], NULL, ends, &key);
        for (int i = 0; i < n; i++) pthread_join(t[i], NULL);
    }
    IS(ended, few ? 20 : 200);
}

// Before any library's constructor of ours has run, and in the program's own.
static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;
__attribute__((constructor(101))) static void constructor(void) {
    IS(pthread_mutex_lock(&early), 0);
    IS(pthread_mutex_trylock(&early), EBUSY);
    IS(pthread_mutex_unlock(&early), 0);
}

int main(int argc, char **argv) {
    if (argc > 1) crowd_size = atoi(argv[1]);
    plain = argc > 2 && strcmp(argv[2], "glibc") == 0;
    few = crowd_size < 4;
    alarm(100);
    setvbuf(stdout, NULL, _IOLBF, 0);
    types();
    glibcs();
    shared_condition();
    crowd();
    conditions();
    pending_cancellation();
    queue();
    gone_at_once();
    forks();
    if (!plain) processes_apart();
    thread_ends();
    printf("%d checks, %d failures\n", checks, failures);
    return failures != 0;
}
