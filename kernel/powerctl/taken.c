// SPDX-License-Identifier: GPL-2.0
/* Whether a governor or a driver sets speeds by itself. */
#include <linux/cpufreq.h>

#include "powerctl.h"

/* Of one policy: whether somebody else sets its speeds, and who. */
static bool taken_by(struct cpufreq_policy *policy, const char **why)
{
	bool taken = true;

	/* Until a change that is going on is over. */
	down_read(&policy->rwsem);
	if (!policy->governor)
		*why = "the cpufreq driver governs speeds by itself (intel_pstate or amd-pstate, active)";
	else if (policy->governor->flags & CPUFREQ_GOV_DYNAMIC_SWITCHING)
		*why = "a cpufreq governor sets speeds as the load has it";
	else
		taken = false;
	up_read(&policy->rwsem);
	return taken;
}

/* Which of them are another's, on whichever CPU. */
u32 pc_speeds_taken(u32 settable, const char **why)
{
	bool taken = false;
	int cpu;

	for_each_online_cpu(cpu) {
		struct cpufreq_policy *policy = cpufreq_cpu_get(cpu);

		if (!policy)
			continue;
		taken = taken_by(policy, why);
		cpufreq_cpu_put(policy);
		if (taken)
			break;
	}
	return taken ? settable & PC_SPEEDS : 0;
}
