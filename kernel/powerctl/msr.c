// SPDX-License-Identifier: GPL-2.0
/*
 * The processor's registers: IA32_CLOCK_MODULATION, IA32_PERF_CTL, IA32_HWP_REQUEST and no others. Each logical CPU
 * has its own. In the lab vpower's take their place: all that differs then is who reads and writes them, and whose CPUID is asked.
 *
 * What a core makes of its threads' registers
 *   Clock modulation: Intel's SDM, volume 3B, "Software Controlled Clock Modulation" (14.7.3; 15.7.3 in later
 *   editions). Where the duty cycles of a core's threads differ, the core takes the highest on the models that
 *   highest_wins() lists, and on all others the lowest. There a thread that asks for less would slow the stranger on its
 *   sibling, so a core is one domain: the register of each of its threads holds the faster of their wishes.
 *   PERF_CTL: the highest counts, by the SDM's hardware coordination ("P-State Hardware Coordination", 14.2).
 *   HWP_REQUEST: the SDM does not say what a core makes of its threads' requests. It is one domain then, too.
 *
 * The registers are not ours alone: cpufreq drivers, thermal drivers and firmware write them. Each is read before
 * it is written. What is neither what we wrote last nor what we tried to write is another's: it becomes the default, and
 * goes back at the end, so that no value of before is ever written over a newer one. One exception: a T-state
 * that firmware left before the CPU came here (at load, out of a suspend) is cleared while the module is loaded, and
 * put back as it was at the end. One that is set while the module is loaded is taken for protection from heat: no
 * profile lifts it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <asm/cpufeature.h>
#include <asm/msr-index.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/tsc.h>
#include <linux/module.h>
#include <linux/static_call.h>
#include <linux/topology.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#include <asm/cpuid/api.h>
#endif

#include "powerctl.h"
#include "vpower_msr.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define read_msr(reg, p)	rdmsrq_safe(reg, p)
#define write_msr(reg, v)	wrmsrq_safe(reg, v)
#else
#define read_msr(reg, p)	rdmsrl_safe(reg, p)
#define write_msr(reg, v)	wrmsrl_safe(reg, v)
#endif

#define MODULATION_ON		BIT(4)
#define MODULATION_OURS		0x1fULL
/* Seven eighths, which every processor with clock modulation has. */
#define MODULATION_TRIAL	(MODULATION_ON | 0xe)
#define PERF_CTL_RATIO		0xff00ULL
#define HWP_REQUEST_OURS	0xffffffffULL	/* above it: the activity window, and what follows the package */
/* PERF_CTL counts in the bus clock: see bus_of_100_mhz(). */
#define RATIO_KHZ		100000
/* Writes of what is put back at the end. */
#define TRIES			3

static const u32 numbers[PC_REGISTERS] = {
	[PC_CLOCK_MODULATION] = MSR_IA32_THERM_CONTROL,
	[PC_PERF_CTL] = MSR_IA32_PERF_CTL,
	[PC_HWP_REQUEST] = MSR_HWP_REQUEST,
};
static const u32 flags[PC_REGISTERS] = {
	[PC_CLOCK_MODULATION] = POWERCTL_TSTATE,
	[PC_PERF_CTL] = POWERCTL_PSTATE,
	[PC_HWP_REQUEST] = POWERCTL_HWP | POWERCTL_EPP,
};

static int processor_read(u32 reg, u64 *value)
{
	return read_msr(reg, value);
}

static int processor_write(u32 reg, u64 value)
{
	return write_msr(reg, value);
}

DEFINE_STATIC_CALL(pc_rdmsr, processor_read);
DEFINE_STATIC_CALL(pc_wrmsr, processor_write);

/* On the CPU itself, interrupts off. */
static __always_inline int read_register(u32 reg, u64 *value)
{
	return static_call(pc_rdmsr)(reg, value);
}

static __always_inline int write_register(u32 reg, u64 value)
{
	return static_call(pc_wrmsr)(reg, value);
}

static struct cpuid_power cpuid_power;
static bool vpowers;

static void processor_cpuid(struct cpuid_power *p)
{
	p->intel = boot_cpu_data.x86_vendor == X86_VENDOR_INTEL;
	p->family = boot_cpu_data.x86;
	p->model = boot_cpu_data.x86_model;
	p->clock_modulation = boot_cpu_has(X86_FEATURE_ACPI);
	p->extended = boot_cpu_data.cpuid_level >= 6 && cpuid_eax(6) & BIT(5);
	p->est = boot_cpu_has(X86_FEATURE_EST);
	p->hwp = boot_cpu_has(X86_FEATURE_HWP);
	p->hwp_epp = boot_cpu_has(X86_FEATURE_HWP_EPP);
}

static void vpower_put(void)
{
	if (!vpowers)
		return;
	static_call_update(pc_rdmsr, processor_read);
	static_call_update(pc_wrmsr, processor_write);
	symbol_put(vpower_rdmsr);
	symbol_put(vpower_wrmsr);
	symbol_put(vpower_cpuid);
	vpowers = false;
}

static int vpower_get(void)
{
	typeof(&vpower_cpuid) ask = symbol_get(vpower_cpuid);
	typeof(&vpower_rdmsr) read = symbol_get(vpower_rdmsr);
	typeof(&vpower_wrmsr) write = symbol_get(vpower_wrmsr);

	if (!ask || !read || !write) {
		if (ask)
			symbol_put(vpower_cpuid);
		if (read)
			symbol_put(vpower_rdmsr);
		if (write)
			symbol_put(vpower_wrmsr);
		pr_err("registers=vpower: vpower is not loaded\n");
		return -ENODEV;
	}
	static_call_update(pc_rdmsr, read);
	static_call_update(pc_wrmsr, write);
	ask(&cpuid_power);
	vpowers = true;
	return 0;
}

/* Whose registers the back end has: "processor" or "vpower". */
int pc_registers_choose(const char *wanted)
{
	if (!strcmp(wanted, "vpower"))
		return vpower_get();
	if (strcmp(wanted, "processor")) {
		pr_err("registers=%s: expected processor or vpower\n", wanted);
		return -EINVAL;
	}
	processor_cpuid(&cpuid_power);
	return 0;
}

/* The SDM's list for clock modulation: 06_1A, 06_1C, ... and 0F_xx. */
static bool highest_wins(const struct cpuid_power *p)
{
	static const u8 models[] = { 0x1a, 0x1c, 0x1e, 0x1f, 0x25, 0x26, 0x27, 0x2c, 0x2e, 0x2f, 0x35, 0x36 };
	unsigned int i;

	if (p->family == 0xf)
		return true;
	for (i = 0; i < ARRAY_SIZE(models); i++)
		if (p->family == 6 && p->model == models[i])
			return true;
	return false;
}

/*
 * Ratios of PERF_CTL are of 100 MHz from Sandy Bridge (06_2A) on. Before it, and in the Atoms of family Silvermont and
 * Airmont, the bus has other clocks and the register a voltage too (SDM 3B, "Scalable Bus Speed").
 */
static bool bus_of_100_mhz(const struct cpuid_power *p)
{
	static const u8 others[] = { 0x37, 0x4a, 0x4c, 0x4d, 0x5a, 0x5d, 0x65, 0x6e, 0x75 };
	unsigned int i;

	if (highest_wins(p) || (p->family == 6 && p->model < 0x2a))
		return false;
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (p->family == 6 && p->model == others[i])
			return false;
	return true;
}

/* Writing. */

/* Sixteenths with the extension; without it bit 0 is reserved, and steps are even. A field of 0 is reserved. */
static u8 duty_of(u64 value)
{
	u8 field = value & (cpuid_power.extended ? 0xf : 0xe);

	return (value & MODULATION_ON) && field ? field : POWERCTL_TSTATE_FULL;
}

static u32 khz_of(u64 value)
{
	return min_t(u32, (value >> 8 & 0xff) * RATIO_KHZ, rounddown(PC_KHZ_MAX, RATIO_KHZ));
}

/* A register's content is the CPU's default from now on. */
static void default_from(struct pc_cpu *pc, int i, u64 base)
{
	pc->own.reg[i].base = base;
	if (i == PC_CLOCK_MODULATION) {
		pc->def.tstate = duty_of(base);
	} else if (i == PC_PERF_CTL) {
		pc->def.khz = khz_of(base);
	} else {
		pc->def.hwp_min = base;
		pc->def.hwp_max = base >> 8;
		pc->def.hwp_desired = base >> 16;
		pc->def.epp = base >> 24;
	}
}

/* Others wrote a register. A T-state that firmware left is not the default. */
static void adopt(struct pc_cpu *pc, int i, u64 now, bool firmware)
{
	struct pc_register *r = &pc->own.reg[i];

	r->theirs = now;
	r->ours = now;
	r->tried = now;
	default_from(pc, i, firmware && i == PC_CLOCK_MODULATION ? now & ~MODULATION_OURS : now);
}

static noinline int adopt_running(struct pc_cpu *pc, int i, u64 now)
{
	adopt(pc, i, now, READ_ONCE(pc_suspended));
	return -EAGAIN;
}

/* Read first: what others wrote since is not to be lost, and there is no other way to know that they did. */
static __always_inline int change(struct pc_cpu *pc, int i, u64 value)
{
	struct pc_register *r = &pc->own.reg[i];
	int err;

	if (likely(!read_register(numbers[i], &r->now)) && unlikely(r->now != r->ours && r->now != r->tried))
		return adopt_running(pc, i, r->now);
	err = write_register(numbers[i], value);
	r->tried = value;
	if (likely(!err))
		r->ours = value;
	return err;
}

/* The default is written as it was found, with bits and values that a profile could not ask for. */
static u64 modulation_of(const struct pc_cpu *pc, union pc_state s)
{
	u64 base = pc->own.reg[PC_CLOCK_MODULATION].base;

	if (s.tstate == pc->def.tstate)
		return base;
	base &= ~MODULATION_OURS;
	return s.tstate >= POWERCTL_TSTATE_FULL ? base : base | MODULATION_ON | s.tstate;
}

static u64 perf_of(const struct pc_cpu *pc, union pc_state s)
{
	u64 base = pc->own.reg[PC_PERF_CTL].base;

	if (s.khz == pc->def.khz)
		return base;
	return (base & ~PERF_CTL_RATIO) | (u64)(s.khz / RATIO_KHZ) << 8;
}

static u64 hwp_of(const struct pc_cpu *pc, union pc_state s)
{
	return (pc->own.reg[PC_HWP_REQUEST].base & ~HWP_REQUEST_OURS) | pc_hwp(s);
}

/* Writes what differs of the registers that the back end has. */
static noinline int write_several(struct pc_cpu *pc, union pc_state changed, union pc_state s)
{
	u32 settable = pc_backend->settable;
	int err = 0;

	if (changed.tstate && (settable & POWERCTL_TSTATE))
		err = change(pc, PC_CLOCK_MODULATION, modulation_of(pc, s));
	if (changed.khz && (settable & POWERCTL_PSTATE))
		err = err ?: change(pc, PC_PERF_CTL, perf_of(pc, s));
	if (pc_hwp(changed) && (settable & POWERCTL_HWP))
		err = err ?: change(pc, PC_HWP_REQUEST, hwp_of(pc, s));
	return err;
}

/*
 * A profile has one register, as a rule: then nothing is kept over the call. One that cannot be set never differs by
 * itself: no profile may ask for it, and its default is never read.
 */
int pc_msr_write(struct pc_cpu *pc, union pc_state changed, union pc_state s)
{
	const union pc_state tstate = { .tstate = ~0 }, khz = { .khz = ~0 };

	if (!(changed.all & ~tstate.all))
		return change(pc, PC_CLOCK_MODULATION, modulation_of(pc, s));
	if (!(changed.all & ~khz.all))
		return change(pc, PC_PERF_CTL, perf_of(pc, s));
	return write_several(pc, changed, s);
}

/* A CPU comes, or wakes from a suspend. What we left in a register is still ours. */
static void learn(int cpu, struct pc_cpu *pc)
{
	int i;

	if (!pc->learned)
		pc->def.tstate = POWERCTL_TSTATE_FULL;
	for (i = 0; i < PC_REGISTERS; i++) {
		struct pc_register *r = &pc->own.reg[i];
		u64 now;

		if (!(pc_backend->settable & flags[i]) || read_register(numbers[i], &now) ||
		    (pc->learned && (now == r->ours || now == r->tried)))
			continue;
		adopt(pc, i, now, true);
		if (i == PC_CLOCK_MODULATION && now & MODULATION_ON)
			pr_info("CPU %d: firmware left a T-state (%#llx): cleared as long as this module is loaded\n", cpu,
				now);
	}
	pc->learned = true;
}

static bool look(int cpu, struct pc_cpu *pc)
{
	bool found = false;
	int i;

	for (i = 0; i < PC_REGISTERS; i++) {
		struct pc_register *r = &pc->own.reg[i];
		u64 now;

		if (!(pc_backend->settable & flags[i]) || read_register(numbers[i], &now) || now == r->ours ||
		    now == r->tried)
			continue;
		adopt_running(pc, i, now);
		found = true;
	}
	return found;
}

/* Unless others have written since: then it is theirs already. */
static bool put_back(int cpu, struct pc_cpu *pc, int i)
{
	struct pc_register *r = &pc->own.reg[i];
	u64 now;
	int tries;

	if (!read_register(numbers[i], &now) && (now == r->theirs || (now != r->ours && now != r->tried)))
		return true;
	for (tries = 0; tries < TRIES; tries++)
		if (!write_register(numbers[i], r->theirs) && !read_register(numbers[i], &now) &&
		    now == r->theirs)
			return true;
	return false;
}

static u32 restore(int cpu, struct pc_cpu *pc)
{
	u32 failed = 0;
	int i;

	for (i = 0; i < PC_REGISTERS; i++) {
		if (!(pc_backend->settable & flags[i]) || put_back(cpu, pc, i))
			continue;
		pr_err("CPU %d: register %#x does not take back %#llx: write it by hand, or restart\n", cpu, numbers[i],
		       pc->own.reg[i].theirs);
		failed = numbers[i];
	}
	return failed;
}

/* What there is. */

struct hwp_cpus {
	atomic_t on, off;
};

static void count_hwp(void *to)
{
	struct hwp_cpus *n = to;
	u64 value = 0;

	/* On until the next reset, once it was switched on. */
	if (!read_register(MSR_PM_ENABLE, &value) && value & 1)
		atomic_inc(&n->on);
	else
		atomic_inc(&n->off);
}

/* PERF_CTL is ignored where HWP is on, and HWP_REQUEST faults where it is off. */
static u32 lost(const char **why)
{
	struct hwp_cpus n = { ATOMIC_INIT(0), ATOMIC_INIT(0) };
	u32 lost = 0;

	if (!cpuid_power.hwp)
		return POWERCTL_HWP | POWERCTL_EPP;
	on_each_cpu(count_hwp, &n, 1);
	if (atomic_read(&n.on)) {
		lost |= POWERCTL_PSTATE;
		*why = "HWP is on, where PERF_CTL is ignored";
	}
	if (atomic_read(&n.off))
		lost |= POWERCTL_HWP | POWERCTL_EPP;
	return lost;
}

/* Some hypervisors take a write and forget it: a T-state would be shown as in force that is not. */
static bool keeps_modulation(void)
{
	unsigned long irq;
	u64 before, after = 0;
	bool kept;
	int cpu, tries;

	local_irq_save(irq);
	cpu = smp_processor_id();
	if (read_register(MSR_IA32_THERM_CONTROL, &before)) {
		local_irq_restore(irq);
		return false;
	}
	kept = !write_register(MSR_IA32_THERM_CONTROL, (before & ~MODULATION_OURS) | MODULATION_TRIAL) &&
	       !read_register(MSR_IA32_THERM_CONTROL, &after) && (after & MODULATION_OURS) == MODULATION_TRIAL;
	for (tries = 0; tries < TRIES; tries++)
		if (!write_register(MSR_IA32_THERM_CONTROL, before))
			break;
	local_irq_restore(irq);
	return kept;
}

static bool readable(u32 reg, u64 *value)
{
	unsigned long irq;
	bool read;

	local_irq_save(irq);
	read = !read_register(reg, value);
	local_irq_restore(irq);
	return read;
}

static u32 speeds_of(const struct cpuid_power *p)
{
	const char *why = NULL;
	u32 speeds = 0, none;
	u64 value = 0;

	if (p->est && bus_of_100_mhz(p))
		speeds |= POWERCTL_PSTATE;
	if (p->hwp)
		speeds |= POWERCTL_HWP | (p->hwp_epp ? POWERCTL_EPP : 0);
	none = lost(&why);
	if (speeds & none & POWERCTL_PSTATE)
		pr_info("msr: %s: no P-states, but HWP requests\n", why);
	speeds &= ~none;
	/* Whatever cannot be read is not there; hypervisors leave registers out. */
	if (speeds & POWERCTL_PSTATE && !(readable(MSR_IA32_PERF_CTL, &value) && value & PERF_CTL_RATIO))
		speeds &= ~POWERCTL_PSTATE;
	if (speeds & POWERCTL_HWP && !readable(MSR_HWP_REQUEST, &value))
		speeds &= ~(POWERCTL_HWP | POWERCTL_EPP);
	none = speeds ? pc_speeds_taken(speeds, &why) : 0;
	if (speeds & none)
		pr_notice("msr: %s: no speeds until the module is loaded anew: choose the governor performance, powersave or userspace\n",
			  why);
	return speeds & ~none;
}

static int msr_init(void)
{
	const struct cpuid_power *p = &cpuid_power;
	u32 settable = 0;

	if (!p->intel) {
		pr_err("msr: only Intel's processors have these registers; backend=cpufreq sets speeds on others\n");
		return -ENODEV;
	}
	pr_info("msr: family %u, model %#x: which duty cycle of a core's threads counts: %s\n", p->family,
		p->model, highest_wins(p) ? "highest" : "lowest");
	if (p->clock_modulation && keeps_modulation())
		settable |= POWERCTL_TSTATE;
	settable |= speeds_of(p);
	if (!settable) {
		pr_err("msr: neither T-states nor speeds can be set here\n");
		return -ENODEV;
	}
	pc_backend_msr.settable = settable | POWERCTL_INHERIT;
	pc_caps.tstate_step = p->extended ? 1 : 2;
	return 0;
}

/* Not its first sibling, which may be offline at one time and online at another. */
static int core_of(int cpu)
{
	return (topology_physical_package_id(cpu) * 64 + topology_die_id(cpu)) << 14 | topology_core_id(cpu);
}

static int domain_of(int cpu)
{
	u32 settable = pc_backend->settable;
	bool lowest = (settable & POWERCTL_TSTATE) && !highest_wins(&cpuid_power);

	return lowest || (settable & POWERCTL_HWP) ? core_of(cpu) : cpu;
}

int pc_msr_counters(struct powerctl_counters *c)
{
	unsigned long irq;
	int err;

	if (!vpowers && !boot_cpu_has(X86_FEATURE_APERFMPERF))
		return -EOPNOTSUPP;
	local_irq_save(irq);
	c->cpu = smp_processor_id();
	err = read_register(MSR_IA32_APERF, &c->aperf) ?: read_register(MSR_IA32_MPERF, &c->mperf);
	c->tsc = rdtsc();
	local_irq_restore(irq);
	return err;
}

struct pc_backend pc_backend_msr = {
	.name = "msr",
	.id = POWERCTL_BACKEND_MSR,
	.step_khz = RATIO_KHZ,
	.init = msr_init,
	.exit = vpower_put,
	.learn = learn,
	.look = look,
	.restore = restore,
	.domain = domain_of,
	.write = pc_msr_write,
	.counters = pc_msr_counters,
	.lost = lost,
};

/* A processor that no factory makes: vpower's registers, with P-states and HWP requests at once, whoever governs. */
static int virtual_init(void)
{
	int err = vpowers ? 0 : vpower_get();

	pc_caps.tstate_step = cpuid_power.extended ? 1 : 2;
	return err;
}

struct pc_backend pc_backend_virtual = {
	.name = "virtual",
	.id = POWERCTL_BACKEND_VIRTUAL,
	.settable = POWERCTL_TSTATE | PC_SPEEDS | POWERCTL_INHERIT,
	.step_khz = RATIO_KHZ,
	.init = virtual_init,
	.exit = vpower_put,
	.learn = learn,
	.look = look,
	.restore = restore,
	.domain = domain_of,
	.write = pc_msr_write,
	.counters = pc_msr_counters,
};
