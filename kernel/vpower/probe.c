// SPDX-License-Identifier: GPL-2.0
/*
 * The other way to enforce profiles at context switches, for comparing costs: a probe on sched_switch
 * that looks the next thread up in a table, as study 004 did with a kretprobe.
 */

#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "vpower.h"

struct entry {
	struct hlist_node link;
	pid_t tid;
};

static DEFINE_HASHTABLE(threads, 10);
static struct tracepoint *sched_switch;
static unsigned long found;
static bool registered;

static void look_up(struct task_struct *next)
{
	struct entry *e;

	hash_for_each_possible_rcu(threads, e, link, next->pid)
		if (e->tid == next->pid)
			WRITE_ONCE(found, found + 1);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
static void probe(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		  unsigned int prev_state)
#else
static void probe(void *data, bool preempt, struct task_struct *prev, struct task_struct *next)
#endif
{
	look_up(next);
}

static void find(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sched_switch"))
		sched_switch = tp;
}

int vpower_probe_init(bool on)
{
	int err;

	if (!on)
		return 0;
	for_each_kernel_tracepoint(find, NULL);
	if (!sched_switch)
		return -ENOENT;
	err = tracepoint_probe_register(sched_switch, probe, NULL);
	registered = !err;
	return err;
}

void vpower_probe_exit(void)
{
	if (!registered)
		return;
	tracepoint_probe_unregister(sched_switch, probe, NULL);
	tracepoint_synchronize_unregister();
	registered = false;
}
