/* SPDX-License-Identifier: GPL-2.0 */
/*
 * powerctl: what the parts share.
 *
 *   main.c      the device, its ioctls, permissions, hotplug, suspend
 *   profile.c   profiles of threads, and their enforcement at context switches
 *   backend.c   what writes registers: the processor, cpufreq, vpower
 *   wait.c      waiting on a user word in a C-state
 */
#ifndef POWERCTL_H
#define POWERCTL_H

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "powerctl_uapi.h"

/* What a CPU's registers are to hold. The fields that no flag names are the default's. */
struct pc_state {
	u32 khz;
	u8 tstate;	/* sixteenths, 16: not modulated */
	u8 hwp_min;
	u8 hwp_max;
	u8 hwp_desired;
	u8 epp;
};

/* One thread's. The thread itself is the only one that changes it, with preemption off. */
struct pc_profile {
	struct preempt_notifier notifier;
	struct powerctl_profile asked;
	struct pc_state state;
	struct file *file;	/* keeps the module in use */
};

/* CPUs that share their registers. */
struct pc_domain {
	raw_spinlock_t lock;
	cpumask_t cpus;			/* online and ready */
	struct pc_state in_force;
	bool known;			/* in_force is what the registers hold */
	int id;				/* of what they share */
};

struct pc_cpu {
	struct pc_domain *domain;
	struct pc_state want;
	u64 switches, writes, skipped, failed;
};

DECLARE_PER_CPU(struct pc_cpu, pc_cpus);

struct pc_backend {
	const char *name;
	u32 id;
	u32 settable;
	int (*init)(void);
	void (*exit)(void);
	/* CPUs with the same number share their registers. */
	int (*domain)(int cpu);
	/* Interrupts off, on the CPU itself; `old` is what the registers hold, NULL if that is not known. */
	int (*write)(int cpu, const struct pc_state *old, const struct pc_state *state);
	int (*counters)(struct powerctl_counters *c);
};

extern const struct pc_backend *pc_backend;
extern struct pc_state pc_default;
extern struct powerctl_caps pc_caps;

int pc_backend_init(const char *wanted);
void pc_backend_exit(void);
int pc_check(const struct powerctl_profile *p);
bool pc_raises(const struct powerctl_profile *p);

int pc_profiles_init(void);
void pc_profiles_exit(void);
int pc_profile_set(struct file *file, const struct powerctl_profile *asked);
int pc_profile_get(struct powerctl_profile *to);
int pc_profile_clear(void);
u32 pc_profiles_count(void);
void pc_stats(struct powerctl_stats *s);
void pc_apply(int cpu, const struct pc_state *want, bool force);
void pc_suspend(bool on);

void pc_domains_free(void);
int pc_cpu_online(unsigned int cpu);
int pc_cpu_offline(unsigned int cpu);

long pc_wait(struct powerctl_wait *w);

#endif
