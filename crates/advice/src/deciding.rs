//! Which uncertain figures decide between the leader and its nearest rival.

use crate::measurable::measurable;
use crate::replicas;
use crate::result::DecidingFigure;
use crate::sensitivity::{Share, sensitivity};
use crate::ties::{Candidate, Standing};
use wattwise_figure::quantile;
use wattwise_model::machine::Drawn;

/// Most figures that are named as deciding.
const MOST_DECIDING: usize = 3;

/// Between the leader and its nearest rival, which figures decide; the rival comes first.
pub(crate) fn deciding(
    all: &[Candidate],
    standing: &Standing,
    draws: &[Vec<Drawn>],
) -> Option<(usize, Vec<DecidingFigure>)> {
    let leader = standing.leader?;
    let rivals = (0..all.len()).filter(|&p| p != leader && standing.admissible[p]);
    let median = |p: usize| quantile(&crate::ties::excess(&all[p], &all[leader]), 0.5);
    let rival = rivals.min_by(|&a, &b| median(a).total_cmp(&median(b)))?;
    let pairs = all[rival].cost.iter().zip(&all[leader].cost);
    let excess: Vec<f64> = pairs.map(|(rival, leader)| (rival - leader) / leader).collect();
    let found = sensitivity(draws, &excess);
    let figure = |s: &Share| DecidingFigure {
        what: s.what.clone(),
        share: s.share,
        low: s.low,
        high: s.high,
        by: measurable(&s.what)
            .or_else(|| replicas::measurable(&s.what))
            .unwrap_or("no known way")
            .to_owned(),
    };
    let figures = found.shares.iter().filter(|s| s.decides).take(MOST_DECIDING).map(figure).collect();
    Some((rival, figures))
}
