// SPDX-License-Identifier: GPL-2.0
/* A cpufreq driver with virtual P-states: every governor and every sysfs file works upon it. */

#include <linux/cpufreq.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/version.h>

#include "vpower.h"

static struct cpufreq_frequency_table table[VPOWER_MAX_LEVELS + 1];
static DEFINE_PER_CPU(unsigned int, level);

unsigned int vpower_khz(int cpu)
{
	return vpower_machine.khz[READ_ONCE(per_cpu(level, cpu))];
}

static void set_level(struct cpufreq_policy *policy, unsigned int to)
{
	int cpu;

	for_each_cpu(cpu, policy->related_cpus) {
		WRITE_ONCE(per_cpu(level, cpu), to);
		vpower_energy_level(cpu, to);
	}
}

static int vpower_cpu_init(struct cpufreq_policy *policy)
{
	struct vpower_machine *m = &vpower_machine;
	unsigned int i;

	/* A CPU that no domain names has one of its own. */
	cpumask_copy(policy->cpus, m->domains ? cpumask_of(policy->cpu) : cpu_possible_mask);
	for (i = 0; i < m->domains; i++)
		if (cpumask_test_cpu(policy->cpu, &m->domain[i]))
			cpumask_and(policy->cpus, cpu_possible_mask, &m->domain[i]);
	policy->freq_table = table;
	policy->cpuinfo.transition_latency = m->latency_ns;
	policy->fast_switch_possible = m->fast_switch;
	policy->dvfs_possible_from_any_cpu = m->any_cpu;
	policy->cur = vpower_khz(policy->cpu);
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static void vpower_cpu_exit(struct cpufreq_policy *policy)
{
}
#else
static int vpower_cpu_exit(struct cpufreq_policy *policy)
{
	return 0;
}
#endif

static int vpower_target_index(struct cpufreq_policy *policy, unsigned int index)
{
	u32 delay = READ_ONCE(vpower_knobs.delay_us);

	if (vpower_fault(&vpower_knobs.fail_target))
		return -EIO;
	if (delay)
		usleep_range(delay, delay + delay / 10 + 1);
	set_level(policy, index);
	return 0;
}

/* The slowest level that is at least what is wanted, as every driver's table look-up does. */
static unsigned int vpower_fast_switch(struct cpufreq_policy *policy, unsigned int khz)
{
	struct vpower_machine *m = &vpower_machine;
	u32 delay = READ_ONCE(vpower_knobs.delay_us);
	unsigned int i = m->levels - 1;

	if (vpower_fault(&vpower_knobs.fail_target))
		return 0;
	while (i && m->khz[i] < khz)
		i--;
	/* With interrupts off: long delays are for target_index(). */
	if (delay)
		udelay(min(delay, 100U));
	set_level(policy, i);
	return m->khz[i];
}

static unsigned int vpower_get(unsigned int cpu)
{
	return vpower_khz(cpu);
}

static struct cpufreq_driver driver = {
	.name = "vpower",
	.flags = CPUFREQ_CONST_LOOPS,
	.init = vpower_cpu_init,
	.exit = vpower_cpu_exit,
	.verify = cpufreq_generic_frequency_table_verify,
	.target_index = vpower_target_index,
	.fast_switch = vpower_fast_switch,
	.get = vpower_get,
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 15, 0)
	/* Later kernels add the table's files themselves. */
	.attr = cpufreq_generic_attr,
#endif
};

int vpower_freq_init(void)
{
	unsigned int i;

	for (i = 0; i < vpower_machine.levels; i++)
		table[i].frequency = vpower_machine.khz[i];
	table[i].frequency = CPUFREQ_TABLE_END;
	return cpufreq_register_driver(&driver);
}

void vpower_freq_exit(void)
{
	cpufreq_unregister_driver(&driver);
}
