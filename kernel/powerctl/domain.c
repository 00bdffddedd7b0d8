// SPDX-License-Identifier: GPL-2.0
/*
 * What is in force on a CPU.
 *
 * Each CPU has a wish: the profile of the thread that runs there, or the default. Where what one thread asks for would
 * reach its siblings (msr.c and cpufreq.c say where), CPUs are one domain, and the faster of their wishes is in force.
 * A CPU without a profiled thread, idle or not, wishes the default: nothing of ours runs when a stranger is put on it.
 * So nobody without a profile is slowed down but for one moment: where each CPU of a domain has registers of its own, a
 * stranger that comes to one is free once its sibling has taken an interrupt and written its own.
 *
 * The default is each CPU's own, read when it comes and whenever others have written: kinds of core differ.
 *
 * After a write that failed nobody knows what is in force: a part of it may have been done. All is written at the next
 * switch, and if none comes by a worker: after 10 ms, then each second.
 *
 * Locking
 *   pc_domain.lock	raw, innermost, taken with interrupts off and perhaps with the run-queue lock
 *			held (taken off) or not (put on, interrupts); below it only the CPU's own registers, the
 *			driver's fast switch, and what only queues: irq_work and a call to another CPU.
 *			Not taken where a CPU is alone in its domain: only that CPU ever touches
 *			the domain then, with interrupts off. When a second one joins, `shared` is set, and
 *			a grace period passes before that CPU may touch anything; it is never cleared
 *   pc_cpu		as its domain; the counters too. Its registers and pc_cpu.own only by the CPU itself, interrupts
 *			off; what its own registers hold is read by siblings under the domain's lock
 *   allowed_lock	raw, interrupts off: which fields of profiles count now. Nothing inside it
 * The worker takes the hotplug lock, and in it a policy's semaphore (speeds.c), as cpufreq's own files do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/suspend.h>
#include <linux/workqueue.h>

#include "powerctl.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

DEFINE_PER_CPU(struct pc_cpu, pc_cpus);

/* Fields of profiles that count: none while suspended, no speeds while these are another's. */
static u64 allowed = ~0ULL;
static DEFINE_RAW_SPINLOCK(allowed_lock);
bool pc_suspended;
static u32 withheld;
static unsigned int hands_offs;
static bool leaving;

static void look_again(struct work_struct *unused);
static DECLARE_DELAYED_WORK(look_work, look_again);

/* The faster of two wishes. */
static union pc_state faster(union pc_state a, union pc_state b)
{
	union pc_state f = { .all = 0 };

	f.khz = max_t(u32, a.khz, b.khz);
	f.tstate = max_t(u32, a.tstate, b.tstate);
	f.hwp_min = max_t(u32, a.hwp_min, b.hwp_min);
	f.hwp_max = max_t(u32, a.hwp_max, b.hwp_max);
	/* 0 leaves the choice to the hardware, which may go as far as hwp_max. */
	f.hwp_desired = a.hwp_desired && b.hwp_desired ? max_t(u32, a.hwp_desired, b.hwp_desired) : 0;
	f.epp = min_t(u32, a.epp, b.epp);
	return f;
}

/*
 * What a CPU's registers are to hold where siblings share: on its own, so that the usual case has few registers to save.
 * The faster of all wishes; where all wish their default, each its own, as if we were not here. What protects one of
 * them from heat protects their core.
 */
static noinline union pc_state shared_state(int cpu, const struct pc_domain *d)
{
	const struct pc_cpu *own = per_cpu_ptr(&pc_cpus, cpu);
	union pc_state state = own->want;
	bool profiled = state.all != own->def.all;
	u32 most = own->def.tstate;
	int other;

	for_each_cpu(other, &d->cpus) {
		const struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, other);

		if (other == cpu)
			continue;
		state = faster(state, pc->want);
		profiled |= pc->want.all != pc->def.all;
		most = min_t(u32, most, pc->def.tstate);
	}
	if (!profiled)
		return own->def;
	state.tstate = min_t(u32, state.tstate, most);
	return state;
}

static noinline void failed(struct pc_cpu *pc, struct pc_held *held, int err)
{
	held->known = false;
	if (err != -EAGAIN)
		pc->failed++;
	/* Under the run-queue lock nobody can be woken. */
	if (!READ_ONCE(leaving))
		irq_work_queue(&pc->look);
}

/* On its own, so that who is not traced saves no registers for it. */
static noinline void traced(const struct pc_cpu *pc, const struct pc_held *held)
{
	trace_powerctl_switch(smp_processor_id(), current->pid, pc->want, held->in_force);
}

/* On the CPU itself, interrupts off, and the lock held if the domain is shared. */
static __always_inline int enforce(struct pc_cpu *pc, union pc_state state, bool force)
{
	struct pc_held *held = pc->held;
	union pc_state changed;
	int err = 0;

	pc->switches++;
	changed.all = likely(held->known && !force) ? state.all ^ held->in_force.all : ~0ULL;
	if (!changed.all) {
		pc->skipped++;
	} else {
		err = static_call(pc_write)(pc, changed, state);
		if (unlikely(err)) {
			failed(pc, held, err);
		} else {
			pc->writes++;
			held->in_force = state;
			held->known = true;
		}
	}
	if (trace_powerctl_switch_enabled())
		traced(pc, held);
	return err;
}

/* Siblings whose registers do not hold what they are to write it themselves. */
static void kick_others(int cpu, const struct pc_domain *d)
{
	int other;

	for_each_cpu(other, &d->cpus) {
		struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, other);

		/* One that is on its way already looks at the wishes when it gets there. */
		if (other != cpu && (!pc->own.known || pc->own.in_force.all != shared_state(other, d).all))
			smp_call_function_single_async(other, &pc->kick);
	}
}

static noinline int apply_shared(struct pc_cpu *pc, struct pc_domain *d, union pc_state want, bool force)
{
	int cpu = smp_processor_id();
	int err;

	raw_spin_lock(&d->lock);
	pc->want = want;
	err = enforce(pc, shared_state(cpu, d), force);
	if (!pc_backend->one_register)
		kick_others(cpu, d);
	raw_spin_unlock(&d->lock);
	return err;
}

/* An interrupt: a sibling's wish has changed what is in force here. */
static void kicked(void *unused)
{
	struct pc_cpu *pc = this_cpu_ptr(&pc_cpus);
	struct pc_domain *d = pc->active;

	if (!d)
		return;
	raw_spin_lock(&d->lock);
	enforce(pc, shared_state(smp_processor_id(), d), false);
	raw_spin_unlock(&d->lock);
}

/*
 * On the CPU itself, interrupts off: its wish has changed, or its registers are not known (force). The fields of
 * the mask are asked for.
 */
static __always_inline int apply(struct pc_cpu *pc, struct pc_domain *d, union pc_state state, u64 mask, bool force)
{
	union pc_state want;

	want = pc->def;
	if (mask) {
		mask &= READ_ONCE(allowed);
		want.all = (state.all & mask) | (want.all & ~mask);
		/* Less than full, it protects from heat. */
		if (unlikely(pc->def.tstate < POWERCTL_TSTATE_FULL))
			want.tstate = min_t(u32, want.tstate, pc->def.tstate);
	}
	if (unlikely(READ_ONCE(d->shared)))
		return apply_shared(pc, d, want, force);
	pc->want = want;
	return enforce(pc, want, force);
}

/* Others have written: the default is another now. Once for each register: then the worker looks again. */
static noinline void apply_again(struct pc_cpu *pc, struct pc_domain *d, union pc_state state, u64 mask)
{
	int tries = PC_REGISTERS;

	while (tries-- && apply(pc, d, state, mask, true) == -EAGAIN)
		;
}

/* The same with interrupts off. */
static __always_inline void apply_here(union pc_state state, u64 mask, bool force)
{
	struct pc_cpu *pc = this_cpu_ptr(&pc_cpus);
	struct pc_domain *d = pc->active;

	if (likely(d) && unlikely(apply(pc, d, state, mask, force) == -EAGAIN))
		apply_again(pc, d, state, mask);
}

/* From anywhere with preemption off. */
void pc_apply(union pc_state state, u64 mask, bool force)
{
	unsigned long flags;

	local_irq_save(flags);
	apply_here(state, mask, force);
	local_irq_restore(flags);
}

/* A thread is put on: the scheduler calls with interrupts on. */
void pc_apply_put_on(union pc_state state, u64 mask)
{
	local_irq_disable();
	apply_here(state, mask, false);
	local_irq_enable();
}

/* A thread is taken off, under the run-queue lock. */
void pc_apply_taken_off(void)
{
	apply_here((union pc_state){ .all = 0 }, 0, false);
}

void pc_apply_default(bool force)
{
	pc_apply((union pc_state){ .all = 0 }, 0, force);
}

/*
 * What runs here gets what it wants, whatever the registers hold. An interrupt may come into the middle of the
 * task's own change; that one then applies what it has written.
 */
static void again_here(void *unused)
{
	pc_apply_own(true);
}

static void apply_everywhere(void)
{
	on_each_cpu(again_here, NULL, 1);
}

/* Which fields count. */

static void allow(void)
{
	WRITE_ONCE(allowed, pc_suspended ? 0 : ~pc_fields(withheld));
}

/* Somebody may take the speeds: from here on no profile's is written, and the default comes back. */
void pc_hands_off(void)
{
	unsigned long irq;

	raw_spin_lock_irqsave(&allowed_lock, irq);
	hands_offs++;
	withheld = PC_SPEEDS;
	allow();
	raw_spin_unlock_irqrestore(&allowed_lock, irq);
	if (pc_profiles_count())
		apply_everywhere();
}

unsigned int pc_hands_offs(void)
{
	return READ_ONCE(hands_offs);
}

/* All but these count again, unless somebody came since there were so many. */
void pc_hands_on(u32 lost, unsigned int before)
{
	unsigned long irq;

	raw_spin_lock_irqsave(&allowed_lock, irq);
	if (hands_offs == before) {
		withheld = lost;
		allow();
	}
	raw_spin_unlock_irqrestore(&allowed_lock, irq);
}

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
	unsigned long irq;

	raw_spin_lock_irqsave(&allowed_lock, irq);
	WRITE_ONCE(pc_suspended, on);
	allow();
	raw_spin_unlock_irqrestore(&allowed_lock, irq);
	on_each_cpu(on ? again_here : woke_here, NULL, 1);
	if (!on)
		pc_look_soon(0);
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

/* At once, or when the first to ask says. */
void pc_look_soon(unsigned long jiffies)
{
	if (READ_ONCE(leaving))
		return;
	if (!jiffies)
		mod_delayed_work(system_wq, &look_work, 0);
	else
		queue_delayed_work(system_wq, &look_work, jiffies);
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

/* Hotplug. */

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
	if (leaving && pc_backend->restore)
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
	cancel_delayed_work_sync(&look_work);
	on_each_cpu(nothing, NULL, 1);
}

static void leave(void)
{
	WRITE_ONCE(leaving, true);
	nothing_queued();
	cpuhp_remove_state(hotplug_state);
	nothing_queued();
	free_domains();
}

int pc_domains_init(void)
{
	int cpu, err;

	for_each_possible_cpu(cpu) {
		struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		INIT_CSD(&pc->kick, kicked, NULL);
		init_irq_work(&pc->look, look_soon_here);
	}
	hotplug_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "powerctl:online", cpu_online_here, cpu_offline_here);
	if (hotplug_state < 0) {
		err = hotplug_state;
		WRITE_ONCE(leaving, true);
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
void pc_domains_exit(void)
{
	unregister_pm_notifier(&suspend_notifier);
	leave();
}
