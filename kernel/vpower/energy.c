// SPDX-License-Identifier: GPL-2.0
/*
 * Time in states becomes energy, as the machine's table has it, and cycles.
 *
 * A CPU is in one of levels x {busy, idle states}. At each change the time since the last is priced. So is the package
 * beside its CPUs: it is awake, or asleep while every online CPU is in the deepest idle state.
 * The locks are raw, one per CPU and one for the package, never both: they are taken where the scheduler's may be
 * held, and on the way into idle.
 */

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/powercap.h>
#include <linux/sched/clock.h>
#include <linux/spinlock.h>

#include "vpower.h"

/* An energy counter of real hardware wraps; this one does at 2^32 x 61 uJ, as RAPL's usual unit has it. */
#define ENERGY_RANGE_UJ 262143328850ULL

struct account {
	raw_spinlock_t lock;
	u64 since_ns;
	unsigned int level;
	int idle;		/* -1: busy */
	u64 nj;
	u64 rest;		/* femtojoules (uW x ns) below a nanojoule */
	u64 aperf;
	u64 mperf;
};

static DEFINE_PER_CPU(struct account, accounts);

/* The package beside its CPUs. */
static struct {
	raw_spinlock_t lock;
	u64 since_ns;
	struct cpumask deep;	/* CPUs in the deepest idle state */
	u64 nj;
	u64 rest;		/* as above */
} package;

/* Prices the package's time since the last change. A CPU that went offline counts from the next change on. */
static void settle_package(void)
{
	const struct vpower_machine *m = &vpower_machine;
	u64 now = local_clock();
	u64 fj;

	if (now <= package.since_ns)
		return;
	fj = package.rest + (now - package.since_ns) *
	     (cpumask_subset(cpu_online_mask, &package.deep) ? m->asleep_uw : m->uncore_uw);
	package.since_ns = now;
	package.nj += div64_u64_rem(fj, 1000000, &package.rest);
}

/* Interrupts off. A machine without a package of its own has no lock that all CPUs share. */
static void package_idle(int cpu, bool deep)
{
	if (!vpower_machine.uncore_uw || cpumask_test_cpu(cpu, &package.deep) == deep)
		return;
	raw_spin_lock(&package.lock);
	settle_package();
	if (deep)
		__cpumask_set_cpu(cpu, &package.deep);
	else
		__cpumask_clear_cpu(cpu, &package.deep);
	raw_spin_unlock(&package.lock);
}

/* Prices the time since the last change. */
static void settle(struct account *a)
{
	const struct vpower_machine *m = &vpower_machine;
	u64 now = local_clock();
	u64 ns, fj;

	if (now <= a->since_ns)
		return;
	ns = now - a->since_ns;
	a->since_ns = now;
	fj = a->rest + ns * (a->idle < 0 ? m->busy_uw[a->level] : m->idle_uw[a->idle]);
	a->nj += div64_u64_rem(fj, 1000000, &a->rest);
	if (a->idle < 0) {
		/* Cycles: kHz x ns / 10^6. */
		a->aperf += mul_u64_u32_div(ns, m->khz[a->level], 1000000);
		a->mperf += mul_u64_u32_div(ns, m->khz[0], 1000000);
	}
}

void vpower_energy_level(int cpu, unsigned int level)
{
	struct account *a = per_cpu_ptr(&accounts, cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&a->lock, flags);
	settle(a);
	a->level = level;
	raw_spin_unlock_irqrestore(&a->lock, flags);
}

/* On the CPU itself, interrupts off, perhaps while RCU does not watch: nothing here may be traced. */
void vpower_energy_idle(int cpu, int state)
{
	struct account *a = per_cpu_ptr(&accounts, cpu);

	raw_spin_lock(&a->lock);
	settle(a);
	a->idle = state;
	raw_spin_unlock(&a->lock);
	package_idle(cpu, state == vpower_machine.idle_states - 1);
}

static u64 vpower_cores_uj(void)
{
	u64 nj = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct account *a = per_cpu_ptr(&accounts, cpu);
		unsigned long flags;

		raw_spin_lock_irqsave(&a->lock, flags);
		if (cpu_online(cpu))
			settle(a);
		nj += a->nj;
		raw_spin_unlock_irqrestore(&a->lock, flags);
	}
	return div64_u64(nj, 1000);
}

u64 vpower_energy_uj(void)
{
	unsigned long flags;
	u64 nj;

	raw_spin_lock_irqsave(&package.lock, flags);
	settle_package();
	nj = package.nj;
	raw_spin_unlock_irqrestore(&package.lock, flags);
	return vpower_cores_uj() + div64_u64(nj, 1000);
}

void vpower_cycles(int cpu, u64 *aperf, u64 *mperf)
{
	struct account *a = per_cpu_ptr(&accounts, cpu);
	unsigned long flags;

	raw_spin_lock_irqsave(&a->lock, flags);
	settle(a);
	*aperf = a->aperf;
	*mperf = a->mperf;
	raw_spin_unlock_irqrestore(&a->lock, flags);
}

/* The package with its cores, and the cores alone. */
static struct part {
	struct powercap_zone zone;
	const char *name;
	u64 (*uj)(void);
	u64 base_uj;
} zones[] = {
	{ .name = "package-0", .uj = vpower_energy_uj },
	{ .name = "core", .uj = vpower_cores_uj },
};

static int zone_energy(struct powercap_zone *zone, u64 *uj)
{
	struct part *z = container_of(zone, struct part, zone);

	*uj = (z->uj() - z->base_uj) % ENERGY_RANGE_UJ;
	return 0;
}

static int zone_range(struct powercap_zone *zone, u64 *uj)
{
	*uj = ENERGY_RANGE_UJ;
	return 0;
}

static int zone_reset(struct powercap_zone *zone)
{
	struct part *z = container_of(zone, struct part, zone);

	z->base_uj = z->uj();
	return 0;
}

static int zone_release(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
	.get_energy_uj = zone_energy,
	.get_max_energy_range_uj = zone_range,
	.reset_energy_uj = zone_reset,
	.release = zone_release,
};

/* One limit, as RAPL has it: it is remembered and limits nothing. */
static u64 limit_uw = 15000000;
static u64 window_us = 28000000;

static int limit_get(struct powercap_zone *zone, int id, u64 *uw)
{
	*uw = limit_uw;
	return 0;
}

static int limit_set(struct powercap_zone *zone, int id, u64 uw)
{
	limit_uw = uw;
	return 0;
}

static int window_get(struct powercap_zone *zone, int id, u64 *us)
{
	*us = window_us;
	return 0;
}

static int window_set(struct powercap_zone *zone, int id, u64 us)
{
	window_us = us;
	return 0;
}

static const char *limit_name(struct powercap_zone *zone, int id)
{
	return "long_term";
}

static const struct powercap_zone_constraint_ops limit_ops = {
	.get_power_limit_uw = limit_get,
	.set_power_limit_uw = limit_set,
	.get_time_window_us = window_get,
	.set_time_window_us = window_set,
	.get_name = limit_name,
};

static struct powercap_control_type *control;
static unsigned int zones_n;

static void zones_exit(void)
{
	while (zones_n--)
		powercap_unregister_zone(control, &zones[zones_n].zone);
	powercap_unregister_control_type(control);
}

/* The second lies in the first; without a package of its own it would say the same. */
static int zones_init(void)
{
	unsigned int all = vpower_machine.uncore_uw ? ARRAY_SIZE(zones) : 1;

	/* The name that every reader of RAPL looks for. */
	control = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(control))
		return PTR_ERR(control);
	for (zones_n = 0; zones_n < all; zones_n++) {
		struct powercap_zone *parent = zones_n ? &zones[0].zone : NULL;
		struct part *z = &zones[zones_n];
		struct powercap_zone *made;

		made = powercap_register_zone(&z->zone, control, z->name, parent, &zone_ops, 1, &limit_ops);
		if (IS_ERR(made)) {
			zones_exit();
			return PTR_ERR(made);
		}
	}
	return 0;
}

int vpower_energy_init(void)
{
	int cpu;

	raw_spin_lock_init(&package.lock);
	package.since_ns = local_clock();
	for_each_possible_cpu(cpu) {
		struct account *a = per_cpu_ptr(&accounts, cpu);

		raw_spin_lock_init(&a->lock);
		a->since_ns = local_clock();
		a->idle = -1;
	}
	return zones_init();
}

void vpower_energy_exit(void)
{
	zones_exit();
}
