//! Where to look next, on the unit cube, with several things to be small and a limit.
//!
//! 1. The first point is the defaults; then come points of a low-discrepancy sequence (Halton, with a random shift), which
//!    leave no large part of the cube unseen.
//! 2. After that each point is made of what did well, in turns of what is best by the goal ([`Score::cost`]) and of the *front*,
//!    the points that no other beats in everything. Half of them by differential evolution (Storn, Price 1997): a good
//!    point, moved by the difference of two others. Half by moving some coordinates of a good point by a
//!    distance whose size is drawn anew each time, from large to small. One in ten is any point of the cube.
//! 3. A point that is within the limit is better than one that is not; of two that are not, the one that misses it by less
//!    (Deb 2000).
//!
//! It is asked for as many points as are looked at side by side, and told of all of them in the order in which it gave
//! them. So the same seed and the same scores give the same points, however many threads looked.

use wattwise_figure::Random;

/// Best points by the goal that others are made of.
const BEST: usize = 8;
/// Points of the low-discrepancy start: so many, and so many more for each dimension.
const START: (usize, usize) = (8, 4);
/// How far differential evolution goes along a difference, at most.
const FURTHEST: f64 = 0.9;
/// Decimal powers from the largest to the smallest move.
const DECADES: f64 = 2.5;
/// Primes: a base for each dimension.
const PRIMES: [u32; 24] =
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89];

/// What a point came to; smaller is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// What is to be small, time, and waits.
    pub cost: f64,
    /// See [`Score::cost`].
    pub time: f64,
    /// See [`Score::cost`].
    pub p99: f64,
    /// By how much it misses the limit; 0 within it.
    pub violation: f64,
}

impl Score {
    fn objectives(&self) -> [f64; 3] {
        [self.cost, self.time, self.p99]
    }

    /// Whether it is at least as good in everything and better in something.
    pub fn beats(&self, other: &Score) -> bool {
        if self.violation != other.violation {
            return self.violation < other.violation;
        }
        let pairs = || self.objectives().into_iter().zip(other.objectives());
        pairs().all(|(a, b)| a <= b) && pairs().any(|(a, b)| a < b)
    }

    /// The order by the goal alone.
    pub fn order(&self, other: &Score) -> std::cmp::Ordering {
        self.violation.total_cmp(&other.violation).then(self.cost.total_cmp(&other.cost))
    }
}

/// How points are found after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// As the module's head says.
    Evolution,
    /// Any point of the cube: what the other is compared with.
    Random,
}

/// A search that is under way.
pub struct Search {
    dimensions: usize,
    method: Method,
    random: Random,
    shift: Vec<f64>,
    first: Vec<f64>,
    asked: usize,
    /// Points that were told, with their scores.
    told: Vec<(Vec<f64>, Score)>,
    /// The best by the goal, best first; the front. Both as indices of `told`.
    best: Vec<usize>,
    front: Vec<usize>,
}

impl Search {
    /// A search that begins at a point.
    pub fn new(first: Vec<f64>, seed: u64, method: Method) -> Search {
        let mut random = Random::new(seed ^ 0x7475_6e65);
        let shift = first.iter().map(|_| random.unit()).collect();
        Search {
            dimensions: first.len(),
            method,
            random,
            shift,
            first,
            asked: 0,
            told: Vec::new(),
            best: Vec::new(),
            front: Vec::new(),
        }
    }

    /// The next point.
    pub fn ask(&mut self) -> Vec<f64> {
        self.asked += 1;
        let start = START.0 + START.1 * self.dimensions;
        match (self.asked, self.method) {
            (1, _) => self.first.clone(),
            (n, Method::Evolution) if n <= start => self.halton(n as u64),
            (_, Method::Evolution) if self.random.below(10) > 0 && !self.best.is_empty() => self.child(),
            _ => self.anywhere(),
        }
    }

    /// Any point.
    pub fn anywhere(&mut self) -> Vec<f64> {
        (0..self.dimensions).map(|_| self.random.unit()).collect()
    }

    /// What a point came to.
    pub fn tell(&mut self, at: Vec<f64>, score: Score) {
        let new = self.told.len();
        let place = self.best.partition_point(|&i| self.told[i].1.order(&score).is_le());
        self.best.insert(place, new);
        self.best.truncate(BEST);
        if !self.front.iter().any(|&i| self.told[i].1.beats(&score)) {
            self.front.retain(|&i| !score.beats(&self.told[i].1));
            self.front.push(new);
        }
        self.told.push((at, score));
    }

    /// The points that no other beats, as numbers of those told.
    pub fn front(&self) -> &[usize] {
        &self.front
    }

    /// The best by the goal, best first, as numbers of those told.
    pub fn best(&self) -> &[usize] {
        &self.best
    }

    fn halton(&self, n: u64) -> Vec<f64> {
        let one = |(shift, &prime): (&f64, &u32)| (radical_inverse(n, prime) + shift).fract();
        self.shift.iter().zip(PRIMES.iter().cycle()).map(one).collect()
    }

    /// A point made of good ones.
    fn child(&mut self) -> Vec<f64> {
        let by_goal = self.random.below(2) == 0;
        let parent = self.good(by_goal);
        let mut at = self.told[parent].0.clone();
        if self.random.below(2) == 0 {
            let (one, other) = (self.good(false), self.random.below(self.told.len()));
            let factor = FURTHEST * self.random.unit();
            let fixed = self.random.below(self.dimensions.max(1));
            for (d, x) in at.iter_mut().enumerate() {
                if d == fixed || self.random.below(10) > 0 {
                    *x += factor * (self.told[one].0[d] - self.told[other].0[d]);
                }
            }
        } else {
            let moved = self.random.below(self.dimensions.max(1));
            for (d, x) in at.iter_mut().enumerate() {
                if d == moved || self.random.below(self.dimensions.max(1)) == 0 {
                    let size = 10_f64.powf(-DECADES * self.random.unit());
                    *x += size * (2.0 * self.random.unit() - 1.0);
                }
            }
        }
        at.into_iter().map(reflected).collect()
    }

    /// One of the best by the goal, the better the likelier; or one of the front.
    fn good(&mut self, by_goal: bool) -> usize {
        if by_goal {
            let n = self.best.len();
            let (a, b) = (self.random.below(n), self.random.below(n));
            return self.best[a.min(b)];
        }
        self.front[self.random.below(self.front.len())]
    }
}

/// The digits of `n` in a base, behind the point and in reverse.
fn radical_inverse(mut n: u64, base: u32) -> f64 {
    let (mut sum, mut digit) = (0.0, 1.0);
    while n > 0 {
        digit /= f64::from(base);
        sum += digit * (n % u64::from(base)) as f64;
        n /= u64::from(base);
    }
    sum
}

/// Back into the cube.
fn reflected(x: f64) -> f64 {
    let x = x.abs() % 2.0;
    if x > 1.0 { 2.0 - x } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(cost: f64, time: f64, p99: f64, violation: f64) -> Score {
        Score { cost, time, p99, violation }
    }

    #[test]
    fn a_point_within_the_limit_beats_one_that_is_not() {
        assert!(score(9.0, 9.0, 9.0, 0.0).beats(&score(1.0, 1.0, 1.0, 0.1)));
        assert!(score(9.0, 9.0, 9.0, 0.1).beats(&score(1.0, 1.0, 1.0, 0.2)));
        assert!(score(1.0, 2.0, 3.0, 0.0).beats(&score(1.0, 2.0, 3.5, 0.0)));
        assert!(!score(1.0, 2.0, 3.0, 0.0).beats(&score(1.0, 2.0, 3.0, 0.0)));
        assert!(!score(1.0, 3.0, 3.0, 0.0).beats(&score(2.0, 2.0, 3.0, 0.0)));
    }

    #[test]
    fn the_front_is_what_no_other_beats() {
        let mut search = Search::new(vec![0.5], 1, Method::Evolution);
        let told = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (2.5, 2.5), (1.5, 1.5), (0.5, 9.0)];
        for (cost, time) in told {
            search.tell(vec![0.5], score(cost, time, 0.0, 0.0));
        }
        let mut front = search.front().to_vec();
        front.sort_unstable();
        assert_eq!(front, [0, 1, 4, 5]);
        assert_eq!(search.best()[..3], [5, 1, 4]);
        search.tell(vec![0.5], score(0.1, 0.1, 0.0, 1.0));
        assert_eq!((search.front().len(), search.best()[0]), (4, 5), "it misses the limit");
    }

    #[test]
    fn the_start_leaves_nothing_large_unseen() {
        let mut search = Search::new(vec![0.5, 0.5], 7, Method::Evolution);
        let points: Vec<Vec<f64>> = (0..16).map(|_| search.ask()).collect();
        assert_eq!(points[0], [0.5, 0.5]);
        // Each half, third and quarter of either side has a share of the points.
        for d in 0..2 {
            for parts in [2, 3, 4] {
                for part in 0..parts {
                    let inside = |p: &&Vec<f64>| (p[d] * f64::from(parts)) as i32 == part;
                    let n = points[1..].iter().filter(inside).count();
                    assert!(n >= 15 / parts as usize - 2, "side {d}, part {part} of {parts}: {n}");
                }
            }
        }
        let base_2: Vec<f64> = (1..=6).map(|n| radical_inverse(n, 2)).collect();
        assert_eq!(base_2, [0.5, 0.25, 0.75, 0.125, 0.625, 0.375]);
    }

    /// The least of a valley that lies askew, within a limit that cuts its bottom off: in fewer points than by chance.
    #[test]
    fn a_valley_is_followed_to_its_least_point_within_the_limit() {
        let of = |at: &[f64]| {
            let (x, y, z) = (at[0] - 0.61, at[1] - 0.27, at[2] - 0.83);
            let cost = (x + y).powi(2) * 4.0 + (x - y).powi(2) + z * z;
            score(cost, -at[0], at[1], (at[0] - 0.55).max(0.0))
        };
        // At the limit x = -0.06; there the best y is 0.6 of -x.
        let best = of(&[0.55, 0.27 + 0.6 * 0.06, 0.83]).cost;
        let trials = |method, seed| {
            let mut search = Search::new(vec![0.5; 3], seed, method);
            for n in 1..=2000 {
                let at = search.ask();
                let score = of(&at);
                search.tell(at, score);
                if score.violation == 0.0 && score.cost < best + 1e-3 {
                    return n;
                }
            }
            2001
        };
        let median = |method| {
            let mut all: Vec<usize> = (0..41).map(|seed| trials(method, seed)).collect();
            all.sort_unstable();
            all[20]
        };
        let (ours, chance) = (median(Method::Evolution), median(Method::Random));
        assert!(ours * 3 < chance, "{ours} trials, {chance} by chance");
    }

    #[test]
    fn the_same_seed_asks_for_the_same_points() {
        let points = |seed| {
            let mut search = Search::new(vec![0.1, 0.9], seed, Method::Evolution);
            let mut all = Vec::new();
            for _ in 0..20 {
                let batch: Vec<Vec<f64>> = (0..4).map(|_| search.ask()).collect();
                for at in &batch {
                    search.tell(at.clone(), score(at[0], at[1], 0.0, 0.0));
                }
                all.extend(batch);
            }
            all
        };
        assert_eq!(points(3), points(3));
        assert_ne!(points(3), points(4));
        assert!(points(3).iter().flatten().all(|x| (0.0..=1.0).contains(x)));
    }
}
