/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM powerctl

#if !defined(POWERCTL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define POWERCTL_TRACE_H

#include <linux/tracepoint.h>

/* After a thread was put on its CPU, or a CPU given back: what it wants and what is in force. */
TRACE_EVENT(powerctl_switch,
	TP_PROTO(int cpu, int tid, union pc_state want, union pc_state in_force),
	TP_ARGS(cpu, tid, want, in_force),
	TP_STRUCT__entry(
		__field(int, cpu)
		__field(int, tid)
		__field(u32, want_khz)
		__field(u8, want_tstate)
		__field(u32, khz)
		__field(u8, tstate)
	),
	TP_fast_assign(
		__entry->cpu = cpu;
		__entry->tid = tid;
		__entry->want_khz = want.khz;
		__entry->want_tstate = want.tstate;
		__entry->khz = in_force.khz;
		__entry->tstate = in_force.tstate;
	),
	TP_printk("cpu=%d tid=%d want_khz=%u want_tstate=%u khz=%u tstate=%u", __entry->cpu, __entry->tid,
		  __entry->want_khz, __entry->want_tstate, __entry->khz, __entry->tstate)
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
