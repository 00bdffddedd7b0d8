// SPDX-License-Identifier: GPL-2.0
/*
 * A low speed, felt: in every period a CPU that has work loses 1 - speed/highest of it.
 *
 * The timer keeps an absolute schedule and the theft has a cap. With short periods or drifting ones a
 * busy host starves the guest's RCU; and where only decisions matter, this stays off.
 */

#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "vpower.h"

#define MAX_STOLEN_PERCENT 90

static DEFINE_PER_CPU(struct hrtimer, timers);
static u64 period_ns;
static bool running;

static enum hrtimer_restart steal(struct hrtimer *timer)
{
	int cpu = smp_processor_id();
	u64 now = ktime_get_ns();

	if (!is_idle_task(current)) {
		u64 lost = 1000 - (u64)vpower_khz(cpu) * 1000 / vpower_machine.khz[0];
		u64 until = now + period_ns * min_t(u64, lost, MAX_STOLEN_PERCENT * 10) / 1000;

		while (ktime_get_ns() < until)
			cpu_relax();
	}
	/* Periods that the host did not give are not made up for. */
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

static void start_here(void *unused)
{
	struct hrtimer *timer = this_cpu_ptr(&timers);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, steal, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = steal;
#endif
	hrtimer_start(timer, ns_to_ktime(period_ns), HRTIMER_MODE_REL_PINNED_HARD);
}

int vpower_feel_init(bool on, unsigned int period_us)
{
	if (!on)
		return 0;
	if (period_us < 1000 || period_us > 100000)
		return -EINVAL;
	period_ns = (u64)period_us * 1000;
	running = true;
	on_each_cpu(start_here, NULL, 1);
	return 0;
}

void vpower_feel_exit(void)
{
	int cpu;

	if (running)
		for_each_online_cpu(cpu)
			hrtimer_cancel(per_cpu_ptr(&timers, cpu));
}
