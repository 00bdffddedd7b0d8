//! What a comparison's figures rest on.

use wattwise_advice::figure_words::in_words;
use wattwise_advice::result::{Comparison, DecidingFigure};
use wattwise_advice::say;
use wattwise_advice::time::TimeKind;
use wattwise_figure::fixed;

/// How the model did against published measurements: directions right, and the error below which half of the ratios are, in per cent.
/// From `docs/notes/hardware.md`; a test holds the two together.
const ON_HARDWARE: (f64, f64) = (91.0, 7.8);

/// What the figures rest on.
pub(crate) fn notes(c: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(format!(
        "reference: {}, the machine's default, or what is in force or was named by --reference",
        c.reference
    ));
    let time = match c.judged.kind {
        TimeKind::Makespan => "from the start of the work to its end",
        TimeKind::Response => "response times of the kind that waits most, judged by all kinds",
        TimeKind::Deadlines => "the share of deadlines missed",
    };
    notes.push(format!("time: {time}, since {}", c.judged.why));
    notes.push(format!("energy: modelled, of {}, {}", say::energy_of(c), say::energy_over(c)));
    if c.replicas > 0 {
        notes.push(format!(
            "ranges: the middle 90 % of {} replicas, each with random phases, seeds and model figures",
            c.replicas
        ));
    }
    let (directions, error) = ON_HARDWARE;
    notes.push(format!(
        "on hardware: in published measurements {directions:.1} % of the changes have the direction that the model predicts, and half of the \
         predicted changes are off by less than {error:.1} % (means over the data sets; for most programs the model was scaled to one \
         measured setting first). All of them, and the misses: wattwise machines score policies"
    ));
    if c.results.iter().any(|r| r.raced_out_after.is_some()) {
        notes.push(
            "policies that could not be the best were dropped after 4 or 16 replicas; the recommended policy's figures \
             are from new replicas, so that the choice does not bias them"
                .into(),
        );
    }
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for r in &c.results {
        let name = r.policy.split([':', '+']).next().unwrap_or_default();
        if let Some(why) = &r.approximation
            && !reasons.iter().any(|(n, _)| *n == name)
        {
            reasons.push((name, why));
        }
    }
    notes.extend(reasons.iter().map(|(name, why)| format!("{name} is an approximation: {why}")));
    if let Some(d) = &c.deciding
        && !d.figures.is_empty()
    {
        let figures: Vec<String> = d.figures.iter().map(deciding).collect();
        notes.push(format!(
            "what decides between {} and {}: {}",
            d.between[0],
            d.between[1],
            figures.join("; ")
        ));
    }
    // Of a recording the share that `trace` tells, too.
    notes.push(match c.workload.others_share {
        Some(share) => format!(
            "work: {}; other programs had {} % of the recorded CPU time",
            c.workload.foreground,
            fixed(share * 100.0, 1)
        ),
        None => format!(
            "work: {}; {} % of the cycles are background",
            c.workload.foreground,
            fixed(c.workload.background_share * 100.0, 0)
        ),
    });
    if !c.workload.clock.is_empty() {
        notes.push(format!("recorded clock: {}; memory-bound: {}", c.workload.clock, c.workload.memory));
    }
    notes.extend(say::small_gaps(c).map(|gaps| format!("recording: {gaps}")));
    notes.extend(c.inputs.warnings.iter().map(|w| format!("warning: {w}")));
    notes
}

/// A figure that decides: its name, its share, and how it can be measured.
fn deciding(f: &DecidingFigure) -> String {
    let name = in_words(&f.what).unwrap_or_else(|| f.what.clone());
    format!("{name} ({:.0} %: {})", f.share * 100.0, f.by)
}

#[cfg(test)]
mod tests {
    use super::ON_HARDWARE;

    #[test]
    fn what_is_said_of_hardware_is_on_its_page() {
        let page = include_str!("../../../../docs/notes/hardware.md");
        let line = page.lines().find(|l| l.starts_with("| wattwise |")).expect("the line of the means");
        let cells: Vec<f64> = line.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
        assert_eq!((cells[0], cells[2]), ON_HARDWARE, "{line}");
    }
}
