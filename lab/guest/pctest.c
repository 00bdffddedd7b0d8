// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lab's user of /dev/powerctl.
 *
 *   pctest caps            prints what the device says, as JSON
 *   pctest faults          bad numbers, sizes, pointers, words, values
 *   pctest threads N S     N threads with different profiles switch against each other for S ms
 *   pctest hang N          N threads with profiles that sleep until killed
 *   pctest hog CPU T MS    a CPU to itself at T-state T for MS ms
 *   pctest life            exec, fork, inheritance, exit
 *   pctest wait            waiting on a word
 *   pctest pingpong R P    R round trips through two pipes, P of the two ends with a profile; prints ns a trip
 *   pctest latency FILE    a change of speed by ioctl, by writing FILE held open, by opening and writing it,
 *                          and an ioctl that is refused; prints ns each
 *   pctest storm N         N threads that set and clear
 *   pctest on CPU FLAG V   a profile on a CPU: "t" a T-state, "p" a clock in kHz, "d" a desired HWP level; holds it until
 *                          killed
 *   pctest pinned          where a desired HWP level is the default: who may lift it
 *   pctest users N         a user has N profiles and no more, another has its own
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "uapi/powerctl.h"

static int fd;

#define CHECK(what, condition)                                                                    \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			printf("%s: %s: errno %d\n", what, #condition, errno);                    \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int set(unsigned flags, unsigned tstate, unsigned khz)
{
	struct powerctl_profile p = { .size = sizeof(p), .flags = flags, .tstate = tstate, .pstate_khz = khz };

	return ioctl(fd, POWERCTL_SET, &p);
}

static struct powerctl_stats stats(void)
{
	struct powerctl_stats s = { .size = sizeof(s) };

	CHECK("stats", ioctl(fd, POWERCTL_STATS, &s) == 0);
	return s;
}

static struct powerctl_caps caps(void)
{
	struct powerctl_caps c = { .size = sizeof(c) };

	CHECK("caps", ioctl(fd, POWERCTL_CAPS, &c) == 0);
	return c;
}

static void faults(void)
{
	struct powerctl_profile p = { .size = sizeof(p), .flags = POWERCTL_TSTATE, .tstate = 8 };
	struct powerctl_caps c = caps();
	struct { struct powerctl_profile p; uint64_t more; } longer = { .p = p };
	int64_t word = 1;
	struct powerctl_wait w = { .size = sizeof(w), .width = 8, .address = (uintptr_t)&word, .expected = 1,
				   .timeout_ns = 1000000 };

#define REFUSED(e, call) CHECK(#e, (call) == -1 && errno == (e))
	REFUSED(ENOTTY, ioctl(fd, _IO(POWERCTL_IOC_MAGIC, 99)));
	REFUSED(ENOTTY, ioctl(fd, _IO('x', 1)));
	REFUSED(ENOTTY, ioctl(fd, _IOR(POWERCTL_IOC_MAGIC, 1, struct powerctl_profile), &p));
	REFUSED(EFAULT, ioctl(fd, POWERCTL_SET, NULL));
	REFUSED(EFAULT, ioctl(fd, POWERCTL_SET, (void *)1));
	REFUSED(EFAULT, ioctl(fd, POWERCTL_CAPS, (void *)0xffff800000000000));
	p.size = 8;
	REFUSED(EINVAL, ioctl(fd, POWERCTL_SET, &p));
	REFUSED(EINVAL, ioctl(fd, _IOC(_IOC_WRITE, POWERCTL_IOC_MAGIC, 1, 8), &p));
	/* A newer program: more bytes are taken if they are zero. */
	longer.p.size = sizeof(longer);
	CHECK("longer", ioctl(fd, _IOC(_IOC_WRITE, POWERCTL_IOC_MAGIC, 1, sizeof(longer)), &longer) == 0);
	longer.more = 1;
	REFUSED(E2BIG, ioctl(fd, _IOC(_IOC_WRITE, POWERCTL_IOC_MAGIC, 1, sizeof(longer)), &longer));
	CHECK("clear", ioctl(fd, POWERCTL_CLEAR) == 0);
	REFUSED(ENOENT, ioctl(fd, POWERCTL_CLEAR));
	p.size = sizeof(p);
	REFUSED(ENOENT, ioctl(fd, POWERCTL_GET, &p));
	p.reserved[1] = 1;
	REFUSED(EINVAL, ioctl(fd, POWERCTL_SET, &p));
	REFUSED(EINVAL, set(0, 8, 0));
	REFUSED(EINVAL, set(0x80, 8, 0));
	REFUSED(EINVAL, set(POWERCTL_PSTATE | POWERCTL_HWP, 0, c.khz_min));
	REFUSED(ERANGE, set(POWERCTL_TSTATE, 0, 0));
	REFUSED(ERANGE, set(POWERCTL_TSTATE, 17, 0));
	REFUSED(ERANGE, set(POWERCTL_PSTATE, 0, c.khz_max + 1));
	REFUSED(ERANGE, set(POWERCTL_PSTATE, 0, c.khz_min - 1));
	w.address++;
	REFUSED(EINVAL, ioctl(fd, POWERCTL_WAIT, &w));
	w.address = 0x10000;
	REFUSED(EFAULT, ioctl(fd, POWERCTL_WAIT, &w));
	w.address = (uintptr_t)&word;
	w.width = 3;
	REFUSED(EINVAL, ioctl(fd, POWERCTL_WAIT, &w));
	w.width = 8;
	w.hint = 0x7000;
	REFUSED(EINVAL, ioctl(fd, POWERCTL_WAIT, &w));
	CHECK("nothing left", stats().profiles == 0);
	/* Without rights: lowering is for all who may open, raising is not. */
	if (fork() == 0) {
		p = (struct powerctl_profile){ .size = sizeof(p), .flags = POWERCTL_HWP, .hwp_min = 255,
					       .hwp_max = 255 };
		CHECK("root raises", ioctl(fd, POWERCTL_SET, &p) == 0);
		CHECK("setuid", setuid(1000) == 0);
		CHECK("lowers", set(POWERCTL_TSTATE, 4, 0) == 0);
		REFUSED(EPERM, ioctl(fd, POWERCTL_SET, &p));
		/* Still of the device's group: it may open. */
		CHECK("group opens", open("/dev/powerctl", O_RDWR | O_CLOEXEC) >= 0);
		exit(0);
	}
	int status;

	wait(&status);
	CHECK("rights", status == 0);
	if (fork() == 0) {
		CHECK("setgid", setgid(1000) == 0 && setuid(1000) == 0);
		CHECK("no open", open("/dev/powerctl", O_RDWR) == -1 && errno == EACCES);
		exit(0);
	}
	wait(&status);
	CHECK("others", status == 0);
}

static volatile int stop;
static unsigned long switches;
static pthread_barrier_t ready;

static void *thread(void *number)
{
	long n = (long)number;
	struct powerctl_caps c = caps();
	unsigned step = (c.khz_default - c.khz_min) / 100000 / 10 * 100000;
	unsigned tstate = 1 + n % 15, khz = c.khz_min / 100000 * 100000 + 100000 + n % 10 * step;

	CHECK("set", set(POWERCTL_TSTATE | POWERCTL_PSTATE, tstate, khz) == 0);
	printf("thread %ld %u %u\n", (long)syscall(SYS_gettid), tstate, khz);
	pthread_barrier_wait(&ready);
	while (!stop) {
		sched_yield();
		__atomic_fetch_add(&switches, 1, __ATOMIC_RELAXED);
		if (n % 3 == 0)
			usleep(500);
	}
	return NULL;
}

/* A joined thread may not be over yet: the kernel says so to who joins before it calls those that trace ends. */
static void falls_to(unsigned profiles)
{
	for (int i = 0; i < 5000 && stats().profiles != profiles; i++)
		usleep(1000);
	CHECK("empty", stats().profiles == profiles);
}

static void threads(long n, long ms)
{
	pthread_t *ids = calloc(n, sizeof(*ids));
	unsigned others = stats().profiles;

	pthread_barrier_init(&ready, NULL, n + 1);
	for (long i = 0; i < n; i++)
		CHECK("create", pthread_create(&ids[i], NULL, thread, (void *)i) == 0);
	pthread_barrier_wait(&ready);
	printf("in force %u\n", stats().profiles);
	usleep(ms * 1000);
	stop = 1;
	for (long i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	falls_to(others);
}

/* Keeps a CPU to itself with a profile, and is not switched from while it does. */
static void hog(long cpu, long tstate, long ms)
{
	int64_t end = now() + ms * 1000000;
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK("pinned", sched_setaffinity(0, sizeof(one), &one) == 0);
	CHECK("first", sched_setscheduler(0, SCHED_FIFO, &first) == 0);
	CHECK("set", set(POWERCTL_TSTATE, tstate, 0) == 0);
	printf("%ld\n", (long)getpid());
	fflush(stdout);
	while (now() < end)
		;
}

static void *sleeper(void *unused)
{
	(void)unused;
	CHECK("set", set(POWERCTL_TSTATE, 3, 0) == 0);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
}

static void hang(long n)
{
	pthread_t id;

	pthread_barrier_init(&ready, NULL, n + 1);
	for (long i = 0; i < n; i++)
		CHECK("create", pthread_create(&id, NULL, sleeper, NULL) == 0);
	pthread_barrier_wait(&ready);
	printf("%u\n", stats().profiles);
	fflush(stdout);
	for (;;)
		pause();
}

static void child_has(const char *what, int wanted)
{
	struct powerctl_profile p = { .size = sizeof(p) };
	pid_t pid = fork();

	if (pid == 0)
		_exit(ioctl(fd, POWERCTL_GET, &p) == 0);
	int status;

	waitpid(pid, &status, 0);
	CHECK(what, WIFEXITED(status) && WEXITSTATUS(status) == wanted);
}

static void life(void)
{
	CHECK("set", set(POWERCTL_TSTATE, 8, 0) == 0);
	child_has("not inherited", 0);
	CHECK("set", set(POWERCTL_TSTATE | POWERCTL_INHERIT, 8, 0) == 0);
	child_has("inherited", 1);
	CHECK("one", stats().profiles == 1);
	/* exec drops it, unless it is inheritable. */
	for (int inherit = 0; inherit < 2; inherit++) {
		pid_t pid = fork();

		if (pid == 0) {
			CHECK("set", set(POWERCTL_TSTATE | (inherit ? POWERCTL_INHERIT : 0), 8, 0) == 0);
			execl("/bin/pctest", "pctest", inherit ? "has" : "hasnot", NULL);
			_exit(1);
		}
		int status;

		waitpid(pid, &status, 0);
		CHECK("exec", status == 0);
	}
	/* The device closed: the profile stays until its thread ends, and holds the module. */
	close(fd);
	fd = open("/dev/powerctl", O_RDWR | O_CLOEXEC);
	CHECK("closed", stats().profiles == 1);
	CHECK("clear", ioctl(fd, POWERCTL_CLEAR) == 0);
	CHECK("none", stats().profiles == 0);
}

static uint32_t word;

static void *writer(void *unused)
{
	(void)unused;
	usleep(20000);
	__atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
}

static void *waiter(void *arg)
{
	struct powerctl_wait w = { .size = sizeof(w), .width = 4, .address = (uintptr_t)&word };

	(void)arg;
	ioctl(fd, POWERCTL_WAIT, &w);
	return NULL;
}

static void waiting(void)
{
	struct powerctl_wait w = { .size = sizeof(w), .width = 4, .address = (uintptr_t)&word,
				   .timeout_ns = 30000000 };
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t id;

	CHECK("time", ioctl(fd, POWERCTL_WAIT, &w) == 0 && w.why == POWERCTL_WOKE_TIME && w.waited_ns >= 30000000);
	w.expected = 5;
	CHECK("at once", ioctl(fd, POWERCTL_WAIT, &w) == 0 && w.why == POWERCTL_WOKE_VALUE && !w.mwaits);
	w.expected = 0;
	w.timeout_ns = 0;
	pthread_create(&id, NULL, writer, NULL);
	CHECK("value", ioctl(fd, POWERCTL_WAIT, &w) == 0 && w.why == POWERCTL_WOKE_VALUE && w.mwaits);
	pthread_join(id, NULL);
	printf("woke after %llu us, %llu mwaits\n", (unsigned long long)w.waited_ns / 1000,
	       (unsigned long long)w.mwaits);
	word = 0;
	sigaction(SIGALRM, &sa, NULL);
	ualarm(20000, 0);
	CHECK("signal", ioctl(fd, POWERCTL_WAIT, &w) == -1 && errno == EINTR && w.why == POWERCTL_WOKE_SIGNAL);
	/* Killed while it waits. */
	pid_t pid = fork();

	if (pid == 0) {
		CHECK("set", set(POWERCTL_TSTATE, 8, 0) == 0);
		pthread_create(&id, NULL, waiter, NULL);
		waiter(NULL);
		_exit(1);
	}
	usleep(50000);
	kill(pid, SIGKILL);
	int status;

	waitpid(pid, &status, 0);
	CHECK("killed", WIFSIGNALED(status) && stats().profiles == 0);
}

static void pingpong(long rounds, long profiled)
{
	int a[2], b[2];
	char c = 0;
	cpu_set_t one;

	/* Both on one CPU: every message is two context switches. */
	CPU_ZERO(&one);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) > 1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	CHECK("pipes", !pipe(a) && !pipe(b));
	pid_t pid = fork();

	if (pid == 0) {
		if (profiled > 1)
			set(POWERCTL_TSTATE, 4, 0);
		for (long i = 0; i < rounds; i++)
			if (read(a[0], &c, 1) != 1 || write(b[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	if (profiled > 0)
		CHECK("set", set(POWERCTL_TSTATE, 8, 0) == 0);
	int64_t from = now();

	for (long i = 0; i < rounds; i++)
		CHECK("pipe", write(a[1], &c, 1) == 1 && read(b[0], &c, 1) == 1);
	printf("%lld\n", (long long)(now() - from) / rounds);
	waitpid(pid, NULL, 0);
}

/* A file written as a shell or cpupower does: opened each time. */
static bool write_file(const char *file, const char *text)
{
	int out = open(file, O_WRONLY | O_CLOEXEC);
	bool written = out >= 0 && write(out, text, strlen(text)) > 0;

	close(out);
	return written;
}

static void latency(const char *file)
{
	struct powerctl_caps c = caps();
	int out = open(file, O_WRONLY | O_CLOEXEC);
	char text[2][16];
	unsigned khz[2] = { c.khz_min, c.khz_max };
	int64_t from, by_ioctl, held, opened, refused;
	int rounds = 2000;

	CHECK("file", out >= 0);
	for (int i = 0; i < 2; i++)
		snprintf(text[i], sizeof(text[i]), "%u", khz[i]);
	from = now();
	for (int i = 0; i < rounds; i++)
		CHECK("set", set(POWERCTL_PSTATE, 0, khz[i % 2]) == 0);
	by_ioctl = (now() - from) / rounds;
	from = now();
	for (int i = 0; i < rounds; i++)
		CHECK("write", pwrite(out, text[i % 2], strlen(text[i % 2]), 0) > 0);
	held = (now() - from) / rounds;
	from = now();
	for (int i = 0; i < rounds; i++)
		CHECK("open and write", write_file(file, text[i % 2]));
	opened = (now() - from) / rounds;
	/* The way into the kernel and back alone. */
	from = now();
	for (int i = 0; i < rounds; i++)
		CHECK("refused", ioctl(fd, _IO(POWERCTL_IOC_MAGIC, 99)) == -1);
	refused = (now() - from) / rounds;
	printf("%lld %lld %lld %lld\n", (long long)by_ioctl, (long long)held, (long long)opened,
	       (long long)refused);
}

/* A profile on one CPU, held until the end. */
static void on(long cpu, char flag, long value)
{
	struct powerctl_profile p = { .size = sizeof(p) };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK("pinned", sched_setaffinity(0, sizeof(one), &one) == 0);
	if (flag == 't') {
		p.flags = POWERCTL_TSTATE;
		p.tstate = value;
	} else if (flag == 'p') {
		p.flags = POWERCTL_PSTATE;
		p.pstate_khz = value;
	} else {
		p.flags = POWERCTL_HWP;
		p.hwp_min = 1;
		p.hwp_max = value;
		p.hwp_desired = value;
	}
	CHECK("set", ioctl(fd, POWERCTL_SET, &p) == 0);
	printf("%ld\n", (long)getpid());
	fflush(stdout);
	for (;;)
		;
}

/* The default is min 1, max 32, desired 16. */
static void pinned(void)
{
	struct powerctl_profile p = { .size = sizeof(p), .flags = POWERCTL_HWP, .hwp_min = 1, .hwp_max = 32 };
	int status;

	if (fork() == 0) {
		CHECK("root lifts", ioctl(fd, POWERCTL_SET, &p) == 0);
		CHECK("setuid", setuid(1000) == 0);
		REFUSED(EPERM, ioctl(fd, POWERCTL_SET, &p));
		p.hwp_desired = 17;
		REFUSED(EPERM, ioctl(fd, POWERCTL_SET, &p));
		p.hwp_desired = 8;
		CHECK("lowers", ioctl(fd, POWERCTL_SET, &p) == 0);
		exit(0);
	}
	wait(&status);
	CHECK("pinned", status == 0);
}

static pthread_barrier_t done;

static void *has_one(void *refused)
{
	struct powerctl_profile p = { .size = sizeof(p), .flags = POWERCTL_TSTATE, .tstate = 8 };
	int result = ioctl(fd, POWERCTL_SET, &p);

	if (refused)
		CHECK("one too many", result == -1 && errno == ENOSPC);
	else
		CHECK("has one", result == 0);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&done);
	return NULL;
}

static void users(long n)
{
	int full[2], status;
	char c;

	CHECK("limit", caps().profiles_max == (unsigned)n);
	CHECK("pipe", pipe(full) == 0);
	pid_t first = fork();

	if (first == 0) {
		pthread_t ids[64], one_more;

		CHECK("few", n < 64);
		CHECK("setuid", setuid(1000) == 0);
		pthread_barrier_init(&ready, NULL, n + 1);
		pthread_barrier_init(&done, NULL, n + 2);
		for (long i = 0; i < n; i++)
			CHECK("create", pthread_create(&ids[i], NULL, has_one, NULL) == 0);
		pthread_barrier_wait(&ready);
		pthread_barrier_destroy(&ready);
		pthread_barrier_init(&ready, NULL, 2);
		CHECK("create", pthread_create(&one_more, NULL, has_one, &ready) == 0);
		pthread_barrier_wait(&ready);
		CHECK("told", write(full[1], "x", 1) == 1);
		pause();
	}
	CHECK("full", read(full[0], &c, 1) == 1);
	/* The others have theirs, and root any number. */
	for (int uid = 0; uid <= 1001; uid += 1001) {
		pid_t pid = fork();

		if (pid == 0) {
			CHECK("setuid", setuid(uid) == 0);
			CHECK("its own", set(POWERCTL_TSTATE, 8, 0) == 0);
			exit(0);
		}
		waitpid(pid, &status, 0);
		CHECK("another user", status == 0);
	}
	kill(first, SIGKILL);
	waitpid(first, &status, 0);
	falls_to(0);
}

static void *stormer(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		CHECK("set", set(POWERCTL_TSTATE, 1 + i % 15, 0) == 0);
		if (i % 2)
			sched_yield();
		CHECK("clear", ioctl(fd, POWERCTL_CLEAR) == 0);
	}
	CHECK("set", set(POWERCTL_TSTATE, 5, 0) == 0);
	return NULL;
}

static void storm(long n)
{
	pthread_attr_t attr;
	pthread_t *ids = calloc(n, sizeof(*ids));

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (long i = 0; i < n; i++)
		CHECK("create", pthread_create(&ids[i], &attr, stormer, NULL) == 0);
	for (long i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	falls_to(0);
	printf("%llu set\n", (unsigned long long)stats().set);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long a = argc > 2 ? atol(argv[2]) : 0, b = argc > 3 ? atol(argv[3]) : 0;
	struct powerctl_profile p = { .size = sizeof(p) };

	fd = open("/dev/powerctl", O_RDWR | O_CLOEXEC);
	if (fd < 0 && !strcmp(what, "pingpong") && !b) {
		pingpong(a, 0);
		return 0;
	}
	CHECK("open", fd >= 0);
	if (!strcmp(what, "caps")) {
		struct powerctl_caps c = caps();

		printf("{\"caps\":{\"abi\":%u,\"backend\":%u,\"settable\":%u,\"cpu\":%u,\"khz\":[%u,%u,%u],\"substates\":%u}}\n",
		       c.abi, c.backend, c.settable, c.cpu, c.khz_min, c.khz_default, c.khz_max, c.mwait_substates);
	} else if (!strcmp(what, "faults")) {
		faults();
	} else if (!strcmp(what, "threads")) {
		threads(a, b);
	} else if (!strcmp(what, "hog")) {
		hog(a, b, argc > 4 ? atol(argv[4]) : 1000);
	} else if (!strcmp(what, "hang")) {
		hang(a);
	} else if (!strcmp(what, "life")) {
		life();
	} else if (!strcmp(what, "has")) {
		CHECK("has", ioctl(fd, POWERCTL_GET, &p) == 0 && p.tstate == 8);
	} else if (!strcmp(what, "hasnot")) {
		CHECK("has not", ioctl(fd, POWERCTL_GET, &p) == -1 && errno == ENOENT);
	} else if (!strcmp(what, "wait")) {
		waiting();
	} else if (!strcmp(what, "pingpong")) {
		pingpong(a, b);
	} else if (!strcmp(what, "latency")) {
		latency(argv[2]);
	} else if (!strcmp(what, "storm")) {
		storm(a);
	} else if (!strcmp(what, "on") && argc > 4) {
		on(a, *argv[3], atol(argv[4]));
	} else if (!strcmp(what, "pinned")) {
		pinned();
	} else if (!strcmp(what, "users")) {
		users(a);
	} else if (!strcmp(what, "count")) {
		printf("%u\n", stats().profiles);
	} else {
		fprintf(stderr, "pctest: see the head of pctest.c\n");
		return 2;
	}
	return 0;
}
