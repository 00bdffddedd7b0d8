// SPDX-License-Identifier: GPL-2.0
/*
 * A cpuidle driver with virtual C-states: each of them halts, and the accounts tell them apart. The kernel's
 * own polling comes first, as on every x86 machine: governors treat a driver without it differently.
 */

#include <linux/context_tracking.h>
#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/sched/idle.h>
#include <linux/version.h>

#include "vpower.h"

/* States that are not the machine's. */
#define VPOWER_POLLS 1

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static void ct_cpuidle_enter(void)
{
	trace_hardirqs_on_prepare();
	lockdep_hardirqs_on_prepare();
	ct_idle_enter();
	lockdep_hardirqs_on(_RET_IP_);
}

static void ct_cpuidle_exit(void)
{
	lockdep_hardirqs_off(_RET_IP_);
	ct_idle_exit();
}
#endif

/* RCU watches until the halt itself, since the accounts take a lock: see CPUIDLE_FLAG_RCU_IDLE. */
static int vpower_enter(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	vpower_energy_idle(dev->cpu, index - VPOWER_POLLS);
	/* A halted CPU needs an interrupt to wake: a flag set from elsewhere would not do. */
	if (!current_clr_polling_and_test()) {
		ct_cpuidle_enter();
		raw_safe_halt();
		raw_local_irq_disable();
		ct_cpuidle_exit();
	}
	vpower_energy_idle(dev->cpu, -1);
	return index;
}

static struct cpuidle_driver driver = {
	.name = "vpower",
	/* No owner: each CPU's device would hold the module, and it could never be unloaded. */
};

int vpower_idle_init(void)
{
	struct vpower_machine *m = &vpower_machine;
	unsigned int i;

	cpuidle_poll_state_init(&driver);
	for (i = 0; i < m->idle_states; i++) {
		struct cpuidle_state *state = &driver.states[i + VPOWER_POLLS];

		strscpy(state->name, m->idle_name[i], sizeof(state->name));
		snprintf(state->desc, sizeof(state->desc), "virtual %s", m->idle_name[i]);
		state->exit_latency = m->idle_latency_us[i];
		state->target_residency = m->idle_target_us[i];
		state->flags = CPUIDLE_FLAG_RCU_IDLE;
		state->enter = vpower_enter;
	}
	driver.state_count = m->idle_states + VPOWER_POLLS;
	return cpuidle_register(&driver, NULL);
}

void vpower_idle_exit(void)
{
	cpuidle_unregister(&driver);
}
