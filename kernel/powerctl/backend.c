// SPDX-License-Identifier: GPL-2.0
/*
 * What writes registers.
 *
 *   msr      the processor's own: IA32_CLOCK_MODULATION, IA32_PERF_CTL, IA32_HWP_REQUEST and no others. Each
 *            logical CPU has its own; where siblings disagree, the hardware takes the faster.
 *   cpufreq  speeds alone, through a driver that switches fast, under a governor that does not
 *   virtual  vpower's registers, shared by siblings, so that sharing can be checked
 *
 * PERF_CTL and HWP_REQUEST belong to the kernel's cpufreq driver: the msr back end offers them only
 * where there is none, or where its policy is a fixed one (performance, powersave, userspace).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/msr.h>
#include <asm/msr-index.h>
#include <asm/mwait.h>
#include <asm/tsc.h>
#include <linux/cpufreq.h>
#include <linux/module.h>
#include <linux/topology.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#endif

#include "powerctl.h"
#include "vpower_msr.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define read_msr(reg, p)	rdmsrq_safe(reg, p)
#define write_msr(reg, v)	wrmsrq_safe(reg, v)
#else
#define read_msr(reg, p)	rdmsrl_safe(reg, p)
#define write_msr(reg, v)	wrmsrl_safe(reg, v)
#endif

#define CLOCK_MODULATION_ON	BIT(4)
/* IA32_PERF_CTL counts in the bus clock of all processors since 2011. */
#define RATIO_KHZ		100000

#define PERF_CTL_RATIO		0xff00ULL
#define HWP_REQUEST_OURS	0xffffffffULL	/* above it: the activity window, and what follows the package */

const struct pc_backend *pc_backend;
union pc_state pc_floor;
struct powerctl_caps pc_caps;

static u64 modulation_of(union pc_state s)
{
	if (s.tstate >= POWERCTL_TSTATE_FULL)
		return 0;
	/* Sixteenths with the extension; without it bit 0 is reserved, and steps are even. */
	return CLOCK_MODULATION_ON | s.tstate;
}

static u64 perf_of(int cpu, union pc_state s)
{
	return (per_cpu(pc_cpus, cpu).perf & ~PERF_CTL_RATIO) | (u64)(s.khz / RATIO_KHZ) << 8;
}

static u64 hwp_of(int cpu, union pc_state s)
{
	return (per_cpu(pc_cpus, cpu).hwp & ~HWP_REQUEST_OURS) | pc_hwp(s);
}

/* Writes what differs of the registers that the back end has. */
static noinline int write_several(int cpu, union pc_state changed, union pc_state s,
				  int (*write)(int cpu, u32 reg, u64 value))
{
	u32 settable = pc_backend->settable;
	int err = 0;

	if (changed.tstate && (settable & POWERCTL_TSTATE))
		err = write(cpu, MSR_IA32_THERM_CONTROL, modulation_of(s));
	if (changed.khz && (settable & POWERCTL_PSTATE))
		err = err ?: write(cpu, MSR_IA32_PERF_CTL, perf_of(cpu, s));
	if (pc_hwp(changed) && (settable & POWERCTL_HWP))
		err = err ?: write(cpu, MSR_HWP_REQUEST, hwp_of(cpu, s));
	return err;
}

/* A profile has one register, as a rule: then nothing is kept over the call. */
static __always_inline int write_all(int cpu, union pc_state changed, union pc_state s,
				     int (*write)(int cpu, u32 reg, u64 value))
{
	const union pc_state tstate = { .tstate = ~0 }, khz = { .khz = ~0 };
	u32 settable = pc_backend->settable;

	if (!(changed.all & ~tstate.all) && (settable & POWERCTL_TSTATE))
		return write(cpu, MSR_IA32_THERM_CONTROL, modulation_of(s));
	if (!(changed.all & ~khz.all) && (settable & POWERCTL_PSTATE))
		return write(cpu, MSR_IA32_PERF_CTL, perf_of(cpu, s));
	return write_several(cpu, changed, s, write);
}

static void default_of(struct pc_cpu *pc, u64 perf, u64 hwp)
{
	pc->perf = perf;
	pc->hwp = hwp;
	pc->def.all = 0;
	pc->def.tstate = POWERCTL_TSTATE_FULL;
	pc->def.khz = min_t(u32, (perf >> 8 & 0xff) * RATIO_KHZ, rounddown(PC_KHZ_MAX, RATIO_KHZ));
	pc->def.hwp_min = hwp;
	pc->def.hwp_max = hwp >> 8;
	pc->def.hwp_desired = hwp >> 16;
	pc->def.epp = hwp >> 24;
}

/* Once a CPU has come. CPUs come one at a time. */
void pc_floor_of_all(void)
{
	union pc_state floor = { .all = ~0ULL };
	u32 highest = 0;
	int cpu;

	floor.epp = 0;
	floor.hwp_desired = 0;
	for_each_possible_cpu(cpu) {
		const struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		/* Not of a CPU that has not come yet, or that no driver has a speed for. */
		if (!pc->domain || !pc->def.all)
			continue;
		highest = max_t(u32, highest, pc->def.khz);
		floor.khz = min_t(u32, floor.khz, pc->def.khz);
		floor.tstate = min_t(u32, floor.tstate, pc->def.tstate);
		floor.hwp_min = min_t(u32, floor.hwp_min, pc->def.hwp_min);
		floor.hwp_max = min_t(u32, floor.hwp_max, pc->def.hwp_max);
		/* 0 leaves the choice to the hardware, which is more than any other. */
		floor.hwp_desired = min_t(u8, floor.hwp_desired - 1, pc->def.hwp_desired - 1) + 1;
		floor.epp = max_t(u32, floor.epp, pc->def.epp);
	}
	pc_floor = floor;
	pc_caps.khz_default = floor.khz;
	pc_caps.khz_max = max(pc_caps.khz_max, highest);
}

/* The range of speeds that the kernel's driver knows, if there is one; else what was found is the most. */
static void range_of_speeds(void)
{
	u32 least = U32_MAX;
	int cpu;

	pc_caps.khz_max = 0;
	for_each_online_cpu(cpu) {
		struct cpufreq_policy *policy = cpufreq_cpu_get(cpu);

		if (!policy)
			continue;
		least = min(least, policy->cpuinfo.min_freq);
		pc_caps.khz_max = max(pc_caps.khz_max, min_t(u32, policy->cpuinfo.max_freq, PC_KHZ_MAX));
		cpufreq_cpu_put(policy);
	}
	pc_caps.khz_min = least == U32_MAX ? RATIO_KHZ : least;
}

/* virtual */

static typeof(&vpower_rdmsr) virtual_read;
static typeof(&vpower_wrmsr) virtual_write_register;

static int virtual_init(void)
{
	virtual_read = symbol_get(vpower_rdmsr);
	if (!virtual_read)
		return -ENODEV;
	virtual_write_register = symbol_get(vpower_wrmsr);
	if (!virtual_write_register) {
		symbol_put(vpower_rdmsr);
		return -ENODEV;
	}
	pc_caps.tstate_step = 1;
	return 0;
}

static void virtual_defaults(int cpu, struct pc_cpu *pc)
{
	u64 perf = 0, hwp = 0;

	virtual_read(cpu, MSR_IA32_PERF_CTL, &perf);
	virtual_read(cpu, MSR_HWP_REQUEST, &hwp);
	default_of(pc, perf, hwp);
}

static void virtual_exit(void)
{
	symbol_put(vpower_wrmsr);
	symbol_put(vpower_rdmsr);
}

/* Not its first sibling, which may be offline at one time and online at another. */
static int core_of(int cpu)
{
	return topology_physical_package_id(cpu) << 16 | topology_core_id(cpu);
}

int pc_virtual_write(int cpu, union pc_state changed, union pc_state s)
{
	return write_all(cpu, changed, s, virtual_write_register);
}

static int virtual_counters(struct powerctl_counters *c)
{
	int err;

	preempt_disable();
	c->cpu = smp_processor_id();
	err = virtual_read(c->cpu, MSR_IA32_APERF, &c->aperf) ?:
	      virtual_read(c->cpu, MSR_IA32_MPERF, &c->mperf);
	c->tsc = rdtsc();
	preempt_enable();
	return err;
}

static const struct pc_backend backend_virtual = {
	.name = "virtual",
	.id = POWERCTL_BACKEND_VIRTUAL,
	.settable = POWERCTL_TSTATE | POWERCTL_PSTATE | POWERCTL_HWP | POWERCTL_EPP | POWERCTL_INHERIT,
	.step_khz = RATIO_KHZ,
	.init = virtual_init,
	.exit = virtual_exit,
	.defaults = virtual_defaults,
	.domain = core_of,
	.write = pc_virtual_write,
	.counters = virtual_counters,
};

/* msr */

static struct pc_backend backend_msr;

static int msr_counters(struct powerctl_counters *c)
{
	unsigned long flags;
	int err;

	if (!boot_cpu_has(X86_FEATURE_APERFMPERF))
		return -EOPNOTSUPP;
	local_irq_save(flags);
	c->cpu = smp_processor_id();
	err = read_msr(MSR_IA32_APERF, &c->aperf) ?: read_msr(MSR_IA32_MPERF, &c->mperf);
	c->tsc = rdtsc();
	local_irq_restore(flags);
	return err;
}

static bool speeds_are_free(void)
{
	struct cpufreq_policy *policy = cpufreq_cpu_get(0);
	bool taken;

	if (!policy)
		return true;
	taken = policy->governor && (policy->governor->flags & CPUFREQ_GOV_DYNAMIC_SWITCHING);
	cpufreq_cpu_put(policy);
	return !taken;
}

static int msr_init(void)
{
	u64 value, perf = 0;
	u32 settable = POWERCTL_INHERIT;

	/* Whatever cannot be read is not there; hypervisors leave registers out. */
	if (boot_cpu_has(X86_FEATURE_ACPI) && !read_msr(MSR_IA32_THERM_CONTROL, &value))
		settable |= POWERCTL_TSTATE;
	if (speeds_are_free()) {
		if (boot_cpu_has(X86_FEATURE_EST) && !read_msr(MSR_IA32_PERF_CTL, &perf) && perf)
			settable |= POWERCTL_PSTATE;
		if (boot_cpu_has(X86_FEATURE_HWP) && !read_msr(MSR_HWP_REQUEST, &value)) {
			settable |= POWERCTL_HWP;
			if (boot_cpu_has(X86_FEATURE_HWP_EPP))
				settable |= POWERCTL_EPP;
		}
	}
	if (settable == POWERCTL_INHERIT)
		return -ENODEV;
	backend_msr.settable = settable;
	pc_caps.tstate_step = pc_caps.cpu & POWERCTL_CPU_EXTENDED_CLOCKMOD ? 1 : 2;
	return 0;
}

static void msr_defaults(int cpu, struct pc_cpu *pc)
{
	u64 perf = 0, hwp = 0;

	if (backend_msr.settable & POWERCTL_PSTATE)
		read_msr(MSR_IA32_PERF_CTL, &perf);
	if (backend_msr.settable & POWERCTL_HWP)
		read_msr(MSR_HWP_REQUEST, &hwp);
	default_of(pc, perf, hwp);
}

static int own(int cpu)
{
	return cpu;
}

static int msr_write_register(int cpu, u32 reg, u64 value)
{
	return write_msr(reg, value);
}

int pc_msr_write(int cpu, union pc_state changed, union pc_state s)
{
	return write_all(cpu, changed, s, msr_write_register);
}

static struct pc_backend backend_msr = {
	.name = "msr",
	.id = POWERCTL_BACKEND_MSR,
	.step_khz = RATIO_KHZ,
	.init = msr_init,
	.defaults = msr_defaults,
	.domain = own,
	.write = pc_msr_write,
	.counters = msr_counters,
};

/* cpufreq */

static DEFINE_PER_CPU(struct cpufreq_policy *, policies);

static int policy_gone(struct notifier_block *nb, unsigned long event, void *data)
{
	struct cpufreq_policy *policy = data;
	int cpu;

	if (event != CPUFREQ_REMOVE_POLICY)
		return NOTIFY_DONE;
	for_each_possible_cpu(cpu)
		if (per_cpu(policies, cpu) == policy)
			WRITE_ONCE(per_cpu(policies, cpu), NULL);
	/* Writers run with interrupts off. */
	synchronize_rcu();
	return NOTIFY_DONE;
}

static struct notifier_block policy_notifier = { .notifier_call = policy_gone };

static int cpufreq_backend_init(void)
{
	int cpu, err;

	if (!speeds_are_free()) {
		pr_err("cpufreq: the governor must be performance, powersave or userspace\n");
		return -EBUSY;
	}
	for_each_online_cpu(cpu) {
		struct cpufreq_policy *policy = cpufreq_cpu_get(cpu);

		if (!policy)
			return -ENODEV;
		if (policy->fast_switch_possible)
			per_cpu(policies, cpu) = policy;
		cpufreq_cpu_put(policy);
		if (!per_cpu(policies, cpu)) {
			pr_err("cpufreq: the driver cannot switch from the scheduler\n");
			return -EOPNOTSUPP;
		}
	}
	err = cpufreq_register_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
	pc_caps.tstate_step = POWERCTL_TSTATE_FULL;
	return err;
}

static void cpufreq_backend_exit(void)
{
	cpufreq_unregister_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
}

static void cpufreq_defaults(int cpu, struct pc_cpu *pc)
{
	struct cpufreq_policy *policy = per_cpu(policies, cpu);

	pc->def.all = 0;
	if (!policy)
		return;
	pc->def.tstate = POWERCTL_TSTATE_FULL;
	pc->def.khz = min_t(u32, policy->cur, PC_KHZ_MAX);
}

static int policy_of(int cpu)
{
	struct cpufreq_policy *policy = per_cpu(policies, cpu);

	return policy ? cpumask_first(policy->related_cpus) : cpu;
}

static int cpufreq_write(int cpu, union pc_state changed, union pc_state s)
{
	struct cpufreq_policy *policy = READ_ONCE(per_cpu(policies, cpu));

	if (!policy)
		return -ENODEV;
	return cpufreq_driver_fast_switch(policy, s.khz) ? 0 : -EIO;
}

static const struct pc_backend backend_cpufreq = {
	.name = "cpufreq",
	.id = POWERCTL_BACKEND_CPUFREQ,
	.settable = POWERCTL_PSTATE | POWERCTL_INHERIT,
	.step_khz = 1,
	.init = cpufreq_backend_init,
	.exit = cpufreq_backend_exit,
	.defaults = cpufreq_defaults,
	.domain = policy_of,
	.write = cpufreq_write,
	.counters = msr_counters,
};

/* Facts of the processor: study 004's list. */
static void processor(struct powerctl_caps *c)
{
	static const struct { int feature; u32 flag; } features[] = {
		{ X86_FEATURE_ACPI, POWERCTL_CPU_ACPI_CLOCKMOD },
		{ X86_FEATURE_EST, POWERCTL_CPU_EST },
		{ X86_FEATURE_IDA, POWERCTL_CPU_TURBO },
		{ X86_FEATURE_HWP, POWERCTL_CPU_HWP },
		{ X86_FEATURE_HWP_NOTIFY, POWERCTL_CPU_HWP_NOTIFY },
		{ X86_FEATURE_HWP_ACT_WINDOW, POWERCTL_CPU_HWP_WINDOW },
		{ X86_FEATURE_HWP_EPP, POWERCTL_CPU_HWP_EPP },
		{ X86_FEATURE_HWP_PKG_REQ, POWERCTL_CPU_HWP_PACKAGE },
		{ X86_FEATURE_MWAIT, POWERCTL_CPU_MWAIT },
		{ X86_FEATURE_APERFMPERF, POWERCTL_CPU_APERFMPERF },
		{ X86_FEATURE_EPB, POWERCTL_CPU_EPB },
	};
	unsigned int eax, ebx, ecx, edx, i;

	for (i = 0; i < ARRAY_SIZE(features); i++)
		if (boot_cpu_has(features[i].feature))
			c->cpu |= features[i].flag;
	if (boot_cpu_data.cpuid_level >= 6) {
		cpuid(6, &eax, &ebx, &ecx, &edx);
		if (eax & BIT(5))
			c->cpu |= POWERCTL_CPU_EXTENDED_CLOCKMOD;
		if (eax & BIT(13))
			c->cpu |= POWERCTL_CPU_HDC;
	}
	if (c->cpu & POWERCTL_CPU_MWAIT && boot_cpu_data.cpuid_level >= 5) {
		cpuid(5, &eax, &ebx, &ecx, &edx);
		c->monitor_bytes = ebx & 0xffff;
		c->mwait_substates = edx;
		if (ecx & BIT(0) && ecx & BIT(1))
			c->cpu |= POWERCTL_CPU_MWAIT_BREAK;
	}
}

int pc_backend_init(const char *wanted)
{
	static const struct pc_backend * const all[] = { &backend_virtual, &backend_msr, &backend_cpufreq };
	unsigned int i;
	int err = -EINVAL;

	processor(&pc_caps);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		if (*wanted && strcmp(wanted, all[i]->name))
			continue;
		/* vpower is for tests: never unless asked for. */
		if (!*wanted && all[i] == &backend_virtual)
			continue;
		err = all[i]->init();
		if (!err) {
			pc_backend = all[i];
			break;
		}
	}
	if (err) {
		pr_err("back end %s: error %d\n", *wanted ? wanted : "(any)", err);
		return err;
	}
	range_of_speeds();
	pc_caps.abi = POWERCTL_ABI;
	pc_caps.backend = pc_backend->id;
	pc_caps.settable = pc_backend->settable;
	return 0;
}

void pc_backend_exit(void)
{
	if (pc_backend->exit)
		pc_backend->exit();
}

/* Whether a profile makes sense here. */
int pc_check(const struct powerctl_profile *p)
{
	if (!p->flags || p->flags & ~POWERCTL_PROFILE_FLAGS)
		return -EINVAL;
	if ((p->flags & POWERCTL_PSTATE) && (p->flags & POWERCTL_HWP))
		return -EINVAL;
	if (p->flags & ~pc_backend->settable)
		return -EOPNOTSUPP;
	if ((p->flags & POWERCTL_TSTATE) && (!p->tstate || p->tstate > POWERCTL_TSTATE_FULL ||
					     p->tstate % pc_caps.tstate_step))
		return -ERANGE;
	if ((p->flags & POWERCTL_PSTATE) &&
	    (p->pstate_khz < pc_caps.khz_min || p->pstate_khz > pc_caps.khz_max))
		return -ERANGE;
	if ((p->flags & POWERCTL_HWP) && (p->hwp_min > p->hwp_max || !p->hwp_max ||
					  (p->hwp_desired && (p->hwp_desired < p->hwp_min ||
							      p->hwp_desired > p->hwp_max))))
		return -ERANGE;
	return 0;
}

/* Whether a profile asks for more than everybody has, on whichever CPU its thread may come to. */
bool pc_raises(const struct powerctl_profile *p)
{
	if ((p->flags & POWERCTL_PSTATE) && p->pstate_khz > pc_floor.khz)
		return true;
	if ((p->flags & POWERCTL_HWP) &&
	    (p->hwp_min > pc_floor.hwp_min || p->hwp_max > pc_floor.hwp_max ||
	     /* Where it is pinned, the hardware's choice is a raise too. */
	     (pc_floor.hwp_desired && (!p->hwp_desired || p->hwp_desired > pc_floor.hwp_desired))))
		return true;
	return (p->flags & POWERCTL_EPP) && p->epp < pc_floor.epp;
}
