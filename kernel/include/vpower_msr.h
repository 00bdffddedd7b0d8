/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Model-specific registers that vpower stands in for. powerctl takes these functions with
 * symbol_get(), so that it needs no vpower to be loaded.
 */
#ifndef VPOWER_MSR_H
#define VPOWER_MSR_H

#include <linux/types.h>

/* From any context, for any CPU: -EINVAL for an unknown register, -EIO for an injected fault. */
int vpower_rdmsr(int cpu, u32 reg, u64 *value);
int vpower_wrmsr(int cpu, u32 reg, u64 value);

#endif
