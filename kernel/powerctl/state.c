// SPDX-License-Identifier: GPL-2.0
/* What several parts read, and the request that the worker look again (cpus.c). */
#include <linux/percpu.h>
#include <linux/workqueue.h>

#include "powerctl.h"

DEFINE_PER_CPU(struct pc_cpu, pc_cpus);
bool pc_suspended;
bool pc_leaving;
/* What it does is said in pc_cpus_init(), before anybody asks. */
struct delayed_work pc_look_work;

/* At once, or when the first to ask says. */
void pc_look_soon(unsigned long jiffies)
{
	if (READ_ONCE(pc_leaving))
		return;
	if (!jiffies)
		mod_delayed_work(system_wq, &pc_look_work, 0);
	else
		queue_delayed_work(system_wq, &pc_look_work, jiffies);
}
