//! From pairs of runs to a verdict.
//!
//! 1. Each pair gives d = ln(B/A): a drift that both share cancels, and a ratio is what one wants to know.
//! 2. The first pairs, the *pilot*, give the spread s and fix, once and for all, how many pairs there will
//!    be: n = (t·s/h)², for the half-width h that was asked for, with t Student's quantile for the pilot's
//!    degrees of freedom.
//! 3. The interval is mean(d) ± t·s/√n, with s and t *of the pilot* and the mean of all.
//!
//! This is Stein's two-stage design (1945). Its interval misses the truth exactly as often as it says,
//! though the number of pairs was chosen by looking at the data, because the mean of all pairs does not
//! depend on the pilot's spread. Stopping when the interval looks narrow enough, or when it leaves 0,
//! has no such warrant: 7 % and 28 % false alarms at a nominal 5 %.
//!
//! The chance to find a true effect e is at least P(T > t·(1 − e/h)): what [`Aim::half_width`] turns round.

use crate::{mean_sd, normal};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Student's t: the value below which a share `p` lies, not a number where there is none.
pub fn quantile(p: f64, freedom: f64) -> f64 {
    /// The library panics for shares far nearer to 0 or 1.
    const NEAREST: f64 = 1e-12;
    /// From here on the normal distribution is the same to four digits, and the library's search may not end.
    const NORMAL: f64 = 1e6;
    let p = p.clamp(NEAREST, 1.0 - NEAREST);
    if p.is_nan() {
        return f64::NAN;
    }
    if freedom >= NORMAL {
        return normal::quantile(p);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(p))
}

/// Student's t: the share below a value.
pub fn below(x: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.cdf(x))
}

/// What the experiment should be able to tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Aim {
    /// Probability that the interval holds the truth, such as 0.95.
    pub confidence: f64,
    /// The smallest difference that matters, as a ratio minus 1 (0.02 is 2 %).
    pub effect: f64,
    /// The chance to find it.
    pub power: f64,
    /// Pairs in the pilot.
    pub pilot: usize,
}

impl Default for Aim {
    fn default() -> Aim {
        Aim { confidence: 0.95, effect: 0.02, power: 0.9, pilot: 10 }
    }
}

impl Aim {
    /// For several comparisons at once: each is held to its share of the error (Bonferroni).
    pub fn shared_by(self, comparisons: usize) -> Aim {
        Aim { confidence: 1.0 - (1.0 - self.confidence) / comparisons.max(1) as f64, ..self }
    }

    fn freedom(&self) -> f64 {
        self.pilot as f64 - 1.0
    }

    fn t(&self) -> f64 {
        quantile(0.5 + self.confidence / 2.0, self.freedom())
    }

    /// The half-width of the interval of ln(B/A) that finds the effect with the power asked for.
    pub fn half_width(&self) -> f64 {
        self.effect.ln_1p() / (1.0 + quantile(self.power, self.freedom()) / self.t())
    }

    /// The chance to find a difference of that ratio minus 1.
    pub fn power_for(&self, effect: f64) -> f64 {
        let t = self.t();
        1.0 - below(t * (1.0 - effect.ln_1p() / self.half_width()), self.freedom())
    }

    /// How many pairs this needs, from the pilot's differences.
    pub fn pairs(&self, pilot: &[f64]) -> usize {
        let (_, sd) = mean_sd(pilot);
        let needed = (self.t() * sd / self.half_width()).powi(2).ceil();
        if needed.is_finite() { (needed as usize).max(self.pilot) } else { self.pilot }
    }
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// B takes less than A.
    Less,
    /// B takes more than A.
    More,
    /// The interval holds 0: no difference beyond its ends.
    NoneLargerThan(f64),
    /// There is nothing to judge.
    NotMeasured(String),
}

/// A judged comparison of B with A.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// What came out.
    pub answer: Answer,
    /// Pairs that counted.
    pub pairs: usize,
    /// B over A: geometric mean; null, as the interval is, where nothing can be judged.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub ratio: f64,
    /// Low end of its interval.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub low: f64,
    /// High end.
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    pub high: f64,
    /// Of the interval.
    pub confidence: f64,
    /// A percentile bootstrap's interval: a second opinion, too narrow with few pairs.
    pub bootstrap: Option<(f64, f64)>,
    /// Change of A and B together per run, as a share, with its interval, where that is off 0.
    pub drift: Option<Drift>,
}

/// The machine did not stay as it was.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// Relative change a run.
    pub per_run: f64,
    /// Low end of its interval.
    pub low: f64,
    /// High end.
    pub high: f64,
}

/// Judges pairs (A, B), in the order in which they were run. Fewer pairs than the pilot has are judged by
/// what there is: their interval is Student's.
pub fn judge(pairs: &[(f64, f64)], aim: &Aim) -> Verdict {
    let mut verdict = student(pairs, aim);
    if pairs.len() >= 5 && !matches!(verdict.answer, Answer::NotMeasured(_)) {
        let d: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        verdict.bootstrap = Some(bootstrap(&d, aim.confidence));
    }
    verdict
}

/// The same without the bootstrap's second opinion, which thousands of pairs need least and pay most for.
pub fn student(pairs: &[(f64, f64)], aim: &Aim) -> Verdict {
    let not = |why: &str| Verdict {
        answer: Answer::NotMeasured(why.to_owned()),
        pairs: pairs.len(),
        ratio: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
        confidence: aim.confidence,
        bootstrap: None,
        drift: None,
    };
    if pairs.iter().any(|(a, b)| !(a.is_finite() && b.is_finite() && *a > 0.0 && *b > 0.0)) {
        return not("a run shows nothing that can be compared");
    }
    if pairs.len() < 2 {
        return not(if pairs.is_empty() {
            "no pair was completed"
        } else {
            "one run of each has no spread and supports no verdict; a pilot of ten pairs tells how many are needed"
        });
    }
    let d: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let pilot = &d[..d.len().min(aim.pilot)];
    let (_, sd) = mean_sd(pilot);
    let (mean, _) = mean_sd(&d);
    let t = quantile(0.5 + aim.confidence / 2.0, pilot.len() as f64 - 1.0);
    let half = t * sd / (d.len() as f64).sqrt();
    let (low, high) = (mean - half, mean + half);
    // Two runs that differ by orders of magnitude: Student's quantile for one degree of freedom takes the end out of
    // what a number holds.
    if !(high.exp().is_finite() && low.exp() > 0.0) {
        return not("not enough runs: the pairs spread too far for an interval");
    }
    let answer = match () {
        () if high < 0.0 => Answer::Less,
        () if low > 0.0 => Answer::More,
        () => Answer::NoneLargerThan(high.exp_m1().max(-low.exp_m1())),
    };
    Verdict {
        answer,
        pairs: d.len(),
        ratio: mean.exp(),
        low: low.exp(),
        high: high.exp(),
        confidence: aim.confidence,
        bootstrap: None,
        drift: drift(pairs, aim.confidence),
    }
}

/// Percentiles of the mean over resampled pairs, by a fixed seed.
fn bootstrap(d: &[f64], confidence: f64) -> (f64, f64) {
    const DRAWS: usize = 2000;
    let mut random = crate::Random::new(1);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| (0..d.len()).map(|_| d[random.below(d.len())]).sum::<f64>() / d.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |p: f64| means[((p * DRAWS as f64) as usize).min(DRAWS - 1)].exp();
    (at(0.5 - confidence / 2.0), at(0.5 + confidence / 2.0))
}

/// The slope of the pairs' mean logarithm on the pair's number, where its interval is off 0.
fn drift(pairs: &[(f64, f64)], confidence: f64) -> Option<Drift> {
    let level: Vec<f64> = pairs.iter().map(|(a, b)| f64::midpoint(a.ln(), b.ln())).collect();
    let (slope, half) = slope(&level, confidence)?;
    // Two runs a pair.
    let (slope, half) = (slope / 2.0, half / 2.0);
    (slope.abs() > half).then_some(Drift { per_run: slope, low: slope - half, high: slope + half })
}

/// Slope of values on their index and the half-width of its interval. `None` for fewer than four.
pub fn slope(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 4 {
        return None;
    }
    let x_mean = (n - 1.0) / 2.0;
    let y_mean = values.iter().sum::<f64>() / n;
    let sxx: f64 = (0..values.len()).map(|x| (x as f64 - x_mean).powi(2)).sum();
    let sxy: f64 = values.iter().enumerate().map(|(x, y)| (x as f64 - x_mean) * (y - y_mean)).sum();
    let slope = sxy / sxx;
    let rest: f64 =
        values.iter().enumerate().map(|(x, y)| (y - y_mean - slope * (x as f64 - x_mean)).powi(2)).sum();
    let error = (rest / (n - 2.0) / sxx).sqrt();
    Some((slope, quantile(0.5 + confidence / 2.0, n - 2.0) * error))
}

/// A change in per cent without its sign: two decimals below 1 %, so that small ones are not all alike.
fn percent(change: f64) -> String {
    let x = change.abs() * 100.0;
    match x {
        _ if x >= 99.5 => format!("{x:.0}"),
        _ if x >= 0.995 => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}

/// Beyond this ratio (or below its inverse) a reader wants a multiple, not per cent.
const MULTIPLE: f64 = 3.0;

/// An interval this wide (a change of 100 % lies in it) says nothing that somebody could use.
const TELLS_NOTHING: f64 = 1.0;

impl Verdict {
    /// Whether there is a ratio with an interval that can be shown.
    pub fn is_told(&self) -> bool {
        let finite = [self.ratio, self.low, self.high].iter().all(|x| x.is_finite());
        let useless = matches!(self.answer, Answer::NoneLargerThan(most) if most > TELLS_NOTHING);
        finite && !useless && !matches!(self.answer, Answer::NotMeasured(_))
    }

    /// B against A with its interval: `-4.0 % [-5.8, -2.3]`, in words where it cannot be told.
    pub fn change(&self) -> String {
        if !self.is_told() {
            return "cannot be told".to_owned();
        }
        if self.ratio >= MULTIPLE {
            return format!("{:.1} times [{:.1}, {:.1}]", self.ratio, self.low, self.high);
        }
        let signed = |ratio: f64| {
            let sign = if ratio < 1.0 { "-" } else { "+" };
            format!("{sign}{}", percent(ratio - 1.0))
        };
        format!("{} % [{}, {}]", signed(self.ratio), signed(self.low), signed(self.high))
    }
}

/// The verdict in a sentence: what of B against A.
pub fn words(v: &Verdict, what: &str, a: &str, b: &str) -> String {
    let sure = format!("{:.3}", v.confidence * 100.0);
    let sure = sure.trim_end_matches('0').trim_end_matches('.');
    let basis = format!("({} pairs, {sure} % interval)", v.pairs);
    let verb = match what {
        "time" => "takes",
        "of its figure" => "shows",
        _ => "needs",
    };
    let ends = |x: f64, y: f64| {
        let (x, y) = (x.min(y), x.max(y));
        format!("[{}, {}]", percent(x), percent(y))
    };
    match &v.answer {
        Answer::NotMeasured(why) => format!("{what} of {a} and {b} cannot be compared: {why}"),
        _ if !v.is_told() => {
            format!("not enough runs: the pairs spread too far to tell {what} of {a} and {b} apart {basis}")
        }
        Answer::More if v.ratio >= MULTIPLE => format!(
            "{b} {verb} {:.1} times [{:.1}, {:.1}] as much {what} as {a} {basis}",
            v.ratio, v.low, v.high
        ),
        Answer::Less => format!(
            "{b} {verb} {} % {} less {what} than {a} {basis}",
            percent(v.ratio - 1.0),
            ends(1.0 - v.low, 1.0 - v.high)
        ),
        Answer::More => format!(
            "{b} {verb} {} % {} more {what} than {a} {basis}",
            percent(v.ratio - 1.0),
            ends(v.low - 1.0, v.high - 1.0)
        ),
        Answer::NoneLargerThan(most) if *most <= 0.0 => {
            format!("no difference in {what} between {a} and {b} {basis}")
        }
        Answer::NoneLargerThan(most) => format!(
            "no difference in {what} between {a} and {b} can be told: it is {} % at most {basis}",
            percent(*most)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Damaged logs have such: a power of 1e-308, more pairs than anyone runs.
    #[test]
    fn a_quantile_is_found_for_any_share_and_freedom() {
        for freedom in [1.0, 2.0, 9.0, 1e3, 999_999.0, 1e9, f64::INFINITY] {
            let mut before = f64::NEG_INFINITY;
            for p in [0.0, 1e-308, 1e-17, 1e-9, 0.3, 0.5, 0.7, 1.0 - 1e-9, 1.0] {
                let t = quantile(p, freedom);
                assert!(t.is_finite() && t >= before, "{p} {freedom}: {t}");
                before = t;
            }
        }
        assert!((quantile(0.975, 999_999.0) - quantile(0.975, 1e6)).abs() < 1e-4);
        assert!(quantile(f64::NAN, 3.0).is_nan() && quantile(0.5, 0.0).is_nan());
    }

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (p, freedom, t) in
            [(0.975, 9.0, 2.262), (0.975, 4.0, 2.776), (0.95, 19.0, 1.729), (0.9, 9.0, 1.383)]
        {
            assert!((quantile(p, freedom) - t).abs() < 5e-4, "{p} {freedom}: {}", quantile(p, freedom));
        }
    }

    #[test]
    fn a_plan_turns_its_promise_round() {
        let aim = Aim { effect: 0.03, power: 0.9, ..Aim::default() };
        assert!((aim.power_for(0.03) - 0.9).abs() < 1e-6);
        assert!(aim.power_for(0.05) > 0.99 && aim.power_for(0.01) < 0.4);
        assert_eq!(aim.pairs(&[0.001; 10]), 10);
    }

    #[test]
    fn a_known_sample_by_hand() {
        // d = ln(B/A) of 0.01, 0.02, 0.03: mean 0.02, sd 0.01, t(2) 4.3027, half 0.024842.
        let pairs: Vec<(f64, f64)> =
            [0.01_f64, 0.02, 0.03].iter().map(|d| (100.0, 100.0 * d.exp())).collect();
        let v = judge(&pairs, &Aim::default());
        assert!((v.ratio.ln() - 0.02).abs() < 1e-9);
        assert!((v.high.ln() - 0.044842).abs() < 1e-5 && (v.low.ln() + 0.004842).abs() < 1e-5, "{v:?}");
        assert!(matches!(v.answer, Answer::NoneLargerThan(most) if (most - 0.045862).abs() < 1e-5));
    }

    #[test]
    fn what_cannot_be_told_is_said_in_words() {
        let said = |pairs: &[(f64, f64)]| {
            let v = judge(pairs, &Aim::default());
            format!("{} | {}", words(&v, "energy", "A", "B"), v.change())
        };
        let cases: [(&[(f64, f64)], &str); 7] = [
            (&[], "no pair was completed"),
            (&[(1.0, 2.0)], "supports no verdict"),
            (&[(1.0, 2.0), (1.0, 0.4)], "not enough runs"),
            (&[(1.0, 1e-300), (1.0, 1e300)], "not enough runs"),
            (&[(1.0, 0.0), (1.0, 2.0)], "cannot be compared"),
            (&[(1.0, 5.0), (1.0, 5.01), (1.0, 4.99)], "B needs 5.0 times [5.0, 5.0] as much energy as A"),
            (&[(5.0, 5.0), (5.0, 5.0)], "no difference in energy between A and B"),
        ];
        for (pairs, expected) in cases {
            let said = said(pairs);
            assert!(said.contains(expected), "{said}");
            assert!(
                !["inf", "NaN", "null", "e+"].iter().any(|w| said.contains(w)) && said.len() < 200,
                "{said}"
            );
        }
        let four = said(&[(100.0, 96.1), (100.0, 95.9), (100.0, 96.0), (100.0, 96.0)]);
        assert!(
            four.starts_with("B needs 4.0 % [3.9, 4.1] less energy than A (4 pairs, 95 % interval)"),
            "{four}"
        );
        assert!(four.ends_with("-4.0 % [-4.1, -3.9]"), "{four}");
    }

    #[test]
    fn one_run_of_each_supports_nothing() {
        // The OpenBSD study (001): one run of each, published as a saving of 6.9 %.
        let rows: Vec<(&str, f64)> = include_str!("../../../studies/openbsd_gzdoom.csv")
            .lines()
            .skip(2)
            .map(|l| l.split(',').collect::<Vec<_>>())
            .map(|c| (c[0], c[3].parse::<f64>().expect("Wh") + c[4].parse::<f64>().expect("Wh")))
            .collect();
        let wh = |name: &str| rows.iter().find(|r| r.0 == name).expect("a row").1;
        assert!((wh("powersaving") - 5.90).abs() < 1e-9 && (wh("auto") - 6.34).abs() < 1e-9, "{rows:?}");
        let v = judge(&[(wh("auto"), wh("powersaving"))], &Aim::default());
        assert!(matches!(v.answer, Answer::NotMeasured(_)));
        let words = words(&v, "energy", "auto", "powersaving");
        assert!(words.contains("supports no verdict"), "{words}");
        // How many pairs that saving needs hangs on how far pairs spread, which nobody measured: as many as the
        // pilot at 2 %, and more where they spread as far as the saving itself.
        let saving = Aim { effect: 1.0 - wh("powersaving") / wh("auto"), ..Aim::default() };
        let pilot = |sd: f64| -> Vec<f64> { (0..10).map(|i| if i % 2 == 0 { sd } else { -sd }).collect() };
        let needed = [0.02, 0.07, 0.14].map(|sd| saving.pairs(&pilot(sd)));
        assert_eq!(needed[0], 10);
        assert!(needed[0] < needed[1] && needed[1] < needed[2] && needed[2] > 60, "{needed:?}");
        let broken = judge(&[(1.0, 0.0), (1.0, 2.0)], &Aim::default());
        assert!(matches!(broken.answer, Answer::NotMeasured(_)));
    }
}
