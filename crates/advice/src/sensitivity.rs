//! Which uncertain figures decide: how much of an output's variance over the replicas each figure explains.
//!
//! The output is one number a replica, such as the difference of two policies in energy. The figures were drawn
//! independently, so each has a *first-order share*: by how much the variance would shrink, on average, if that
//! figure were known (its Sobol index). What chance alone would give is taken off, and a figure that cannot be told
//! from chance is not named as one that decides: with 64 replicas and 30 figures, the strongest of them explains
//! some 12 % by chance.
//!
//! **Few replicas** (below [`MANY`]): linear regression, by forward selection.
//! 1. Of the figures not yet in, take the one that explains most of the rest.
//! 2. It decides if chance would give as much in fewer than 4 % of cases, counted over all figures that were tried
//!    (Bonferroni). Otherwise stop: so noise alone names a figure in at most 5 % of runs.
//! 3. Take its part out of the output. The rest is quieter, so the next figure is seen better.
//!
//! A figure's share is then the square of its coefficient, less the square of the coefficient's error, over the
//! variance that the model adds up to. Only straight effects count; bent ones and those of two figures together are
//! left in [`Sensitivity::unexplained`], with what the seed and the phase do.
//!
//! **Many replicas**: the correlation ratio. Replicas are sorted by a figure and cut into bins of equal count; the
//! share is the variance of the bins' means, adjusted as in an analysis of variance. Effects of any shape count. A
//! figure decides if either this or its straight effect alone is beyond chance.

use wattwise_figure::{mean_sd, tail, verdict};
use wattwise_model::machine::Drawn;

/// Replicas from which on the shape of an effect can be seen.
pub const MANY: usize = 512;
/// Replicas below which nothing is said.
const LEAST: usize = 12;
/// How often noise alone may name a figure: below the 5 % that are promised, since each step of the selection is one
/// more chance.
const ALARM: f64 = 0.04;
/// Replicas that a bin should have; more bins see finer shapes, and their means are noisier.
const BIN: usize = 16;
/// Bins at most: with 64, less than 1 % of a straight effect of a normal variable stays within them.
const BINS: usize = 64;
/// Blocks left out in turn for the interval of a correlation ratio.
const BLOCKS: usize = 20;

/// Which figures decide an output.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// Replicas that counted.
    pub replicas: usize,
    /// One entry a figure: those that decide first, by their share.
    pub shares: Vec<Share>,
    /// Share of the variance that no figure that decides explains: seed and phase, figures together, bent effects.
    pub unexplained: f64,
}

/// One figure's part of the variance.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The figure's path.
    pub what: String,
    /// Its first-order share of the variance, 0 to 1, what chance gives taken off.
    pub share: f64,
    /// Low end of the share's 95 % interval.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Change of the output with one standard deviation of the figure's score; its sign says which way.
    pub slope: f64,
    /// Chance that noise alone makes some figure look as strong as this one.
    pub chance: f64,
    /// Whether it is told apart from chance.
    pub decides: bool,
}

impl Share {
    fn none(what: &str) -> Share {
        Share { what: what.into(), share: 0.0, low: 0.0, high: 1.0, slope: 0.0, chance: 1.0, decides: false }
    }
}

/// Which of the drawn figures decide the output. One element a replica in both; each replica has the same figures
/// in the same order. A replica whose output is no number is left out; with fewer than 12, or an output that
/// is always the same, nothing decides.
pub fn sensitivity(draws: &[Vec<Drawn>], outputs: &[f64]) -> Sensitivity {
    let kept: Vec<usize> = (0..draws.len().min(outputs.len())).filter(|&r| outputs[r].is_finite()).collect();
    let names: Vec<&str> = draws.first().map_or(vec![], |d| d.iter().map(|d| d.what.as_str()).collect());
    let y: Vec<f64> = kept.iter().map(|&r| outputs[r]).collect();
    let columns: Vec<Vec<f64>> = (0..names.len())
        .map(|f| kept.iter().map(|&r| draws[r].get(f).map_or(0.0, |d| d.z)).collect())
        .collect();
    let (mean, sd) = mean_sd(&y);
    if y.len() < LEAST || sd <= 1e-12 * mean.abs() || sd == 0.0 {
        let shares =
            names.iter().map(|n| Share { high: if sd == 0.0 { 0.0 } else { 1.0 }, ..Share::none(n) });
        return Sensitivity { replicas: y.len(), shares: shares.collect(), unexplained: 1.0 };
    }
    let columns: Vec<Option<Vec<f64>>> = columns.iter().map(|c| standard(c)).collect();
    let centred: Vec<f64> = y.iter().map(|y| y - mean).collect();
    let (mut shares, unexplained) = match y.len() < MANY {
        true => linear(&names, &columns, &centred),
        false => binned(&names, &columns, &centred),
    };
    shares.sort_by(|a, b| b.decides.cmp(&a.decides).then(b.share.total_cmp(&a.share)));
    Sensitivity { replicas: y.len(), shares, unexplained: unexplained.clamp(0.0, 1.0) }
}

/// A column with mean 0 and standard deviation 1; none of one that does not vary.
fn standard(column: &[f64]) -> Option<Vec<f64>> {
    let (mean, sd) = mean_sd(column);
    (sd > 0.0 && sd.is_finite()).then(|| column.iter().map(|x| (x - mean) / sd).collect())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `y` less its part along `x`.
fn without(y: &mut [f64], x: &[f64]) {
    let length = dot(x, x);
    if length > 0.0 {
        let part = dot(x, y) / length;
        y.iter_mut().zip(x).for_each(|(y, x)| *y -= part * x);
    }
}

/// Correlation of two centred columns; 0 where one is all but a combination of those taken out of it before.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let (xx, yy) = (dot(x, x), dot(y, y));
    if xx < 1e-9 * x.len() as f64 || yy == 0.0 {
        0.0
    } else {
        (dot(x, y) / (xx * yy).sqrt()).clamp(-1.0, 1.0)
    }
}

/// Chance that a correlation of independent columns is as far from 0.
fn by_chance(r: f64, freedom: f64) -> f64 {
    if r.abs() >= 1.0 { 0.0 } else { tail::student(r * (freedom / (1.0 - r * r)).sqrt(), freedom) }
}

/// Figures that decide, in the order in which they were taken, each with the chance of its step.
fn selected(columns: &[Option<Vec<f64>>], y: &[f64]) -> Vec<(usize, f64)> {
    let mut rest = y.to_vec();
    let mut left: Vec<(usize, Vec<f64>)> =
        columns.iter().enumerate().filter_map(|(i, c)| Some((i, c.clone()?))).collect();
    let mut taken: Vec<(usize, f64)> = Vec::new();
    loop {
        let freedom = y.len() as f64 - 2.0 - taken.len() as f64;
        let strongest = left
            .iter()
            .enumerate()
            .map(|(at, (_, x))| (at, correlation(x, &rest)))
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        // Fewer than eight degrees of freedom tell nothing; a rest of nothing but rounding has been explained.
        let (Some((at, r)), true) = (strongest, freedom >= 8.0) else { return taken };
        let chance = (by_chance(r, freedom) * left.len() as f64).min(1.0);
        if chance >= ALARM || dot(&rest, &rest) <= 1e-18 * dot(y, y) {
            return taken;
        }
        let (figure, x) = left.swap_remove(at);
        without(&mut rest, &x);
        left.iter_mut().for_each(|(_, other)| without(other, &x));
        taken.push((figure, chance));
    }
}

/// Coefficient and standard error of each of `columns`, and the variance of the rest. The columns are independent
/// enough to have passed [`correlation`]'s check.
fn regress(columns: &[&[f64]], y: &[f64]) -> (Vec<(f64, f64)>, f64) {
    let k = columns.len();
    // The normal equations beside the unit matrix, by elimination: the right half becomes the inverse.
    let mut rows: Vec<Vec<f64>> = (0..k)
        .map(|i| {
            (0..2 * k)
                .map(|j| if j < k { dot(columns[i], columns[j]) } else { f64::from(u8::from(j - k == i)) })
                .collect()
        })
        .collect();
    for i in 0..k {
        let pivot = rows[i][i];
        rows[i].iter_mut().for_each(|v| *v /= pivot);
        let own = rows[i].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let times = row[i];
            row.iter_mut().zip(&own).for_each(|(v, o)| *v -= times * o);
        }
    }
    let towards: Vec<f64> = columns.iter().map(|x| dot(x, y)).collect();
    let inverse = |i: usize| &rows[i][k..];
    let b: Vec<f64> = (0..k).map(|i| dot(inverse(i), &towards)).collect();
    let rest = (dot(y, y) - dot(&b, &towards)).max(0.0) / (y.len() - k - 1) as f64;
    ((0..k).map(|i| (b[i], (rest * inverse(i)[i]).sqrt())).collect(), rest)
}

fn linear(names: &[&str], columns: &[Option<Vec<f64>>], y: &[f64]) -> (Vec<Share>, f64) {
    let taken = selected(columns, y);
    let inside: Vec<&[f64]> = taken.iter().filter_map(|(i, _)| columns[*i].as_deref()).collect();
    let (fitted, rest) = regress(&inside, y);
    let own = |(b, error): (f64, f64)| (b * b - error * error).max(0.0);
    let total = fitted.iter().map(|f| own(*f)).sum::<f64>() + rest;
    let freedom = (y.len() - inside.len() - 2) as f64;
    let mut shares = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let Some(column) = &columns[i] else {
            shares.push(Share { high: 0.0, ..Share::none(name) });
            continue;
        };
        let at = taken.iter().position(|(t, _)| *t == i);
        let (b, error) = match at {
            Some(at) => fitted[at],
            None => {
                let mut one_more = column.clone();
                // Against the others in turn, twice, so that what they share is gone to the last digits.
                (0..2).for_each(|_| inside.iter().for_each(|x| without(&mut one_more, x)));
                if dot(&one_more, &one_more) < 1e-9 * y.len() as f64 {
                    shares.push(Share::none(name));
                    continue;
                }
                let with: Vec<&[f64]> = inside.iter().copied().chain([column.as_slice()]).collect();
                regress(&with, y).0[inside.len()]
            }
        };
        let (low, high) = interval(b, error, total, y.len(), freedom);
        let others = (names.len() - taken.len()) as f64;
        let chance =
            at.map_or_else(|| (tail::student(b / error, freedom) * others).min(1.0), |at| taken[at].1);
        let share = (own((b, error)) / total).min(1.0);
        shares.push(Share {
            what: (*name).into(),
            share,
            low,
            high,
            slope: b,
            chance,
            decides: at.is_some(),
        });
    }
    (shares, rest / total)
}

/// The 95 % interval of a share b^2 / total. Its odds are a square over a sum of squares, so the logarithms' errors
/// add: that of the coefficient, and those of the variances of the figure's draws and of the rest.
fn interval(b: f64, error: f64, total: f64, n: usize, freedom: f64) -> (f64, f64) {
    let t = verdict::quantile(0.975, freedom);
    let rest = (total - b * b).max(1e-12 * total);
    let variances = t * (4.0 / (n as f64 - 1.0)).sqrt();
    let end = |b_end: f64, sign: f64| {
        if b_end <= 0.0 {
            return 0.0;
        }
        // Off by as much as the coefficient's end is from it, and the variances with it.
        let off = (2.0 * (b_end / b.abs()).ln()).hypot(variances);
        let odds = b * b / rest * (sign * off).exp();
        odds / (1.0 + odds)
    };
    let high = if b == 0.0 { (t * error).powi(2) / total } else { end(b.abs() + t * error, 1.0) };
    (end(b.abs() - t * error, -1.0), high.min(1.0))
}

fn binned(names: &[&str], columns: &[Option<Vec<f64>>], y: &[f64]) -> (Vec<Share>, f64) {
    let n = y.len();
    let bins = (n / BIN).min(BINS);
    let tried = columns.iter().flatten().count() as f64;
    let total = dot(y, y);
    let mut shares = Vec::new();
    for (name, column) in names.iter().zip(columns) {
        let Some(x) = column else {
            shares.push(Share { high: 0.0, ..Share::none(name) });
            continue;
        };
        let bin_of = bins_by_rank(x, bins);
        let whole = ratio(&bin_of, bins, y, None);
        let f = whole / (1.0 - whole).max(1e-300) * (n - bins) as f64 / (bins - 1) as f64;
        let any = tail::fisher(f, (bins - 1) as f64, (n - bins) as f64);
        let straight = by_chance(correlation(x, y), n as f64 - 2.0);
        // Two tests a figure.
        let chance = (2.0 * tried * any.min(straight)).min(1.0);
        let share = adjusted(whole, n, bins);
        let error = block_error(&bin_of, bins, y);
        shares.push(Share {
            what: (*name).into(),
            share: share.max(0.0),
            low: (share - 1.96 * error).clamp(0.0, 1.0),
            high: (share + 1.96 * error).clamp(0.0, 1.0),
            slope: dot(x, y) / dot(x, x),
            chance,
            decides: chance < ALARM && total > 0.0,
        });
    }
    let explained: f64 = shares.iter().filter(|s| s.decides).map(|s| s.share).sum();
    (shares, 1.0 - explained)
}

/// Each replica's bin: of equal count, by rank.
fn bins_by_rank(x: &[f64], bins: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..x.len()).collect();
    order.sort_by(|a, b| x[*a].total_cmp(&x[*b]));
    let mut bin_of = vec![0; x.len()];
    order.iter().enumerate().for_each(|(rank, &r)| bin_of[r] = rank * bins / x.len());
    bin_of
}

/// Share of the variance that lies between the bins' means, as counted; without the block of replicas that is left out.
fn ratio(bin_of: &[usize], bins: usize, y: &[f64], left_out: Option<usize>) -> f64 {
    let (mut sums, mut counts) = (vec![0.0; bins], vec![0.0; bins]);
    let (mut squares, mut sum, mut count) = (0.0, 0.0, 0.0);
    for (r, (&bin, &y)) in bin_of.iter().zip(y).enumerate() {
        if left_out != Some(r % BLOCKS) {
            sums[bin] += y;
            counts[bin] += 1.0;
            (squares, sum, count) = (squares + y * y, sum + y, count + 1.0);
        }
    }
    let about = sum * sum / count;
    let between: f64 = sums.iter().zip(&counts).filter(|(_, c)| **c > 0.0).map(|(s, c)| s * s / c).sum();
    ((between - about) / (squares - about)).clamp(0.0, 1.0)
}

/// A ratio less what chance gives: with no effect 0 on average.
fn adjusted(ratio: f64, n: usize, bins: usize) -> f64 {
    1.0 - (1.0 - ratio) * (n - 1) as f64 / (n - bins) as f64
}

/// Standard error of an adjusted ratio, by leaving out a block of replicas at a time (the jackknife).
fn block_error(bin_of: &[usize], bins: usize, y: &[f64]) -> f64 {
    let n = y.len() - y.len() / BLOCKS;
    let each: Vec<f64> =
        (0..BLOCKS).map(|block| adjusted(ratio(bin_of, bins, y, Some(block)), n, bins)).collect();
    let (_, sd) = mean_sd(&each);
    sd * (BLOCKS as f64 - 1.0) / (BLOCKS as f64).sqrt()
}

#[cfg(test)]
mod tests;
