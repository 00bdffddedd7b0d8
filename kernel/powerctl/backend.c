// SPDX-License-Identifier: GPL-2.0
/*
 * Which back end, what it can set here, and what a profile may ask for.
 *
 *   msr      the processor's own registers (msr.c)
 *   cpufreq  speeds alone, through a driver that switches fast, under a governor that does not (cpufreq.c)
 *   virtual  vpower's registers as those of a processor that has everything, for tests (msr.c)
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <linux/cpufreq.h>
#include <linux/module.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#endif

#include "powerctl.h"

/* Where no driver says what the lowest speed is. */
#define LEAST_KHZ	100000

const struct pc_backend *pc_backend;
DEFINE_STATIC_CALL(pc_write, pc_msr_write);
union pc_state pc_floor;
struct powerctl_caps pc_caps;

/* Once a CPU has come or its default has changed. CPUs neither come nor go meanwhile. */
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
	pc_caps.khz_min = least == U32_MAX ? LEAST_KHZ : least;
}

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

int pc_backend_init(const char *wanted, const char *registers)
{
	static const struct pc_backend * const all[] = { &pc_backend_virtual, &pc_backend_msr, &pc_backend_cpufreq };
	unsigned int i;
	int err = pc_registers_choose(registers);

	if (err)
		return err;
	err = -EINVAL;
	processor(&pc_caps);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		if (*wanted && strcmp(wanted, all[i]->name))
			continue;
		/* vpower is for tests: never unless asked for. */
		if (!*wanted && all[i] == &pc_backend_virtual)
			continue;
		err = all[i]->init();
		if (!err) {
			pc_backend = all[i];
			break;
		}
	}
	if (err) {
		pr_err("back end %s: error %d\n", *wanted ? wanted : "(any)", err);
		pc_backend_msr.exit();
		return err;
	}
	static_call_update(pc_write, pc_backend->write);
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
	/* vpower's registers may have been asked for with another. */
	pc_backend_msr.exit();
}

/* Which fields of a state flags are about. */
u64 pc_fields(u32 flags)
{
	union pc_state f = { .all = 0 };

	if (flags & POWERCTL_TSTATE)
		f.tstate = ~0;
	if (flags & POWERCTL_PSTATE)
		f.khz = ~0;
	if (flags & POWERCTL_HWP) {
		f.hwp_min = ~0;
		f.hwp_max = ~0;
		f.hwp_desired = ~0;
	}
	if (flags & POWERCTL_EPP)
		f.epp = ~0;
	return f.all;
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
	if (p->flags & READ_ONCE(pc_caps.withdrawn))
		return -EBUSY;
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
