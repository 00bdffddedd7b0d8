// SPDX-License-Identifier: GPL-2.0
/*
 * vpower: a machine's power hardware, virtually: speeds, idle states, energy, temperature, battery,
 * mains and registers. For tests only: nothing here saves or measures a joule.
 *
 * The machine comes in as parameters; `cargo lab` writes them from a machine model, so that
 * the kernel and the simulator decide about the same hardware.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>

#include "vpower.h"

struct vpower_machine vpower_machine;
struct vpower_knobs vpower_knobs = { .mains = true };

static unsigned int khz[VPOWER_MAX_LEVELS] = {
	2400000, 2000000, 1600000, 1200000, 800000, 400000
};
static unsigned int khz_n = 6;
module_param_array(khz, uint, &khz_n, 0444);
MODULE_PARM_DESC(khz, "speeds in kHz, highest first");

static unsigned int busy_uw[VPOWER_MAX_LEVELS];
static unsigned int busy_uw_n;
module_param_array(busy_uw, uint, &busy_uw_n, 0444);
MODULE_PARM_DESC(busy_uw, "power of a busy CPU at each speed in microwatts (default: kHz)");

static char *idle[VPOWER_MAX_IDLE] = { "C1", "C3", "C6" };
static unsigned int idle_n = 3;
module_param_array(idle, charp, &idle_n, 0444);
MODULE_PARM_DESC(idle, "names of the idle states, shallowest first");

static unsigned int idle_latency_us[VPOWER_MAX_IDLE] = { 2, 80, 200 };
module_param_array(idle_latency_us, uint, NULL, 0444);
MODULE_PARM_DESC(idle_latency_us, "exit latency of each idle state");

static unsigned int idle_target_us[VPOWER_MAX_IDLE] = { 2, 250, 800 };
module_param_array(idle_target_us, uint, NULL, 0444);
MODULE_PARM_DESC(idle_target_us, "target residency of each idle state");

static unsigned int idle_uw[VPOWER_MAX_IDLE] = { 500000, 200000, 50000 };
module_param_array(idle_uw, uint, NULL, 0444);
MODULE_PARM_DESC(idle_uw, "power of a CPU in each idle state in microwatts");

static unsigned int uncore_uw;
module_param(uncore_uw, uint, 0444);
MODULE_PARM_DESC(uncore_uw, "power of the package beside its CPUs in microwatts, with a zone for the CPUs alone; 0: none");

static unsigned int asleep_uw;
module_param(asleep_uw, uint, 0444);
MODULE_PARM_DESC(asleep_uw, "the same while all CPUs are in the deepest idle state");

static char *domains[VPOWER_MAX_DOMAINS];
static unsigned int domains_n;
module_param_array(domains, charp, &domains_n, 0444);
MODULE_PARM_DESC(domains, "CPUs of each frequency domain, as ranges: 0-1,2-3 (default: one of all)");

static unsigned int latency_ns = 10000;
module_param(latency_ns, uint, 0444);
MODULE_PARM_DESC(latency_ns, "transition latency that the driver states");

static bool fast_switch = true;
module_param(fast_switch, bool, 0444);
MODULE_PARM_DESC(fast_switch, "speeds can be changed from the scheduler");

static bool any_cpu = true;
module_param(any_cpu, bool, 0444);
MODULE_PARM_DESC(any_cpu, "any CPU can change any speed; else each its domain's own");

static bool feel;
module_param(feel, bool, 0444);
MODULE_PARM_DESC(feel, "slow the CPUs down in proportion, by stealing time");

static bool probe;
module_param(probe, bool, 0444);
MODULE_PARM_DESC(probe, "look threads up at every context switch, for comparing costs");

static bool notifiers;
module_param(notifiers, bool, 0444);
MODULE_PARM_DESC(notifiers, "the scheduler looks at preempt notifiers from the start, so that powerctl's loading patches nothing there");

static unsigned int feel_period_us = 4000;
module_param(feel_period_us, uint, 0444);
MODULE_PARM_DESC(feel_period_us, "period of the theft");

static int vpower_parameters(void)
{
	struct vpower_machine *m = &vpower_machine;
	unsigned int i;
	int err;

	if (!khz_n || !idle_n || (busy_uw_n && busy_uw_n != khz_n)) {
		pr_err("khz and idle must not be empty, busy_uw as long as khz\n");
		return -EINVAL;
	}
	m->levels = khz_n;
	for (i = 0; i < khz_n; i++) {
		if (!khz[i] || (i && khz[i] >= khz[i - 1])) {
			pr_err("khz must fall strictly\n");
			return -EINVAL;
		}
		m->khz[i] = khz[i];
		m->busy_uw[i] = busy_uw_n ? busy_uw[i] : khz[i];
	}
	m->idle_states = idle_n;
	for (i = 0; i < idle_n; i++) {
		m->idle_name[i] = idle[i];
		m->idle_latency_us[i] = idle_latency_us[i];
		m->idle_target_us[i] = idle_target_us[i];
		m->idle_uw[i] = idle_uw[i];
	}
	m->uncore_uw = uncore_uw;
	m->asleep_uw = asleep_uw;
	m->domains = domains_n;
	for (i = 0; i < domains_n; i++) {
		err = cpulist_parse(domains[i], &m->domain[i]);
		if (err) {
			pr_err("domains: %s is no list of CPUs\n", domains[i]);
			return err;
		}
	}
	m->latency_ns = latency_ns;
	m->fast_switch = fast_switch;
	m->any_cpu = any_cpu;
	return 0;
}

static struct dentry *vpower_dir;

static int mains_get(void *data, u64 *value)
{
	*value = vpower_knobs.mains;
	return 0;
}

static int mains_set(void *data, u64 value)
{
	vpower_knobs.mains = !!value;
	vpower_supply_changed();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(mains_fops, mains_get, mains_set, "%llu\n");

static void vpower_debugfs(void)
{
	struct vpower_knobs *k = &vpower_knobs;

	vpower_dir = debugfs_create_dir("vpower", NULL);
	debugfs_create_u32("delay_us", 0644, vpower_dir, &k->delay_us);
	debugfs_create_u32("fail_target", 0644, vpower_dir, &k->fail_target);
	debugfs_create_u32("driver_writes", 0644, vpower_dir, &k->driver_writes);
	debugfs_create_u32("msr_delay_ns", 0644, vpower_dir, &k->msr_delay_ns);
	debugfs_create_u32("fail_msr", 0644, vpower_dir, &k->fail_msr);
	debugfs_create_u32("temp_mc", 0644, vpower_dir, &k->temp_mc);
	debugfs_create_u32("capacity", 0644, vpower_dir, &k->capacity);
	debugfs_create_file_unsafe("mains", 0644, vpower_dir, NULL, &mains_fops);
}

/* The parts, in the order in which they need each other. */
static int msr_part(void)
{
	return vpower_msr_init(vpower_dir);
}

static int speeds_part(void)
{
	return vpower_freq_init(vpower_dir);
}

static int feel_part(void)
{
	return vpower_feel_init(feel, feel_period_us);
}

static int probe_part(void)
{
	return vpower_probe_init(probe);
}

/*
 * QEMU 7.2 loses a patch now and then: a virtual CPU that runs into the breakpoint of a patch goes on meeting it after it
 * has gone from memory, for ever. The scheduler's text is where all of them pass.
 */
static int notifiers_part(void)
{
	if (notifiers)
		preempt_notifier_inc();
	return 0;
}

static void notifiers_exit(void)
{
	if (notifiers)
		preempt_notifier_dec();
}

static const struct {
	const char *name;
	int (*init)(void);
	void (*exit)(void);
} parts[] = {
	{ "registers", msr_part, vpower_msr_exit },
	{ "energy", vpower_energy_init, vpower_energy_exit },
	{ "speeds", speeds_part, vpower_freq_exit },
	{ "idle states", vpower_idle_init, vpower_idle_exit },
	{ "supplies", vpower_supply_init, vpower_supply_exit },
	{ "theft", feel_part, vpower_feel_exit },
	{ "probe", probe_part, vpower_probe_exit },
	{ "busy", vpower_busy_init, vpower_busy_exit },
	{ "notifiers", notifiers_part, notifiers_exit },
};

static void vpower_undo(unsigned int n)
{
	while (n--)
		if (parts[n].exit)
			parts[n].exit();
	debugfs_remove_recursive(vpower_dir);
}

static int __init vpower_init(void)
{
	unsigned int i;
	int err = vpower_parameters();

	if (err)
		return err;
	vpower_debugfs();
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		err = parts[i].init();
		if (err) {
			pr_err("%s: error %d\n", parts[i].name, err);
			vpower_undo(i);
			return err;
		}
	}
	return 0;
}

static void __exit vpower_exit(void)
{
	vpower_undo(ARRAY_SIZE(parts));
}

module_init(vpower_init);
module_exit(vpower_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Virtual power hardware for tests");
