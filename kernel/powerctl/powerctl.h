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

/* What a CPU's registers are to hold, in one word, which is compared and handed over at every switch. */
union pc_state {
	struct {
		u64 khz : 24;		/* in the back end's steps */
		u64 tstate : 8;		/* sixteenths, 16: not modulated */
		u64 hwp_min : 8;	/* this and the rest as in IA32_HWP_REQUEST */
		u64 hwp_max : 8;
		u64 hwp_desired : 8;
		u64 epp : 8;
	};
	u64 all;
};

#define PC_KHZ_MAX ((1u << 24) - 1)

static inline u64 pc_hwp(union pc_state s)
{
	return s.all >> 32;
}

/* One thread's. The thread itself is the only one that changes it, with preemption off. */
struct pc_profile {
	struct preempt_notifier notifier;
	struct powerctl_profile asked;
	union pc_state state;
	u64 mask;		/* the fields that were asked for: the others are each CPU's default */
	struct pc_user *user;	/* whose it is */
	bool uncounted;		/* its user may have any number */
	struct file *file;	/* keeps the module in use */
};

/* CPUs that share their registers. */
struct pc_domain {
	raw_spinlock_t lock;
	cpumask_t cpus;			/* online and ready */
	bool shared;			/* by more than one, now or once: never cleared */
	union pc_state in_force;
	bool known;			/* in_force is what the registers hold */
	int id;				/* of what they share */
};

struct pc_cpu {
	struct pc_domain *domain;
	union pc_state want;
	/* What its registers held when it came. CPUs differ: kinds of core do. */
	union pc_state def;
	u64 perf, hwp;			/* the whole registers: bits that are not ours are written back */
	u64 switches, writes, skipped, failed;
};

DECLARE_PER_CPU(struct pc_cpu, pc_cpus);

struct pc_backend {
	const char *name;
	u32 id;
	u32 settable;
	u32 step_khz;		/* a speed's granularity */
	int (*init)(void);
	void (*exit)(void);
	/* On the CPU itself, which nobody shares its registers with who has a profile: what they hold. */
	void (*defaults)(int cpu, struct pc_cpu *pc);
	/* CPUs with the same number share their registers. */
	int (*domain)(int cpu);
	/* Interrupts off, on the CPU itself. `changed` is zero in the fields that the registers hold already. */
	int (*write)(int cpu, union pc_state changed, union pc_state state);
	int (*counters)(struct powerctl_counters *c);
};

extern const struct pc_backend *pc_backend;
/* The least that any CPU gives everybody: what is above it on one of them is a raise. */
extern union pc_state pc_floor;
extern struct powerctl_caps pc_caps;

/* Two of them by name: a call by name costs less than by pointer. */
int pc_msr_write(int cpu, union pc_state changed, union pc_state state);
int pc_virtual_write(int cpu, union pc_state changed, union pc_state state);

int pc_backend_init(const char *wanted);
void pc_backend_exit(void);
void pc_floor_of_all(void);
int pc_check(const struct powerctl_profile *p);
bool pc_raises(const struct powerctl_profile *p);

int pc_profiles_init(void);
void pc_profiles_exit(void);
int pc_profile_set(struct file *file, const struct powerctl_profile *asked);
int pc_profile_get(struct powerctl_profile *to);
int pc_profile_clear(void);
u32 pc_profiles_count(void);
u32 pc_profiles_max(void);
void pc_stats(struct powerctl_stats *s);
void pc_apply(union pc_state want, u64 mask, bool force);
void pc_apply_default(bool force);
void pc_apply_own(bool force);
extern const union pc_state pc_khz_field;
void pc_suspend(bool on);

void pc_domains_free(void);
int pc_cpu_online(unsigned int cpu);
int pc_cpu_offline(unsigned int cpu);

long pc_wait(struct powerctl_wait *w);

#endif
