//! A file's bytes as a read gives them.

use super::Host;
use super::parts::{HostBattery, HostCpu, HostPolicy};
use crate::tree::{Id, LiveAttribute, NodeKind};
use std::fmt::Write;

impl Host {
    /// A file's bytes as a read gives them.
    pub(crate) fn render(&self, id: Id) -> Result<Vec<u8>, rustix::io::Errno> {
        use rustix::io::Errno;
        let file = self.tree.file(id).ok_or(Errno::NOENT)?;
        if !file.attached {
            return Err(Errno::NODEV);
        }
        // A policy without an online CPU has nothing to show (since 5.18).
        if self.release >= (5, 18)
            && let Some(policy) = self.policy_of_folder.get(&file.parent).and_then(|&i| self.policies.get(i))
            && self.is_inactive(policy)
        {
            return Err(Errno::BUSY);
        }
        match &file.kind {
            NodeKind::Text(bytes) => Ok(bytes.clone()),
            NodeKind::Folder(_) => Err(Errno::ISDIR),
            NodeKind::Link(_) => Err(Errno::LOOP),
            NodeKind::Live(live) => Ok(self.live(*live).into_bytes()),
        }
    }

    pub(super) fn live(&self, live: LiveAttribute) -> String {
        let policy = |number: u32| self.policies.iter().find(|p| p.number == number);
        let idle = |cpu: u32, state: u32| {
            self.cpus.iter().find(|c| c.id == cpu).and_then(|c| c.states.get(state as usize))
        };
        let line = |n: Option<u64>| format!("{}\n", n.unwrap_or(0));
        let battery = |i: u32| self.batteries.get(i as usize);
        match live {
            LiveAttribute::Speed { policy: n } => line(policy(n).map(|p| u64::from(self.real_khz(p)))),
            LiveAttribute::TimeInState { policy: n } => {
                policy(n).map(HostPolicy::time_in_state).unwrap_or_default()
            }
            LiveAttribute::TotalTrans { policy: n } => line(policy(n).map(|p| p.transitions)),
            LiveAttribute::TransTable { policy: n } => {
                policy(n).map(HostPolicy::trans_table).unwrap_or_default()
            }
            LiveAttribute::IdleUsage { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[0].wrapping_add(s.usage)))
            }
            LiveAttribute::IdleTime { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[1].wrapping_add(s.time_ns / 1000)))
            }
            LiveAttribute::IdleAbove { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[2].wrapping_add(s.above)))
            }
            LiveAttribute::IdleBelow { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[3].wrapping_add(s.below)))
            }
            LiveAttribute::IdleRejected { cpu, state } => {
                line(idle(cpu, state).map(|s| s.base[4].wrapping_add(s.rejected)))
            }
            LiveAttribute::Energy { zone } => line(self.zones.get(zone as usize).map(|z| z.energy_uj)),
            LiveAttribute::BatteryNow { battery: i } => line(battery(i).map(|b| b.shown)),
            LiveAttribute::BatteryPower { battery: i } => {
                format!("{}\n", battery(i).map_or(0, |b| b.signed(b.shown_uw, self.mains)))
            }
            LiveAttribute::BatteryCurrent { battery: i } => {
                let ua = |b: &HostBattery| u128::from(b.shown_uw) * 1_000_000 / u128::from(b.voltage_uv);
                format!("{}\n", battery(i).map_or(0, |b| b.signed(ua(b) as u64, self.mains)))
            }
            LiveAttribute::BatteryCapacity { battery: i } => {
                line(battery(i).map(|b| (u128::from(b.shown) * 100 / u128::from(b.full)) as u64))
            }
            LiveAttribute::BatteryStatus { battery: i } => match battery(i) {
                Some(_) if !self.mains => "Discharging\n".into(),
                Some(b) if b.shown >= b.full => "Full\n".into(),
                _ => "Charging\n".into(),
            },
            LiveAttribute::Mains => line(Some(u64::from(self.mains))),
            LiveAttribute::Temperature { package } => {
                format!("{}\n", self.heat_mc.get(&package).copied().unwrap_or(0))
            }
            LiveAttribute::ProcStat => self.proc_stat(),
            LiveAttribute::CpuInfo => self.proc_cpuinfo(),
            LiveAttribute::Uptime => {
                let start = self.physics.uptime_ns / 10_000_000;
                let idle = self.cpus.iter().map(|c| c.ticks[3].wrapping_add(c.idle_ns / 10_000_000));
                let idle = idle.fold(0, u64::wrapping_add);
                let up = (self.now_ns / 10_000_000).wrapping_add(start);
                format!("{}.{:02} {}.{:02}\n", up / 100, up % 100, idle / 100, idle % 100)
            }
            LiveAttribute::Registers { .. } | LiveAttribute::Console(_) => String::new(),
        }
    }

    pub(super) fn proc_stat(&self) -> String {
        // USER_HZ is 100 everywhere.
        const TICK_NS: u64 = 10_000_000;
        let mut out = String::new();
        let mut sum = [0_u64; 10];
        let now = |c: &HostCpu| {
            let mut ticks = c.ticks;
            ticks[0] = ticks[0].wrapping_add(c.busy_ns / TICK_NS);
            ticks[3] = ticks[3].wrapping_add(c.idle_ns / TICK_NS);
            ticks
        };
        // Offline CPUs stay in the sum and have no line.
        for cpu in &self.cpus {
            let ticks = now(cpu);
            for (s, t) in sum.iter_mut().zip(ticks) {
                *s = s.wrapping_add(t);
            }
            if cpu.online {
                _ = writeln!(out, "cpu{} {}", cpu.id, ticks.map(|t| t.to_string()).join(" "));
            }
        }
        format!("cpu  {}\n{out}{}", sum.map(|t| t.to_string()).join(" "), self.stat_rest)
    }

    pub(super) fn proc_cpuinfo(&self) -> String {
        let mut out = String::new();
        for block in self.cpuinfo.split_inclusive("\n\n") {
            let processor = block.lines().next().and_then(|l| {
                let (key, value) = l.split_once(':')?;
                (key.trim() == "processor").then(|| value.trim().parse::<u32>().ok())?
            });
            if processor.is_some_and(|id| !self.is_online(id)) {
                continue;
            }
            let cpu = self.cpus.iter().find(|c| Some(c.id) == processor).or(self.cpus.first());
            let policy = cpu.and_then(|c| c.policy).and_then(|i| self.policies.get(i));
            for line in block.split_inclusive('\n') {
                match (line.split_once(':').map(|(k, _)| k), policy) {
                    (Some(key), Some(p)) if key.trim() == "cpu MHz" => {
                        _ = writeln!(out, "{key}: {}.{:03}", p.cur / 1000, p.cur % 1000);
                    }
                    (Some(key), Some(p)) if key.trim() == "BogoMIPS" && !self.physics.bogomips.is_empty() => {
                        let value = self.physics.bogomips.get(&p.cur).map_or("0.00", String::as_str);
                        _ = writeln!(out, "{key}: {value}");
                    }
                    _ => out += line,
                }
            }
        }
        out
    }
}

impl HostPolicy {
    /// Units of 10 ms since the start (USER_HZ), as drivers/cpufreq/cpufreq_stats.c.
    fn time_in_state(&self) -> String {
        let mut out = String::new();
        for ((khz, ns), base) in self.residency.iter().zip(&self.base) {
            _ = writeln!(out, "{khz} {}", base.wrapping_add(ns / 10_000_000));
        }
        out
    }

    fn trans_table(&self) -> String {
        let mut out = String::from("   From  :    To\n         : ");
        for (khz, _) in &self.residency {
            _ = write!(out, "{khz:>9} ");
        }
        out.push('\n');
        let n = self.residency.len().max(1);
        for ((khz, _), row) in self.residency.iter().zip(self.matrix.chunks(n)) {
            _ = write!(out, "{khz:>9}: ");
            for cell in row {
                _ = write!(out, "{cell:>9} ");
            }
            out.push('\n');
        }
        out
    }
}
