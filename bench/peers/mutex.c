// An uncontended pthread_mutex_lock and unlock: glibc's, and each lock's under LD_PRELOAD, in turns within one run.
//
//     mutex TYPE THREADS LIBRARY ROUNDS LOCK:POLICY...
//
// TYPE is the mutex's: normal, recursive, errorcheck or adaptive. THREADS is 2 (another sleeps meanwhile) or 1, where glibc
// leaves out atomic instructions.
//
// A child process for glibc (twice: the second shows the noise) and one for each lock. They take turns in a random order; a
// turn is some milliseconds of the child's own CPU time, so that time without the core does not count. A ratio is that of a
// child's turn to glibc's of the same round. Prints a row for each child: the median of its ratios, their quartiles, and the
// median of its rates.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS = 100000, SLICES = 4, MOST = 64 };

static const struct {
    const char *name;
    int type;
} types[] = {{"normal", PTHREAD_MUTEX_NORMAL},
             {"recursive", PTHREAD_MUTEX_RECURSIVE},
             {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
             {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}};

static pthread_mutex_t m;
static volatile long inside;

static int initialise(const char *type) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        pthread_mutexattr_t attributes;
        if (strcmp(type, types[i].name) != 0) continue;
        return pthread_mutexattr_init(&attributes) || pthread_mutexattr_settype(&attributes, types[i].type) ||
               pthread_mutex_init(&m, &attributes);
    }
    return 1;
}

static void *sleeps(void *unused) {
    for (;;) pause();
    return unused;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) void pairs(long count) {
    for (long i = 0; i < count; i++) {
        pthread_mutex_lock(&m);
        inside++;
        pthread_mutex_unlock(&m);
    }
}

// A byte on standard input is a turn; the answer is its best slice, in millions a second.
static int child(const char *type, const char *threads) {
    pthread_t other;
    if (initialise(type) != 0) return 1;
    if (strcmp(threads, "2") == 0 && pthread_create(&other, NULL, sleeps, NULL) != 0) return 1;
    pairs(PAIRS);
    char go;
    while (read(STDIN_FILENO, &go, 1) == 1) {
        double best = 0;
        for (int i = 0; i < SLICES; i++) {
            double from = now();
            pairs(PAIRS);
            double rate = PAIRS / (now() - from) * 1e-6;
            if (rate > best) best = rate;
        }
        if (write(STDOUT_FILENO, &best, sizeof best) != sizeof best) return 1;
    }
    return 0;
}

struct peer {
    const char *name;
    int to, from;
    double *rates, *ratios;
};

static void start(struct peer *peer, const char *type, const char *threads, const char *library) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) exit(1);
    if (fork() == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        if (library != NULL) {
            setenv("LD_PRELOAD", library, 1);
            setenv("WATTWISE_LOCK", peer->name, 1);
        }
        execl("/proc/self/exe", "mutex", "--child", type, threads, (char *)NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    peer->to = in[1];
    peer->from = out[0];
}

static double turn(struct peer *peer) {
    double rate;
    if (write(peer->to, "", 1) != 1 || read(peer->from, &rate, sizeof rate) != sizeof rate) {
        fprintf(stderr, "mutex: no answer from %s\n", peer->name);
        exit(1);
    }
    return rate;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--child") == 0) return child(argv[2], argv[3]);
    int rounds = argc > 4 ? atoi(argv[4]) : 0, peers = argc - 3;
    if (argc < 6 || rounds < 1 || peers > MOST) {
        fprintf(stderr, "usage: mutex TYPE THREADS LIBRARY ROUNDS LOCK:POLICY...\n");
        return 2;
    }
    // All on one CPU: none has a better one.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    struct peer all[MOST];
    for (int i = 0; i < peers; i++) {
        all[i].name = i < 2 ? "glibc" : argv[i + 3];
        all[i].rates = calloc((size_t)rounds, sizeof(double));
        all[i].ratios = calloc((size_t)rounds, sizeof(double));
        if (all[i].rates == NULL || all[i].ratios == NULL) return 1;
        start(&all[i], argv[1], argv[2], i < 2 ? NULL : argv[3]);
    }
    unsigned seed = 1;
    for (int round = 0; round < rounds; round++) {
        int order[MOST];
        for (int i = 0; i < peers; i++) {
            int j = rand_r(&seed) % (i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (int i = 0; i < peers; i++) all[order[i]].rates[round] = turn(&all[order[i]]);
        for (int i = 0; i < peers; i++) all[i].ratios[round] = all[i].rates[round] / all[0].rates[round];
    }
    for (int i = 0; i < peers; i++) {
        close(all[i].to);
        qsort(all[i].rates, (size_t)rounds, sizeof(double), ascending);
        qsort(all[i].ratios, (size_t)rounds, sizeof(double), ascending);
        printf("%-24s %.3f  %.3f to %.3f  %.1f M/s\n", all[i].name, all[i].ratios[rounds / 2], all[i].ratios[rounds / 4],
               all[i].ratios[rounds * 3 / 4], all[i].rates[rounds / 2]);
    }
    while (wait(NULL) > 0) {}
    return 0;
}
