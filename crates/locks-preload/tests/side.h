// The functions that one side of `bound.c` locks and waits by.
#include <pthread.h>
#include <time.h>

#define FUNCTIONS(X)                                                                                            \
    X(mutex_init, int, (pthread_mutex_t *, const pthread_mutexattr_t *))                                        \
    X(mutex_destroy, int, (pthread_mutex_t *))                                                                  \
    X(mutex_lock, int, (pthread_mutex_t *))                                                                     \
    X(mutex_trylock, int, (pthread_mutex_t *))                                                                  \
    X(mutex_timedlock, int, (pthread_mutex_t *, const struct timespec *))                                       \
    X(mutex_clocklock, int, (pthread_mutex_t *, clockid_t, const struct timespec *))                            \
    X(mutex_unlock, int, (pthread_mutex_t *))                                                                   \
    X(cond_init, int, (pthread_cond_t *, const pthread_condattr_t *))                                           \
    X(cond_destroy, int, (pthread_cond_t *))                                                                    \
    X(cond_wait, int, (pthread_cond_t *, pthread_mutex_t *))                                                    \
    X(cond_timedwait, int, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *))                      \
    X(cond_clockwait, int, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))           \
    X(cond_signal, int, (pthread_cond_t *))                                                                     \
    X(cond_broadcast, int, (pthread_cond_t *))

#define FIELD(name, result, arguments) result(*name) arguments;
struct side {
    FUNCTIONS(FIELD)
};
#undef FIELD

