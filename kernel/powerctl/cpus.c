// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that come and go, that have been asleep, and that are looked at again.
 *
 * A CPU that comes joins the domain of its siblings, and what its registers hold is its default. When it goes, it has
 * that again. After a suspend firmware may have been at the registers of those that stayed as well.
 *
 * The worker looks again after somebody may have taken the speeds, others have written, or a write has failed.
 * It takes the hotplug lock, and in it a policy's semaphore (speeds.c), as cpufreq's own files do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "powerctl.h"

/* Asleep. */

/* A CPU that stayed has been asleep as well: firmware may have been at its registers. */
static void woke_here(void *unused)
{
	struct pc_cpu *pc = this_cpu_ptr(&pc_cpus);

	if (pc->active)
		pc_backend->learn(smp_processor_id(), pc);
	pc_apply_own(true);
}

/* Until it is over, all get the default. Tasks run again before it is: they are not switched to anew. */
static void suspend(bool on)
{
	pc_suspend(on);
	if (on) {
		pc_apply_everywhere();
	} else {
		on_each_cpu(woke_here, NULL, 1);
		pc_look_soon(0);
	}
}

/* Looking again: who has the speeds, what others wrote, what failed. */

/* The worker has tried in vain: no haste any more. */
static bool refusing;

static void look_soon_here(struct irq_work *unused)
{
	pc_look_soon(READ_ONCE(refusing) ? HZ : msecs_to_jiffies(10));
}

static void look_here(void *unused)
{
	struct pc_cpu *pc = this_cpu_ptr(&pc_cpus);
	struct pc_domain *d = pc->active;
	bool found;

	if (!d)
		return;
	raw_spin_lock(&d->lock);
	found = pc_backend->look(smp_processor_id(), pc);
	raw_spin_unlock(&d->lock);
	pc_apply_own(found || !pc->held->known);
}

static void look_again(struct work_struct *unused)
{
	bool left = false;
	int cpu;

	cpus_read_lock();
	pc_speeds_look();
	on_each_cpu(look_here, NULL, 1);
	pc_floor_of_all();
	for_each_online_cpu(cpu) {
		const struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		if (!pc->active || READ_ONCE(pc->held->known))
			continue;
		left = true;
		pr_warn_ratelimited("CPU %d: its registers refuse to be written; trying again\n", cpu);
	}
	cpus_read_unlock();
	WRITE_ONCE(refusing, left);
	if (left)
		pc_look_soon(HZ);
}

/* They come and go. */

/* The domain that a CPU joins: its own of before, its siblings', or a new one. */
static struct pc_domain *domain_for(const struct pc_cpu *pc, int id)
{
	struct pc_domain *d = pc->domain;
	int other;

	if (d)
		return d;
	for_each_possible_cpu(other) {
		d = per_cpu(pc_cpus, other).domain;
		if (d && d->id == id)
			break;
		d = NULL;
	}
	if (d && !d->shared) {
		WRITE_ONCE(d->shared, true);
		/* Whoever saw it alone had interrupts off, and has them on again now. */
		synchronize_rcu_expedited();
	}
	if (!d) {
		d = kzalloc(sizeof(*d), GFP_KERNEL);
		if (!d)
			return NULL;
		raw_spin_lock_init(&d->lock);
		d->id = id;
	}
	return d;
}

static int cpu_online_here(unsigned int cpu)
{
	struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);
	struct pc_domain *d = domain_for(pc, pc_backend->domain(cpu));

	if (!d)
		return -ENOMEM;
	raw_spin_lock_irq(&d->lock);
	pc->held = pc_backend->one_register ? &d->held : &pc->own;
	pc_backend->learn(cpu, pc);
	pc->want = pc->def;
	cpumask_set_cpu(cpu, &d->cpus);
	pc->domain = d;
	pc->active = d;
	raw_spin_unlock_irq(&d->lock);
	pc_floor_of_all();
	/* Runs on the CPU itself. */
	pc_apply_default(true);
	return 0;
}

/*
 * On the CPU that goes. A user task may still be put on it before it is pushed away: it has the default, and nothing is
 * written any more until the CPU has come again, and what its firmware left meanwhile was looked at. When the module
 * leaves, nobody has a profile, and what others had left goes back; else not: a core may go by the registers of a thread
 * that is offline.
 */
static int cpu_offline_here(unsigned int cpu)
{
	struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);
	struct pc_domain *d = pc->active;

	if (!d)
		return 0;
	pc_apply_default(true);
	local_irq_disable();
	/* A task may have been put on it since. */
	pc_apply_default(false);
	raw_spin_lock(&d->lock);
	pc->active = NULL;
	cpumask_clear_cpu(cpu, &d->cpus);
	if (pc_leaving && pc_backend->restore)
		pc_backend->restore(cpu, pc);
	raw_spin_unlock(&d->lock);
	local_irq_enable();
	return 0;
}

static int on_suspend(struct notifier_block *nb, unsigned long event, void *unused)
{
	if (event == PM_SUSPEND_PREPARE || event == PM_HIBERNATION_PREPARE)
		suspend(true);
	else if (event == PM_POST_SUSPEND || event == PM_POST_HIBERNATION)
		suspend(false);
	return NOTIFY_DONE;
}

static struct notifier_block suspend_notifier = { .notifier_call = on_suspend };
static int hotplug_state;

/* When no CPU comes or goes any more. */
static void free_domains(void)
{
	int cpu, other;

	for_each_possible_cpu(cpu) {
		struct pc_domain *d = per_cpu(pc_cpus, cpu).domain;

		if (!d)
			continue;
		if (!cpu_online(cpu) && !pc_backend->one_register)
			pr_notice("CPU %d is offline: its registers keep the default that they have\n", cpu);
		for_each_possible_cpu(other)
			if (per_cpu(pc_cpus, other).domain == d)
				per_cpu(pc_cpus, other).domain = NULL;
		kfree(d);
	}
}

static void nothing(void *unused)
{
}

/* Nothing that was queued may run once its text is gone; what was asked of other CPUs before is done by then. */
static void nothing_queued(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_work_sync(&per_cpu(pc_cpus, cpu).look);
	cancel_delayed_work_sync(&pc_look_work);
	on_each_cpu(nothing, NULL, 1);
}

static void leave(void)
{
	WRITE_ONCE(pc_leaving, true);
	nothing_queued();
	cpuhp_remove_state(hotplug_state);
	nothing_queued();
	free_domains();
}

int pc_cpus_init(void)
{
	int cpu, err;

	INIT_DELAYED_WORK(&pc_look_work, look_again);
	for_each_possible_cpu(cpu) {
		struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		pc_domain_prepare(pc);
		init_irq_work(&pc->look, look_soon_here);
	}
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "powerctl:online", cpu_online_here, cpu_offline_here);
	if (hotplug_state < 0) {
		err = hotplug_state;
		WRITE_ONCE(pc_leaving, true);
		nothing_queued();
		free_domains();
		return err;
	}
	err = register_pm_notifier(&suspend_notifier);
	if (err)
		leave();
	return err;
}

/* Puts back on every CPU what others had left there. */
void pc_cpus_exit(void)
{
	unregister_pm_notifier(&suspend_notifier);
	leave();
}
