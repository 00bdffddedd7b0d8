/* SPDX-License-Identifier: GPL-2.0 */
/* All that the BPF side and its loader say to each other. */
#ifndef COREIDLE_H
#define COREIDLE_H

/* CPUs that a mask has room for: the most that Linux builds for x86. */
#define COREIDLE_CPUS 8192
#define COREIDLE_WORDS (COREIDLE_CPUS / 64)

/* One per CPU, written by that CPU alone. */
struct coreidle_cpu {
	/* Times that a task was put on this CPU: because it is kept; because the task may run on no kept one. */
	unsigned long long free, pinned;
	/* Put here though the CPU is given up and the task may run elsewhere: at most in the moment of a change. */
	unsigned long long strays;
	/* Wake-ups, forks and execs whose last CPU was given up: they went elsewhere. */
	unsigned long long refused;
	/* Tasks that were taken off a CPU that was given up. */
	unsigned long long moves;
	/* CPU time of the running task when it was put here, in ns. */
	unsigned long long started_ns;
	/* The latest virtual time of a pinned task that ran here: those of a CPU are measured against each other. */
	unsigned long long pinned_vtime;
};

/* Why the kernel took scheduling back; sent once, through the ring buffer. */
struct coreidle_exit {
	long long code;
	unsigned int kind;
	char reason[128];
	char message[256];
};

#endif
