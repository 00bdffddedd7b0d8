/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * /dev/powerctl: a thread's own T-state, P-state and energy preference.
 *
 * After L. Sannino's Powerctl (study 004), as a character device: no system-call table is patched.
 * This header is the only contact between the module, C programs and Rust; the sizes and offsets
 * at its end are asserted on every side.
 *
 * Every structure starts with its size, as the caller knows it: a longer one from a newer program is
 * taken if the bytes beyond are zero, a shorter one is refused. Reserved fields must be zero.
 */
#ifndef _UAPI_POWERCTL_H
#define _UAPI_POWERCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define POWERCTL_ABI 1

/* What a profile sets. What it does not set is the default. */
#define POWERCTL_TSTATE		(1u << 0)	/* clock modulation */
#define POWERCTL_PSTATE		(1u << 1)	/* a clock in kHz; not beside POWERCTL_HWP */
#define POWERCTL_HWP		(1u << 2)	/* a hardware P-state request */
#define POWERCTL_EPP		(1u << 3)	/* the energy preference of a HWP request */
#define POWERCTL_INHERIT	(1u << 4)	/* threads and processes started from here begin with it */
#define POWERCTL_PROFILE_FLAGS	0x1fu

/* A duty cycle of 16 sixteenths: not modulated. */
#define POWERCTL_TSTATE_FULL 16

struct powerctl_profile {
	__u32 size;
	__u32 flags;
	__u32 tstate;		/* sixteenths of the clock that pass, 1 to 16 */
	__u32 pstate_khz;
	__u8 hwp_min;
	__u8 hwp_max;
	__u8 hwp_desired;	/* 0: the hardware's choice */
	__u8 epp;		/* 0 performance to 255 energy */
	__u32 reserved[3];
};

/* Back ends, and which one writes. */
#define POWERCTL_BACKEND_MSR		1	/* the processor's registers */
#define POWERCTL_BACKEND_CPUFREQ	2	/* speeds through a cpufreq driver that switches fast */
#define POWERCTL_BACKEND_VIRTUAL	3	/* vpower, for tests */

/* Facts of the processor (CPUID), beside what the back end can set. */
#define POWERCTL_CPU_ACPI_CLOCKMOD	(1u << 0)	/* T-states by software */
#define POWERCTL_CPU_EXTENDED_CLOCKMOD	(1u << 1)	/* ... in steps of 6.25 % */
#define POWERCTL_CPU_EST		(1u << 2)	/* P-states by PERF_CTL */
#define POWERCTL_CPU_TURBO		(1u << 3)
#define POWERCTL_CPU_HWP		(1u << 4)
#define POWERCTL_CPU_HWP_NOTIFY		(1u << 5)
#define POWERCTL_CPU_HWP_WINDOW		(1u << 6)
#define POWERCTL_CPU_HWP_EPP		(1u << 7)
#define POWERCTL_CPU_HWP_PACKAGE	(1u << 8)
#define POWERCTL_CPU_HDC		(1u << 9)
#define POWERCTL_CPU_MWAIT		(1u << 10)
#define POWERCTL_CPU_MWAIT_BREAK	(1u << 11)	/* MWAIT ends at an interrupt, even a masked one */
#define POWERCTL_CPU_APERFMPERF		(1u << 12)
#define POWERCTL_CPU_EPB		(1u << 13)

struct powerctl_caps {
	__u32 size;
	__u32 abi;
	__u32 backend;		/* POWERCTL_BACKEND_* */
	__u32 settable;		/* POWERCTL_TSTATE ... POWERCTL_EPP: now */
	__u32 cpu;		/* POWERCTL_CPU_* */
	__u32 tstate_step;	/* sixteenths: 1, or 2 without the extension */
	__u32 khz_min;
	__u32 khz_max;
	__u32 khz_default;	/* the lowest of any CPU: more is a raise */
	__u32 mwait_substates;	/* CPUID 5, EDX: four bits a C-state */
	__u32 monitor_bytes;	/* the line that MONITOR watches, at most */
	__u32 profiles;		/* in force now */
	__u32 profiles_max;	/* of one user */
	__u32 withdrawn;	/* of what could be set at load: not now, since a governor or another driver has the speeds */
	__u32 withdrawals;	/* how often that came to be */
	__u32 reserved[1];
};

/* Why a wait ended. */
#define POWERCTL_WOKE_VALUE	1	/* the word is no longer what was expected */
#define POWERCTL_WOKE_TIME	2
#define POWERCTL_WOKE_SIGNAL	3	/* the ioctl fails with EINTR, this is written nevertheless */

struct powerctl_wait {
	__u32 size;
	__u32 width;		/* of the word in bytes, 4 or 8 */
	__u64 address;		/* aligned to its width */
	__u64 expected;		/* waits while the word is this */
	__u64 timeout_ns;	/* 0: for ever */
	__u32 hint;		/* EAX of MWAIT: the C-state */
	__u32 why;		/* out: POWERCTL_WOKE_* */
	__u64 waited_ns;	/* out */
	__u64 mwaits;		/* out: how often MWAIT was executed */
	__u64 reserved[2];
};

struct powerctl_counters {
	__u32 size;
	__u32 cpu;		/* out: of one CPU, at one moment */
	__u64 aperf;
	__u64 mperf;
	__u64 tsc;
	__u64 reserved[2];
};

/* How long a change of P-state takes to be written, there and back. */
struct powerctl_latency {
	__u32 size;
	__u32 from_khz;
	__u32 to_khz;
	__u32 rounds;		/* 1 to 10000 */
	__u64 min_ns;		/* out, of one change */
	__u64 mean_ns;
	__u64 max_ns;
	__u64 reserved[2];
};

struct powerctl_stats {
	__u32 size;
	__u32 profiles;		/* in force */
	__u64 set;		/* profiles set since the module was loaded */
	__u64 switches;		/* context switches from or to a thread with a profile */
	__u64 writes;		/* register writes */
	__u64 skipped;		/* switches at which the register held the value already */
	__u64 failed;		/* writes that the back end refused */
	__u64 reserved[2];
};

/*
 * Refusals. Whatever takes a structure may say EFAULT, EINVAL (a size, a reserved field, what makes no sense
 * anywhere) and E2BIG (bytes beyond that are not zero); other numbers get ENOTTY. Beside these:
 *
 *   SET	EOPNOTSUPP and ERANGE (not on this machine), EBUSY (withdrawn: see powerctl_caps), EPERM (a raise), ENOSPC
 *		(the user has as many as it may), ENOMEM
 *   GET	ENOENT (there is none), CLEAR too
 *   WAIT	EOPNOTSUPP (no MWAIT), EINTR, ENOMEM
 *   COUNTERS	EOPNOTSUPP
 *   LATENCY	EPERM, EOPNOTSUPP, EBUSY, ERANGE, EINTR
 */
#define POWERCTL_IOC_MAGIC	0xb7
#define POWERCTL_SET		_IOW(POWERCTL_IOC_MAGIC, 1, struct powerctl_profile)
#define POWERCTL_GET		_IOWR(POWERCTL_IOC_MAGIC, 2, struct powerctl_profile)
#define POWERCTL_CLEAR		_IO(POWERCTL_IOC_MAGIC, 3)
#define POWERCTL_CAPS		_IOWR(POWERCTL_IOC_MAGIC, 4, struct powerctl_caps)
#define POWERCTL_WAIT		_IOWR(POWERCTL_IOC_MAGIC, 5, struct powerctl_wait)
#define POWERCTL_COUNTERS	_IOWR(POWERCTL_IOC_MAGIC, 6, struct powerctl_counters)
#define POWERCTL_LATENCY	_IOWR(POWERCTL_IOC_MAGIC, 7, struct powerctl_latency)
#define POWERCTL_STATS		_IOWR(POWERCTL_IOC_MAGIC, 8, struct powerctl_stats)

/* The layout is the ABI: on any compiler, 32 or 64 bits. */
#if defined(__KERNEL__) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L)
_Static_assert(sizeof(struct powerctl_profile) == 32, "powerctl_profile");
_Static_assert(sizeof(struct powerctl_caps) == 64, "powerctl_caps");
_Static_assert(sizeof(struct powerctl_wait) == 72, "powerctl_wait");
_Static_assert(sizeof(struct powerctl_counters) == 48, "powerctl_counters");
_Static_assert(sizeof(struct powerctl_latency) == 56, "powerctl_latency");
_Static_assert(sizeof(struct powerctl_stats) == 64, "powerctl_stats");
_Static_assert(__builtin_offsetof(struct powerctl_profile, hwp_min) == 16, "powerctl_profile");
_Static_assert(__builtin_offsetof(struct powerctl_profile, reserved) == 20, "powerctl_profile");
_Static_assert(__builtin_offsetof(struct powerctl_caps, khz_min) == 24, "powerctl_caps");
_Static_assert(__builtin_offsetof(struct powerctl_caps, reserved) == 60, "powerctl_caps");
_Static_assert(__builtin_offsetof(struct powerctl_wait, address) == 8, "powerctl_wait");
_Static_assert(__builtin_offsetof(struct powerctl_wait, hint) == 32, "powerctl_wait");
_Static_assert(__builtin_offsetof(struct powerctl_wait, waited_ns) == 40, "powerctl_wait");
_Static_assert(__builtin_offsetof(struct powerctl_stats, set) == 8, "powerctl_stats");
_Static_assert(__builtin_offsetof(struct powerctl_stats, reserved) == 48, "powerctl_stats");
#endif

#endif
