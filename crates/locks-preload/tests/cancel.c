// Cancelling a thread that waits on a condition variable: never in the middle of a signal handler that runs meanwhile, always
// once that is over, and with the mutex held.
//
//     cancel [glibc]      glibc until 2.40 does cancel handlers: with `glibc` those checks are left out
//
// Exit code 0, or a line for what is not so.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failures;
#define IS(what, wanted)                                                                       \
    do {                                                                                       \
        long got_ = (long)(what), wanted_ = (long)(wanted);                                    \
        if (got_ != wanted_) {                                                                 \
            failures++;                                                                        \
            printf("line %d: %s is %ld, expected %ld\n", __LINE__, #what, got_, wanted_);      \
        }                                                                                      \
    } while (0)

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static atomic_int waits, in_handler, go_on, handler_done, cleaned;
static int go, how, disabled, asynchronous;

// No point of cancellation is in it.
static void handler(int number) {
    (void)number;
    in_handler = 1;
    while (!go_on) sched_yield();
    handler_done++;
}
static void unlock(void *unused) {
    (void)unused;
    // The holder's own, whoever asks.
    cleaned += pthread_mutex_trylock(&m) == EBUSY;
    pthread_mutex_unlock(&m);
}
static struct timespec in_an_hour(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += 3600;
    return t;
}
static void *waiter(void *unused) {
    if (disabled) pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    if (asynchronous) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    struct timespec real = in_an_hour(CLOCK_REALTIME), steady = in_an_hour(CLOCK_MONOTONIC);
    pthread_mutex_lock(&m);
    pthread_cleanup_push(unlock, NULL);
    waits = 1;
    while (!go) {
        if (how == 0) pthread_cond_wait(&c, &m);
        if (how == 1) pthread_cond_timedwait(&c, &m, &real);
        if (how == 2) pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &steady);
    }
    pthread_cleanup_pop(1);
    return unused;
}
static pthread_t begin(void) {
    pthread_t t;
    waits = in_handler = go_on = handler_done = cleaned = go = 0;
    pthread_create(&t, NULL, waiter, NULL);
    while (!waits) sched_yield();
    // Holding the mutex once: it waits, or is about to sleep.
    pthread_mutex_lock(&m);
    pthread_mutex_unlock(&m);
    return t;
}
static void nap(void) { nanosleep(&(struct timespec){0, 300000}, NULL); }

int main(int argc, char **argv) {
    int glibc = argc > 1 && strcmp(argv[1], "glibc") == 0;
    alarm(60);
    void *result;
    for (int restarts = 0; restarts < 2; restarts++) {
        struct sigaction act = {.sa_handler = handler, .sa_flags = restarts ? SA_RESTART : 0};
        sigaction(SIGUSR1, &act, NULL);
        for (how = 0; how < 3; how++) {
            for (int round = 0; round < 20; round++) {
                // Asleep, or about to be.
                pthread_t t = begin();
                if (round % 2) nap();
                IS(pthread_cancel(t), 0);
                IS(pthread_cancel(t), 0);
                pthread_join(t, &result);
                IS(result == PTHREAD_CANCELED, 1);
                IS(cleaned, 1);
                if (glibc) continue;
                // In a handler, of a thread that was asleep or about to be.
                t = begin();
                if (round % 2) nap();
                pthread_kill(t, SIGUSR1);
                while (!in_handler) sched_yield();
                IS(pthread_cancel(t), 0);
                if (round % 4 < 2) nap();
                go_on = 1;
                pthread_join(t, &result);
                IS(result == PTHREAD_CANCELED, 1);
                IS(handler_done, 1);
                IS(cleaned, 1);
            }
            // Who may not be cancelled goes on waiting for its signal.
            disabled = 1;
            pthread_t t = begin();
            nap();
            IS(pthread_cancel(t), 0);
            nap();
            IS(pthread_cancel(t), 0);
            pthread_mutex_lock(&m);
            go = 1;
            pthread_cond_signal(&c);
            pthread_mutex_unlock(&m);
            pthread_join(t, &result);
            IS(result == NULL, 1);
            IS(cleaned, 1);
            disabled = 0;
            // Who may be cancelled anywhere is so here.
            asynchronous = 1;
            t = begin();
            nap();
            nap();
            IS(pthread_cancel(t), 0);
            pthread_join(t, &result);
            IS(result == PTHREAD_CANCELED, 1);
            asynchronous = 0;
        }
    }
    IS(pthread_mutex_trylock(&m), 0);
    IS(pthread_mutex_unlock(&m), 0);
    // Nobody is left behind.
    IS(pthread_cond_destroy(&c), 0);
    return failures != 0;
}
