//! Changes of speed timed on an emulated machine, in its own time: what they take there is a part of the machine, and the clock of
//! the one that we run on has nothing to do with it.

use std::time::Duration;
use wattwise_control::delays::transition::Stage;
use wattwise_emulator::console::{CHANGES, PASS_NS};
use wattwise_hw::root::{Access, Node, Root, number, text};
use wattwise_hw::states::cpufreq::CpufreqPolicy;

/// From one look at the status to the next: what is measured is up to so much too long.
const LOOK_NS: u64 = 2_000;

/// So long a machine is watched for a time that runs by itself: several of its steps.
const BEATS: Duration = Duration::from_millis(100);

/// An emulated machine whose changes take time.
pub(super) struct InItsTime<'r> {
    root: &'r dyn Root,
    setspeed: Box<dyn Node>,
    status: Box<dyn Node>,
    pass: Box<dyn Node>,
    now_ns: u64,
}

impl<'r> InItsTime<'r> {
    /// Opens a frequency domain; none where the files are those of no such machine.
    pub(super) fn open(root: &'r dyn Root, policy: &CpufreqPolicy) -> Result<Option<InItsTime<'r>>, String> {
        if text(root, CHANGES).is_none_or(|changes| changes.is_empty()) {
            return Ok(None);
        }
        let open = |path: &str, access| root.open(path, access).map_err(|e| format!("/{path}: {e}"));
        let began = number(root, PASS_NS).unwrap_or(0);
        std::thread::sleep(BEATS);
        let stage = InItsTime {
            setspeed: open(&format!("{}/scaling_setspeed", policy.path), Access::Write)?,
            status: open(&format!("{}/cpuinfo_cur_freq", policy.path), Access::Read)?,
            pass: open(PASS_NS, Access::Write)?,
            now_ns: began,
            root,
        };
        stage.alone()?;
        Ok(Some(stage))
    }

    /// In words.
    pub(super) fn by(&self) -> String {
        let us = LOOK_NS / 1_000;
        format!(
            "the hardware's status (cpuinfo_cur_freq) in the emulated machine's own time, looked at every {us} us"
        )
    }

    fn advance(&mut self, ns: u64) -> Result<(), String> {
        self.pass.write_at(0, ns.to_string().as_bytes()).map_err(|e| format!("{PASS_NS}: {e}"))?;
        self.now_ns += ns;
        Ok(())
    }

    /// Whether no time has passed but by us.
    fn alone(&self) -> Result<(), String> {
        match number::<u64>(self.root, PASS_NS) {
            Some(now) if now == self.now_ns => Ok(()),
            _ => Err(format!(
                "the time of {} runs with the clock, in steps longer than a change takes; mount it with 'wattwise emulate --still', or name it \
                 emulated:NAME",
                self.root.describe()
            )),
        }
    }
}

impl Stage for InItsTime<'_> {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn request(&mut self, khz: u64) -> Result<(), String> {
        self.setspeed.write_at(0, khz.to_string().as_bytes()).map_err(|e| format!("scaling_setspeed: {e}"))
    }

    fn in_force(&mut self, _: u64, to_khz: u64) -> Result<bool, String> {
        let mut page = [0; 32];
        let n = self.status.read_at(0, &mut page).map_err(|e| format!("cpuinfo_cur_freq: {e}"))?;
        let shown = std::str::from_utf8(&page[..n]).ok().and_then(|t| t.trim().parse::<u64>().ok());
        if shown == Some(to_khz) {
            self.alone()?;
            return Ok(true);
        }
        self.advance(LOOK_NS)?;
        Ok(false)
    }

    fn rest(&mut self, ns: u64) {
        // A failure shows in the next look.
        _ = self.advance(ns);
    }
}
