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
 * What comes, goes and is looked at again: cpus.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#include "powerctl.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/* Fields of profiles that count: none while suspended, no speeds while these are another's. */
static u64 allowed = ~0ULL;
static DEFINE_RAW_SPINLOCK(allowed_lock);
static u32 withheld;
static unsigned int hands_offs;

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
	if (!READ_ONCE(pc_leaving))
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
static __always_inline int apply_wish(struct pc_cpu *pc, struct pc_domain *d, union pc_state state, u64 mask, bool force)
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

	while (tries-- && apply_wish(pc, d, state, mask, true) == -EAGAIN)
		;
}

/* The same with interrupts off. */
static __always_inline void apply_here(union pc_state state, u64 mask, bool force)
{
	struct pc_cpu *pc = this_cpu_ptr(&pc_cpus);
	struct pc_domain *d = pc->active;

	if (likely(d) && unlikely(apply_wish(pc, d, state, mask, force) == -EAGAIN))
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

/* Which fields count. */

static void allow(void)
{
	WRITE_ONCE(allowed, pc_suspended ? 0 : ~pc_fields(withheld));
}

/* Somebody may take the speeds: from here on no profile's is written. */
void pc_hands_off(void)
{
	unsigned long irq;

	raw_spin_lock_irqsave(&allowed_lock, irq);
	hands_offs++;
	withheld = PC_SPEEDS;
	allow();
	raw_spin_unlock_irqrestore(&allowed_lock, irq);
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

/* While the machine is suspended none counts. */
void pc_suspend(bool on)
{
	unsigned long irq;

	raw_spin_lock_irqsave(&allowed_lock, irq);
	WRITE_ONCE(pc_suspended, on);
	allow();
	raw_spin_unlock_irqrestore(&allowed_lock, irq);
}

/* A CPU that may come one day. */
void pc_domain_prepare(struct pc_cpu *pc)
{
	INIT_CSD(&pc->kick, kicked, NULL);
}
