//! What a machine did not do as it was asked to. The fit is of what it did; its user should know.

use crate::window::Observation;
use wattwise_model::machine::MachineModel;

/// A C-state that takes less of the time in which it was the deepest allowed was not really taken.
const TAKEN: f64 = 0.05;
/// A core that is busy for more of its time at a higher speed than asked for was not slowed down.
const FASTER: f64 = 0.5;

/// A sentence each: speeds that were not reached, levels that the hardware passed over, C-states that it did not enter.
pub(crate) fn not_obeyed(machine: &MachineModel, observations: &[Observation]) -> Vec<String> {
    let mut out = Vec::new();
    let slow = observations.iter().filter(|o| o.reached.contains(&false)).count();
    if slow > 0 {
        out.push(format!(
            "In {slow} windows cores did not reach the speed that was asked for: limits of power or heat. The fit is of the \
             speeds that they had."
        ));
    }
    for (k, kind) in machine.kinds.iter().enumerate() {
        let ignored = (1..kind.levels.len()).filter(|l| ignored(observations, k, *l));
        let ignored: Vec<String> = ignored.map(|l| (kind.levels[l].khz / 1000).to_string()).collect();
        if !ignored.is_empty() {
            let (name, all) = (&kind.name, ignored.join(", "));
            out.push(format!("Cores of kind {name} run faster than asked for at {all} MHz: the hardware ignores these levels."));
        }
        let demoted = (1..kind.idle.len()).filter(|s| demoted(observations, k, *s));
        for state in demoted.map(|s| &kind.idle[s].name) {
            let name = &kind.name;
            out.push(format!(
                "Cores of kind {name} never entered {state}, though nothing deeper was asked of them: the firmware demotes it, \
                 and its watts are the estimate's."
            ));
        }
    }
    out
}

/// Whether cores that were to run at a level ran faster, in every window in which they should.
fn ignored(observations: &[Observation], kind: usize, level: usize) -> bool {
    let mut windows = observations.iter().filter(|o| {
        let part = &o.window.parts[kind];
        part.level == level && part.cores > 0
    });
    let faster = |o: &Observation| {
        let t = &o.taken[kind];
        let busy =
            |levels: std::ops::Range<usize>| t.one[levels.clone()].iter().chain(&t.all[levels]).sum::<f64>();
        busy(0..level) > FASTER * busy(0..t.one.len())
    };
    windows.next().is_some_and(faster) && windows.all(faster)
}

/// Whether cores never entered a C-state that was the deepest allowed.
fn demoted(observations: &[Observation], kind: usize, state: usize) -> bool {
    let windows = observations.iter().filter(|o| o.window.parts[kind].deepest == state);
    let (mut there, mut idle) = (0.0, 0.0);
    for o in windows {
        there += o.taken[kind].idle[state];
        idle += o.taken[kind].idle.iter().sum::<f64>();
    }
    idle > 0.0 && there < TAKEN * idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{Part, Taken, Window};

    /// One core busy, the others idle, of a machine with four.
    fn seen(machine: &MachineModel, asked: (usize, usize), was: (usize, usize)) -> Observation {
        let kind = &machine.kinds[0];
        let mut taken = Taken {
            one: vec![0.0; kind.levels.len()],
            all: vec![0.0; kind.levels.len()],
            idle: vec![0.0; kind.idle.len()],
        };
        (taken.one[was.0], taken.idle[was.1]) = (1.0, 3.0);
        let part = Part { cores: 1, all_threads: false, share: 1.0, level: asked.0, deepest: asked.1 };
        Observation {
            window: Window { parts: vec![part] },
            at_s: 0.0,
            seconds: 1.0,
            celsius: None,
            taken: vec![taken],
            awake: 1.0,
            asleep: Vec::new(),
            cores_w: None,
            package_w: Some(1.0),
            memory_w: None,
            machine_w: None,
            reached: vec![was.0 <= asked.0],
            own_s: 0.0,
        }
    }

    #[test]
    fn what_the_machine_did_not_do_is_named() {
        let machine = wattwise_replay::library::machine("xeon-4210").unwrap();
        assert!(not_obeyed(&machine, &[seen(&machine, (3, 2), (3, 2))]).is_empty());
        let told = not_obeyed(&machine, &[seen(&machine, (3, 2), (0, 1)), seen(&machine, (4, 1), (4, 1))]);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("at 1900 MHz") && told[1].contains("never entered C6"), "{told:?}");
        let slow = not_obeyed(&machine, &[seen(&machine, (0, 1), (2, 1))]);
        assert!(slow.len() == 1 && slow[0].starts_with("In 1 windows"), "{slow:?}");
    }
}
