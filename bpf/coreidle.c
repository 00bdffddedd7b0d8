// SPDX-License-Identifier: GPL-2.0
/*
 * coreidle-scx: loads the scheduler, hands it masks, and takes it out again.
 *
 *   coreidle-scx [--stall] CPUS      CPUs kept for work, such as 0-3,8
 *
 * On its input, one a line:   mask CPUS | stats | quit
 * On its output, one a line:  ready | ok | error: WHY | {"kept":...} | ended: WHY
 *
 * The kernel's watchdog has been seen to miss a stall of a machine that was otherwise idle. So there is one here: an
 * ordinary thread counts, and when it has not been run for STALLED_S this process, which is real-time and needs no
 * sched_ext, ends.
 *
 * The scheduler lives as long as this process: at the end of its input, SIGTERM, SIGINT and SIGKILL alike the
 * kernel drops it with the last reference, and its own scheduler returns. Nothing is left to clean up.
 * Ends with 0 when asked to, 1 if the kernel took scheduling back, 2 on bad usage, 3 where it cannot be loaded.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "coreidle.h"

/* The skeleton's. */
typedef unsigned long long u64;
#include "coreidle.skel.h"

/* Named only in headers newer than some that this is built with. */
#define LINK_TYPE_STRUCT_OPS 44
#define MAP_FLAG_LINK (1U << 13)
#define EXIT_IS_AN_ERROR 1024

/* Longer than any queue on a kept CPU; shorter than the kernel's own watchdog. */
#define STALLED_S 5
#define BEAT_MS 200

enum { DONE = 0, ENDED = 1, USAGE = 2, IMPOSSIBLE = 3 };

struct mask {
	u64 words[COREIDLE_WORDS];
};

static struct coreidle *skeleton;

static bool has(const u64 *words, unsigned int cpu)
{
	return words[cpu / 64] >> cpu % 64 & 1;
}

/* The kernel's list format, `0-3,8`. NULL, or what is wrong with it. */
static const char *parse(const char *text, struct mask *mask)
{
	memset(mask, 0, sizeof(*mask));
	while (*text) {
		char *end;
		unsigned long from, to;

		/* strtoul would take blanks and signs. */
		if (*text < '0' || *text > '9')
			return "expected CPUs such as 0-3,8";
		to = from = strtoul(text, &end, 10);
		if (*end == '-') {
			if (end[1] < '0' || end[1] > '9')
				return "expected CPUs such as 0-3,8";
			to = strtoul(end + 1, &end, 10);
		}
		if (from > to)
			return "a range that ends before it begins";
		if (to >= COREIDLE_CPUS)
			return "CPU numbers end at 8191";
		for (unsigned long cpu = from; cpu <= to; cpu++)
			mask->words[cpu / 64] |= 1ULL << cpu % 64;
		if (*end == ',' && end[1])
			end++;
		else if (*end)
			return "expected CPUs such as 0-3,8";
		text = end;
	}
	return NULL;
}

/* The same format, into `text`. */
static void print(const u64 *words, char *text, size_t size)
{
	size_t at = 0;

	text[0] = 0;
	for (unsigned int cpu = 0; cpu < COREIDLE_CPUS && at + 16 < size; cpu++) {
		unsigned int last = cpu;

		if (!has(words, cpu))
			continue;
		while (last + 1 < COREIDLE_CPUS && has(words, last + 1))
			last++;
		at += snprintf(text + at, size - at, last > cpu ? "%s%u-%u" : "%s%u", at ? "," : "", cpu, last);
		cpu = last;
	}
}

static bool online(struct mask *mask)
{
	char text[4096] = "";
	FILE *f = fopen("/sys/devices/system/cpu/online", "re");

	if (!f)
		return false;
	if (fscanf(f, "%4095s", text) != 1)
		text[0] = 0;
	fclose(f);
	return text[0] && !parse(text, mask);
}

/* Reads CPUs and says on one line why they will not do. */
static bool read_mask(const char *text, struct mask *mask, FILE *out)
{
	struct mask up;
	u64 any = 0;
	char list[4096];
	const char *wrong = parse(text, mask);

	if (!wrong && !*text)
		wrong = "empty: at least one CPU has to be kept";
	if (wrong) {
		fprintf(out, "error: mask `%s`: %s\n", text, wrong);
		return false;
	}
	if (!online(&up))
		return true;
	for (int i = 0; i < COREIDLE_WORDS; i++)
		any |= mask->words[i] & up.words[i];
	print(up.words, list, sizeof(list));
	if (!any)
		fprintf(out, "error: mask `%s`: none of these CPUs is online; online are %s\n", text, list);
	return any;
}

/* One line, whatever libbpf has to tell of a failed load. */
static int quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && getenv("COREIDLE_VERBOSE"))
		return vfprintf(stderr, format, arguments);
	return 0;
}

static int apply(void)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int failed = bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.apply), &run);

	return failed ? failed : (int)run.retval;
}

/* The scheduler does not see real-time threads, so this one keeps to the mask by itself. */
static void stay_on(const struct mask *mask)
{
	sched_setaffinity(0, sizeof(mask->words), (const cpu_set_t *)mask->words);
}

static void set_mask(const char *text)
{
	struct mask mask;

	if (!read_mask(text, &mask, stdout))
		return;
	memcpy(skeleton->bss->asked, mask.words, sizeof(mask.words));
	int failed = apply();

	if (failed) {
		printf("error: mask `%s`: the scheduler refused it: %s\n", text, strerror(-failed));
		return;
	}
	stay_on(&mask);
	puts("ok");
}

static void stats(void)
{
	char kept[4096];
	unsigned long long refused = 0, moves = 0;
	bool first = true;

	print(skeleton->bss->kept, kept, sizeof(kept));
	printf("{\"kept\":\"%s\",\"nothing_left\":%s,\"cpus\":[", kept, skeleton->bss->nothing_left ? "true" : "false");
	for (unsigned int cpu = 0; cpu < COREIDLE_CPUS; cpu++) {
		const struct coreidle_cpu *c = &skeleton->bss->cpus[cpu];

		refused += c->refused;
		moves += c->moves;
		if (!has(skeleton->bss->online, cpu) && !c->free && !c->pinned && !c->strays)
			continue;
		printf("%s{\"cpu\":%u,\"free\":%llu,\"pinned\":%llu,\"strays\":%llu}", first ? "" : ",", cpu, c->free,
		       c->pinned, c->strays);
		first = false;
	}
	printf("],\"refused\":%llu,\"moves\":%llu,\"changes\":%llu}\n", refused, moves,
	       (unsigned long long)skeleton->bss->generation);
}

/* The kernel has taken scheduling back, or was asked to. */
static int on_exit_event(void *context, void *data, size_t size)
{
	const struct coreidle_exit *e = data;

	if (size < sizeof(*e))
		return 0;
	printf("ended: %s%s%s\n", e->reason, e->message[0] ? ": " : "", e->message);
	*(int *)context = e->kind >= EXIT_IS_AN_ERROR ? ENDED : DONE;
	/* Whoever is not asked to go ends with an error, even if the kernel calls it none. */
	if (!*(int *)context)
		*(int *)context = ENDED;
	return 0;
}

/* Lines of the input, each whole; false at its end. */
static bool commands(bool *quit)
{
	static char buffer[8192];
	static size_t filled;
	ssize_t got = read(0, buffer + filled, sizeof(buffer) - 1 - filled);

	if (got <= 0)
		return got < 0 && (errno == EINTR || errno == EAGAIN);
	filled += got;
	for (char *end; (end = memchr(buffer, '\n', filled));) {
		*end = 0;
		if (!strncmp(buffer, "mask ", 5) || !strcmp(buffer, "mask"))
			set_mask(buffer[4] ? buffer + 5 : "");
		else if (!strcmp(buffer, "stats"))
			stats();
		else if (!strcmp(buffer, "quit"))
			*quit = true;
		else
			printf("error: `%s`: expected mask CPUS, stats or quit\n", buffer);
		filled -= end + 1 - buffer;
		memmove(buffer, end + 1, filled);
	}
	if (filled == sizeof(buffer) - 1) {
		puts("error: a line without an end");
		filled = 0;
	}
	return true;
}

/* A link, so that the kernel drops the scheduler when this process ends, however it ends. */
static int attach(void)
{
	struct bpf_map *map = skeleton->maps.coreidle;
	struct bpf_link *prepared = bpf_map__attach_struct_ops(map);

	if (!prepared)
		return -errno;
#if LIBBPF_MAJOR_VERSION > 1 || LIBBPF_MINOR_VERSION > 1
	return 0;
#else
	/* libbpf 1.1 hands over the callbacks and knows nothing of links. */
	bpf_link__disconnect(prepared);
	bpf_link__destroy(prepared);
	return bpf_link_create(bpf_map__fd(map), 0, LINK_TYPE_STRUCT_OPS, NULL);
#endif
}

static int load(const struct mask *mask, bool stall)
{
	skeleton = coreidle__open();
	if (!skeleton)
		return -errno;
	bpf_map__set_map_flags(skeleton->maps.coreidle, MAP_FLAG_LINK);
	/* It creates the queue, which may sleep; libbpf 1.1 has no section name for that. */
	bpf_program__set_flags(skeleton->progs.coreidle_init, BPF_F_SLEEPABLE);
	skeleton->rodata->stall = stall;
	memcpy(skeleton->bss->asked, mask->words, sizeof(mask->words));
	return coreidle__load(skeleton);
}

static atomic_uint beats;

static void *beat(void *unused)
{
	(void)unused;
	for (;;) {
		atomic_fetch_add(&beats, 1);
		poll(NULL, 0, BEAT_MS);
	}
	return NULL;
}

/* Whether the thread above has not been run for too long. */
static bool stalled(void)
{
	static unsigned int seen;
	static time_t since;
	unsigned int now = atomic_load(&beats);
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	if (!since || now != seen) {
		seen = now;
		since = t.tv_sec;
	}
	return t.tv_sec - since > STALLED_S;
}

int main(int argc, char **argv)
{
	struct mask mask;
	bool stall = argc > 1 && !strcmp(argv[1], "--stall"), quit = false;
	int code = -1, failed;
	sigset_t signals;

	if (argc != 2 + stall) {
		fprintf(stderr, "usage: coreidle-scx [--stall] CPUS\n");
		return USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!read_mask(argv[1 + stall], &mask, stderr))
		return USAGE;
	if (access("/sys/kernel/sched_ext/state", R_OK)) {
		fprintf(stderr, "coreidle-scx: this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT)\n");
		return IMPOSSIBLE;
	}
	/* Before anything is loaded: a signal in between is kept until it is read. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	int signalled = signalfd(-1, &signals, SFD_CLOEXEC);

	libbpf_set_print(quiet);
	failed = load(&mask, stall);
	if (failed) {
		fprintf(stderr, "coreidle-scx: not loaded: %s; COREIDLE_VERBOSE=1 tells more\n", strerror(-failed));
		return IMPOSSIBLE;
	}
	pthread_t heart;
	bool watched = !pthread_create(&heart, NULL, beat, NULL);
	struct ring_buffer *exits = ring_buffer__new(bpf_map__fd(skeleton->maps.exits), on_exit_event, &code, NULL);

	failed = bpf_program__attach(skeleton->progs.coreidle_going) ? attach() : -errno;
	if (failed < 0 || !exits || signalled < 0) {
		fprintf(stderr, "coreidle-scx: not attached: %s; is another scheduler loaded?\n", strerror(-failed));
		return IMPOSSIBLE;
	}
	/* Whoever opens CPUs must not wait for one. Not being allowed to costs some ms under load, no more. */
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 });
	stay_on(&mask);
	puts("ready");
	while (!quit && code < 0) {
		struct pollfd wait[] = {
			{ .fd = 0, .events = POLLIN },
			{ .fd = signalled, .events = POLLIN },
			{ .fd = ring_buffer__epoll_fd(exits), .events = POLLIN },
		};

		if (poll(wait, 3, 1000) < 0 && errno != EINTR)
			break;
		if (watched && stalled()) {
			printf("ended: no ordinary task ran for %d s\n", STALLED_S);
			code = ENDED;
		}
		if (wait[2].revents)
			ring_buffer__consume(exits);
		if (wait[1].revents)
			break;
		if (wait[0].revents && !commands(&quit))
			break;
	}
	return code < 0 ? DONE : code;
}
