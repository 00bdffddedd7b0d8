/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Model-specific registers that vpower stands in for, and the processor that they belong to. powerctl takes
 * these functions with symbol_get(), so that it needs no vpower to be loaded.
 */
#ifndef VPOWER_MSR_H
#define VPOWER_MSR_H

#include <linux/types.h>

/* What CPUID says about power. */
struct cpuid_power {
	bool intel;
	unsigned int family, model;
	bool clock_modulation;		/* CPUID.01H:EDX.ACPI */
	bool extended;			/* CPUID.06H:EAX[5]: duty cycles in sixteenths */
	bool est, hwp, hwp_epp;
};

/*
 * Of the CPU that they run on, as the instructions are; from any context with preemption off. -EINVAL for an unknown register, -EIO for an injected fault and for what
 * real hardware answers with a #GP.
 */
int vpower_rdmsr(u32 reg, u64 *value);
int vpower_wrmsr(u32 reg, u64 value);
void vpower_cpuid(struct cpuid_power *p);

#endif
