// SPDX-License-Identifier: GPL-2.0
/*
 * powerctl: a thread's own T-state, P-state and energy preference, after L. Sannino's Powerctl (study 004), as a
 * character device with versioned ioctls (include/uapi/powerctl.h). No text is patched.
 *
 * Who may: whoever can open the device (root and its group). Lowering needs no more; raising above the
 * default takes from others' budget of heat and energy, and needs CAP_SYS_ADMIN.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "powerctl.h"

static char *backend = "";
module_param(backend, charp, 0444);
MODULE_PARM_DESC(backend, "msr, cpufreq or virtual (default: the first of msr and cpufreq that works)");

static char *registers = "processor";
module_param(registers, charp, 0444);
MODULE_PARM_DESC(registers, "whose registers the back end msr has: processor, or vpower for tests");

/*
 * A structure from user space: its size is in the ioctl's number and in its first field, what is reserved
 * at its end.
 */
static long take_struct(void *to, size_t size, size_t reserved, unsigned int cmd, void __user *from)
{
	const u32 *word = to + reserved;
	u32 said;
	long err;

	if (get_user(said, (u32 __user *)from))
		return -EFAULT;
	if (said != _IOC_SIZE(cmd) || said < size)
		return -EINVAL;
	err = copy_struct_from_user(to, size, from, said);
	if (err)
		return err;
	for (; word < (u32 *)(to + size); word++)
		if (*word)
			return -EINVAL;
	return 0;
}

#define take(to, cmd, from) \
	take_struct(to, sizeof(*(to)), offsetof(typeof(*(to)), reserved), cmd, from)

static long give(void __user *to, const void *from, size_t size)
{
	return copy_to_user(to, from, size) ? -EFAULT : 0;
}

static long ioctl_set(struct file *file, unsigned int cmd, void __user *arg)
{
	struct powerctl_profile p;
	long err = take(&p, cmd, arg);

	if (err)
		return err;
	err = pc_check(&p);
	if (err)
		return err;
	if (pc_raises(&p) && !capable(CAP_SYS_ADMIN))
		return -EPERM;
	p.size = sizeof(p);
	return pc_profile_set(file, &p);
}

static long ioctl_get(unsigned int cmd, void __user *arg)
{
	struct powerctl_profile p;
	long err = take(&p, cmd, arg);

	return err ?: pc_profile_get(&p) ?: give(arg, &p, sizeof(p));
}

static long ioctl_caps(unsigned int cmd, void __user *arg)
{
	struct powerctl_caps c;
	long err = take(&c, cmd, arg);

	if (err)
		return err;
	c = pc_caps;
	c.size = sizeof(c);
	c.profiles = pc_profiles_count();
	c.profiles_max = pc_profiles_max();
	return give(arg, &c, sizeof(c));
}

static long ioctl_wait(unsigned int cmd, void __user *arg)
{
	struct powerctl_wait w;
	long err = take(&w, cmd, arg);

	if (err)
		return err;
	err = pc_wait(&w);
	/* Why it woke is told even when that is an error. */
	if (!err || err == -EINTR)
		err = give(arg, &w, sizeof(w)) ?: err;
	return err;
}

static long ioctl_counters(unsigned int cmd, void __user *arg)
{
	struct powerctl_counters c;
	long err = take(&c, cmd, arg);

	return err ?: pc_backend->counters(&c) ?: give(arg, &c, sizeof(c));
}

static long ioctl_stats(unsigned int cmd, void __user *arg)
{
	struct powerctl_stats s;
	long err = take(&s, cmd, arg);

	if (err)
		return err;
	memset(&s, 0, sizeof(s));
	s.size = sizeof(s);
	pc_stats(&s);
	return give(arg, &s, sizeof(s));
}

/* There and back: how long setting the registers takes, the lock included. */
static long ioctl_latency(unsigned int cmd, void __user *arg)
{
	struct powerctl_latency l;
	union pc_state from = { .all = 0 }, to = { .all = 0 };
	u64 sum = 0;
	u32 i;
	long err = take(&l, cmd, arg);

	if (err)
		return err;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!(pc_backend->settable & POWERCTL_PSTATE))
		return -EOPNOTSUPP;
	if (READ_ONCE(pc_caps.withdrawn) & POWERCTL_PSTATE)
		return -EBUSY;
	if (!l.rounds || l.rounds > 10000 || min(l.from_khz, l.to_khz) < pc_caps.khz_min ||
	    max(l.from_khz, l.to_khz) > pc_caps.khz_max)
		return -ERANGE;
	from.khz = rounddown(l.from_khz, pc_backend->step_khz);
	to.khz = rounddown(l.to_khz, pc_backend->step_khz);
	l.min_ns = U64_MAX;
	l.max_ns = 0;
	for (i = 0; i < l.rounds && !signal_pending(current); i++) {
		u64 start, took;

		preempt_disable();
		pc_apply(from, pc_khz_field.all, false);
		start = ktime_get_ns();
		pc_apply(to, pc_khz_field.all, false);
		took = ktime_get_ns() - start;
		pc_apply_own(false);
		preempt_enable();
		sum += took;
		l.min_ns = min(l.min_ns, took);
		l.max_ns = max(l.max_ns, took);
		cond_resched();
	}
	if (i < l.rounds)
		return -EINTR;
	l.mean_ns = div_u64(sum, l.rounds);
	return give(arg, &l, sizeof(l));
}

static long powerctl_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *p = (void __user *)arg;

	if (_IOC_TYPE(cmd) != POWERCTL_IOC_MAGIC)
		return -ENOTTY;
	/* By number and direction: the size may be that of a newer program. */
	switch (cmd & ~IOCSIZE_MASK) {
	case POWERCTL_SET & ~IOCSIZE_MASK:
		return ioctl_set(file, cmd, p);
	case POWERCTL_GET & ~IOCSIZE_MASK:
		return ioctl_get(cmd, p);
	case POWERCTL_CLEAR:
		return _IOC_SIZE(cmd) ? -ENOTTY : pc_profile_clear();
	case POWERCTL_CAPS & ~IOCSIZE_MASK:
		return ioctl_caps(cmd, p);
	case POWERCTL_WAIT & ~IOCSIZE_MASK:
		return ioctl_wait(cmd, p);
	case POWERCTL_COUNTERS & ~IOCSIZE_MASK:
		return ioctl_counters(cmd, p);
	case POWERCTL_LATENCY & ~IOCSIZE_MASK:
		return ioctl_latency(cmd, p);
	case POWERCTL_STATS & ~IOCSIZE_MASK:
		return ioctl_stats(cmd, p);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = powerctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "powerctl",
	.fops = &fops,
	.mode = 0660,
};

static int __init powerctl_init(void)
{
	int err = pc_backend_init(backend, registers);

	if (err)
		return err;
	/*
	 * The scheduler looks at notifier lists from here on: one test of an empty list at each switch.
	 * Not at each open: turning the key patches the scheduler's text and interrupts every CPU.
	 */
	preempt_notifier_inc();
	err = pc_profiles_init();
	if (err)
		goto no_profiles;
	err = pc_cpus_init();
	if (err)
		goto no_domains;
	err = pc_speeds_init();
	if (err)
		goto no_speeds;
	err = misc_register(&device);
	if (err)
		goto no_device;
	return 0;

no_device:
	pc_speeds_exit();
no_speeds:
	pc_cpus_exit();
no_domains:
	pc_profiles_exit();
no_profiles:
	preempt_notifier_dec();
	pc_backend_exit();
	return err;
}

static void __exit powerctl_exit(void)
{
	misc_deregister(&device);
	pc_speeds_exit();
	pc_cpus_exit();
	pc_profiles_exit();
	preempt_notifier_dec();
	pc_backend_exit();
}

module_init(powerctl_init);
module_exit(powerctl_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("The wattwise authors");
MODULE_DESCRIPTION("Per-thread T-states, P-states and energy preferences");
