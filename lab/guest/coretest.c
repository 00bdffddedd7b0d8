// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Work for the lab's core-idling scenarios, whose tasks say in their names where they may run.
 *
 *   coretest storm ms=N [hogs=H] [leaves=L] [pairs=P] [pin=C] [pin2=C] [part=A-B]
 *       ct-free: H that compute, L that fork and exec children in a row, P pairs that wake each other through pipes;
 *       ct-pinC: computes on CPU C alone; ct-partA-B: forks children that compute on CPUs A to B alone.
 *       Prints what each kind got done. Those named ct-nice compute at nice 5.
 *   coretest change ms=N period_ms=P masks=M,M,.. file=F      writes the masks (A-B or A) to a file in turn, one at the
 *       end of each period; who is late catches up, but is never more than a period behind: what is more is left out
 *   coretest change ... in=F out=F                            the same as commands; each is answered by a line
 *       Marks the trace: `coreidle to HEX` before, `coreidle at HEX` when it is done. Prints the times that it took,
 *       how late the median one began, and how many were left out.
 *   coretest one mask=M file=F | in=F out=F                   a single change
 *   coretest affinities                                       every process's CPUs: pid, hex, k(ernel) or u(ser), name
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char **arguments;

static const char *text(const char *name)
{
	size_t n = strlen(name);

	for (char **a = arguments; *a; a++)
		if (!strncmp(*a, name, n) && (*a)[n] == '=')
			return *a + n + 1;
	return NULL;
}

static long number(const char *name, long otherwise)
{
	const char *t = text(name);

	return t ? atol(t) : otherwise;
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(int64_t t)
{
	struct timespec at = { t / 1000000000, t % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static volatile uint64_t sink;

/* A piece of work: some 10 us. */
static void piece(void)
{
	uint64_t x = 88172645463325252ULL;

	for (int i = 0; i < 2000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

/* `A` or `A-B`. */
static void range(const char *t, int *from, int *to)
{
	if (sscanf(t, "%d-%d", from, to) < 2)
		*to = *from;
}

/* Before anything else is done: from its first turn on a task has the name that says where it may run. */
static void become(const char *name, const char *cpus)
{
	prctl(PR_SET_NAME, name);
	if (cpus) {
		cpu_set_t set;
		int from = 0, to = 0;

		range(cpus, &from, &to);
		CPU_ZERO(&set);
		for (int c = from; c <= to; c++)
			CPU_SET(c, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			die("sched_setaffinity");
	}
}

enum { HOGS = 16 };

static struct done {
	_Atomic long hogs[HOGS], nice, leaves, wakes, pinned[2], partial;
} *done;

static pid_t start(void)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	return child;
}

static void compute(_Atomic long *count, int64_t end)
{
	while (now() < end) {
		piece();
		++*count;
	}
	_exit(0);
}

static void pair(int64_t end)
{
	int there[2], back[2];
	char c = 0;

	if (pipe(there) || pipe(back))
		die("pipe");
	if (start() == 0) {
		close(there[1]);
		while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
			piece();
		_exit(0);
	}
	while (now() < end) {
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			break;
		done->wakes++;
		piece();
		/* Else the two would do nothing but this, and the trace would be of nothing else. */
		usleep(500);
	}
	close(there[1]);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void leaves(int64_t end)
{
	while (now() < end) {
		int status = 1;
		pid_t child = start();

		if (child == 0) {
			execl("/proc/self/exe", "coretest", "leaf", NULL);
			_exit(1);
		}
		if (waitpid(child, &status, 0) != child || status)
			die("leaf");
		done->leaves++;
		usleep(2000);
	}
	_exit(0);
}

static void storm(int64_t end)
{
	const char *part = text("part");
	long hogs = number("hogs", 0);
	char name[16];

	done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (done == MAP_FAILED)
		die("mmap");
	become("ct-free", NULL);
	for (long i = 0; i < hogs && i < HOGS; i++)
		if (start() == 0)
			compute(&done->hogs[i], end);
	if (number("nice", 0) && start() == 0) {
		if (nice(5) < 0)
			die("nice");
		compute(&done->nice, end);
	}
	for (long i = number("leaves", 0); i > 0; i--)
		if (start() == 0)
			leaves(end);
	for (long i = number("pairs", 0); i > 0; i--)
		if (start() == 0)
			pair(end);
	for (int i = 0; i < 2; i++) {
		const char *pin = text(i ? "pin2" : "pin");

		if (pin && start() == 0) {
			snprintf(name, sizeof(name), "ct-pin%s", pin);
			become(name, pin);
			/* Wakes, too: for half of the time it sleeps. */
			while (now() < end) {
				for (int64_t until = now() + 3000000; now() < until; done->pinned[i]++)
					piece();
				usleep(3000);
			}
			_exit(0);
		}
	}
	if (part && start() == 0) {
		snprintf(name, sizeof(name), "ct-part%s", part);
		become(name, part);
		while (now() < end) {
			pid_t child = start();

			if (child == 0) {
				for (int j = 0; j < 200; j++)
					piece();
				_exit(0);
			}
			waitpid(child, NULL, 0);
			done->partial++;
			usleep(1000);
		}
		_exit(0);
	}
	int status = 0, failed = 0;

	while (wait(&status) > 0)
		failed |= status;
	if (failed) {
		printf("a task failed: %d\n", failed);
		exit(1);
	}
	long least = done->hogs[0], most = least, all = 0;

	for (long i = 0; i < hogs && i < HOGS; i++) {
		long n = done->hogs[i];

		least = n < least ? n : least;
		most = n > most ? n : most;
		all += n;
	}
	printf("{\"storm\":%ld,\"hogs\":%ld,\"least\":%ld,\"most\":%ld,\"nice\":%ld,\"leaves\":%ld,\"wakes\":%ld,"
	       "\"pinned\":%ld,\"pinned2\":%ld,\"partial\":%ld}\n",
	       number("ms", 0), all, least, most, (long)done->nice, (long)done->leaves, (long)done->wakes,
	       (long)done->pinned[0], (long)done->pinned[1], (long)done->partial);
}

static void mark(int marker, const char *what, const char *mask)
{
	char line[64];
	int from = 0, to = 0;

	range(mask, &from, &to);
	int n = snprintf(line, sizeof(line), "coreidle %s %llx\n", what, ((2ULL << to) - 1) & ~((1ULL << from) - 1));

	/* EBADF: nothing is recorded. */
	if (marker >= 0 && write(marker, line, n) != n && errno != EBADF)
		die("trace_marker");
}

static void change_to(const char *mask, int marker, int file, int out)
{
	char line[128];
	int n = snprintf(line, sizeof(line), out >= 0 ? "mask %s\n" : "%s\n", mask);

	mark(marker, "to", mask);
	if (write(file, line, n) != n)
		die(mask);
	if (out >= 0) {
		size_t got = 0;

		while (got < sizeof(line) - 1 && read(out, line + got, 1) == 1 && line[got++] != '\n')
			;
		line[got] = 0;
		if (strcmp(line, "ok\n")) {
			printf("mask %s: %s", mask, line);
			exit(1);
		}
	}
	mark(marker, "at", mask);
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void change(int64_t end, bool once)
{
	static int64_t took[100000], late[100000];
	const char *masks = text(once ? "mask" : "masks"), *at = masks, *file = text("file");
	int marker = open("/sys/kernel/tracing/trace_marker", O_WRONLY | O_CLOEXEC);
	int in = open(file ? file : text("in"), O_WRONLY | O_CLOEXEC), out = file ? -1 : open(text("out"), O_RDONLY | O_CLOEXEC);
	int64_t period = number("period_ms", 10) * 1000000, next = now();
	long n = 0, left_out = 0;

	/* Its period is the test's, whatever the scheduler makes of the others. */
	struct sched_param first = { .sched_priority = 1 };

	become("ct-change", NULL);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		die("sched_setscheduler");
	if (in < 0 || (!file && out < 0))
		die("change");
	do {
		char mask[16];
		size_t length = strcspn(at, ",");
		int64_t from = now();

		snprintf(mask, sizeof(mask), "%.*s", (int)length, at);
		at = at[length] ? at + length + 1 : masks;
		change_to(mask, marker, in, out);
		if (n < 100000) {
			late[n] = from - next;
			took[n++] = now() - from;
		}
		/* Those that are due already are made up for at once, unless it is a second behind. */
		for (next += period; next + 1000000000 <= now(); next += period)
			left_out++;
		if (!once)
			sleep_until(next);
	} while (!once && now() < end);
	if (once)
		return;
	qsort(took, n, sizeof(took[0]), compare);
	qsort(late, n, sizeof(late[0]), compare);
	printf("{\"changes\":%ld,\"left_out\":%ld,\"median_us\":%.1f,\"p99_us\":%.1f,\"most_us\":%.1f,"
	       "\"late_median_us\":%.1f}\n",
	       n, left_out, took[n / 2] / 1e3, took[n * 99 / 100] / 1e3, took[n - 1] / 1e3, late[n / 2] / 1e3);
}

static void affinities(void)
{
	DIR *all = opendir("/proc");

	for (struct dirent *d; all && (d = readdir(all));) {
		char path[300], line[4200], name[32] = "";
		unsigned long long mask = 0;
		char kind = 'k';

		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/status", d->d_name);
		FILE *f = fopen(path, "r");

		/* It may have ended. */
		while (f && fgets(line, sizeof(line), f)) {
			if (sscanf(line, "Name: %31s", name) == 1)
				continue;
			if (!strncmp(line, "VmSize:", 7))
				kind = 'u';
			if (!strncmp(line, "Cpus_allowed:", 13)) {
				/* Words of 32 CPUs: the guest has one. */
				const char *last = strrchr(line, ',');

				mask = strtoull(last ? last + 1 : line + 13, NULL, 16);
			}
		}
		if (f)
			fclose(f);
		if (mask)
			printf("%s %llx %c %s\n", d->d_name, mask, kind, name);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "leaf")) {
		become("ct-free", NULL);
		for (int i = 0; i < 50; i++)
			piece();
		return 0;
	}
	arguments = argv + 1;
	int64_t end = now() + number("ms", 1000) * 1000000LL;

	if (!strcmp(what, "storm")) {
		storm(end);
	} else if (!strcmp(what, "change")) {
		change(end, false);
	} else if (!strcmp(what, "one")) {
		change(end, true);
	} else if (!strcmp(what, "affinities")) {
		affinities();
	} else {
		fprintf(stderr, "coretest: storm, change, one or affinities\n");
		return 2;
	}
	return 0;
}
