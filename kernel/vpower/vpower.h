/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vpower: virtual power hardware for tests. What the parts share.
 *
 *   main.c    parameters, debugfs, the order of set-up
 *   freq.c    a cpufreq driver with virtual P-states, and one that is its own governor
 *   idle.c    a cpuidle driver with virtual C-states
 *   energy.c  time in states becomes energy, APERF and MPERF; a powercap zone
 *   supply.c  thermal zone, battery, mains switch
 *   msr.c     a processor's registers, for powerctl: a set a CPU, and what a core makes of its threads'
 *   feel.c    makes a low speed felt by stealing time
 *   probe.c   the hook that powerctl does not use, for comparing costs
 *   busy.c    work for the kernel that is none for the host
 */
#ifndef VPOWER_H
#define VPOWER_H

#include <linux/cpumask.h>
#include <linux/types.h>
#include <linux/version.h>

#define VPOWER_MAX_LEVELS 32
#define VPOWER_MAX_IDLE 8
#define VPOWER_MAX_DOMAINS 64

/* Settled by the module's parameters before any part starts. */
struct vpower_machine {
	unsigned int levels;
	unsigned int khz[VPOWER_MAX_LEVELS];		/* highest first */
	unsigned int busy_uw[VPOWER_MAX_LEVELS];	/* one CPU at work */
	unsigned int idle_states;
	const char *idle_name[VPOWER_MAX_IDLE];		/* shallowest first */
	unsigned int idle_latency_us[VPOWER_MAX_IDLE];
	unsigned int idle_target_us[VPOWER_MAX_IDLE];
	unsigned int idle_uw[VPOWER_MAX_IDLE];
	unsigned int uncore_uw;				/* the package beside its CPUs; 0: there is none */
	unsigned int asleep_uw;				/* the same while all CPUs are in the deepest state */
	unsigned int domains;				/* 0: one for all CPUs */
	struct cpumask domain[VPOWER_MAX_DOMAINS];
	unsigned int latency_ns;			/* as the driver states it */
	bool fast_switch;
	bool any_cpu;					/* may set any clock */
};

/* Delays and faults, settable at any time through debugfs. */
struct vpower_knobs {
	u32 delay_us;		/* a change of speed takes this long */
	u32 fail_target;	/* so many requests for a speed fail next */
	u32 driver_writes;	/* speeds go to PERF_CTL too, as hardware's drivers have it */
	u32 msr_delay_ns;	/* a register write takes this long */
	u32 fail_msr;		/* so many register writes fail next */
	u32 temp_mc;		/* temperature; 0: what the model says */
	bool mains;
	u32 capacity;		/* of the battery in percent; 0: what was drawn from it */
};

extern struct vpower_machine vpower_machine;
extern struct vpower_knobs vpower_knobs;

/* True, and one less to fail, while a fault is set. */
static inline bool vpower_fault(u32 *left)
{
	u32 n = READ_ONCE(*left);

	/* Two faults at once may count as one: they are for tests, and one at a time is plenty. */
	if (!n)
		return false;
	WRITE_ONCE(*left, n - 1);
	return true;
}

int vpower_freq_init(struct dentry *dir);
void vpower_freq_exit(void);
unsigned int vpower_khz(int cpu);

int vpower_idle_init(void);
void vpower_idle_exit(void);

int vpower_energy_init(void);
void vpower_energy_exit(void);
void vpower_energy_level(int cpu, unsigned int level);
void vpower_energy_idle(int cpu, int state);	/* -1: busy */
u64 vpower_energy_uj(void);
void vpower_cycles(int cpu, u64 *aperf, u64 *mperf);

int vpower_supply_init(void);
void vpower_supply_exit(void);
void vpower_supply_changed(void);

int vpower_msr_init(struct dentry *dir);
void vpower_msr_exit(void);
void vpower_driver_perf(int cpu, unsigned int khz);
void vpower_driver_epp(int cpu, u8 epp);

int vpower_probe_init(bool on);
void vpower_probe_exit(void);

int vpower_busy_init(void);
void vpower_busy_exit(void);

int vpower_feel_init(bool on, unsigned int period_us);
void vpower_feel_exit(void);

#endif
