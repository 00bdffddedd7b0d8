/* SPDX-License-Identifier: GPL-2.0 */
/*
 * powerctl: what the parts share.
 *
 *   main.c      the device, its ioctls, permissions
 *   cpus.c      CPUs that come, go and sleep; the worker that looks at them again
 *   speeds.c    whose the speeds are: withdrawn when a governor or another driver takes them
 *   profile.c   profiles of threads: their life, and the hook at context switches
 *   domain.c    what is in force on a CPU: wishes of siblings, fields that count, writes that fail
 *   backend.c   which back end, what it can set, what a profile may ask for
 *   msr.c       the processor's registers, or vpower's in their place
 *   cpufreq.c   speeds through a cpufreq driver
 *   taken.c     whether a governor or a driver sets speeds by itself
 *   state.c     what several of them read
 *   wait.c      waiting on a user word in a C-state
 *
 * Each calls those below it alone.
 */
#ifndef POWERCTL_H
#define POWERCTL_H

#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/static_call.h>
#include <linux/types.h>
#include <linux/workqueue.h>

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

/* What belongs to whoever governs speeds. */
#define PC_SPEEDS (POWERCTL_PSTATE | POWERCTL_HWP | POWERCTL_EPP)

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

enum { PC_CLOCK_MODULATION, PC_PERF_CTL, PC_HWP_REQUEST, PC_REGISTERS };

/* A register that is not ours alone: firmware and the kernel's drivers write it too. */
struct pc_register {
	u64 theirs;	/* what others left there last: it goes back when the module leaves */
	u64 base;	/* what is there while no profile wants anything else */
	u64 ours;	/* what we wrote last */
	u64 tried;	/* the same, or what we failed to write: it may be there or not */
	u64 now;	/* what was read last: for one function, but a stack would cost more */
};

/* What registers hold. */
struct pc_held {
	union pc_state in_force;
	bool known;			/* not after a write that failed: part of it may have been done */
	struct pc_register reg[PC_REGISTERS];
};

/* CPUs of which each one's wish counts for all. */
struct pc_domain {
	raw_spinlock_t lock;
	cpumask_t cpus;			/* online and ready */
	bool shared;			/* by more than one, now or once: never cleared */
	int id;				/* of what they share */
	struct pc_held held;		/* where they have one register for all (cpufreq) */
};

struct pc_cpu {
	struct pc_domain *domain;	/* once it has come */
	struct pc_domain *active;	/* the same, while it is here */
	struct pc_held *held;		/* its own, or its domain's */
	union pc_state want;
	/* What everybody has here. CPUs differ: kinds of core do. */
	union pc_state def;
	struct pc_held own;
	bool learned;			/* what its registers held when it came */
	u64 switches, writes, skipped, failed;
	call_single_data_t kick;
	struct irq_work look;
};

DECLARE_PER_CPU(struct pc_cpu, pc_cpus);
extern bool pc_suspended;	/* or about to be: nobody has a profile then */
extern bool pc_leaving;		/* the module goes */
extern struct delayed_work pc_look_work;
void pc_look_soon(unsigned long jiffies);

struct pc_backend {
	const char *name;
	u32 id;
	u32 settable;
	u32 step_khz;		/* a speed's granularity */
	bool one_register;	/* for all CPUs of a domain; else each has its own */
	int (*init)(void);
	void (*exit)(void);
	/* On the CPU itself, interrupts off: what others left in its registers becomes its default. */
	void (*learn)(int cpu, struct pc_cpu *pc);
	/* The same, in between: whether others have written since, which is the default then. */
	bool (*look)(int cpu, struct pc_cpu *pc);
	/* The same: puts that back. The number of the register that does not take it, else 0. */
	u32 (*restore)(int cpu, struct pc_cpu *pc);
	/* CPUs with the same number are one domain. */
	int (*domain)(int cpu);
	/*
	 * Interrupts off, on the CPU itself. `changed` is zero in the fields that the registers hold already. -EAGAIN:
	 * others have written meanwhile, and the default is now what they wrote.
	 */
	int (*write)(struct pc_cpu *pc, union pc_state changed, union pc_state state);
	int (*counters)(struct powerctl_counters *c);
	/* Process context: which speeds (PC_SPEEDS) cannot be set now, and why. */
	u32 (*lost)(const char **why);
};

extern const struct pc_backend *pc_backend;
extern const struct pc_backend pc_backend_cpufreq;
extern struct pc_backend pc_backend_msr, pc_backend_virtual;
/* The least that any CPU gives everybody: what is above it on one of them is a raise. */
extern union pc_state pc_floor;
extern struct powerctl_caps pc_caps;

int pc_msr_write(struct pc_cpu *pc, union pc_state changed, union pc_state state);
/* The back end's write, at every switch: the call is patched into the text, and costs less than one by pointer. */
DECLARE_STATIC_CALL(pc_write, pc_msr_write);
int pc_msr_counters(struct powerctl_counters *c);

int pc_backend_init(const char *wanted, const char *registers);
void pc_backend_exit(void);
int pc_registers_choose(const char *wanted);
void pc_floor_of_all(void);
int pc_check(const struct powerctl_profile *p);
bool pc_raises(const struct powerctl_profile *p);
u64 pc_fields(u32 flags);

u32 pc_speeds_taken(u32 settable, const char **why);

int pc_speeds_init(void);
void pc_speeds_exit(void);
void pc_speeds_look(void);

int pc_profiles_init(void);
void pc_profiles_exit(void);
int pc_profile_set(struct file *file, const struct powerctl_profile *asked);
int pc_profile_get(struct powerctl_profile *to);
int pc_profile_clear(void);
u32 pc_profiles_count(void);
u32 pc_profiles_max(void);
void pc_stats(struct powerctl_stats *s);
void pc_apply_own(bool force);
void pc_apply_everywhere(void);
extern const union pc_state pc_khz_field;

void pc_apply(union pc_state want, u64 mask, bool force);
void pc_apply_default(bool force);
void pc_apply_put_on(union pc_state state, u64 mask);
void pc_apply_taken_off(void);
void pc_suspend(bool on);
void pc_domain_prepare(struct pc_cpu *pc);
void pc_hands_off(void);
unsigned int pc_hands_offs(void);
void pc_hands_on(u32 lost, unsigned int before);

int pc_cpus_init(void);
void pc_cpus_exit(void);

long pc_wait(struct powerctl_wait *w);

#endif
