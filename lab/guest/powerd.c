// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * FreeBSD's powerd as a process of the guest: every 250 ms the load from /proc/stat becomes a speed in
 * scaling_setspeed. The rules are policy's `powerd-2010` and `powerd:mode=hiadaptive`, written anew in C.
 *
 *   powerd printed|hiadaptive POLICY_FOLDER
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_US 250000
#define MAX_LEVELS 32

static unsigned level[MAX_LEVELS];	/* MHz, highest first */
static int levels;

static FILE *file(const char *folder, const char *name, const char *mode)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, mode);
	if (!f) {
		perror(path);
		exit(1);
	}
	return f;
}

static int descending(const void *a, const void *b)
{
	return (int)*(const unsigned *)b - (int)*(const unsigned *)a;
}

static void read_levels(const char *folder)
{
	FILE *f = file(folder, "scaling_available_frequencies", "r");
	unsigned khz;

	while (levels < MAX_LEVELS && fscanf(f, "%u", &khz) == 1)
		level[levels++] = khz / 1000;
	fclose(f);
	if (!levels) {
		fprintf(stderr, "powerd: %s has no levels\n", folder);
		exit(1);
	}
	qsort(level, levels, sizeof(level[0]), descending);
}

/* Percent busy since the last call, rounded up. */
static unsigned load(void)
{
	static unsigned long long idle_before, total_before;
	unsigned long long v[8] = { 0 }, total = 0, idle;
	FILE *f = file("/proc", "stat", "r");

	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5],
		   &v[6], &v[7]) != 8)
		exit(1);
	fclose(f);
	for (int i = 0; i < 8; i++)
		total += v[i];
	idle = v[3] + v[4];
	unsigned long long spent = total - total_before, rested = idle - idle_before;

	total_before = total;
	idle_before = idle;
	return spent ? 100 - 100 * rested / spent : 0;
}

/* The slowest level that is at least this. */
static int at_least(unsigned mhz)
{
	for (int i = levels - 1; i > 0; i--)
		if (level[i] >= mhz)
			return i;
	return 0;
}

static int printed(int now, unsigned load)
{
	if (load > 95)
		return at_least(level[now] * 4);
	if (load > 75)
		return now ? now - 1 : 0;
	if (load < 50)
		return now < levels - 1 ? now + 1 : now;
	return now;
}

static int hiadaptive(int now, unsigned load)
{
	static unsigned wish;

	if (!wish)
		wish = level[now];
	if (load > 75 / 2) {
		wish = load > 95 || load > 75 ? wish * 4 : wish * load * 2 / 75;
		if (wish > level[0] * 2)
			wish = level[0] * 2;
	} else {
		unsigned lower = wish * 31 / 32;

		if (load < 50 / 2 && level[now] * load < level[at_least(lower)] * 75 / 2)
			wish = lower > level[levels - 1] ? lower : level[levels - 1];
	}
	return at_least(wish);
}

int main(int argc, char **argv)
{
	if (argc != 3 || (strcmp(argv[1], "printed") && strcmp(argv[1], "hiadaptive"))) {
		fprintf(stderr, "powerd printed|hiadaptive POLICY_FOLDER\n");
		return 2;
	}
	bool hi = argv[1][0] == 'h';

	read_levels(argv[2]);
	int now = levels - 1;

	load();
	for (;;) {
		usleep(POLL_US);
		unsigned l = load();
		int next = hi ? hiadaptive(now, l) : printed(now, l);

		if (next != now) {
			FILE *f = file(argv[2], "scaling_setspeed", "w");

			fprintf(f, "%u\n", level[next] * 1000);
			fclose(f);
			now = next;
		}
	}
}
