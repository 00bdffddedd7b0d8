// SPDX-License-Identifier: GPL-2.0
/*
 * Waiting on a word of user memory in a C-state (study 004's lock waiting policy).
 *
 * The page is pinned, so that the physical line which MONITOR watches stays the word's. The word is
 * read between MONITOR and MWAIT: a store after MONITOR ends the MWAIT, one before it is seen. MWAIT also
 * ends at every interrupt; STI right before it (its shadow) leaves no moment in which one could come unnoticed.
 *
 * To the scheduler the thread runs. It is preempted as any other: each round looks at need_resched.
 */
#include <asm/mwait.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "powerctl.h"

struct wait_alarm {
	struct hrtimer timer;
	bool rung;
};

static enum hrtimer_restart ring(struct hrtimer *timer)
{
	WRITE_ONCE(container_of(timer, struct wait_alarm, timer)->rung, true);
	return HRTIMER_NORESTART;
}

static bool unchanged(const struct powerctl_wait *w, const void *word)
{
	if (w->width == 8)
		return READ_ONCE(*(const u64 *)word) == w->expected;
	return READ_ONCE(*(const u32 *)word) == (u32)w->expected;
}

/* A hint names a C-state that CPUID lists; 0 is C1, which every MWAIT has. */
static bool known_hint(u32 hint)
{
	u32 state = (hint >> 4) + 1, sub = hint & 0xf;

	return !hint || (hint <= 0x6f && sub < (pc_caps.mwait_substates >> (4 * state) & 0xf));
}

long pc_wait(struct powerctl_wait *w)
{
	struct wait_alarm alarm = { .rung = false };
	ktime_t from = ktime_get(), until;
	struct page *page;
	void *word;
	int alarm_cpu = -1, pinned;

	if (!(pc_caps.cpu & POWERCTL_CPU_MWAIT))
		return -EOPNOTSUPP;
	if ((w->width != 4 && w->width != 8) || w->address % w->width || !known_hint(w->hint) ||
	    (w->width == 4 && w->expected >> 32) || w->timeout_ns > KTIME_MAX / 2)
		return -EINVAL;
	/* Newer kernels have an error of their own for a page at the very end. */
	if (!access_ok((void __user *)w->address, w->width))
		return -EFAULT;
	/* For writing: a word in a page shared by fork would else stay behind in the old copy. */
	pinned = pin_user_pages_fast(w->address, 1, FOLL_WRITE | FOLL_LONGTERM, &page);
	if (pinned != 1)
		return pinned < 0 ? pinned : -EFAULT;
	word = page_address(page) + offset_in_page(w->address);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup_on_stack(&alarm.timer, ring, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
#else
	hrtimer_init_on_stack(&alarm.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED);
	alarm.timer.function = ring;
#endif
	until = ktime_add_ns(from, w->timeout_ns);
	w->mwaits = 0;
	for (;;) {
		preempt_disable();
		/* The alarm must ring on the CPU that waits. */
		if (w->timeout_ns && alarm_cpu != smp_processor_id() && !READ_ONCE(alarm.rung)) {
			alarm_cpu = smp_processor_id();
			hrtimer_start(&alarm.timer, until, HRTIMER_MODE_ABS_PINNED);
		}
		local_irq_disable();
		__monitor(word, 0, 0);
		smp_mb();
		if (unchanged(w, word) && !need_resched() && !signal_pending(current) &&
		    !READ_ONCE(alarm.rung)) {
			w->mwaits++;
			__sti_mwait(w->hint, 0);
		} else {
			local_irq_enable();
		}
		preempt_enable();
		if (!unchanged(w, word)) {
			w->why = POWERCTL_WOKE_VALUE;
			break;
		}
		if (signal_pending(current)) {
			w->why = POWERCTL_WOKE_SIGNAL;
			break;
		}
		if (READ_ONCE(alarm.rung) || (w->timeout_ns && ktime_compare(ktime_get(), until) >= 0)) {
			w->why = POWERCTL_WOKE_TIME;
			break;
		}
		cond_resched();
	}
	hrtimer_cancel(&alarm.timer);
	destroy_hrtimer_on_stack(&alarm.timer);
	unpin_user_page(page);
	w->waited_ns = ktime_to_ns(ktime_sub(ktime_get(), from));
	return w->why == POWERCTL_WOKE_SIGNAL ? -EINTR : 0;
}
