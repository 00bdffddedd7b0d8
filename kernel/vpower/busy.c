// SPDX-License-Identifier: GPL-2.0
/*
 * Work for the kernel that is none for the host: /dev/vpower-busy.
 *
 * Who writes a number of ns stays on its CPU that long, in task context, with the CPU halted between interrupts. To
 * scheduler, tick and governors the CPU is busy: its task runs. To an emulator it is at rest, and so
 * four busy CPUs fit on a host that has two, or on a clock that follows instructions.
 *
 * The write may come back early: when the scheduler wants the CPU or a signal has come. The writer looks at its
 * own CPU time and asks again for the rest, as a loop in user space would.
 */

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "vpower.h"

/* No stint is longer: a typing error must not look like a stall. */
#define LONGEST_NS (100 * NSEC_PER_MSEC)

struct stint {
	struct hrtimer timer;
	bool over;
};

static enum hrtimer_restart stint_over(struct hrtimer *timer)
{
	WRITE_ONCE(container_of(timer, struct stint, timer)->over, true);
	return HRTIMER_NORESTART;
}

/* What would end a stint in user space as well: the way back there switches tasks. */
static bool wanted_elsewhere(void)
{
#ifdef TIF_NEED_RESCHED_LAZY
	if (test_thread_flag(TIF_NEED_RESCHED_LAZY))
		return true;
#endif
	return need_resched() || signal_pending(current);
}

static unsigned long switches(void)
{
	return current->nvcsw + current->nivcsw;
}

static ssize_t busy_write(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	unsigned long before = switches();
	struct stint stint = { .over = false };
	u64 ns;

	if (size != sizeof(ns))
		return -EINVAL;
	if (copy_from_user(&ns, from, sizeof(ns)))
		return -EFAULT;
	if (!ns || ns > LONGEST_NS)
		return -EINVAL;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup_on_stack(&stint.timer, stint_over, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init_on_stack(&stint.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	stint.timer.function = stint_over;
#endif
	hrtimer_start(&stint.timer, ns_to_ktime(ns), HRTIMER_MODE_REL_PINNED_HARD);
	for (;;) {
		/* Whatever comes after these looks is pending, and ends the halt at once. */
		local_irq_disable();
		/* After a switch the timer may be another CPU's: it would not end this one's halt. */
		if (READ_ONCE(stint.over) || wanted_elsewhere() || switches() != before)
			break;
		safe_halt();
	}
	local_irq_enable();
	hrtimer_cancel(&stint.timer);
	destroy_hrtimer_on_stack(&stint.timer);
	return size;
}

static const struct file_operations busy_fops = {
	.owner = THIS_MODULE,
	.write = busy_write,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vpower-busy",
	.fops = &busy_fops,
	.mode = 0600,
};

int vpower_busy_init(void)
{
	return misc_register(&device);
}

void vpower_busy_exit(void)
{
	misc_deregister(&device);
}
