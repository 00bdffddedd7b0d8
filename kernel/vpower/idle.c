// SPDX-License-Identifier: GPL-2.0
/*
 * A cpuidle driver with virtual C-states: each of them halts, and the accounts tell them apart. The kernel's
 * own polling comes first, as on every x86 machine: governors treat a driver without it differently.
 */

#include <linux/cpuidle.h>
#include <linux/module.h>
#include <linux/sched/idle.h>

#include "vpower.h"

/* States that are not the machine's. */
#define VPOWER_POLLS 1

static int vpower_enter(struct cpuidle_device *dev, struct cpuidle_driver *drv, int index)
{
	vpower_energy_idle(dev->cpu, index - VPOWER_POLLS);
	/* A halted CPU needs an interrupt to wake: a flag set from elsewhere would not do. */
	if (!current_clr_polling_and_test()) {
		raw_safe_halt();
		raw_local_irq_disable();
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
		state->enter = vpower_enter;
	}
	driver.state_count = m->idle_states + VPOWER_POLLS;
	return cpuidle_register(&driver, NULL);
}

void vpower_idle_exit(void)
{
	cpuidle_unregister(&driver);
}
