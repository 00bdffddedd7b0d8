// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lab's user of /dev/powerctl.
 *
 *   pctest caps            prints what the device says, as JSON
 *   pctest can             prints what can be set now, and in which steps T-states can
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
 *   pctest on CPU FLAG V   a profile on a CPU: "t" a T-state, "p" a clock in kHz, "d" a desired HWP level, "l" a clock and
 *                          then LATENCY, "b" T-state 8 and a clock, "n" none; works there until killed
 *   pctest asks FLAG V     the same on whichever CPU, prints "ok" or what SET answers, and ends
 *   pctest pinned          where a desired HWP level is the default: who may lift it
 *   pctest users N         a user has N profiles and no more, another has its own
 *   pctest fuzz SEED MS    four threads, two of them without rights, that ask for anything; prints how often each
 *                          command was accepted and refused
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

static struct powerctl_profile profile(char flag, long value)
{
	struct powerctl_profile p = { .size = sizeof(p) };

	if (flag == 't') {
		p.flags = POWERCTL_TSTATE;
		p.tstate = value;
	} else if (flag == 'p' || flag == 'l') {
		p.flags = POWERCTL_PSTATE;
		p.pstate_khz = value;
	} else if (flag == 'b') {
		p.flags = POWERCTL_TSTATE | POWERCTL_PSTATE;
		p.tstate = 8;
		p.pstate_khz = value;
	} else {
		p.flags = POWERCTL_HWP;
		p.hwp_min = 1;
		p.hwp_max = value;
		p.hwp_desired = value;
	}
	return p;
}

/* Works without an end: to the kernel, and where vpower is there at no cost for the host (/dev/vpower-busy). */
static void work(void)
{
	int halting = open("/dev/vpower-busy", O_WRONLY | O_CLOEXEC);
	uint64_t piece = 100000000;

	while (halting < 0 || write(halting, &piece, sizeof(piece)) > 0)
		;
	CHECK("vpower-busy", 0);
}

/* A profile on one CPU, held until the end. */
static void on(long cpu, char flag, long value)
{
	struct powerctl_profile p = profile(flag, value);
	struct powerctl_latency l = { .size = sizeof(l), .from_khz = value, .to_khz = value, .rounds = 1 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK("pinned", sched_setaffinity(0, sizeof(one), &one) == 0);
	CHECK("set", flag == 'n' || ioctl(fd, POWERCTL_SET, &p) == 0);
	CHECK("measured", flag != 'l' || ioctl(fd, POWERCTL_LATENCY, &l) == 0);
	printf("%ld\n", (long)getpid());
	fflush(stdout);
	work();
}

static void asks(char flag, long value)
{
	struct powerctl_profile p = profile(flag, value);

	puts(ioctl(fd, POWERCTL_SET, &p) ? strerrorname_np(errno) : "ok");
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
		/* Whoever fails below leaves no one who keeps its output open. A change of user clears this. */
		CHECK("not alone", prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
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

/*
 * Fuzzing. Two processes, one of root's and one of user 1000's, of two threads each and one that meddles: it changes,
 * protects and unmaps memory that the others hand over, closes a file that they use and interrupts them. What a thread
 * asks for follows from the seed and its number alone; what comes back is held against the header's rules.
 */
enum { SET, GET, CLEAR, CAPS, WAIT, COUNTERS, LATENCY, STATS, OTHER, COMMANDS };

#define LAYOUT(type) sizeof(struct type), offsetof(struct type, reserved)
static const struct {
	const char *name;
	unsigned number, size, reserved;
	int seen[8];		/* refusals that must come, and none but these ... */
	int perhaps[4];		/* ... and these may */
} commands[COMMANDS] = {
	[SET] = { "SET", POWERCTL_SET, LAYOUT(powerctl_profile), { EFAULT, EINVAL, E2BIG, ERANGE, EPERM },
		  { EOPNOTSUPP, ENOSPC } },
	[GET] = { "GET", POWERCTL_GET, LAYOUT(powerctl_profile), { EFAULT, EINVAL, E2BIG, ENOENT }, { 0 } },
	[CLEAR] = { "CLEAR", POWERCTL_CLEAR, 0, 0, { ENOENT, ENOTTY }, { 0 } },
	[CAPS] = { "CAPS", POWERCTL_CAPS, LAYOUT(powerctl_caps), { EFAULT, EINVAL, E2BIG }, { 0 } },
	[WAIT] = { "WAIT", POWERCTL_WAIT, LAYOUT(powerctl_wait), { EFAULT, EINVAL, E2BIG }, { EINTR } },
	[COUNTERS] = { "COUNTERS", POWERCTL_COUNTERS, LAYOUT(powerctl_counters), { EFAULT, EINVAL, E2BIG }, { 0 } },
	[LATENCY] = { "LATENCY", POWERCTL_LATENCY, LAYOUT(powerctl_latency), { EFAULT, EINVAL, E2BIG, ERANGE, EPERM },
		      { EINTR } },
	[STATS] = { "STATS", POWERCTL_STATS, LAYOUT(powerctl_stats), { EFAULT, EINVAL, E2BIG }, { 0 } },
	[OTHER] = { "OTHER", 0, 0, 0, { ENOTTY }, { 0 } },
};

#define FUZZERS		4	/* the first two are root's */
#define LEAST_ROUNDS	1000	/* of each, however slow the guest is: what must come has come by then */
#define ERRNOS		134
#define SLOT		64	/* the file that is closed meanwhile */
#define PAGE		4096
#define BUFFER		(5 * PAGE)	/* more than an ioctl's number can say */

/* What all processes write to. */
static struct fuzzed {
	unsigned wrong;
	char why[256];
	unsigned count[COMMANDS][ERRNOS];
	unsigned made;			/* profiles where there was none */
	unsigned raced;			/* profiles from memory that changed */
	uint64_t state[FUZZERS];	/* of each one's random numbers after LEAST_ROUNDS */
} *fuzzed;

static struct fuzzer {
	uint64_t random;
	unsigned number;
	bool root, child;
	int fd;
	char *memory;		/* BUFFER bytes, then nothing */
	char before[BUFFER];	/* what a call's memory held */
	uint64_t word;
	bool has, known;	/* a profile; which one */
	struct powerctl_profile mine;
	pthread_t id;
} fuzzers[FUZZERS];

static struct powerctl_caps limits;
static struct powerctl_profile least;	/* what every CPU gives everybody */
static char *raced;			/* two pages */
static int64_t fuzz_until;
static unsigned running;

static uint64_t next(struct fuzzer *f)
{
	f->random ^= f->random << 13;
	f->random ^= f->random >> 7;
	f->random ^= f->random << 17;
	return f->random;
}

static uint64_t below(struct fuzzer *f, uint64_t n)
{
	return (next(f) >> 11) % n;
}

/* A value at an edge, or any. */
static uint32_t odd(struct fuzzer *f)
{
	const uint32_t edges[] = { 0, 1, 2, 16, 17, 255, 256, 1u << 31, ~0u, next(f) };

	return edges[below(f, sizeof(edges) / sizeof(*edges))];
}

static void wrong(const struct fuzzer *f, const char *what, const char *condition)
{
	int e = errno;

	if (!__atomic_exchange_n(&fuzzed->wrong, 1, __ATOMIC_SEQ_CST))
		snprintf(fuzzed->why, sizeof(fuzzed->why), "fuzzer %u%s: %s: %s: errno %d", f->number,
			 f->child ? "'s child" : "", what, condition, e);
	_exit(1);
}

#define RIGHT(f, what, condition)                                                                 \
	do {                                                                                      \
		if (!(condition))                                                                 \
			wrong(f, what, #condition);                                               \
	} while (0)

/* By the header alone. */
static bool makes_sense(const struct powerctl_profile *p)
{
	if (!p->flags || p->flags & ~POWERCTL_PROFILE_FLAGS || p->flags & ~limits.settable)
		return false;
	if ((p->flags & POWERCTL_PSTATE) && (p->flags & POWERCTL_HWP))
		return false;
	if ((p->flags & POWERCTL_TSTATE) &&
	    (p->tstate < 1 || p->tstate > POWERCTL_TSTATE_FULL || p->tstate % limits.tstate_step))
		return false;
	if ((p->flags & POWERCTL_PSTATE) && (p->pstate_khz < limits.khz_min || p->pstate_khz > limits.khz_max))
		return false;
	if (p->flags & POWERCTL_HWP) {
		if (!p->hwp_max || p->hwp_min > p->hwp_max)
			return false;
		if (p->hwp_desired && (p->hwp_desired < p->hwp_min || p->hwp_desired > p->hwp_max))
			return false;
	}
	return true;
}

static bool lifts(const struct powerctl_profile *p)
{
	if ((p->flags & POWERCTL_PSTATE) && p->pstate_khz > least.pstate_khz)
		return true;
	if ((p->flags & POWERCTL_HWP) && (p->hwp_min > least.hwp_min || p->hwp_max > least.hwp_max))
		return true;
	if ((p->flags & POWERCTL_HWP) && least.hwp_desired &&
	    (!p->hwp_desired || p->hwp_desired > least.hwp_desired))
		return true;
	return (p->flags & POWERCTL_EPP) && p->epp < least.epp;
}

/* What is in force is what was accepted, can be, and may be. */
static void check_mine(struct fuzzer *f)
{
	struct powerctl_profile p = { .size = sizeof(p) };
	int result = ioctl(f->fd, POWERCTL_GET, &p);

	if (!f->has) {
		RIGHT(f, "none", result == -1 && errno == ENOENT);
		return;
	}
	RIGHT(f, "kept", result == 0);
	RIGHT(f, "kept as accepted", !f->known || !memcmp(&p, &f->mine, sizeof(p)));
	RIGHT(f, "possible", makes_sense(&p));
	RIGHT(f, "allowed", f->root || !lifts(&p));
	f->mine = p;
	f->known = true;
}

static void fill_profile(struct fuzzer *f, struct powerctl_profile *p)
{
	unsigned span = limits.khz_max - limits.khz_min + 1;

	p->flags = below(f, 8) ? below(f, POWERCTL_PROFILE_FLAGS + 1) : odd(f);
	p->tstate = below(f, 8) ? 1 + below(f, POWERCTL_TSTATE_FULL) : odd(f);
	p->pstate_khz = below(f, 4) ? limits.khz_min + below(f, span) : limits.khz_default + below(f, 2);
	if (!below(f, 8))
		p->pstate_khz = below(f, 2) ? odd(f) : limits.khz_max + below(f, 2);
	p->hwp_max = below(f, 2) ? 1 + below(f, least.hwp_max) : next(f);
	p->hwp_min = below(f, 2) ? below(f, 2) : below(f, p->hwp_max + 2);
	p->hwp_desired = below(f, 2) ? 0 : below(f, p->hwp_max + 2);
	p->epp = below(f, 2) ? least.epp + below(f, 256 - least.epp) : next(f);
}

static uint64_t bad_address(struct fuzzer *f)
{
	const uint64_t addresses[] = { 0, 8, 0x7fffffffeff8, 0x800000000000, 0xffff888000000000, 0xffffffff81000000,
				       0xffffffffff600000, (uint64_t)-8, 1ull << 63 };

	return addresses[below(f, sizeof(addresses) / sizeof(*addresses))];
}

static void fill_wait(struct fuzzer *f, struct powerctl_wait *w)
{
	unsigned where = below(f, 8);
	uint64_t strange = bad_address(f);

	w->width = below(f, 8) ? 4 + 4 * below(f, 2) : odd(f);
	w->address = where > 2 ? (uintptr_t)&f->word : where ? (uintptr_t)raced + PAGE + 512 : strange;
	w->address += below(f, 16) ? 0 : below(f, 8);
	w->expected = below(f, 8) ? 0 : odd(f);
	w->timeout_ns = 1 + below(f, 200000);
	if (!below(f, 8) && !f->child)
		w->timeout_ns = below(f, 2) ? 0 : next(f);
	w->hint = below(f, 8) ? 0 : below(f, 2) ? below(f, 256) : odd(f);
}

static void fill_latency(struct fuzzer *f, struct powerctl_latency *l)
{
	unsigned span = limits.khz_max - limits.khz_min + 1;

	l->from_khz = below(f, 8) ? limits.khz_min + below(f, span) : odd(f);
	l->to_khz = below(f, 8) ? limits.khz_min + below(f, span) : odd(f);
	l->rounds = below(f, 8) ? 1 + below(f, 8) : below(f, 2) ? 0 : 10000 + below(f, 2) + next(f) % 2;
}

/* A call: what is handed over, and whether that is as the header wants it. */
struct call {
	int command;
	unsigned number, bytes;	/* as the number says it */
	char *at;
	unsigned room;		/* that can be read there */
	bool readonly, formed, raced;
};

static void structure(struct fuzzer *f, struct call *c)
{
	const unsigned size = commands[c->command].size, from = commands[c->command].reserved;
	union {
		uint32_t size;
		struct powerctl_profile profile;
		struct powerctl_wait wait;
		struct powerctl_latency latency;
		char bytes[72];
	} s = { .size = 0 };
	unsigned where = below(f, 16), how = below(f, 8), extra = below(f, 64), any = below(f, 1 << _IOC_SIZEBITS);
	uint64_t strange = bad_address(f);

	c->bytes = how > 2 ? size : how == 2 ? size + extra : how ? below(f, size) : any;
	c->number = (commands[c->command].number & ~IOCSIZE_MASK) | c->bytes << _IOC_SIZESHIFT;
	c->formed = c->bytes >= size;
	if (c->command == SET)
		fill_profile(f, &s.profile);
	else if (c->command == WAIT)
		fill_wait(f, &s.wait);
	else if (c->command == LATENCY)
		fill_latency(f, &s.latency);
	s.size = c->bytes;
	if (!below(f, 16)) {
		s.size = odd(f);
		c->formed &= s.size == c->bytes;
	}
	if (!below(f, 16)) {
		s.bytes[from + below(f, size - from)] = 1;
		c->formed = false;
	}
	c->raced = where == 0;
	if (where <= 1) {
		/* A profile ends with the first page, all others go on in the second. */
		c->at = where ? (char *)strange : raced + PAGE - sizeof(struct powerctl_profile);
		c->room = 0;
		return;
	}
	/* Right before nothing, some reaching into it; or with more behind it, which has to stay as it was. */
	c->room = where == 15 ? below(f, c->bytes + 1) : c->bytes;
	if (where < 8)
		c->room += 64;
	c->at = where < 8 ? f->memory : f->memory + BUFFER - c->room;
	memset(c->at, 0, c->room);
	memcpy(c->at, &s, size < c->room ? size : c->room);
	c->formed &= c->room >= c->bytes;
	if (c->bytes > size && !below(f, 4)) {
		unsigned beyond = size + below(f, c->bytes - size);

		c->formed = false;
		if (beyond < c->room)
			c->at[beyond] = 1;
	}
	memcpy(f->before, c->at, c->room);
	c->readonly = !below(f, 8);
	if (c->readonly)
		RIGHT(f, "protected", !mprotect(f->memory, BUFFER, PROT_READ));
}

/* Whether it has to be accepted, where nobody meddles. */
static bool acceptable(const struct fuzzer *f, const struct call *c)
{
	const void *was = f->before;
	const struct powerctl_wait *w = was;
	const struct powerctl_latency *l = was;

	if (c->command == CLEAR)
		return !c->bytes && f->has;
	if (!c->formed || !c->room)
		return false;
	if (c->command == SET)
		return makes_sense(was) && (f->root || !lifts(was));
	if (c->command == GET && !f->has)
		return false;
	if (c->command == WAIT) {
		bool known = !w->hint || (w->hint <= 0x6f && (w->hint & 15) <
				(limits.mwait_substates >> 4 * ((w->hint >> 4) + 1) & 15));

		if ((w->width != 4 && w->width != 8) || w->address % w->width || w->address > 1ull << 47 ||
		    w->address < PAGE || !known || w->timeout_ns > INT64_MAX / 2 ||
		    (w->width == 4 && w->expected >> 32))
			return false;
	}
	if (c->command == LATENCY &&
	    (!f->root || !l->rounds || l->rounds > 10000 || l->from_khz < limits.khz_min ||
	     l->to_khz < limits.khz_min || l->from_khz > limits.khz_max || l->to_khz > limits.khz_max))
		return false;
	return !c->readonly;
}

/* What came back, where nobody meddles: nothing that is not the command's to write, and sense. */
static void check_answer(const struct fuzzer *f, const struct call *c, int result)
{
	const char *name = commands[c->command].name;
	unsigned written = commands[c->command].size;
	const struct powerctl_caps *caps = (void *)c->at;
	const struct powerctl_wait *w = (void *)c->at;
	const struct powerctl_latency *l = (void *)c->at;

	if (!c->room)
		return;
	if (c->command == SET || (result && !(c->command == WAIT && errno == EINTR)))
		written = 0;
	RIGHT(f, name, !memcmp(c->at + written, f->before + written, c->room - written));
	if (result || !written)
		return;
	if (c->command == GET)
		RIGHT(f, name, !f->known || !memcmp(c->at, &f->mine, sizeof(f->mine)));
	if (c->command == CAPS)
		RIGHT(f, name, caps->khz_max == limits.khz_max && caps->khz_default == limits.khz_default &&
			       caps->settable == limits.settable && caps->size == sizeof(*caps));
	if (c->command == WAIT)
		RIGHT(f, name, w->why == POWERCTL_WOKE_VALUE ||
			       (w->why == POWERCTL_WOKE_TIME && w->timeout_ns && w->waited_ns >= w->timeout_ns));
	if (c->command == LATENCY)
		RIGHT(f, name, l->min_ns <= l->mean_ns && l->mean_ns <= l->max_ns);
}

static bool listed(const int *list, unsigned n, int e)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == e)
			return true;
	return false;
}

static void one_call(struct fuzzer *f)
{
	static const unsigned char often[16] = { SET, SET, SET, SET, SET, GET, GET, CLEAR, CLEAR, CAPS, WAIT, WAIT,
						 COUNTERS, LATENCY, STATS, OTHER };
	static const unsigned char types[] = { 'x', POWERCTL_IOC_MAGIC - 1, POWERCTL_IOC_MAGIC + 1, 0xff };
	struct call c = { .command = often[below(f, 16)] };
	bool slot = !below(f, 8), lacks = !f->has;

	if (c.command == OTHER) {
		unsigned number = 9 + below(f, 247), known = below(f, LATENCY + 1), turned = 1 + below(f, 3);

		c.at = (char *)bad_address(f);
		c.number = _IOC(below(f, 4), POWERCTL_IOC_MAGIC, number, below(f, 1 << _IOC_SIZEBITS));
		if (below(f, 2))
			c.number = commands[known].number ^ turned << _IOC_DIRSHIFT;
		if (!below(f, 4))
			c.number = (next(f) & ~0xff00u) | types[below(f, sizeof(types))] << _IOC_TYPESHIFT;
	} else if (c.command == CLEAR) {
		c.bytes = below(f, 4) ? 0 : below(f, 1 << _IOC_SIZEBITS);
		c.number = POWERCTL_CLEAR | c.bytes << _IOC_SIZESHIFT;
		c.at = (char *)bad_address(f);
	} else {
		structure(f, &c);
	}
	int result = ioctl(slot ? SLOT : f->fd, c.number, c.at);
	int e = result ? errno : 0;

	if (!(slot && e == EBADF)) {
		const char *name = commands[c.command].name;
		/* Reasons that do not lie in the call: a signal, a full table, a word that is unmapped. */
		bool elsewhere = (e == EINTR && (c.command == WAIT || c.command == LATENCY)) ||
				 (e == ENOSPC && !f->root && lacks && c.command == SET) ||
				 (e == EFAULT && c.command == WAIT);

		RIGHT(f, name, !e || listed(commands[c.command].seen, 8, e) || listed(commands[c.command].perhaps, 4, e));
		__atomic_fetch_add(&fuzzed->count[c.command][e], 1, __ATOMIC_RELAXED);
		if (!c.raced) {
			RIGHT(f, name, !e || elsewhere || !acceptable(f, &c));
			RIGHT(f, name, e || acceptable(f, &c));
			errno = e;
			check_answer(f, &c, result);
		}
		if (!e && c.command == SET) {
			__atomic_fetch_add(&fuzzed->made, lacks, __ATOMIC_RELAXED);
			f->has = true;
			f->known = !c.raced;
			memcpy(&f->mine, f->before, sizeof(f->mine));
			f->mine.size = sizeof(f->mine);
			check_mine(f);
		}
		if (!e && c.command == CLEAR)
			f->has = false;
	}
	if (c.readonly)
		RIGHT(f, "writable", !mprotect(f->memory, BUFFER, PROT_READ | PROT_WRITE));
}

/* What changes while it is taken: whatever was accepted, it is as if nothing had changed. */
static void race(struct fuzzer *f)
{
	char *at = raced + PAGE - sizeof(struct powerctl_profile);

	for (int i = 0; i < 64; i++) {
		bool accepted = ioctl(f->fd, POWERCTL_SET, at) == 0;
		int e = accepted ? 0 : errno;

		RIGHT(f, "race", !e || (e == ENOSPC && !f->root && !f->has) || listed(commands[SET].seen, 8, e));
		if (!accepted)
			continue;
		__atomic_fetch_add(&fuzzed->raced, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&fuzzed->made, !f->has, __ATOMIC_RELAXED);
		f->has = true;
		f->known = false;
		check_mine(f);
	}
}

/* The device is its ioctls and nothing else. */
static void other_calls(struct fuzzer *f)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	char c = 0;
	int file;

	switch (below(f, 6)) {
	case 0:
		RIGHT(f, "read", read(f->fd, &c, 1) == -1 && errno == EINVAL);
		break;
	case 1:
		RIGHT(f, "write", write(f->fd, &c, 1) == -1 && errno == EINVAL);
		break;
	case 2:
		RIGHT(f, "lseek", lseek(f->fd, 1, SEEK_SET) == -1 && errno == ESPIPE);
		break;
	case 3:
		RIGHT(f, "mmap", mmap(NULL, PAGE, PROT_READ, MAP_SHARED, f->fd, 0) == MAP_FAILED && errno == ENODEV);
		break;
	case 4:
		RIGHT(f, "poll", poll(&p, 1, 0) == 1 && p.revents == POLLIN);
		break;
	default:
		/* A profile outlives the file that it was set by. */
		file = open("/dev/powerctl", O_RDWR | O_CLOEXEC);
		RIGHT(f, "open", file >= 0);
		RIGHT(f, "close", close(f->fd) == 0);
		f->fd = file;
		check_mine(f);
	}
}

/* A process begins with what is inheritable, and ends on its own or by SIGKILL. */
static void begin_child(struct fuzzer *f)
{
	uint64_t seed = next(f) | 1;
	bool killed = below(f, 4) == 0;
	int status;
	pid_t pid;

	check_mine(f);
	pid = fork();
	RIGHT(f, "fork", pid >= 0);
	if (pid == 0) {
		struct powerctl_profile p = { .size = sizeof(p) };

		f->child = true;
		f->random = seed;
		f->has = f->has && (f->mine.flags & POWERCTL_INHERIT);
		/* Unless its user has as many as it may. */
		if (limits.profiles_max < FUZZERS && !f->root && ioctl(f->fd, POWERCTL_GET, &p))
			f->has = false;
		__atomic_fetch_add(&fuzzed->made, f->has, __ATOMIC_RELAXED);
		check_mine(f);
		for (int i = 0; i < 8; i++)
			one_call(f);
		if (killed)
			kill(getpid(), SIGKILL);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) == -1)
		RIGHT(f, "wait", errno == EINTR);
	RIGHT(f, "child", status == (killed ? SIGKILL : 0));
	check_mine(f);
}

static void *fuzzer(void *self)
{
	struct fuzzer *f = self;

	for (unsigned rounds = 0; rounds < LEAST_ROUNDS || now() < fuzz_until; rounds++) {
		unsigned what = below(f, 64);

		if (what == 0)
			begin_child(f);
		else if (what < 4)
			other_calls(f);
		else if (what < 6)
			race(f);
		else
			one_call(f);
		if (!below(f, 32))
			check_mine(f);
		if (rounds == LEAST_ROUNDS - 1)
			fuzzed->state[f->number] = f->random;
	}
	/* Some threads end with a profile, as they would. */
	__atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void map_raced(unsigned page)
{
	CHECK("raced", mmap(raced + page * PAGE, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == raced + page * PAGE);
}

/* Changes what the others hand over, with values that they may have and that they may not. */
static void meddle(struct fuzzer *f, const struct fuzzer *others)
{
	volatile struct powerctl_profile *p = (void *)(raced + PAGE - sizeof(*p));
	unsigned page = below(f, 2);

	switch (below(f, 32)) {
	case 0:
		munmap(raced + page * PAGE, PAGE);
		sched_yield();
		map_raced(page);
		break;
	case 1:
		mprotect(raced + page * PAGE, PAGE, below(f, 2) ? PROT_READ : PROT_NONE);
		sched_yield();
		mprotect(raced + page * PAGE, PAGE, PROT_READ | PROT_WRITE);
		break;
	case 2:
		if (below(f, 2))
			close(SLOT);
		else
			dup2(fd, SLOT);
		break;
	case 3:
		pthread_kill(others[below(f, 2)].id, SIGUSR1);
		break;
	case 4:
		usleep(1000);
		break;
	case 5:
		*(volatile uint32_t *)(raced + PAGE + 512) = below(f, 2);
		break;
	case 6:
		p->reserved[below(f, 3)] = 0;
		p->reserved[below(f, 3)] = !below(f, 8);
		break;
	case 7:
		p->flags = below(f, POWERCTL_PROFILE_FLAGS + 2);
		break;
	case 8:
		p->flags = POWERCTL_PSTATE;
		break;
	case 9:
		p->tstate = below(f, 18);
		break;
	case 10:
		p->hwp_min = below(f, 2);
		p->hwp_max = next(f);
		p->hwp_desired = 0;
		p->epp = next(f);
		break;
	default:
		/* Anybody's, a raise, and none: for who looks once and takes what is there later. */
		p->size = commands[below(f, 8) ? SET : below(f, OTHER)].size;
		for (int i = 0; i < 64; i++)
			p->pstate_khz = (const unsigned[]){ limits.khz_default, limits.khz_max, 0 }[i % 3];
	}
}

/* A process of two. */
static void fuzz_process(uint64_t seed, bool root)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct fuzzer *mine = fuzzers + (root ? 0 : 2), self = { .random = seed * 31 + root, .number = FUZZERS };

	CHECK("setuid", root || setuid(1000) == 0);
	sigaction(SIGUSR1, &sa, NULL);
	raced = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK("raced", raced != MAP_FAILED && dup2(fd, SLOT) == SLOT);
	running = 2;
	for (int i = 0; i < 2; i++) {
		struct fuzzer *f = &mine[i];

		f->number = f - fuzzers;
		f->root = root;
		f->random = (seed << 8 | f->number) * 0x9e3779b97f4a7c15 | 1;
		f->fd = open("/dev/powerctl", O_RDWR | O_CLOEXEC);
		f->memory = mmap(NULL, BUFFER + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK("memory", f->memory != MAP_FAILED && !mprotect(f->memory + BUFFER, PAGE, PROT_NONE));
		CHECK("create", f->fd >= 0 && pthread_create(&f->id, NULL, fuzzer, f) == 0);
	}
	while (__atomic_load_n(&running, __ATOMIC_SEQ_CST))
		meddle(&self, mine);
	for (int i = 0; i < 2; i++)
		pthread_join(mine[i].id, NULL);
	exit(0);
}

/* What nobody needs a right for: the registers as they are while nobody has a profile. */
static void find_least(void)
{
	FILE *file = fopen("/sys/kernel/debug/vpower/registers", "r");
	unsigned cpu;
	unsigned long long perf, duty, hwp;

	least = (struct powerctl_profile){ .pstate_khz = ~0u, .hwp_min = 255, .hwp_max = 255 };
	CHECK("registers", file);
	while (fscanf(file, "%u %llx %llx %llx", &cpu, &perf, &duty, &hwp) == 4) {
		unsigned khz = (perf >> 8 & 255) * 100000, desired = hwp >> 16 & 255;

		least.pstate_khz = khz < least.pstate_khz ? khz : least.pstate_khz;
		least.hwp_min = (hwp & 255) < least.hwp_min ? hwp & 255 : least.hwp_min;
		least.hwp_max = (hwp >> 8 & 255) < least.hwp_max ? hwp >> 8 & 255 : least.hwp_max;
		if (desired && (!least.hwp_desired || desired < least.hwp_desired))
			least.hwp_desired = desired;
		least.epp = (hwp >> 24 & 255) > least.epp ? hwp >> 24 & 255 : least.epp;
	}
	fclose(file);
	CHECK("default", least.pstate_khz == limits.khz_default);
}

static void fuzz(uint64_t seed, long ms)
{
	unsigned others = stats().profiles;
	uint64_t state = 0;
	int status;

	limits = caps();
	find_least();
	fuzzed = mmap(NULL, sizeof(*fuzzed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK("shared", fuzzed != MAP_FAILED);
	fuzz_until = now() + ms * 1000000;
	for (int root = 0; root < 2; root++)
		if (fork() == 0)
			fuzz_process(seed, root);
	while (wait(&status) > 0) {
		if (status && !__atomic_exchange_n(&fuzzed->wrong, 1, __ATOMIC_SEQ_CST))
			snprintf(fuzzed->why, sizeof(fuzzed->why), "a process ended with status %#x", status);
	}
	if (fuzzed->wrong) {
		printf("%s\n", fuzzed->why);
		exit(1);
	}
	for (int c = 0; c < COMMANDS; c++) {
		printf("%s accepted %u", commands[c].name, fuzzed->count[c][0]);
		for (int e = 1; e < ERRNOS; e++)
			if (fuzzed->count[c][e])
				printf(" %s %u", strerrorname_np(e), fuzzed->count[c][e]);
		printf("\n");
	}
	fflush(stdout);
	/* What never came was not tried. */
	for (int c = 0; c < COMMANDS; c++) {
		CHECK(commands[c].name, c == OTHER || fuzzed->count[c][0]);
		for (int i = 0; i < 8; i++)
			CHECK(commands[c].name, !commands[c].seen[i] || fuzzed->count[c][commands[c].seen[i]]);
	}
	CHECK("raced", fuzzed->raced);
	falls_to(others);
	for (int i = 0; i < FUZZERS; i++)
		state = state * 31 + fuzzed->state[i];
	printf("raced %u\nmade %u\ninputs %016llx\n", fuzzed->raced, fuzzed->made, (unsigned long long)state);
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
	} else if (!strcmp(what, "asks") && argc > 3) {
		asks(*argv[2], atol(argv[3]));
	} else if (!strcmp(what, "can")) {
		struct powerctl_caps c = caps();

		printf("%#x %u\n", c.settable, c.tstate_step);
	} else if (!strcmp(what, "pinned")) {
		pinned();
	} else if (!strcmp(what, "users")) {
		users(a);
	} else if (!strcmp(what, "fuzz")) {
		fuzz(a, b);
	} else if (!strcmp(what, "count")) {
		printf("%u\n", stats().profiles);
	} else {
		fprintf(stderr, "pctest: see the head of pctest.c\n");
		return 2;
	}
	return 0;
}
