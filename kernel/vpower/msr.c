// SPDX-License-Identifier: GPL-2.0
/* Registers that QEMU ignores, kept here a set a core, so that powerctl can be checked without hardware. */

#include <asm/msr-index.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/topology.h>
#include <linux/uaccess.h>

#include "vpower.h"
#include "vpower_msr.h"

enum { PERF_CTL, CLOCK_MODULATION, ENERGY_PERF_BIAS, HWP_REQUEST, REGISTERS };

static DEFINE_PER_CPU(u64[REGISTERS], registers);
/* Of the core: its first CPU's. */
static DEFINE_PER_CPU(u64 *, of_core);
static u32 writes;

static int slot(u32 reg)
{
	switch (reg) {
	case MSR_IA32_PERF_CTL:
	case MSR_IA32_PERF_STATUS:	/* what was asked for is in force at once */
		return PERF_CTL;
	case MSR_IA32_THERM_CONTROL:
		return CLOCK_MODULATION;
	case MSR_IA32_ENERGY_PERF_BIAS:
		return ENERGY_PERF_BIAS;
	case MSR_HWP_REQUEST:
		return HWP_REQUEST;
	default:
		return -EINVAL;
	}
}

int vpower_rdmsr(int cpu, u32 reg, u64 *value)
{
	u64 aperf, mperf;
	int i;

	if (reg == MSR_IA32_APERF || reg == MSR_IA32_MPERF) {
		vpower_cycles(cpu, &aperf, &mperf);
		*value = reg == MSR_IA32_APERF ? aperf : mperf;
		return 0;
	}
	i = slot(reg);
	if (i < 0)
		return i;
	*value = READ_ONCE(per_cpu(of_core, cpu)[i]);
	return 0;
}
EXPORT_SYMBOL_GPL(vpower_rdmsr);

static noinline void lag(u32 ns)
{
	ndelay(min(ns, 100000U));
}

int vpower_wrmsr(int cpu, u32 reg, u64 value)
{
	u32 delay = READ_ONCE(vpower_knobs.msr_delay_ns);
	int i = slot(reg);

	if (i < 0 || reg == MSR_IA32_PERF_STATUS)
		return -EINVAL;
	if (vpower_fault(&vpower_knobs.fail_msr))
		return -EIO;
	if (unlikely(delay))
		lag(delay);
	WRITE_ONCE(per_cpu(of_core, cpu)[i], value);
	WRITE_ONCE(writes, writes + 1);
	return 0;
}
EXPORT_SYMBOL_GPL(vpower_wrmsr);

/* A CPU and its registers a line, in hex: PERF_CTL, THERM_CONTROL, HWP_REQUEST. */
static int registers_show(struct seq_file *m, void *unused)
{
	int cpu;

	for_each_online_cpu(cpu) {
		const u64 *r = per_cpu(of_core, cpu);

		seq_printf(m, "%d %llx %llx %llx\n", cpu, r[PERF_CTL], r[CLOCK_MODULATION], r[HWP_REQUEST]);
	}
	return 0;
}

static int registers_open(struct inode *inode, struct file *file)
{
	return single_open(file, registers_show, NULL);
}

/* What firmware or another driver would have left there: "CPU REGISTER VALUE", the last two in hex. */
static ssize_t registers_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned int cpu;
	char text[64];
	u64 value;
	u32 reg;
	int i;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, size))
		return -EFAULT;
	text[size] = 0;
	if (sscanf(text, "%u %x %llx", &cpu, &reg, &value) != 3 || cpu >= nr_cpu_ids || !cpu_possible(cpu))
		return -EINVAL;
	i = slot(reg);
	if (i < 0)
		return i;
	WRITE_ONCE(per_cpu(of_core, cpu)[i], value);
	return size;
}

static const struct file_operations registers_fops = {
	.owner = THIS_MODULE,
	.open = registers_open,
	.read = seq_read,
	.write = registers_write,
	.llseek = seq_lseek,
	.release = single_release,
};

int vpower_msr_init(struct dentry *dir)
{
	int cpu;

	debugfs_create_file("registers", 0600, dir, NULL, &registers_fops);
	/* A write or two may go uncounted when CPUs race: the count is for orders of magnitude. */
	debugfs_create_u32("msr_writes", 0644, dir, &writes);
	for_each_possible_cpu(cpu) {
		int first = cpumask_first(topology_sibling_cpumask(cpu));

		/* Of a CPU that was never online no sibling is known. */
		per_cpu(of_core, cpu) = per_cpu(registers, first < nr_cpu_ids ? first : cpu);
		per_cpu(registers, cpu)[PERF_CTL] = (u64)(vpower_machine.khz[0] / 100000) << 8;
		per_cpu(registers, cpu)[HWP_REQUEST] = 0x80002a01;
		per_cpu(registers, cpu)[ENERGY_PERF_BIAS] = 6;
	}
	return 0;
}
