/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM cpufreq_burst

#if !defined(CPUFREQ_BURST_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define CPUFREQ_BURST_TRACE_H

#include <linux/tracepoint.h>

/*
 * One look at a CPU's ticks, and what came of it. The sequence number orders the looks of a policy,
 * whatever CPU they were taken on.
 */
TRACE_EVENT(burst_tick,
	TP_PROTO(unsigned int policy, u64 seq, unsigned int cpu, u64 idle, unsigned int busy,
		 unsigned int wish, unsigned int khz),
	TP_ARGS(policy, seq, cpu, idle, busy, wish, khz),
	TP_STRUCT__entry(
		__field(unsigned int, policy)
		__field(u64, seq)
		__field(unsigned int, cpu)
		__field(u64, idle)
		__field(unsigned int, busy)
		__field(unsigned int, wish)
		__field(unsigned int, khz)
	),
	TP_fast_assign(
		__entry->policy = policy;
		__entry->seq = seq;
		__entry->cpu = cpu;
		__entry->idle = idle;
		__entry->busy = busy;
		__entry->wish = wish;
		__entry->khz = khz;
	),
	TP_printk("policy=%u seq=%llu cpu=%u idle=%llu busy=%u wish=%u khz=%u", __entry->policy,
		  __entry->seq, __entry->cpu, __entry->idle, __entry->busy, __entry->wish, __entry->khz)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
