//! Study 004's last section: siblings, other lengths, other locks; and what its machines did not have.

use crate::StudyError;
use crate::open::Open;
use crate::powerctl::{Metric, change, place};
use wattwise_replay::library;

pub(crate) fn questions() -> Result<Vec<Open>, StudyError> {
    let (xeon, laptop) = (library::machine("xeon-4210")?, library::machine("i7-4510u")?);
    let siblings = place(&laptop, 4, (366.0, 3.7));
    let t = "mcs:tstate-12.5+spin";
    let shared = change(&siblings, t, "mcs:spin", Metric::Efficiency)?;
    let mut out = vec![Open::tried(
        "With siblings: does a lowered duty cycle gain where two threads share a core?",
        "i7-4510u, 4 threads, T 12.5 %, 366/3.7 us; a core is lowered when both of its threads wait. Over four seeds.",
        "% efficiency",
        &shared,
    )];
    for (cs, ncs, question) in [
        (37.0, 3.7, "Other lengths: 37/3.7 us, between the study's two?"),
        (37.0, 37.0, "Other lengths: 37/37 us, between the study's two?"),
    ] {
        let gain = change(&place(&xeon, 20, (cs, ncs)), t, "mcs:spin", Metric::Efficiency)?;
        out.push(Open::tried(
            question,
            "xeon-4210, 20 threads, T 12.5 % while spinning. Over four seeds.",
            "% efficiency",
            &gain,
        ));
    }
    out.push(Open::not(
        "HWP: what if the processor chooses its speed?",
        "It discards requests for speeds: a lowered P-state changes nothing there, and the model has no lock that lowers EPP.",
    ));
    out.push(Open::not(
        "Other locks, and applications?",
        "The model has MCS alone. `wattwise bench locks` measures the others on a machine, `wattwise locks advise` a program's own mutexes.",
    ));
    Ok(out)
}
