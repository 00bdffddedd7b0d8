// SPDX-License-Identifier: GPL-2.0
/*
 * Speeds alone, through a cpufreq driver that switches fast, under a governor that leaves them alone.
 *
 * A policy's CPUs have one clock: what the driver last set, `cur`, is their one register. When it is not what we set,
 * others did (scaling_setspeed, a limit): that is the default from then on.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpufreq.h>
#include <linux/module.h>

#include "powerctl.h"

static DEFINE_PER_CPU(struct cpufreq_policy *, policies);

/* Looked up here, where there is time: what comes after it has interrupts off. */
static int policy_of(int cpu)
{
	struct cpufreq_policy *policy = cpufreq_cpu_get(cpu);
	int id = cpu;

	if (policy) {
		id = cpumask_first(policy->related_cpus);
		if (policy->fast_switch_possible)
			WRITE_ONCE(per_cpu(policies, cpu), policy);
		cpufreq_cpu_put(policy);
	}
	return id;
}

/* Writers run with interrupts off: after a grace period none has one that is gone. */
static int policy_gone(struct notifier_block *nb, unsigned long event, void *data)
{
	int cpu;

	if (event != CPUFREQ_REMOVE_POLICY)
		return NOTIFY_DONE;
	for_each_possible_cpu(cpu)
		if (per_cpu(policies, cpu) == data)
			WRITE_ONCE(per_cpu(policies, cpu), NULL);
	synchronize_rcu();
	return NOTIFY_DONE;
}

static struct notifier_block policy_notifier = { .notifier_call = policy_gone };

/* Looks every CPU's policy up. A domain once made stays: another driver must share its clocks in the same way. */
static u32 lost(const char **why)
{
	u32 lost = 0;
	int cpu;

	for_each_online_cpu(cpu) {
		struct cpufreq_policy *policy = cpufreq_cpu_get(cpu);
		const struct pc_domain *d = per_cpu(pc_cpus, cpu).domain;

		if (!policy) {
			*why = "a CPU has no cpufreq policy";
			lost = POWERCTL_PSTATE;
			continue;
		}
		if (!policy->fast_switch_possible) {
			*why = "the cpufreq driver cannot switch from the scheduler";
			lost = POWERCTL_PSTATE;
		} else if (d && d->id != cpumask_first(policy->related_cpus)) {
			*why = "CPUs share their clock with others than before";
			lost = POWERCTL_PSTATE;
		} else {
			WRITE_ONCE(per_cpu(policies, cpu), policy);
		}
		cpufreq_cpu_put(policy);
	}
	return lost;
}

static int cpufreq_init(void)
{
	const char *why = NULL;
	int err = cpufreq_register_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);

	if (err)
		return err;
	if (lost(&why))
		err = -EOPNOTSUPP;
	else if (pc_speeds_taken(POWERCTL_PSTATE, &why))
		err = -EBUSY;
	if (err) {
		pr_err("cpufreq: %s: it takes a driver that switches fast, and the governor performance, powersave or userspace\n",
		       why);
		cpufreq_unregister_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
	}
	pc_caps.tstate_step = POWERCTL_TSTATE_FULL;
	return err;
}

static void cpufreq_exit(void)
{
	cpufreq_unregister_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
}

/* Where a sibling may have a profile in force, the default is what that one had found. */
static void learn(int cpu, struct pc_cpu *pc)
{
	struct cpufreq_policy *policy = READ_ONCE(per_cpu(policies, cpu));
	int sibling;

	if (!policy)
		return;
	for_each_cpu(sibling, policy->cpus) {
		const struct pc_cpu *other = per_cpu_ptr(&pc_cpus, sibling);

		if (sibling != cpu && other->learned) {
			pc->def = other->def;
			pc->learned = true;
			return;
		}
	}
	pc->def.tstate = POWERCTL_TSTATE_FULL;
	pc->def.khz = min_t(u32, policy->cur, PC_KHZ_MAX);
	pc->held->reg[PC_PERF_CTL].ours = policy->cur;
	pc->learned = true;
}

/* Of all CPUs of the policy; those that had no other wish wish for this now. */
static noinline int adopt(const struct cpufreq_policy *policy, struct pc_register *r)
{
	u32 khz = min_t(u32, policy->cur, PC_KHZ_MAX);
	int cpu;

	r->ours = policy->cur;
	for_each_cpu(cpu, policy->cpus) {
		struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		if (pc->want.khz == pc->def.khz)
			pc->want.khz = khz;
		pc->def.khz = khz;
	}
	return -EAGAIN;
}

static bool look(int cpu, struct pc_cpu *pc)
{
	const struct cpufreq_policy *policy = READ_ONCE(per_cpu(policies, cpu));
	struct pc_register *r = &pc->held->reg[PC_PERF_CTL];

	return policy && policy->cur != r->ours && adopt(policy, r);
}

static int cpufreq_write(struct pc_cpu *pc, union pc_state changed, union pc_state s)
{
	struct cpufreq_policy *policy = this_cpu_read(policies);
	struct pc_register *r = &pc->held->reg[PC_PERF_CTL];
	bool switched;

	/* Its driver is gone, and with it what it was asked for. */
	if (!policy || !changed.khz)
		return 0;
	if (policy->cur != r->ours)
		return adopt(policy, r);
	switched = cpufreq_driver_fast_switch(policy, s.khz);
	r->ours = policy->cur;
	return switched ? 0 : -EIO;
}

const struct pc_backend pc_backend_cpufreq = {
	.name = "cpufreq",
	.id = POWERCTL_BACKEND_CPUFREQ,
	.settable = POWERCTL_PSTATE | POWERCTL_INHERIT,
	.step_khz = 1,
	.one_register = true,
	.init = cpufreq_init,
	.exit = cpufreq_exit,
	.learn = learn,
	.look = look,
	.domain = policy_of,
	.write = cpufreq_write,
	.counters = pc_msr_counters,
	.lost = lost,
};
