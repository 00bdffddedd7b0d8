// SPDX-License-Identifier: GPL-2.0
/*
 * Registers that QEMU ignores, kept here for each logical CPU, so that powerctl can be checked without hardware; and
 * what a core makes of those of its threads.
 *
 *   IA32_CLOCK_MODULATION	a core takes the lowest duty cycle of its threads or, as some models do, the highest
 *				(Intel SDM 3B, 14.7.3); a thread that is not modulated counts as 16 sixteenths
 *   IA32_PERF_CTL		a core takes the highest clock of its threads; ignored once HWP is on
 *   IA32_HWP_REQUEST		#GP as long as HWP is off
 *   IA32_PM_ENABLE		HWP is on once 1 was written, and only a reset takes that back
 */

#include <asm/msr-index.h>
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <linux/suspend.h>
#include <linux/topology.h>
#include <linux/uaccess.h>

#include "vpower.h"
#include "vpower_msr.h"

#define RATIO_KHZ		100000
#define MODULATION_ON		BIT(4)
#define DUTY_FULL		16

enum { PERF_CTL, CLOCK_MODULATION, ENERGY_PERF_BIAS, HWP_REQUEST, PM_ENABLE, REGISTERS };

static DEFINE_PER_CPU(u64[REGISTERS], registers);
static u32 writes;

/* Which processor this is, and how faithful: settable at any time through debugfs. */
static struct {
	u32 vendor_intel, family, model;
	u32 clock_modulation, extended, est, hwp, hwp_epp;
	u32 highest;		/* a core takes the highest duty cycle of its threads, not the lowest */
	u32 strict;		/* HWP_REQUEST faults while HWP is off */
	u32 ignores;		/* writes of this register are lost, as under some hypervisors; 0: of none */
	u32 fail_reg;		/* fail_msr concerns this register alone; 0: all */
	u32 forget;		/* a CPU that comes, or wakes from a suspend, has its firmware's values again */
	u32 firmware_duty;	/* ... and this CLOCK_MODULATION among them */
} processor = {
	.vendor_intel = 1, .family = 6, .model = 94,
	.clock_modulation = 1, .extended = 1, .est = 1, .hwp = 1, .hwp_epp = 1,
};

static int slot(u32 reg)
{
	switch (reg) {
	case MSR_IA32_PERF_CTL:
		return PERF_CTL;
	case MSR_IA32_THERM_CONTROL:
		return CLOCK_MODULATION;
	case MSR_IA32_ENERGY_PERF_BIAS:
		return ENERGY_PERF_BIAS;
	case MSR_HWP_REQUEST:
		return HWP_REQUEST;
	case MSR_PM_ENABLE:
		return PM_ENABLE;
	default:
		return -EINVAL;
	}
}

static u64 held(int cpu, int i)
{
	return READ_ONCE(per_cpu(registers, cpu)[i]);
}

static bool faults(int cpu, int i)
{
	return i == HWP_REQUEST && processor.strict && !(held(cpu, PM_ENABLE) & 1);
}

/* A thread's own wish, in sixteenths. */
static unsigned int duty_of(int cpu)
{
	u64 value = held(cpu, CLOCK_MODULATION);
	unsigned int field = value & (processor.extended ? 0xf : 0xe);

	return (value & MODULATION_ON) && field ? field : DUTY_FULL;
}

/* What the core of this CPU makes of its threads' wishes. */
static unsigned int core_duty(int cpu)
{
	unsigned int duty = duty_of(cpu);
	int other;

	for_each_cpu(other, topology_sibling_cpumask(cpu))
		duty = processor.highest ? max(duty, duty_of(other)) : min(duty, duty_of(other));
	return duty;
}

static u64 core_perf(int cpu)
{
	u64 ratio = held(cpu, PERF_CTL) & 0xff00;
	int other;

	for_each_cpu(other, topology_sibling_cpumask(cpu))
		ratio = max(ratio, held(other, PERF_CTL) & 0xff00);
	return ratio;
}

static noinline int read_slowly(u32 reg, u64 *value)
{
	int cpu = smp_processor_id();
	u64 aperf, mperf;
	int i;

	if (reg == MSR_IA32_APERF || reg == MSR_IA32_MPERF) {
		vpower_cycles(cpu, &aperf, &mperf);
		*value = reg == MSR_IA32_APERF ? aperf : mperf;
		return 0;
	}
	/* What was asked for is in force at once. */
	if (reg == MSR_IA32_PERF_STATUS) {
		*value = core_perf(cpu);
		return 0;
	}
	i = slot(reg);
	if (i < 0)
		return i;
	if (unlikely(faults(cpu, i)))
		return -EIO;
	*value = held(cpu, i);
	return 0;
}

/* The register that costs are measured with comes first, and saves nothing: real hardware takes one instruction. */
int vpower_rdmsr(u32 reg, u64 *value)
{
	if (unlikely(reg != MSR_IA32_THERM_CONTROL))
		return read_slowly(reg, value);
	*value = this_cpu_read(registers[CLOCK_MODULATION]);
	return 0;
}
EXPORT_SYMBOL_GPL(vpower_rdmsr);

static noinline int write_slowly(u32 reg, u64 value)
{
	int cpu = smp_processor_id();
	u32 delay = READ_ONCE(vpower_knobs.msr_delay_ns);
	int i = slot(reg);

	if (i < 0)
		return -EINVAL;
	if (unlikely(faults(cpu, i)))
		return -EIO;
	if (unlikely(vpower_knobs.fail_msr) && (!processor.fail_reg || processor.fail_reg == reg) &&
	    vpower_fault(&vpower_knobs.fail_msr))
		return -EIO;
	if (unlikely(delay))
		ndelay(min(delay, 100000U));
	if (i == PM_ENABLE)
		value |= held(cpu, PM_ENABLE);
	if (likely(processor.ignores != reg))
		WRITE_ONCE(per_cpu(registers, cpu)[i], value);
	WRITE_ONCE(writes, writes + 1);
	return 0;
}

int vpower_wrmsr(u32 reg, u64 value)
{
	if (unlikely(reg != MSR_IA32_THERM_CONTROL ||
		     vpower_knobs.fail_msr | vpower_knobs.msr_delay_ns | processor.ignores))
		return write_slowly(reg, value);
	this_cpu_write(registers[CLOCK_MODULATION], value);
	WRITE_ONCE(writes, writes + 1);
	return 0;
}
EXPORT_SYMBOL_GPL(vpower_wrmsr);

void vpower_cpuid(struct cpuid_power *p)
{
	p->intel = processor.vendor_intel;
	p->family = processor.family;
	p->model = processor.model;
	p->clock_modulation = processor.clock_modulation;
	p->extended = processor.extended;
	p->est = processor.est;
	p->hwp = processor.hwp;
	p->hwp_epp = processor.hwp_epp;
}
EXPORT_SYMBOL_GPL(vpower_cpuid);

/* vpower's own drivers write registers too, as the kernel's do on hardware. */
void vpower_driver_perf(int cpu, unsigned int khz)
{
	WRITE_ONCE(per_cpu(registers, cpu)[PERF_CTL],
		   (held(cpu, PERF_CTL) & ~0xff00ULL) | (u64)(khz / RATIO_KHZ) << 8);
}

void vpower_driver_epp(int cpu, u8 epp)
{
	WRITE_ONCE(per_cpu(registers, cpu)[HWP_REQUEST],
		   (held(cpu, HWP_REQUEST) & ~0xff000000ULL) | (u64)epp << 24);
}

/* A CPU and its registers a line, in hex: PERF_CTL, THERM_CONTROL, HWP_REQUEST. Offline ones too: they keep theirs. */
static int registers_show(struct seq_file *m, void *unused)
{
	int cpu;

	for_each_present_cpu(cpu)
		seq_printf(m, "%d %llx %llx %llx\n", cpu, held(cpu, PERF_CTL), held(cpu, CLOCK_MODULATION),
			   held(cpu, HWP_REQUEST));
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
	WRITE_ONCE(per_cpu(registers, cpu)[i], value);
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

/* What a CPU runs at: its number, the clock in kHz that PERF_CTL asks for, and sixteenths of it that pass. */
static int effective_show(struct seq_file *m, void *unused)
{
	int cpu;

	for_each_online_cpu(cpu)
		seq_printf(m, "%d %llu %u\n", cpu, (core_perf(cpu) >> 8) * RATIO_KHZ, core_duty(cpu));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(effective);

static void reset(int cpu)
{
	per_cpu(registers, cpu)[PERF_CTL] = (u64)(vpower_machine.khz[0] / RATIO_KHZ) << 8;
	per_cpu(registers, cpu)[HWP_REQUEST] = 0x80002a01;
	per_cpu(registers, cpu)[ENERGY_PERF_BIAS] = 6;
	per_cpu(registers, cpu)[CLOCK_MODULATION] = processor.firmware_duty;
}

static int cpu_came(unsigned int cpu)
{
	if (processor.forget)
		reset(cpu);
	return 0;
}

/* The CPU that did not go offline forgets too: those that look afterwards have a lower priority. */
static int woke(struct notifier_block *nb, unsigned long event, void *unused)
{
	if (event == PM_POST_SUSPEND && processor.forget)
		reset(0);
	return NOTIFY_DONE;
}

static struct notifier_block suspend_notifier = { .notifier_call = woke, .priority = 100 };
static int hotplug_state;

static void processor_files(struct dentry *dir)
{
	debugfs_create_u32("vendor_intel", 0644, dir, &processor.vendor_intel);
	debugfs_create_u32("family", 0644, dir, &processor.family);
	debugfs_create_u32("model", 0644, dir, &processor.model);
	debugfs_create_u32("clock_modulation", 0644, dir, &processor.clock_modulation);
	debugfs_create_u32("extended", 0644, dir, &processor.extended);
	debugfs_create_u32("est", 0644, dir, &processor.est);
	debugfs_create_u32("hwp", 0644, dir, &processor.hwp);
	debugfs_create_u32("hwp_epp", 0644, dir, &processor.hwp_epp);
	debugfs_create_u32("highest", 0644, dir, &processor.highest);
	debugfs_create_u32("strict", 0644, dir, &processor.strict);
	debugfs_create_u32("ignores", 0644, dir, &processor.ignores);
	debugfs_create_u32("fail_reg", 0644, dir, &processor.fail_reg);
	debugfs_create_u32("forget", 0644, dir, &processor.forget);
	debugfs_create_u32("firmware_duty", 0644, dir, &processor.firmware_duty);
}

int vpower_msr_init(struct dentry *dir)
{
	int cpu;

	debugfs_create_file("registers", 0600, dir, NULL, &registers_fops);
	debugfs_create_file("effective", 0400, dir, NULL, &effective_fops);
	/* A write or two may go uncounted when CPUs race: the count is for orders of magnitude. */
	debugfs_create_u32("msr_writes", 0644, dir, &writes);
	processor_files(dir);
	for_each_possible_cpu(cpu)
		reset(cpu);
	hotplug_state = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "vpower:registers", cpu_came, NULL);
	if (hotplug_state < 0)
		return hotplug_state;
	return register_pm_notifier(&suspend_notifier);
}

void vpower_msr_exit(void)
{
	unregister_pm_notifier(&suspend_notifier);
	cpuhp_remove_state_nocalls(hotplug_state);
}
