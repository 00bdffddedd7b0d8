// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Loads for the lab, on one CPU each, measured in the thread's own CPU time.
 *
 *   wwload steady cpu=N share=PERCENT [period_ms=10] ms=LENGTH
 *   wwload burst  cpu=N busy_ms=B idle_ms=I ms=LENGTH     idle counted from the burst's end
 *   wwload cyclic cpu=N period_us=1000 busy_us=50 ms=LENGTH
 *   wwload build  jobs=N ms=LENGTH                        short processes that read and write pipes
 *   wwload work   cpu=N loops=L                           a fixed piece of work; prints its wall time
 *   wwload jobs   cpu=0 loops=L rest_ms=R trials=N        the same N times, each after a rest of R ms and up to a
 *                                                         second more; prints wall time and the speed before
 *
 * cpus=N begins the same on each of the first N CPUs, stagger_us=S one after the other: each process is
 * created on its CPU, so that no task moves. With halt=1 the first four are busy by vpower's /dev/vpower-busy:
 * to the kernel they run, and no host works.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **arguments;

static long option(const char *name, long otherwise)
{
	size_t n = strlen(name);

	for (char **a = arguments; *a; a++)
		if (!strncmp(*a, name, n) && (*a)[n] == '=')
			return atol(*a + n + 1);
	return otherwise;
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin(long cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("wwload: sched_setaffinity");
		exit(1);
	}
}

static volatile uint64_t sink;

static void work(long loops)
{
	uint64_t x = 88172645463325252ULL;

	while (loops--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

/* CPU time in which work() does a loop, in thousandths of a ns. */
static int64_t loop_ps(void)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t from = now(CLOCK_THREAD_CPUTIME_ID);

		work(200000);
		int64_t took = now(CLOCK_THREAD_CPUTIME_ID) - from;

		best = took < best ? took : best;
	}
	return best * 1000 / 200000 + 1;
}

/* vpower's device, or -1: the CPU works itself. */
static int halting = -1;

/* Works for some CPU time: in short pieces, so that a slow clock is noticed. */
static void busy(int64_t ns)
{
	int64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	for (;;) {
		int64_t left = until - now(CLOCK_THREAD_CPUTIME_ID);

		if (left <= 0)
			break;
		if (halting < 0) {
			work(500);
			continue;
		}
		uint64_t piece = left < 100000000 ? left : 100000000;

		if (write(halting, &piece, sizeof(piece)) < 0) {
			perror("wwload: vpower-busy");
			exit(1);
		}
	}
}

static void sleep_until(int64_t t)
{
	struct timespec at = { t / 1000000000, t % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* Busy for a time in every period of an absolute schedule; a period that was missed is left out. */
static void periodic(int64_t period, int64_t work_ns, int64_t length)
{
	int64_t start = now(CLOCK_MONOTONIC), next = start;

	while (next < start + length) {
		busy(work_ns);
		int64_t t = now(CLOCK_MONOTONIC);

		while (next <= t)
			next += period;
		sleep_until(next);
	}
}

/* A compiler driver's shape: a child that computes, writes its result into a pipe and ends. */
static void build(long jobs, int64_t length)
{
	int64_t end = now(CLOCK_MONOTONIC) + length;
	unsigned int seed = 1;

	for (long j = 1; j < jobs; j++) {
		if (fork() == 0) {
			seed = j + 1;
			break;
		}
	}
	while (now(CLOCK_MONOTONIC) < end) {
		int ends[2];
		char text[4096];

		if (pipe(ends))
			exit(1);
		pid_t child = fork();

		if (child == 0) {
			busy((2 + rand_r(&seed) % 25) * 1000000LL);
			memset(text, 'x', sizeof(text));
			for (int i = 0; i < 8; i++)
				if (write(ends[1], text, sizeof(text)) < 0)
					_exit(1);
			_exit(0);
		}
		close(ends[1]);
		while (read(ends[0], text, sizeof(text)) > 0)
			busy(200000);
		close(ends[0]);
		waitpid(child, NULL, 0);
		busy(1000000);
		/* The disk. */
		usleep(1000 + rand_r(&seed) % 8000);
		/* Each child must draw its own numbers. */
		rand_r(&seed);
	}
	while (wait(NULL) > 0)
		;
}

/* Returns in a process on each of the CPUs; the one that began them waits, and ends. */
static void on_each(long cpus, long stagger_us)
{
	for (long cpu = 0; cpu < cpus; cpu++) {
		pin(cpu);
		pid_t child = fork();

		if (child < 0) {
			perror("wwload: fork");
			exit(1);
		}
		if (child == 0) {
			sleep_until(now(CLOCK_MONOTONIC) + cpu * stagger_us * 1000);
			return;
		}
	}
	int failed = 0, status;

	while (wait(&status) > 0)
		failed |= status;
	exit(failed ? 1 : 0);
}

static long current_khz(void)
{
	FILE *f = fopen("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "r");
	long khz = 0;

	if (!f || fscanf(f, "%ld", &khz) != 1) {
		perror("wwload: scaling_cur_freq");
		exit(1);
	}
	fclose(f);
	return khz;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int64_t ms = 1000000;

	arguments = argv + 1;
	if (option("cpus", 0))
		on_each(option("cpus", 0), option("stagger_us", 0));
	pin(option("cpu", -1));
	int64_t length = option("ms", 1000) * ms;

	if (option("halt", 0)) {
		halting = open("/dev/vpower-busy", O_WRONLY | O_CLOEXEC);
		if (halting < 0) {
			perror("wwload: /dev/vpower-busy");
			return 1;
		}
	}

	if (!strcmp(what, "steady")) {
		int64_t period = option("period_ms", 10) * ms;
		long share = option("share", 50);

		if (share >= 100)
			busy(length);
		else
			periodic(period, period * share / 100, length);
	} else if (!strcmp(what, "burst")) {
		int64_t end = now(CLOCK_MONOTONIC) + length;

		while (now(CLOCK_MONOTONIC) < end) {
			busy(option("busy_ms", 5) * ms);
			sleep_until(now(CLOCK_MONOTONIC) + option("idle_ms", 45) * ms);
		}
	} else if (!strcmp(what, "cyclic")) {
		periodic(option("period_us", 1000) * 1000, option("busy_us", 50) * 1000, length);
	} else if (!strcmp(what, "build")) {
		build(option("jobs", 4), length);
	} else if (!strcmp(what, "work")) {
		int64_t from = now(CLOCK_MONOTONIC);

		work(option("loops", 10000000));
		printf("%lld\n", (long long)(now(CLOCK_MONOTONIC) - from));
	} else if (!strcmp(what, "jobs")) {
		for (long trial = 0; trial < option("trials", 10); trial++) {
			/* From another moment of every poll and tick. */
			sleep_until(now(CLOCK_MONOTONIC) + (option("rest_ms", 1000) + trial * 797 % 1000) * ms);
			long khz = current_khz();
			int64_t from = now(CLOCK_MONOTONIC);

			work(option("loops", 10000000));
			printf("%lld %ld\n", (long long)(now(CLOCK_MONOTONIC) - from), khz);
		}
	} else if (!strcmp(what, "speed")) {
		printf("%lld\n", (long long)loop_ps());
	} else {
		fprintf(stderr, "wwload: steady, burst, cyclic, build, work or speed\n");
		return 2;
	}
	return 0;
}
