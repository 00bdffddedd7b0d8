//! What is in a recording or a machine, as a short word: two that differ have different words. It tells a search that goes on
//! whether its work and its machine are those that it began with, whatever their files are called.

use std::fmt::{Arguments, Write};
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): against mistakes, not against forgers.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

fn word(what: Arguments<'_>) -> String {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // It takes everything.
    _ = hash.write_fmt(what);
    format!("{:016x}", hash.0)
}

/// What is in a workload: what is replayed of it, and not what it is called or where it lies.
pub fn of_workload(w: &Workload) -> String {
    let recorded = w.recorded.as_ref().map(|r| (r.cpus, r.khz, r.events, r.lost, &r.busy_ns));
    let programs = (&w.tasks, &w.jobs, w.locks, recorded, w.release_ns, w.span_ns);
    match &w.scripted {
        None => word(format_args!("{programs:?}")),
        Some(drawn) => word(format_args!("{:?}", (programs, drawn))),
    }
}

/// What is in a machine's model.
pub fn of_machine(m: &MachineModel) -> String {
    word(format_args!("{m:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_replay::library;

    /// Of the algorithm's own table of test vectors.
    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(word(format_args!("")), "cbf29ce484222325");
        assert_eq!(word(format_args!("foobar")), "85944171f73967e8");
    }

    #[test]
    fn a_word_is_of_the_content_alone() {
        let load = |name: &str| library::workload(name, &Default::default()).expect("bundled");
        let (burst, sync) = (load("burst"), load("sync"));
        let copy = Workload { name: "copy".into(), source: "elsewhere".into(), ..burst.clone() };
        assert_eq!(of_workload(&burst), of_workload(&copy));
        assert_ne!(of_workload(&burst), of_workload(&sync));
        let longer = Workload { span_ns: burst.span_ns + 1, ..burst.clone() };
        assert_ne!(of_workload(&burst), of_workload(&longer));
        let machine = library::machine("thinkpad-r51").expect("bundled");
        let warmer = MachineModel { platform_w: machine.platform_w + 0.1, ..machine.clone() };
        assert_eq!(of_machine(&machine), of_machine(&machine.clone()));
        assert_ne!(of_machine(&machine), of_machine(&warmer));
    }
}
