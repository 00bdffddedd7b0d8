//! What a policy may know of a machine before it runs.

use wattwise_model::machine::{Autonomous, CState, Cpu, Domain, MachineModel};
use wattwise_policy::cores::CpuPlace;
use wattwise_policy::{Autonomy, CorePower, DomainInfo, Draw, IdleState, Khz, Level, Platform};

/// What a speed policy may know of a machine before it runs.
pub fn platform(m: &MachineModel) -> Platform {
    let uw = |w: f64| (w * 1e6).min(f64::from(u32::MAX)) as u32;
    let domain = |d: &Domain| {
        let kind = &m.kinds[usize::from(d.kind)];
        let mut cpus: Vec<u16> =
            d.cores.iter().flat_map(|&c| m.cores[usize::from(c)].cpus.iter().copied()).collect();
        cpus.sort_unstable();
        let longest = d.transition.stall_ns.iter().copied().max().unwrap_or(0);
        DomainInfo {
            cpus,
            levels: kind
                .levels
                .iter()
                .filter(|l| kind.can_be_asked(l.khz))
                .map(|l| Level { khz: Khz(l.khz), busy_uw: Some(uw(l.busy_w)) })
                .collect(),
            transition_ns: d.transition.delay_ns + longest,
            base: Khz(kind.base_khz),
            load_full: Khz(kind.load_full_khz),
            boost_with: kind.boosting_khz().map(Khz),
            capacity: m.capacity(usize::from(d.kind)),
        }
    };
    let deepest = m.kinds.first().and_then(|k| k.idle.last()).map(|s| s.watts[s.watts.len() - 1]);
    let awake: f64 =
        m.packages.iter().map(|p| p.uncore_w - p.idle.last().map_or(p.uncore_w, |s| s.watts)).sum();
    Platform {
        domains: m.domains.iter().map(domain).collect(),
        cpus: m.cpus.len() as u16,
        tick_ns: m.tick.period_ns,
        load_invariant: m.load_invariant,
        boost: true,
        deepest_idle_uw: deepest.map(uw),
        awake_uw: Some(uw(awake)),
        autonomy: autonomy(&m.autonomous),
    }
}

/// In a policy's whole numbers.
fn autonomy(a: &Autonomous) -> Autonomy {
    let milli = |share: f64| (share * 1000.0).round() as u32;
    Autonomy {
        period: milli(a.period),
        full_at: (milli(a.full_at.0), milli(a.full_at.1)),
        rise: (a.rise.round() as u32).max(1),
        drop: milli(a.drop),
        drop_to: milli(a.drop_to),
        climb: (a.climb.round() as u32).max(1),
        ceiling: a.epp_ceiling.map_or((255, 1000), |c| (c.from.round() as u32, milli(c.at_255))),
    }
}

/// What a core policy may know of a machine before it runs: one entry a CPU.
pub fn core_powers(machine: &MachineModel) -> Vec<CorePower> {
    let milli = |x: f64| (x * 1000.0) as u32;
    let power = |c: &Cpu| {
        let (kind, package) =
            (&machine.kinds[usize::from(c.kind)], &machine.packages[usize::from(c.package)]);
        let (top, threads) = (&kind.levels[0], machine.cores[usize::from(c.core)].cpus.len());
        let rate = top.cycles_per_ns * kind.ipc;
        let share = |table: &[f64]| table.get(threads - 1).or(table.last()).copied().unwrap_or(1.0);
        let watts = |s: &CState| s.watts.first().copied().unwrap_or(0.0);
        let ends = kind.halted().zip(kind.idle.last());
        // Within a tenth of what there is to save.
        let frugal = ends.map_or(0.0, |(shallow, deep)| watts(deep) + (watts(shallow) - watts(deep)) * 0.1);
        let idle = |s: Option<&CState>| s.map_or(0, |s| milli(watts(s)));
        CorePower {
            place: CpuPlace { core: c.core, package: c.package },
            deep_stay_ns: kind.idle.iter().find(|s| watts(s) <= frugal).map_or(0, |s| s.target_ns),
            draw: Some(Draw {
                rate: milli(rate),
                rate_all: milli(rate * threads as f64 * share(&kind.smt_throughput)),
                busy_mw: milli(top.busy_w),
                busy_all_mw: milli(top.busy_w * share(&kind.smt_power)),
                shallow_mw: idle(kind.halted()),
                deep_mw: idle(kind.idle.last()),
                package_saves_mw: package.idle.last().map_or(0, |s| milli(package.uncore_w - s.watts)),
            }),
        }
    };
    machine.cpus.iter().map(power).collect()
}

/// The C-states of each kind of core as idle policies see them.
pub(crate) fn idle_tables(machine: &MachineModel) -> Vec<Vec<IdleState>> {
    let state = |s: &CState| IdleState {
        exit_ns: s.latency_ns,
        target_ns: s.target_ns,
        enabled: true,
        polls: s.polls(),
    };
    machine.kinds.iter().map(|k| k.idle.iter().map(state).collect()).collect()
}
