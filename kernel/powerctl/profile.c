// SPDX-License-Identifier: GPL-2.0
/*
 * Profiles of threads, and their enforcement at context switches.
 *
 * The hook is a preempt notifier: a list in the task itself, looked at by the scheduler when that task
 * is put on or taken off a CPU. Nothing is looked up, and a task without a profile pays one test of
 * an empty list, as under any hypervisor that uses these notifiers; the
 * sched_switch tracepoint would call us, and search, at every switch of every task.
 *
 *   taken off   the CPU goes back to the default, unless the next task has a profile too: then
 *               that one's turn, a moment later, sets what it wants, and one write is spared
 *   put on      the CPU's registers get what the thread asked for, if they do not hold it already
 *
 * A profile has the fields that were asked for and a mask of them; the rest is each CPU's default, filled in where the
 * thread is put on. What is then in force is domain.c's.
 *
 * Life of a profile: SET makes it, for the calling thread alone. It ends with CLEAR, with the thread
 * (sched_process_exit, still in the thread's context), and at exec, unless it is inheritable; a fork copies an
 * inheritable one before the child runs. It hangs on the task and not on a thread number, so a
 * number used again means nothing. It holds the device open, and so the module in place.
 *
 * Locking
 *   pc_profile		its thread only, preemption off where the notifier may see it
 *   users_lock		raw, interrupts on; nothing inside it
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "powerctl.h"

static unsigned int max_profiles = 65536;
module_param(max_profiles, uint, 0444);
MODULE_PARM_DESC(max_profiles, "most profiles of one user in force at a time; with CAP_SYS_RESOURCE any number");

const union pc_state pc_khz_field = { .khz = PC_KHZ_MAX };

/* Who has profiles, and how many: one user cannot take them all. */
struct pc_user {
	struct hlist_node link;
	kuid_t uid;
	unsigned int profiles;
};

static DEFINE_HASHTABLE(users, 6);
static DEFINE_RAW_SPINLOCK(users_lock);
static atomic_t profiles = ATOMIC_INIT(0);
static atomic64_t profiles_set = ATOMIC64_INIT(0);

static struct pc_profile *to_profile(struct preempt_notifier *notifier)
{
	return container_of(notifier, struct pc_profile, notifier);
}

static void put_on(struct preempt_notifier *notifier, int cpu)
{
	const struct pc_profile *p = to_profile(notifier);

	pc_apply_put_on(p->state, p->mask);
}

static void taken_off(struct preempt_notifier *notifier, struct task_struct *next);

static struct preempt_ops notifier_ops = {
	.sched_in = put_on,
	.sched_out = taken_off,
};

/* A task's profile. Its list is changed only by itself, and before it first runs. */
static struct pc_profile *profile_of(struct task_struct *task)
{
	struct preempt_notifier *notifier;

	hlist_for_each_entry(notifier, &task->preempt_notifiers, link)
		if (notifier->ops == &notifier_ops)
			return to_profile(notifier);
	return NULL;
}

static void taken_off(struct preempt_notifier *notifier, struct task_struct *next)
{
	/* Under the run-queue lock: interrupts are off. */
	if (!profile_of(next))
		pc_apply_taken_off();
}

/* One more of this user's, if it may have that many. */
static bool count_up(struct pc_user *user, bool uncounted)
{
	bool may;

	raw_spin_lock(&users_lock);
	may = uncounted || user->profiles < max_profiles;
	if (may)
		user->profiles++;
	raw_spin_unlock(&users_lock);
	if (may)
		atomic_inc(&profiles);
	return may;
}

/* The last of a user's takes the user along. */
static void count_down(struct pc_user *user)
{
	bool last;

	atomic_dec(&profiles);
	raw_spin_lock(&users_lock);
	last = !--user->profiles;
	if (last)
		hash_del(&user->link);
	raw_spin_unlock(&users_lock);
	if (last)
		kfree(user);
}

/* The calling thread's user, with one profile more; an error if it has as many as it may. */
static struct pc_user *count_mine(bool uncounted)
{
	struct pc_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	struct pc_user *user, *found = NULL;
	kuid_t uid = current_uid();
	bool may;

	if (!new)
		return ERR_PTR(-ENOMEM);
	new->uid = uid;
	raw_spin_lock(&users_lock);
	hash_for_each_possible(users, user, link, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid)) {
			found = user;
			break;
		}
	}
	may = uncounted || (found ? found->profiles : 0) < max_profiles;
	if (may) {
		if (!found) {
			found = new;
			hash_add(users, &new->link, __kuid_val(uid));
		}
		found->profiles++;
	}
	raw_spin_unlock(&users_lock);
	if (found != new)
		kfree(new);
	if (!may)
		return ERR_PTR(-ENOSPC);
	atomic_inc(&profiles);
	return found;
}

/* What a profile asks for. */
static union pc_state state_of(const struct powerctl_profile *p)
{
	union pc_state s = { .all = 0 };

	if (p->flags & POWERCTL_TSTATE)
		s.tstate = p->tstate;
	if (p->flags & POWERCTL_PSTATE)
		s.khz = rounddown(p->pstate_khz, pc_backend->step_khz);
	if (p->flags & POWERCTL_HWP) {
		s.hwp_min = p->hwp_min;
		s.hwp_max = p->hwp_max;
		s.hwp_desired = p->hwp_desired;
	}
	if (p->flags & POWERCTL_EPP)
		s.epp = p->epp;
	return s;
}

/* A profile that no thread has yet. */
static struct pc_profile *new_profile(struct file *file)
{
	bool uncounted = capable(CAP_SYS_RESOURCE);
	struct pc_user *user = count_mine(uncounted);
	struct pc_profile *new;

	if (IS_ERR(user))
		return ERR_CAST(user);
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new) {
		count_down(user);
		return ERR_PTR(-ENOMEM);
	}
	new->user = user;
	new->uncounted = uncounted;
	new->file = get_file(file);
	preempt_notifier_init(&new->notifier, &notifier_ops);
	return new;
}

int pc_profile_set(struct file *file, const struct powerctl_profile *asked)
{
	struct pc_profile *p = profile_of(current);
	struct pc_profile *new = NULL;
	union pc_state state = state_of(asked);
	u64 mask = pc_fields(asked->flags);

	if (!p) {
		new = new_profile(file);
		if (IS_ERR(new))
			return PTR_ERR(new);
		p = new;
	}
	preempt_disable();
	p->asked = *asked;
	p->state = state;
	p->mask = mask;
	if (new)
		preempt_notifier_register(&new->notifier);
	pc_apply(p->state, p->mask, false);
	preempt_enable();
	atomic64_inc(&profiles_set);
	return 0;
}

int pc_profile_get(struct powerctl_profile *to)
{
	struct pc_profile *p = profile_of(current);

	if (!p)
		return -ENOENT;
	*to = p->asked;
	return 0;
}

/* In its own thread's context. Does not sleep: fput() puts off what would. */
static void drop(struct pc_profile *p)
{
	preempt_disable();
	preempt_notifier_unregister(&p->notifier);
	pc_apply_default(false);
	preempt_enable();
	count_down(p->user);
	fput(p->file);
	kfree(p);
}

int pc_profile_clear(void)
{
	struct pc_profile *p = profile_of(current);

	if (!p)
		return -ENOENT;
	drop(p);
	return 0;
}

u32 pc_profiles_count(void)
{
	return atomic_read(&profiles);
}

u32 pc_profiles_max(void)
{
	return max_profiles;
}

void pc_stats(struct powerctl_stats *s)
{
	int cpu;

	s->profiles = pc_profiles_count();
	s->set = atomic64_read(&profiles_set);
	for_each_possible_cpu(cpu) {
		struct pc_cpu *pc = per_cpu_ptr(&pc_cpus, cpu);

		s->switches += READ_ONCE(pc->switches);
		s->writes += READ_ONCE(pc->writes);
		s->skipped += READ_ONCE(pc->skipped);
		s->failed += READ_ONCE(pc->failed);
	}
}

/* The running thread's wish, from anywhere with preemption off. */
void pc_apply_own(bool force)
{
	const struct pc_profile *p = profile_of(current);

	if (p)
		pc_apply(p->state, p->mask, force);
	else
		pc_apply_default(force);
}

/*
 * What runs here gets what it wants, whatever the registers hold. An interrupt may come into the middle of the
 * task's own change; that one then applies what it has written.
 */
static void again_here(void *unused)
{
	pc_apply_own(true);
}

void pc_apply_everywhere(void)
{
	on_each_cpu(again_here, NULL, 1);
}

/* The ends and beginnings of tasks. */

static void at_exit(void *data, struct task_struct *task)
{
	struct pc_profile *p = profile_of(task);

	if (p && task == current)
		drop(p);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
static void at_exit_group(void *data, struct task_struct *task, bool group_dead)
{
	at_exit(data, task);
}
#define AT_EXIT at_exit_group
#else
#define AT_EXIT at_exit
#endif

static void at_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	struct pc_profile *p = profile_of(task);

	if (p && task == current && !(p->asked.flags & POWERCTL_INHERIT))
		drop(p);
}

/* In the parent's context; the child has not run yet, so nobody else looks at its list. */
static void at_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	struct pc_profile *p = profile_of(parent);
	struct pc_profile *copy;

	if (!p || !(p->asked.flags & POWERCTL_INHERIT) || !count_up(p->user, p->uncounted))
		return;
	copy = kzalloc(sizeof(*copy), GFP_ATOMIC);
	if (!copy) {
		count_down(p->user);
		return;
	}
	copy->asked = p->asked;
	copy->state = p->state;
	copy->mask = p->mask;
	copy->user = p->user;
	copy->uncounted = p->uncounted;
	copy->file = get_file(p->file);
	preempt_notifier_init(&copy->notifier, &notifier_ops);
	hlist_add_head(&copy->notifier.link, &child->preempt_notifiers);
	atomic64_inc(&profiles_set);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} probes[] = {
	{ "sched_process_exit", AT_EXIT },
	{ "sched_process_exec", at_exec },
	{ "sched_process_fork", at_fork },
};

static void find_probe(struct tracepoint *tp, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		if (!strcmp(tp->name, probes[i].name))
			probes[i].tp = tp;
}

static void remove_probes(unsigned int n)
{
	while (n--)
		tracepoint_probe_unregister(probes[n].tp, probes[n].probe, NULL);
	tracepoint_synchronize_unregister();
}

int pc_profiles_init(void)
{
	unsigned int i;
	int err;

	for_each_kernel_tracepoint(find_probe, NULL);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = probes[i].tp ? tracepoint_probe_register(probes[i].tp, probes[i].probe, NULL) : -ENOENT;
		if (err) {
			pr_err("tracepoint %s: error %d\n", probes[i].name, err);
			remove_probes(i);
			return err;
		}
	}
	return 0;
}

/* No profile is left: each would hold the module. */
void pc_profiles_exit(void)
{
	remove_probes(ARRAY_SIZE(probes));
}
