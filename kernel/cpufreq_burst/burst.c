// SPDX-License-Identifier: GPL-2.0
/*
 * burst: a cpufreq governor that counts consecutive busy and idle ticks. The rule is in rule.h.
 *
 * It never polls and has no timer. The scheduler calls the utilisation hook at every busy tick, after
 * the kernel has booked the tick as user, system, interrupt or idle time (kernel_cpustat), which is the
 * very distinction that the study made in FreeBSD's statclock(). Ticks that an idle CPU left out are
 * booked when it wakes; so the hook finds the idle ticks first and then the busy one. A CPU that
 * sleeps is never woken: what it has to say about its ticks, it says when it wakes by itself.
 *
 * Locking
 *   struct burst_cpu	only its own CPU, in the hook, with that CPU's run-queue lock held and
 *			interrupts off. The hook may also be called by another CPU that puts a task
 *			here; those calls are left out, for the ticks are counted anyway at the next own one.
 *   burst_policy.lock	raw, inside the run-queue lock: wishes of a shared policy's CPUs, next_khz,
 *			the order of decisions.
 *   work_lock		a mutex, the slow path and limits; never taken with the above held.
 *   tunables		read with READ_ONCE at each tick: a change acts at the next.
 *   global_lock	life and death of the shared tunables; outside all others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpufreq.h>
#include <linux/irq_work.h>
#include <linux/kernel_stat.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/cpufreq.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/version.h>
#include <uapi/linux/sched/types.h>

#include "rule.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* The study's n and m. It reports no other pair. */
#define DEFAULT_TICKS 3
/* A minute at 100 Hz, and then some: beyond it a governor would be asleep. */
#define MAX_TICKS 10000
/* Levels for drivers without a table. */
#define SYNTHETIC_LEVELS 16

struct burst_tunables {
	struct gov_attr_set attr_set;
	unsigned int busy;
	unsigned int idle;
	enum burst_step step;
};

struct burst_policy {
	struct cpufreq_policy *policy;
	struct burst_tunables *tunables;
	struct list_head tunables_hook;
	struct burst_levels levels;
	unsigned int *khz;

	raw_spinlock_t lock;
	u64 seq;
	unsigned int next_khz;
	bool limits_changed;

	/* For drivers that cannot switch from the scheduler. */
	struct irq_work irq_work;
	struct kthread_work work;
	struct kthread_worker worker;
	struct task_struct *thread;
	struct mutex work_lock;
	bool work_in_progress;
};

struct burst_cpu {
	struct update_util_data hook;
	struct burst_policy *bp;
	int cpu;
	struct burst_count count;
	u64 busy_ns;	/* booked and seen, in whole ticks */
	u64 idle_ns;
};

static DEFINE_PER_CPU(struct burst_cpu, burst_cpus);
static struct burst_tunables *global_tunables;
static DEFINE_MUTEX(global_lock);

/* Booked time. Stolen time is time that the CPU had work: the host was busy with something else. */
static u64 booked_busy(const u64 *stat)
{
	return stat[CPUTIME_USER] + stat[CPUTIME_NICE] + stat[CPUTIME_SYSTEM] + stat[CPUTIME_SOFTIRQ] +
	       stat[CPUTIME_IRQ] + stat[CPUTIME_STEAL];
}

static u64 booked_idle(const u64 *stat)
{
	return stat[CPUTIME_IDLE] + stat[CPUTIME_IOWAIT];
}

/* Whole ticks since the last look; parts of one stay for the next. */
static u64 new_ticks(u64 *seen, u64 booked)
{
	u64 ticks;

	if (booked < *seen + TICK_NSEC) {
		/* Rounding in the kernel's own books may take back a little. */
		if (booked < *seen)
			*seen = booked;
		return 0;
	}
	ticks = div_u64(booked - *seen, TICK_NSEC);
	*seen += ticks * TICK_NSEC;
	return ticks;
}

/* The highest level that any CPU of the policy wishes. */
static unsigned int wished_khz(struct burst_policy *bp)
{
	unsigned int wish = bp->levels.n - 1;
	int cpu;

	for_each_cpu(cpu, bp->policy->cpus)
		wish = min(wish, READ_ONCE(per_cpu(burst_cpus, cpu).count.wish));
	return bp->levels.khz[wish];
}

static void burst_set(struct burst_policy *bp, unsigned int khz)
{
	if (bp->policy->fast_switch_enabled) {
		cpufreq_driver_fast_switch(bp->policy, khz);
	} else if (!bp->work_in_progress) {
		bp->work_in_progress = true;
		irq_work_queue(&bp->irq_work);
	}
}

/* One look: idle ticks, then perhaps a busy one. */
static void burst_look(struct burst_cpu *bc, u64 idle, bool busy)
{
	struct burst_policy *bp = bc->bp;
	struct burst_tunables *t = bp->tunables;
	unsigned int max_busy = READ_ONCE(t->busy), max_idle = READ_ONCE(t->idle);
	enum burst_step step = READ_ONCE(t->step);
	struct burst_count after = bc->count;
	/* After enough idle ticks for the lowest level the rest change nothing. */
	u64 enough = min(idle, (bp->levels.n + 1) * ((u64)max_idle + 1));
	unsigned int khz = 0;
	bool changed;

	while (enough--)
		burst_idle_tick(&after, &bp->levels, max_idle, step);
	if (busy)
		burst_busy_tick(&after, max_busy);

	raw_spin_lock(&bp->lock);
	changed = after.wish != bc->count.wish;
	WRITE_ONCE(bc->count.wish, after.wish);
	bc->count = after;
	/* The other CPUs of the policy matter only when this one changes its mind. */
	if (changed) {
		khz = wished_khz(bp);
		if (khz != bp->next_khz || bp->limits_changed) {
			bp->next_khz = khz;
			bp->limits_changed = false;
			burst_set(bp, khz);
		}
	} else if (unlikely(bp->limits_changed)) {
		bp->limits_changed = false;
		burst_set(bp, bp->next_khz);
	}
	trace_burst_tick(bp->policy->cpu, bp->seq++, bc->cpu, idle, busy, after.wish, khz);
	raw_spin_unlock(&bp->lock);
}

static void burst_hook(struct update_util_data *hook, u64 time, unsigned int flags)
{
	struct burst_cpu *bc = container_of(hook, struct burst_cpu, hook);
	const u64 *stat;
	u64 idle, busy;

	if (smp_processor_id() != bc->cpu)
		return;
	stat = kcpustat_this_cpu->cpustat;
	busy = new_ticks(&bc->busy_ns, booked_busy(stat));
	idle = new_ticks(&bc->idle_ns, booked_idle(stat));
	if (likely(!busy && !idle))
		return;
	burst_look(bc, idle, busy > 0);
	/* A hook that came late: the rest were busy too. More than it takes to reach the top is the same. */
	for (busy = min_t(u64, busy, MAX_TICKS); busy > 1; busy--)
		burst_look(bc, 0, true);
}

/* The slow path: from the hook to an interrupt, for the run-queue lock is held, and on to a thread that may sleep. */
static void burst_irq_work(struct irq_work *work)
{
	struct burst_policy *bp = container_of(work, struct burst_policy, irq_work);

	kthread_queue_work(&bp->worker, &bp->work);
}

static void burst_work(struct kthread_work *work)
{
	struct burst_policy *bp = container_of(work, struct burst_policy, work);
	unsigned int khz;
	unsigned long flags;

	/* Read before the flag is cleared: a decision after that queues the work again. */
	raw_spin_lock_irqsave(&bp->lock, flags);
	khz = bp->next_khz;
	bp->work_in_progress = false;
	raw_spin_unlock_irqrestore(&bp->lock, flags);

	mutex_lock(&bp->work_lock);
	__cpufreq_driver_target(bp->policy, khz, CPUFREQ_RELATION_L);
	mutex_unlock(&bp->work_lock);
}

/* sysfs */

static struct burst_tunables *to_tunables(struct gov_attr_set *set)
{
	return container_of(set, struct burst_tunables, attr_set);
}

static int store_ticks(const char *buf, unsigned int *to)
{
	unsigned int value;
	int err = kstrtouint(buf, 10, &value);

	if (err)
		return err;
	if (value > MAX_TICKS)
		return -EINVAL;
	WRITE_ONCE(*to, value);
	return 0;
}

static ssize_t busy_show(struct gov_attr_set *set, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_tunables(set)->busy);
}

static ssize_t busy_store(struct gov_attr_set *set, const char *buf, size_t count)
{
	return store_ticks(buf, &to_tunables(set)->busy) ?: count;
}

static ssize_t idle_show(struct gov_attr_set *set, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_tunables(set)->idle);
}

static ssize_t idle_store(struct gov_attr_set *set, const char *buf, size_t count)
{
	return store_ticks(buf, &to_tunables(set)->idle) ?: count;
}

static const char * const step_names[] = { [BURST_ONE] = "one", [BURST_PROPORTIONAL] = "proportional" };

static ssize_t step_show(struct gov_attr_set *set, char *buf)
{
	return sysfs_emit(buf, "%s\n", step_names[to_tunables(set)->step]);
}

static ssize_t step_store(struct gov_attr_set *set, const char *buf, size_t count)
{
	int step = sysfs_match_string(step_names, buf);

	if (step < 0)
		return step;
	WRITE_ONCE(to_tunables(set)->step, step);
	return count;
}

static struct governor_attr busy_attr = __ATTR_RW(busy);
static struct governor_attr idle_attr = __ATTR_RW(idle);
static struct governor_attr step_attr = __ATTR_RW(step);

static struct attribute *burst_attrs[] = {
	&busy_attr.attr, &idle_attr.attr, &step_attr.attr, NULL
};
ATTRIBUTE_GROUPS(burst);

static void tunables_release(struct kobject *kobj)
{
	kfree(to_tunables(to_gov_attr_set(kobj)));
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static const struct kobj_type burst_ktype = {
#else
static struct kobj_type burst_ktype = {
#endif
	.default_groups = burst_groups,
	.sysfs_ops = &governor_sysfs_ops,
	.release = tunables_release,
};

/* Life */

static int compare_khz(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static int levels_init(struct burst_policy *bp)
{
	struct cpufreq_policy *policy = bp->policy;
	struct cpufreq_frequency_table *pos;
	unsigned int n = 0, i, unique = 0;

	if (policy->freq_table) {
		cpufreq_for_each_valid_entry(pos, policy->freq_table)
			n++;
	}
	bp->khz = kcalloc(max(n, (unsigned int)SYNTHETIC_LEVELS), sizeof(*bp->khz), GFP_KERNEL);
	if (!bp->khz)
		return -ENOMEM;
	if (n) {
		n = 0;
		cpufreq_for_each_valid_entry(pos, policy->freq_table)
			bp->khz[n++] = pos->frequency;
		sort(bp->khz, n, sizeof(*bp->khz), compare_khz, NULL);
	} else {
		unsigned int span = policy->cpuinfo.max_freq - policy->cpuinfo.min_freq;

		for (n = 0; n < SYNTHETIC_LEVELS; n++)
			bp->khz[n] = policy->cpuinfo.max_freq - span / (SYNTHETIC_LEVELS - 1) * n;
	}
	for (i = 0; i < n; i++)
		if (!i || bp->khz[i] != bp->khz[unique - 1])
			bp->khz[unique++] = bp->khz[i];
	bp->levels.n = unique;
	bp->levels.khz = bp->khz;
	return 0;
}

static int thread_init(struct burst_policy *bp)
{
	struct task_struct *thread;

	if (bp->policy->fast_switch_enabled)
		return 0;
	kthread_init_work(&bp->work, burst_work);
	kthread_init_worker(&bp->worker);
	thread = kthread_create(kthread_worker_fn, &bp->worker, "burst:%u",
				cpumask_first(bp->policy->related_cpus));
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	sched_set_fifo(thread);
	/* Where only the policy's own CPUs can set its clock. */
	if (!bp->policy->dvfs_possible_from_any_cpu)
		set_cpus_allowed_ptr(thread, bp->policy->related_cpus);
	bp->thread = thread;
	init_irq_work(&bp->irq_work, burst_irq_work);
	wake_up_process(thread);
	return 0;
}

static void thread_exit(struct burst_policy *bp)
{
	if (!bp->thread)
		return;
	kthread_flush_worker(&bp->worker);
	kthread_stop(bp->thread);
	bp->thread = NULL;
}

/* The policy's tunables: its own, or those that all policies share. */
static int tunables_get(struct burst_policy *bp)
{
	struct burst_tunables *t;
	int err;

	if (global_tunables) {
		if (WARN_ON(have_governor_per_policy()))
			return -EINVAL;
		bp->tunables = global_tunables;
		gov_attr_set_get(&global_tunables->attr_set, &bp->tunables_hook);
		return 0;
	}
	t = kzalloc(sizeof(*t), GFP_KERNEL);
	if (!t)
		return -ENOMEM;
	t->busy = DEFAULT_TICKS;
	t->idle = DEFAULT_TICKS;
	gov_attr_set_init(&t->attr_set, &bp->tunables_hook);
	bp->tunables = t;
	err = kobject_init_and_add(&t->attr_set.kobj, &burst_ktype, get_governor_parent_kobj(bp->policy),
				   "burst");
	if (err) {
		kobject_put(&t->attr_set.kobj);
		return err;
	}
	if (!have_governor_per_policy())
		global_tunables = t;
	return 0;
}

static int burst_init(struct cpufreq_policy *policy)
{
	struct burst_policy *bp;
	int err;

	if (policy->governor_data)
		return -EBUSY;
	bp = kzalloc(sizeof(*bp), GFP_KERNEL);
	if (!bp)
		return -ENOMEM;
	bp->policy = policy;
	raw_spin_lock_init(&bp->lock);
	mutex_init(&bp->work_lock);
	cpufreq_enable_fast_switch(policy);
	err = levels_init(bp);
	if (err)
		goto no_levels;
	err = thread_init(bp);
	if (err)
		goto no_thread;
	mutex_lock(&global_lock);
	err = tunables_get(bp);
	mutex_unlock(&global_lock);
	if (err)
		goto no_tunables;
	policy->governor_data = bp;
	return 0;

no_tunables:
	thread_exit(bp);
no_thread:
	kfree(bp->khz);
no_levels:
	cpufreq_disable_fast_switch(policy);
	kfree(bp);
	return err;
}

static void burst_exit(struct cpufreq_policy *policy)
{
	struct burst_policy *bp = policy->governor_data;

	mutex_lock(&global_lock);
	policy->governor_data = NULL;
	if (!gov_attr_set_put(&bp->tunables->attr_set, &bp->tunables_hook) && bp->tunables == global_tunables)
		global_tunables = NULL;
	mutex_unlock(&global_lock);

	thread_exit(bp);
	cpufreq_disable_fast_switch(policy);
	kfree(bp->khz);
	kfree(bp);
}

static int burst_start(struct cpufreq_policy *policy)
{
	struct burst_policy *bp = policy->governor_data;
	int cpu;

	/* The study's kernel starts at the highest speed. */
	bp->next_khz = bp->levels.khz[0];
	bp->limits_changed = true;
	bp->work_in_progress = false;
	bp->seq = 0;
	for_each_cpu(cpu, policy->cpus) {
		struct burst_cpu *bc = per_cpu_ptr(&burst_cpus, cpu);
		const u64 *stat = kcpustat_cpu(cpu).cpustat;

		memset(bc, 0, sizeof(*bc));
		bc->cpu = cpu;
		bc->bp = bp;
		bc->busy_ns = booked_busy(stat);
		bc->idle_ns = booked_idle(stat);
	}
	for_each_cpu(cpu, policy->cpus)
		cpufreq_add_update_util_hook(cpu, &per_cpu(burst_cpus, cpu).hook, burst_hook);
	return 0;
}

static void burst_stop(struct cpufreq_policy *policy)
{
	struct burst_policy *bp = policy->governor_data;
	int cpu;

	for_each_cpu(cpu, policy->cpus)
		cpufreq_remove_update_util_hook(cpu);
	synchronize_rcu();
	if (bp->thread) {
		irq_work_sync(&bp->irq_work);
		kthread_cancel_work_sync(&bp->work);
	}
}

static void burst_limits(struct cpufreq_policy *policy)
{
	struct burst_policy *bp = policy->governor_data;
	unsigned long flags;

	if (!policy->fast_switch_enabled) {
		mutex_lock(&bp->work_lock);
		cpufreq_policy_apply_limits(policy);
		mutex_unlock(&bp->work_lock);
	}
	/* Taken up at the next tick: a sleeping CPU is not woken for it. */
	raw_spin_lock_irqsave(&bp->lock, flags);
	bp->limits_changed = true;
	raw_spin_unlock_irqrestore(&bp->lock, flags);
}

static struct cpufreq_governor burst = {
	.name = "burst",
	.owner = THIS_MODULE,
	.flags = CPUFREQ_GOV_DYNAMIC_SWITCHING,
	.init = burst_init,
	.exit = burst_exit,
	.start = burst_start,
	.stop = burst_stop,
	.limits = burst_limits,
};

static int __init burst_module_init(void)
{
	return cpufreq_register_governor(&burst);
}

static void __exit burst_module_exit(void)
{
	cpufreq_unregister_governor(&burst);
}

module_init(burst_module_init);
module_exit(burst_module_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("The wattwise authors");
MODULE_DESCRIPTION("Governor that counts busy and idle ticks (Thomson 2010)");
