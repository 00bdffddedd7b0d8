//! Study 001 announces two more rows: the lowest and the highest mode.

use crate::open::Open;
use crate::openbsd::{WINDOW_S, build};
use crate::{StudyBench, StudyError};
use wattwise_model::machine::{builtin, file};
use wattwise_replay::library::LibraryError;

const NAME: &str = "openbsd-laptop";
/// What the file's two guesses may be: the lowest level in MHz with its power in W a core (by the power law through the fitted
/// levels, as much above as a power that goes with the speed, and half of it), and a core's power at rest in W.
const LOWEST: [(&str, &str); 5] =
    [("800", "0.6327"), ("600", "0.40"), ("1000", "0.91"), ("800", "1.08"), ("800", "0.32")];
const AT_REST_W: [f64; 3] = [0.1, 0.05, 0.3];
/// Power of the whole laptop at rest, in W: 0.74 Wh in 252 s.
const RESTS_W: f64 = 10.571;

pub(crate) fn questions() -> Result<Vec<Open>, StudyError> {
    let lowest = over(&LOWEST, "powersave")?;
    let highest = over(&LOWEST[..1], "performance")?;
    let totals = |rows: &[(f64, f64)]| rows.iter().map(|r| r.1).collect::<Vec<f64>>();
    let seconds: Vec<f64> = lowest.iter().map(|r| r.0).collect();
    let ranges =
        "Over the guesses of the machine's file: level and power of the lowest mode, a core's power at rest.";
    Ok(vec![
        Open::tried("The lowest mode (apm -L): how long is the build?", ranges, "s", &seconds),
        Open::tried(
            "The lowest mode (apm -L): what does the build take, over its own time?",
            ranges,
            "Wh",
            &totals(&lowest),
        ),
        Open::tried(
            "The highest mode (apm -H): what does build and rest take in the article's window?",
            "Over a core's power at rest.",
            "Wh",
            &totals(&highest),
        ),
    ])
}

/// Time of the build in s and energy in Wh over the window, or the build's own time if that is longer, for each draw.
fn over(lowest: &[(&str, &str)], policy: &str) -> Result<Vec<(f64, f64)>, StudyError> {
    let text = builtin::text(NAME).unwrap_or_default();
    let mut out = Vec::new();
    for (mhz, watts) in lowest {
        for at_rest in AT_REST_W {
            let text = text
                .replace("1861.443, 800]", &format!("1861.443, {mhz}]"))
                .replace("2.1855, 0.6327]", &format!("2.1855, {watts}]"))
                .replace("sources.800 ", &format!("sources.{mhz} "))
                .replace("watts = 0.1 }", &format!("watts = {at_rest} }}"))
                .replace("watts = 10.171", &format!("watts = {}", RESTS_W - 4.0 * at_rest));
            let machine =
                file::parse(&text, NAME).map_err(|e| StudyError::Library(LibraryError::MachineModel(e)))?;
            let row = build(&StudyBench::on(machine)?, policy, WINDOW_S)?;
            out.push((row.compile_s, row.compile_wh + row.idle_wh));
        }
    }
    Ok(out)
}
