//! T-states: the share of clocks that reaches a core (004, section 2.3.2).
//!
//! Clock modulation is the oldest brake of a CPU: the clock is gated for a part of every cycle, the
//! frequency stays, and so does the voltage. It therefore saves only the switching losses, and a
//! little more time is lost than was asked (004: 1.5 to 3 %). What speaks for it: the encoding is
//! the same on every model, each core has its own, and a change takes hold within 43.5 µs.
//!
//! `IA32_CLOCK_MODULATION` has an enable bit and a duty field. 004's figure 2.6 is the table of its
//! 3-bit form, in steps of 12.5 %, of which it misprints one: 101B is 62.5 %, not 63.5. 000B is
//! reserved. With extended clock modulation (CPUID.6:EAX\[5\]) the field has a fourth bit below and
//! steps of 6.25 %. Full speed has no code of its own: the enable bit is cleared.
//!
//! There is no file of sysfs for it. (The ACPI `_TSS` path that Linux has as a cooling device
//! writes the same register, behind firmware's back or by its order.)
//!
//! Threads of one core share the clock. What each asks for is combined, by the highest or the lowest
//! depending on the family, so a change to one thread alone means something else on each: siblings
//! are always set together ([`with_siblings`]).

use crate::cpus::cpuid::{CpuFacts, Feature};
use crate::msr::{Register, RegisterError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// How fine the duty field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DutyStep {
    /// 12.5 %: three bits, 3:1.
    Eighth,
    /// 6.25 %: four bits, 3:0.
    Sixteenth,
}

impl DutyStep {
    /// That of a CPU; `None` if it has no clock modulation. When nobody told us of the finer form, the
    /// coarser one is used, which both have.
    pub fn of(cpu: &CpuFacts) -> Option<DutyStep> {
        if !cpu.surely(Feature::ClockModulation) {
            return None;
        }
        Some(if cpu.surely(Feature::ExtendedClockModulation) {
            DutyStep::Sixteenth
        } else {
            DutyStep::Eighth
        })
    }

    /// The step in sixteenths.
    fn sixteenths(self) -> u8 {
        match self {
            DutyStep::Eighth => 2,
            DutyStep::Sixteenth => 1,
        }
    }
}

/// A duty cycle: sixteenths of full speed, 1 to 16. Ordered by speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "f64", try_from = "f64")]
pub struct Duty(u8);

/// A duty cycle that does not exist or cannot be read. One line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "T-state `{0}`: expected a share of full speed over 0 and up to 100 %, such as `50%`, `4/8` or `8/16`"
)]
pub struct DutyError(String);

impl Duty {
    /// Full speed: no modulation.
    pub const FULL: Duty = Duty(16);

    /// From sixteenths, 1 to 16.
    pub fn from_sixteenths(sixteenths: u8) -> Option<Duty> {
        (1..=16).contains(&sixteenths).then_some(Duty(sixteenths))
    }

    /// All that a CPU of this step has, slowest first, full speed last.
    pub fn all(step: DutyStep) -> impl Iterator<Item = Duty> {
        (1..=16).step_by(1).filter(move |n| n % step.sixteenths() == 0).map(Duty)
    }

    /// In per cent, exact.
    pub fn percent(self) -> f64 {
        f64::from(self.0) * 6.25
    }

    /// The nearest that a CPU of this step has; the faster of two that are equally near. `share` is over
    /// 0 and up to 1.
    ///
    /// # Errors
    /// For a share outside that range.
    pub fn nearest(share: f64, step: DutyStep) -> Result<Duty, DutyError> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(DutyError(format!("{}%", share * 100.0)));
        }
        let size = f64::from(step.sixteenths());
        let steps = (share * 16.0 / size + 0.5).floor().max(1.0);
        Ok(Duty((steps * size) as u8))
    }

    /// Reads `50%`, `62.5`, `4/8` or `8/16` and takes the nearest that the CPU has. A caller that wants
    /// to say so compares [`Duty::percent`] with what was asked.
    ///
    /// # Errors
    /// [`DutyError`], with the text.
    pub fn parse(text: &str, step: DutyStep) -> Result<Duty, DutyError> {
        let fault = || DutyError(text.chars().filter(|c| !c.is_control()).take(40).collect());
        let text = text.trim();
        let share = match text.split_once('/') {
            Some((part, whole)) => {
                let (part, whole) = (part.trim().parse::<u32>(), whole.trim().parse::<u32>());
                let (Ok(part), Ok(whole @ 1..)) = (part, whole) else { return Err(fault()) };
                f64::from(part) / f64::from(whole)
            }
            None => {
                let number = text.strip_suffix('%').unwrap_or(text).trim_end();
                number.parse::<f64>().map_err(|_| fault())? / 100.0
            }
        };
        Duty::nearest(share, step).map_err(|_| fault())
    }

    /// The value that `IA32_CLOCK_MODULATION` gets: only the enable bit and the duty field of `raw`
    /// change. Full speed clears the enable bit and leaves the field.
    ///
    /// # Errors
    /// [`RegisterError::NotEncodable`] for a sixteenth on a register with eighths.
    pub fn encode(self, register: &Register, raw: u64) -> Result<u64, RegisterError> {
        let (duty, enable) = (register.field("duty")?, register.field("enable")?);
        if self == Duty::FULL {
            return enable.set(raw, 0);
        }
        let value = if duty.hi - duty.lo == 3 {
            self.0
        } else if self.0.is_multiple_of(2) {
            self.0 / 2
        } else {
            return Err(RegisterError::NotEncodable(format!(
                "{self}: this CPU has T-states in steps of 12.5 % only"
            )));
        };
        enable.set(duty.set(raw, u64::from(value))?, 1)
    }

    /// The duty cycle in the value of `IA32_CLOCK_MODULATION`; `None` for the reserved code 0.
    ///
    /// # Errors
    /// [`RegisterError::NoField`] if it is another register.
    pub fn decode(register: &Register, raw: u64) -> Result<Option<Duty>, RegisterError> {
        let (duty, enable) = (register.field("duty")?, register.field("enable")?);
        if enable.get(raw) == 0 {
            return Ok(Some(Duty::FULL));
        }
        let sixteenths = if duty.hi - duty.lo == 3 { duty.get(raw) } else { duty.get(raw) * 2 };
        Ok(Duty::from_sixteenths(sixteenths as u8))
    }
}

impl fmt::Display for Duty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.percent())
    }
}

impl From<Duty> for f64 {
    fn from(duty: Duty) -> f64 {
        f64::from(duty.0) / 16.0
    }
}

impl TryFrom<f64> for Duty {
    type Error = DutyError;

    fn try_from(share: f64) -> Result<Duty, DutyError> {
        Duty::nearest(share, DutyStep::Sixteenth)
    }
}

/// These CPUs and all threads of their cores, in order, each once. `siblings` gives the threads of a
/// CPU's core; whether it lists the CPU itself does not matter.
pub fn with_siblings(cpus: impl IntoIterator<Item = u32>, siblings: &dyn Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut all = BTreeSet::new();
    for cpu in cpus {
        all.insert(cpu);
        all.extend(siblings(cpu));
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpus::cpuid::Vendor;
    use crate::msr::Registers;

    fn register(step: DutyStep) -> Register {
        let cpu = CpuFacts::of(Vendor::Intel, 6, 0x2A).with(&[Feature::ClockModulation]);
        let cpu = match step {
            DutyStep::Eighth => cpu,
            DutyStep::Sixteenth => cpu.with(&[Feature::ExtendedClockModulation]),
        };
        assert_eq!(DutyStep::of(&cpu), Some(step));
        Registers::for_cpu(&cpu).get("IA32_CLOCK_MODULATION").unwrap().clone()
    }

    /// 004, figure 2.6: code and per cent. It prints 63.5 % for 101B.
    const FIGURE_2_6: [(u64, Option<f64>); 8] = [
        (0b000, None),
        (0b001, Some(12.5)),
        (0b010, Some(25.0)),
        (0b011, Some(37.5)),
        (0b100, Some(50.0)),
        (0b101, Some(62.5)),
        (0b110, Some(75.0)),
        (0b111, Some(87.5)),
    ];

    #[test]
    fn the_table_of_figure_2_6_holds_both_ways() {
        let register = register(DutyStep::Eighth);
        for (code, percent) in FIGURE_2_6 {
            let raw = 1 << 4 | code << 1;
            assert_eq!(Duty::decode(&register, raw).unwrap().map(Duty::percent), percent, "{code:03b}");
            if let Some(percent) = percent {
                let duty = Duty::parse(&format!("{percent}%"), DutyStep::Eighth).unwrap();
                // Bits that are not ours keep what they had.
                assert_eq!(duty.encode(&register, 0).unwrap(), raw);
                assert_eq!(duty.encode(&register, !0).unwrap(), !0b1110 | code << 1);
            }
        }
        // The codes of 004's figure 3.11, which counts the low bit along: 0x0100b for 25 % and so on.
        assert_eq!(Duty::parse("25%", DutyStep::Eighth).unwrap().encode(&register, 0).unwrap(), 0b1_0100);
        // What the misprint asks for is the state that it means.
        assert_eq!(Duty::parse("63.5%", DutyStep::Eighth).unwrap().percent(), 62.5);
    }

    #[test]
    fn the_extended_form_has_sixteenths() {
        let register = register(DutyStep::Sixteenth);
        assert_eq!(Duty::decode(&register, 1 << 4).unwrap(), None, "0 is reserved here too");
        for n in 1..=15u8 {
            let duty = Duty::from_sixteenths(n).unwrap();
            let raw = duty.encode(&register, 0).unwrap();
            assert_eq!(raw, 1 << 4 | u64::from(n));
            assert_eq!(Duty::decode(&register, raw).unwrap(), Some(duty));
            assert_eq!(duty.percent(), 6.25 * f64::from(n));
        }
        // Even codes mean the same in both forms.
        let coarse = super::tests::register(DutyStep::Eighth);
        for (code, percent) in FIGURE_2_6 {
            let raw = 1 << 4 | code << 1;
            assert_eq!(Duty::decode(&coarse, raw).unwrap(), Duty::decode(&register, raw).unwrap());
            assert_eq!(Duty::decode(&register, raw).unwrap().map(Duty::percent), percent);
        }
    }

    #[test]
    fn full_speed_is_off() {
        for step in [DutyStep::Eighth, DutyStep::Sixteenth] {
            let register = register(step);
            let duty = Duty::parse("100%", step).unwrap();
            assert_eq!(duty, Duty::FULL);
            assert_eq!(duty.encode(&register, 0b1_1010).unwrap(), 0b0_1010);
            assert_eq!(Duty::decode(&register, 0b0_1010).unwrap(), Some(Duty::FULL));
            assert_eq!(Duty::all(step).last(), Some(Duty::FULL));
        }
        assert_eq!(Duty::all(DutyStep::Eighth).count(), 8);
        assert_eq!(Duty::all(DutyStep::Sixteenth).count(), 16);
    }

    #[test]
    fn words_give_the_nearest_or_a_reason() {
        let of = |text, step| Duty::parse(text, step).unwrap().percent();
        assert_eq!(of("8/16", DutyStep::Eighth), 50.0);
        assert_eq!(of("3/8", DutyStep::Sixteenth), 37.5);
        assert_eq!(of("43.75%", DutyStep::Sixteenth), 43.75);
        assert_eq!(of("43.75%", DutyStep::Eighth), 50.0, "the faster of two equally near");
        assert_eq!(of(" 1 % ", DutyStep::Eighth), 12.5);
        assert_eq!(of("97", DutyStep::Eighth), 100.0);
        for bad in ["0%", "0/8", "101%", "9/8", "3/0", "-5%", "nan", "inf", "", "half", "1/2/3", "\n%"] {
            let words = Duty::parse(bad, DutyStep::Eighth).unwrap_err().to_string();
            assert!(words.contains("expected") && !words.contains('\n'), "{words}");
        }
        let odd = Duty::from_sixteenths(7).unwrap().encode(&register(DutyStep::Eighth), 0).unwrap_err();
        assert_eq!(odd.to_string(), "43.75%: this CPU has T-states in steps of 12.5 % only");
    }

    #[test]
    fn siblings_come_along() {
        let siblings = |cpu: u32| vec![cpu % 4, cpu % 4 + 4];
        assert_eq!(with_siblings([6, 1], &siblings), [1, 2, 5, 6]);
        assert_eq!(with_siblings([3], &|_| Vec::new()), [3]);
    }

    #[test]
    fn json_is_a_share() {
        assert_eq!(serde_json::to_string(&Duty::from_sixteenths(8).unwrap()).unwrap(), "0.5");
        assert_eq!(serde_json::from_str::<Duty>("0.5").unwrap().percent(), 50.0);
        assert!(serde_json::from_str::<Duty>("0").is_err());
    }
}
