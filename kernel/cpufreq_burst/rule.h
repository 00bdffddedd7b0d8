/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rule of `burst`, after B. J. Thomson, "Improved Power Management for FreeBSD" (2010), section 3
 * and appendix C: more than `busy` busy ticks in a row, straight to the highest level; more than
 * `idle` idle ticks in a row, down; either kind resets the other's count.
 *
 * Pure: counts and levels in, counts out. It is crates/policy/src/speed/burst.rs in C, and the lab replays
 * what this one decided through that one.
 */
#ifndef CPUFREQ_BURST_RULE_H
#define CPUFREQ_BURST_RULE_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* How far a CPU comes down at once. */
enum burst_step {
	BURST_ONE,		/* one level, the study's rule */
	BURST_PROPORTIONAL,	/* to what the last 32 ticks needed, at least one level */
};

struct burst_levels {
	unsigned int n;
	const unsigned int *khz;	/* highest first */
};

/* One CPU's counters. */
struct burst_count {
	unsigned int busy;	/* busy ticks in a row */
	unsigned int idle;	/* idle ticks in a row */
	u32 history;		/* the last 32 ticks, 1 for busy, the newest lowest */
	unsigned int wish;	/* index of the level wished, 0 the highest */
};

static inline unsigned int burst_lower(const struct burst_levels *l, unsigned int at, u32 history,
				       enum burst_step step)
{
	unsigned int one = min(at + 1, l->n - 1);
	unsigned int enough = l->n - 1;
	u64 used;

	if (step == BURST_ONE)
		return one;
	used = (u64)l->khz[at] * hweight32(history) / 32;
	while (enough && l->khz[enough] < used)
		enough--;
	return max(enough, one);
}

static inline void burst_busy_tick(struct burst_count *c, unsigned int busy)
{
	c->history = c->history << 1 | 1;
	c->idle = 0;
	if (++c->busy > busy) {
		c->busy = 0;
		c->wish = 0;
	}
}

static inline void burst_idle_tick(struct burst_count *c, const struct burst_levels *l, unsigned int idle,
				   enum burst_step step)
{
	c->history <<= 1;
	c->busy = 0;
	if (++c->idle > idle) {
		c->idle = 0;
		c->wish = burst_lower(l, c->wish, c->history, step);
	}
}

#endif
