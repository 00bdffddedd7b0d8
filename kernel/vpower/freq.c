// SPDX-License-Identifier: GPL-2.0
/*
 * A cpufreq driver with virtual P-states: every governor and every sysfs file works upon it. And one that governs by
 * itself, as intel_pstate and amd-pstate do when they are active; which of them is there changes at run time, as with
 * their `status`.
 */

#include <linux/cpufreq.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/uaccess.h>
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
		if (READ_ONCE(vpower_knobs.driver_writes))
			vpower_driver_perf(cpu, vpower_machine.khz[to]);
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

/* What its users say it is for becomes the energy preference, as with intel_pstate. */
static int vpower_setpolicy(struct cpufreq_policy *policy)
{
	int cpu;

	for_each_cpu(cpu, policy->cpus)
		vpower_driver_epp(cpu, policy->policy == CPUFREQ_POLICY_PERFORMANCE ? 0 : 0x80);
	return 0;
}

static int vpower_verify(struct cpufreq_policy_data *policy)
{
	cpufreq_verify_within_cpu_limits(policy);
	return 0;
}

static int vpower_active_init(struct cpufreq_policy *policy)
{
	cpumask_copy(policy->cpus, cpumask_of(policy->cpu));
	policy->cpuinfo.min_freq = vpower_machine.khz[vpower_machine.levels - 1];
	policy->cpuinfo.max_freq = vpower_machine.khz[0];
	policy->min = policy->cpuinfo.min_freq;
	policy->max = policy->cpuinfo.max_freq;
	/* Where the kernel's default governor has no such name. */
	policy->policy = CPUFREQ_POLICY_POWERSAVE;
	return 0;
}

static struct cpufreq_driver active = {
	.name = "vpower_active",
	.flags = CPUFREQ_CONST_LOOPS,
	.init = vpower_active_init,
	.exit = vpower_cpu_exit,
	.verify = vpower_verify,
	.setpolicy = vpower_setpolicy,
	.get = vpower_get,
};

static struct cpufreq_driver *registered;
static DEFINE_MUTEX(status_lock);

static int change_to(struct cpufreq_driver *to)
{
	int err = 0;

	mutex_lock(&status_lock);
	if (registered != to) {
		if (registered)
			cpufreq_unregister_driver(registered);
		registered = NULL;
		err = to ? cpufreq_register_driver(to) : 0;
		if (!err)
			registered = to;
	}
	mutex_unlock(&status_lock);
	return err;
}

/* "active", "passive" or "off". */
static ssize_t status_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	char text[16];
	int err;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	if (sysfs_streq(text, "active"))
		err = change_to(&active);
	else if (sysfs_streq(text, "passive"))
		err = change_to(&driver);
	else if (sysfs_streq(text, "off"))
		err = change_to(NULL);
	else
		err = -EINVAL;
	return err ?: size;
}

static const struct file_operations status_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = status_write,
	.llseek = noop_llseek,
};

int vpower_freq_init(struct dentry *dir)
{
	unsigned int i;

	for (i = 0; i < vpower_machine.levels; i++)
		table[i].frequency = vpower_machine.khz[i];
	table[i].frequency = CPUFREQ_TABLE_END;
	debugfs_create_file("status", 0200, dir, NULL, &status_fops);
	return change_to(&driver);
}

void vpower_freq_exit(void)
{
	change_to(NULL);
}
