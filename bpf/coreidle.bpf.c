// SPDX-License-Identifier: GPL-2.0
/*
 * coreidle: a scheduler that keeps some CPUs for work and leaves the others alone, so that they sleep deeply.
 *
 * What it observes: one mask, the CPUs that are *kept*, and each task's affinity. A task is *free* if it may run
 * on a kept CPU, and *pinned* if its affinity excludes every one of them. Whether it is one or the other is
 * asked anew at each decision and never stored: both the mask and the affinity change under it.
 *
 * What it keeps: one queue for all, ordered by virtual time (CPU time over weight), and nothing about tasks but that.
 *
 *  1. A task that wakes, forks or execs gets an idle CPU among those kept, its own last one first; the kernel's
 *     search knows caches and siblings. A pinned one gets an idle CPU of its affinity.
 *  2. With none idle it is queued by virtual time. One that slept starts at most a slice before the others,
 *     or it would have the machine to itself for as long as it slept. It preempts who runs on the CPU where it woke,
 *     if he is half a slice ahead of it: less would have two that wake each other preempt without end.
 *  3. A kept CPU takes the queue's first task that may run on it. A CPU that was given up takes the first pinned
 *     one, and looks at no other: that is all of the confinement. With nothing better to do, whoever
 *     ran there goes on, if he might be taken there now.
 *  4. When the mask changes, CPUs given up are preempted: whoever runs there goes to the queue, and its local queue
 *     with him. Kept CPUs that idle are woken, and so is every other idle one if something waits, since
 *     free tasks may have become pinned.
 *
 * Why one queue and not one per cache: what is queued must be found by whichever CPUs are kept at the time, and
 * with one queue a change of the mask moves nothing. Its lock is what limits this to some tens of kept CPUs. A CPU
 * passes over tasks that it may not run, so many tasks with narrow affinities make its step longer.
 *
 * Not decided by order of arrival: between a change of the mask and the kicks, a CPU may decide by the old mask.
 * A free task that lands on a CPU given up is sent off as soon as it is put there (running). A pinned one that is queued
 * where nobody looks is found by a second round of kicks 2 ms later.
 *
 * Hotplug: kept is what was asked for and is online; if that is nothing, all CPUs that are online. Work runs on.
 * Anything unforeseen makes the kernel fall back to its own scheduler; what it says of that reaches the loader.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "coreidle.h"

char LICENSE[] SEC("license") = "GPL";

/* The queue's name. */
#define QUEUE 1

/* A turn: one or two ticks. Longer ones would make a wake-up wait, shorter ones cost switches. */
const volatile u64 slice_ns = 5000000;
/* For tests only: dispatches nothing, so that the kernel's watchdog has something to find. */
const volatile bool stall;

/* Most rounds of a rebuild: each is for another change that came in between. */
#define REBUILDS 8
#define SECOND_ROUND_NS 2000000
/*
 * Slices that a task may be ahead of the others. At nice 19 one turn counts as a hundred; but whoever is ahead
 * waits for that times the number of those that compute, and the watchdog bites after 10 s.
 */
#define LEAD 8

/* What the loader asks for; apply() takes it over if it makes sense. */
u64 asked[COREIDLE_WORDS];
/* What was last taken over, what is online, and what is kept now: wanted and online, or online. */
u64 wanted[COREIDLE_WORDS];
u64 online[COREIDLE_WORDS];
u64 kept[COREIDLE_WORDS];
/* Changes begun, of either input. */
u64 generation;
/* Whether none of what is wanted is online. */
bool nothing_left;

struct coreidle_cpu cpus[COREIDLE_CPUS];

/* Virtual time of the free task that was last put on a CPU, if it is the latest so far. */
static u64 now_vtime;

/* The kept mask as the kernel's functions want it, and the timer of the second round. */
struct slot {
	struct bpf_cpumask __kptr *mask;
	struct bpf_timer second_round;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} exits SEC(".maps");

static __always_inline struct slot *slot(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&slots, &first);
}

/* The mask as of now; NULL only before init. Within RCU's read side. */
static __always_inline const struct cpumask *kept_mask(void)
{
	struct slot *s = slot();

	return s ? (const struct cpumask *)s->mask : NULL;
}

static __always_inline struct coreidle_cpu *counters(u32 cpu)
{
	return cpu < COREIDLE_CPUS ? &cpus[cpu] : NULL;
}

static __always_inline struct coreidle_cpu *own_counters(void)
{
	return counters(bpf_get_smp_processor_id());
}

static __always_inline bool is_pinned(const struct task_struct *p, const struct cpumask *mask)
{
	return !bpf_cpumask_intersects(mask, p->cpus_ptr);
}

/* An idle CPU for the task, which is then no longer marked as idle; negative: none. */
static __always_inline s32 idle_cpu(struct task_struct *p, const struct cpumask *mask, bool pinned, s32 prev,
				    u64 wake_flags)
{
	if (pinned)
		return scx_bpf_select_cpu_and(p, prev, wake_flags, p->cpus_ptr, 0);
	return scx_bpf_select_cpu_and(p, prev, wake_flags, mask, 0);
}

/* Any CPU that would take the task. */
static __always_inline s32 any_cpu(const struct task_struct *p, const struct cpumask *mask, bool pinned)
{
	if (pinned)
		return bpf_cpumask_any_and_distribute(p->cpus_ptr, p->cpus_ptr);
	return bpf_cpumask_any_and_distribute(mask, p->cpus_ptr);
}

SEC("struct_ops/coreidle_select_cpu")
s32 BPF_PROG(coreidle_select_cpu, struct task_struct *p, s32 prev, u64 wake_flags)
{
	const struct cpumask *mask = kept_mask();
	struct coreidle_cpu *c = own_counters();

	if (!mask || stall)
		return prev;
	bool pinned = is_pinned(p, mask);
	bool stays = pinned || bpf_cpumask_test_cpu(prev, mask);
	s32 cpu = idle_cpu(p, mask, pinned, prev, wake_flags);

	if (!stays && c)
		c->refused++;
	if (cpu >= 0) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
		return cpu;
	}
	/* Queued on this one, which therefore wakes if it idles by then: it must not be one that is given up. */
	if (!stays)
		cpu = any_cpu(p, mask, pinned);
	return stays || cpu >= (s32)scx_bpf_nr_cpu_ids() ? prev : cpu;
}

/*
 * A task's virtual time, no further from the others' than is good for anyone: one that slept would keep all others off,
 * and one that had a CPU to itself would wait for them. Also when they run, since tasks of disjoint
 * affinities drift apart: there order of arrival takes over, and weights count for less.
 */
static __always_inline u64 within(u64 vtime, u64 now)
{
	if ((s64)(vtime - (now - slice_ns)) < 0)
		return now - slice_ns;
	if ((s64)(vtime - (now + LEAD * slice_ns)) > 0)
		return now + LEAD * slice_ns;
	return vtime;
}

/* Whether who runs on the CPU has had half a slice more than one with this virtual time. */
static __always_inline bool is_behind(u64 vtime, s32 cpu)
{
	struct task_struct *current = scx_bpf_cpu_curr(cpu);

	return current && (s64)(current->scx.dsq_vtime - vtime) > (s64)(slice_ns / 2);
}

SEC("struct_ops/coreidle_enqueue")
void BPF_PROG(coreidle_enqueue, struct task_struct *p, u64 enq_flags)
{
	const struct cpumask *mask = kept_mask();
	s32 own = scx_bpf_task_cpu(p);
	struct coreidle_cpu *c = own_counters();

	/* A kernel thread of one CPU: others wait for it, and it can go nowhere else. */
	if (!mask || (p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags);
		return;
	}
	bool pinned = is_pinned(p, mask);
	bool looks = pinned || bpf_cpumask_test_cpu(own, mask);
	struct coreidle_cpu *own_now = counters(own);
	u64 vtime = p->scx.dsq_vtime;

	if (!looks && c)
		c->moves++;
	vtime = within(vtime, pinned && own_now ? own_now->pinned_vtime : now_vtime);
	scx_bpf_dsq_insert_vtime(p, QUEUE, slice_ns, vtime, enq_flags);

	s32 cpu = idle_cpu(p, mask, pinned, own, 0);

	/*
	 * A CPU that is about to idle is not marked as such yet and may have looked at the queue just before. It
	 * looks again by itself when the task was queued by it, and not to go idle; else it is told to.
	 */
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	else if (looks && enq_flags & SCX_ENQ_WAKEUP && is_behind(vtime, own))
		scx_bpf_kick_cpu(own, SCX_KICK_PREEMPT);
	else if (!looks || enq_flags & SCX_ENQ_LAST) {
		cpu = any_cpu(p, mask, pinned);
		if (cpu < (s32)scx_bpf_nr_cpu_ids())
			scx_bpf_kick_cpu(cpu, 0);
	}
}

/* Moves the queue's first pinned task that may run on this CPU to it. */
static __always_inline bool take_pinned(s32 cpu, const struct cpumask *mask)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool taken = false;

	if (!bpf_iter_scx_dsq_new(&it, QUEUE, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			if (!bpf_cpumask_test_cpu(cpu, p->cpus_ptr) || !is_pinned(p, mask))
				continue;
			/* Not, if another CPU was first. */
			if (scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0)) {
				taken = true;
				break;
			}
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return taken;
}

SEC("struct_ops/coreidle_dispatch")
void BPF_PROG(coreidle_dispatch, s32 cpu, struct task_struct *prev)
{
	const struct cpumask *mask = kept_mask();

	if (!mask || stall)
		return;
	bool keeps = bpf_cpumask_test_cpu(cpu, mask);

	if (keeps ? scx_bpf_dsq_move_to_local(QUEUE) : take_pinned(cpu, mask))
		return;
	/* Nobody else: another turn, where he would be taken now. */
	if (prev && prev->scx.flags & SCX_TASK_QUEUED && (keeps || is_pinned(prev, mask)))
		scx_bpf_task_set_slice(prev, slice_ns);
}

SEC("struct_ops/coreidle_running")
void BPF_PROG(coreidle_running, struct task_struct *p)
{
	const struct cpumask *mask = kept_mask();
	s32 cpu = scx_bpf_task_cpu(p);
	struct coreidle_cpu *c = counters(cpu);

	if (!mask || !c)
		return;
	c->started_ns = p->se.sum_exec_runtime;
	if (bpf_cpumask_test_cpu(cpu, mask)) {
		c->free++;
		if ((s64)(p->scx.dsq_vtime - now_vtime) > 0)
			now_vtime = p->scx.dsq_vtime;
	} else if (is_pinned(p, mask)) {
		c->pinned++;
		if ((s64)(p->scx.dsq_vtime - c->pinned_vtime) > 0)
			c->pinned_vtime = p->scx.dsq_vtime;
	} else {
		c->strays++;
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
}

SEC("struct_ops/coreidle_stopping")
void BPF_PROG(coreidle_stopping, struct task_struct *p, bool runnable)
{
	struct coreidle_cpu *c = counters(scx_bpf_task_cpu(p));

	/* By the time that he really had: one who was preempted lost the rest of his slice. */
	if (c && p->scx.weight)
		scx_bpf_task_set_dsq_vtime(p, p->scx.dsq_vtime +
						      (p->se.sum_exec_runtime - c->started_ns) * 100 / p->scx.weight);
}

SEC("struct_ops/coreidle_enable")
void BPF_PROG(coreidle_enable, struct task_struct *p)
{
	scx_bpf_task_set_dsq_vtime(p, now_vtime);
}

static __always_inline bool has(const u64 *words, u32 cpu)
{
	return cpu < COREIDLE_CPUS && words[cpu / 64] >> cpu % 64 & 1;
}

/* Every CPU that is given up and online looks at the queue, if there is anything in it. */
static __always_inline void wake_given_up(void)
{
	struct bpf_iter_num it;
	int *i;

	bpf_iter_num_new(&it, 0, scx_bpf_nr_cpu_ids());
	while ((i = bpf_iter_num_next(&it))) {
		u32 cpu = *i;

		if (has(online, cpu) && !has(kept, cpu))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	bpf_iter_num_destroy(&it);
}

static int second_round(void *map, u32 *key, struct slot *s)
{
	if (scx_bpf_dsq_nr_queued(QUEUE) > 0)
		wake_given_up();
	return 0;
}

/* Makes CPUs do what the new mask says of them. */
static __always_inline void tell_cpus(const struct cpumask *was)
{
	struct bpf_iter_num it;
	int *i;

	bpf_iter_num_new(&it, 0, scx_bpf_nr_cpu_ids());
	while ((i = bpf_iter_num_next(&it))) {
		u32 cpu = *i;

		if (!has(online, cpu))
			continue;
		if (has(kept, cpu)) {
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		} else if (bpf_cpumask_test_cpu(cpu, was)) {
			scx_bpf_dsq_reenq(SCX_DSQ_LOCAL_ON | cpu, 0);
			scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		}
	}
	bpf_iter_num_destroy(&it);
	if (scx_bpf_dsq_nr_queued(QUEUE) > 0)
		wake_given_up();
}

/* From wanted and online to kept and the mask. `first`: nothing is scheduled yet. */
static __always_inline int rebuild_once(struct slot *s, bool first)
{
	u64 any = 0;

	for (int i = 0; i < COREIDLE_WORDS; i++)
		any |= wanted[i] & online[i];
	nothing_left = !any;
	for (int i = 0; i < COREIDLE_WORDS; i++)
		kept[i] = any ? wanted[i] & online[i] : online[i];

	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return -ENOMEM;
	int failed = bpf_cpumask_populate(mask, kept, sizeof(kept));

	if (failed) {
		bpf_cpumask_release(mask);
		return failed;
	}
	mask = bpf_kptr_xchg(&s->mask, mask);
	if (mask) {
		if (!first)
			tell_cpus((const struct cpumask *)mask);
		bpf_cpumask_release(mask);
	}
	return 0;
}

/*
 * The loader and hotplug may both be at it. Each counts its change before it reads the inputs, and builds again if
 * another came since: whoever is last has seen everything.
 */
static __noinline int rebuild(void)
{
	struct slot *s = slot();
	int failed = -EINVAL;

	if (!s)
		return failed;
	__sync_fetch_and_add(&generation, 1);
	for (int i = 0; i < REBUILDS; i++) {
		u64 seen = *(volatile u64 *)&generation;

		failed = rebuild_once(s, false);
		if (failed || seen == *(volatile u64 *)&generation)
			break;
	}
	bpf_timer_start(&s->second_round, SECOND_ROUND_NS, 0);
	return failed;
}

/* Takes over what the loader asks for; refuses a mask of which nothing is online. */
SEC("syscall")
int apply(void *ctx)
{
	u64 any = 0;

	for (int i = 0; i < COREIDLE_WORDS; i++)
		any |= asked[i] & online[i];
	if (!any)
		return -EINVAL;
	for (int i = 0; i < COREIDLE_WORDS; i++)
		wanted[i] = asked[i];
	return rebuild();
}

static __always_inline void set_online(u32 cpu, bool is)
{
	if (cpu >= COREIDLE_CPUS)
		return;
	if (is)
		__sync_fetch_and_or(&online[cpu / 64], 1ULL << cpu % 64);
	else
		__sync_fetch_and_and(&online[cpu / 64], ~(1ULL << cpu % 64));
}

/*
 * Before the first step of a CPU's way down. The callback below comes too late if this is the last CPU that is kept:
 * by then the kernel has made it unfit for tasks and waits for a grace period, whose thread waits for a CPU.
 */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(coreidle_going, unsigned int cpu, int target, int step)
{
	int active = bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE);

	if (step == active && target < active) {
		set_online(cpu, false);
		rebuild();
	}
	return 0;
}

SEC("struct_ops/coreidle_cpu_online")
void BPF_PROG(coreidle_cpu_online, s32 cpu)
{
	set_online(cpu, true);
	rebuild();
}

SEC("struct_ops/coreidle_cpu_offline")
void BPF_PROG(coreidle_cpu_offline, s32 cpu)
{
	set_online(cpu, false);
	rebuild();
}

SEC("struct_ops/coreidle_init")
s32 BPF_PROG(coreidle_init)
{
	const struct cpumask *up = scx_bpf_get_online_cpumask();
	struct slot *s = slot();
	struct bpf_iter_num it;
	int *i;

	bpf_iter_num_new(&it, 0, scx_bpf_nr_cpu_ids());
	while ((i = bpf_iter_num_next(&it))) {
		u32 cpu = *i;

		if (bpf_cpumask_test_cpu(cpu, up))
			set_online(cpu, true);
	}
	bpf_iter_num_destroy(&it);
	scx_bpf_put_cpumask(up);
	if (!s)
		return -EINVAL;
	for (int i = 0; i < COREIDLE_WORDS; i++)
		wanted[i] = asked[i];
	bpf_timer_init(&s->second_round, &slots, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&s->second_round, second_round);

	s32 failed = scx_bpf_create_dsq(QUEUE, -1);

	return failed ? failed : rebuild_once(s, true);
}

SEC("struct_ops/coreidle_exit")
void BPF_PROG(coreidle_exit, struct scx_exit_info *info)
{
	struct coreidle_exit e = { .kind = info->kind, .code = info->exit_code };

	bpf_probe_read_kernel_str(e.reason, sizeof(e.reason), info->reason);
	bpf_probe_read_kernel_str(e.message, sizeof(e.message), info->msg);
	bpf_ringbuf_output(&exits, &e, sizeof(e), 0);
}

SEC(".struct_ops")
struct sched_ext_ops coreidle = {
	.select_cpu = (void *)coreidle_select_cpu,
	.enqueue = (void *)coreidle_enqueue,
	.dispatch = (void *)coreidle_dispatch,
	.running = (void *)coreidle_running,
	.stopping = (void *)coreidle_stopping,
	.enable = (void *)coreidle_enable,
	.cpu_online = (void *)coreidle_cpu_online,
	.cpu_offline = (void *)coreidle_cpu_offline,
	.init = (void *)coreidle_init,
	.exit = (void *)coreidle_exit,
	/* A CPU that is given up must not go on with its last task, and a task that exits is no exception. */
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING,
	/* After this without a turn for some task the kernel takes over. */
	.timeout_ms = 10000,
	.name = "coreidle",
};
