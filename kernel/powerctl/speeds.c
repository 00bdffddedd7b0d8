// SPDX-License-Identifier: GPL-2.0
/*
 * Whose the speeds are.
 *
 * PERF_CTL and HWP_REQUEST belong to the kernel's cpufreq driver. They are ours to borrow only where none governs by the
 * load: on every CPU there is no policy, or its governor is a fixed one (performance, powersave, userspace). A policy
 * without a governor is its driver's own affair (intel_pstate and amd-pstate, active).
 *
 * What was so when the module was loaded may change: a governor is chosen, a driver goes and another comes
 * (/sys/devices/system/cpu/intel_pstate/status). Then
 *   1  before the new one starts, no profile's speed counts any more, and each CPU has its default again
 *      (`cpu_frequency_limits` is traced before a governor changes; a driver that goes or comes announces its policies)
 *   2  once that is over, a worker looks at every policy, and they count again, or are withdrawn: SET says EBUSY,
 *      CAPS says so, profiles that have a speed keep it for the day on which it is given back
 * What a fixed governor itself sets anew (scaling_setspeed, limits) is the default from then on: msr.c and cpufreq.c notice
 * when they next write, and after `cpu_frequency` (from 7.0 on `policy_frequency`) at once.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpufreq.h>
#include <linux/module.h>
#include <linux/tracepoint.h>

#include "powerctl.h"

static bool watching;

static void withdraw(u32 lost, const char *why)
{
	u32 before = pc_caps.withdrawn;

	if (lost == before)
		return;
	pc_caps.withdrawn = lost;
	pc_caps.settable = pc_backend->settable & ~lost;
	if (lost & ~before) {
		pc_caps.withdrawals++;
		pr_notice("speeds withdrawn: %s; profiles have the default instead\n", why ?: "not settable now");
	} else {
		pr_notice("speeds are given back: profiles have theirs again\n");
	}
}

/* The worker, CPUs stay as they are. */
void pc_speeds_look(void)
{
	u32 settable = pc_backend->settable & PC_SPEEDS;
	const char *why = NULL;
	unsigned int before = pc_hands_offs();
	u32 lost;

	if (!watching)
		return;
	lost = (pc_backend->lost(&why) | pc_speeds_taken(settable, &why)) & settable;
	withdraw(lost, why);
	/* Who comes meanwhile has the worker queued anew. */
	pc_hands_on(lost, before);
}

/* Somebody may take the speeds: hands off until it is known. */
static void hands_off(void)
{
	pc_hands_off();
	/* The default comes back at once. */
	if (pc_profiles_count())
		pc_apply_everywhere();
	pc_look_soon(0);
}

static int policies_change(struct notifier_block *nb, unsigned long event, void *policy)
{
	hands_off();
	return NOTIFY_DONE;
}

static struct notifier_block policy_notifier = { .notifier_call = policies_change };

/* Traced by cpufreq_set_policy(), in process context. */
static void limits_change(void *data, struct cpufreq_policy *policy)
{
	hands_off();
}

/* A driver has set a speed: perhaps under the run-queue lock, so that nobody can be woken here. */
static void speed_changes(void *data, unsigned int khz, unsigned int cpu)
{
	/* Its own writes are the cpufreq back end's. */
	if (!pc_backend->one_register)
		irq_work_queue(&per_cpu(pc_cpus, raw_smp_processor_id()).look);
}

static struct {
	const char *name;
	void *probe;
	bool needed;
	struct tracepoint *tp;
} probes[] = {
	{ "cpu_frequency_limits", limits_change, true },
	/* One of these. */
	{ "cpu_frequency", speed_changes, false },
	{ "policy_frequency", speed_changes, false },
};

static void find_probe(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static void remove_probes(unsigned int n)
{
	while (n--)
		if (probes[n].tp)
			tracepoint_probe_unregister(probes[n].tp, probes[n].probe, NULL);
	tracepoint_synchronize_unregister();
}

/* Only where there are speeds to lose: those that were not ours at load stay another's. */
int pc_speeds_init(void)
{
	unsigned int i;
	int err = 0;

	if (!pc_backend->lost || !(pc_backend->settable & PC_SPEEDS))
		return 0;
	for_each_kernel_tracepoint(find_probe, NULL);
	for (i = 0; i < ARRAY_SIZE(probes) && !err; i++) {
		if (probes[i].tp)
			err = tracepoint_probe_register(probes[i].tp, probes[i].probe, NULL);
		else if (probes[i].needed)
			err = -ENOENT;
		if (err)
			pr_err("tracepoint %s: error %d\n", probes[i].name, err);
	}
	if (err) {
		remove_probes(i - 1);
		return err;
	}
	err = cpufreq_register_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
	if (err) {
		remove_probes(ARRAY_SIZE(probes));
		return err;
	}
	watching = true;
	/* What changed since they were looked at first. */
	pc_look_soon(0);
	return 0;
}

void pc_speeds_exit(void)
{
	if (!watching)
		return;
	watching = false;
	cpufreq_unregister_notifier(&policy_notifier, CPUFREQ_POLICY_NOTIFIER);
	remove_probes(ARRAY_SIZE(probes));
}
