//! Symmetric positive matrices by Cholesky's method: some forty unknowns, for which an algebra library would cost seconds
//! of build.

/// The lower triangle `l` of `a = l l'`, row by row.
#[derive(Clone, Debug)]
pub struct Triangle {
    n: usize,
    l: Vec<f64>,
}

impl Triangle {
    /// Of a symmetric matrix of which the lower half is read; none where it is not positive.
    pub fn of(n: usize, a: Vec<f64>) -> Option<Triangle> {
        Triangle::of_clear(n, a, 1e-13)
    }

    /// The same; none too where the others explain all of a row but the share `least` of its own.
    pub fn of_clear(n: usize, mut a: Vec<f64>, least: f64) -> Option<Triangle> {
        for i in 0..n {
            for j in 0..=i {
                let sum: f64 = a[i * n + j] - (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum::<f64>();
                if i == j {
                    if sum.is_nan() || sum <= least * a[i * n + i] {
                        return None;
                    }
                    a[i * n + i] = sum.sqrt();
                } else {
                    a[i * n + j] = sum / a[j * n + j];
                }
            }
        }
        Some(Triangle { n, l: a })
    }

    /// `x` of `a x = b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let (n, l) = (self.n, &self.l);
        let mut x = b.to_vec();
        for i in 0..n {
            let before: f64 = (0..i).map(|j| l[i * n + j] * x[j]).sum();
            x[i] = (x[i] - before) / l[i * n + i];
        }
        for i in (0..n).rev() {
            let after: f64 = (i + 1..n).map(|j| l[j * n + i] * x[j]).sum();
            x[i] = (x[i] - after) / l[i * n + i];
        }
        x
    }

    /// `l z`: where `z` are independent normal variables, their combinations with the covariance `a`.
    pub fn times(&self, z: &[f64]) -> Vec<f64> {
        let row = |i: usize| (0..=i).map(|j| self.l[i * self.n + j] * z[j]).sum();
        (0..self.n).map(row).collect()
    }

    /// `1/a`, row by row.
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let mut all = vec![0.0; n * n];
        for j in 0..n {
            let mut unit = vec![0.0; n];
            unit[j] = 1.0;
            for (i, x) in self.solve(&unit).into_iter().enumerate() {
                all[i * n + j] = x;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_undone() {
        // [4 2 0; 2 5 3; 0 3 6], of which only the lower half is read.
        let t = Triangle::of(3, vec![4.0, 9.0, 9.0, 2.0, 5.0, 9.0, 0.0, 3.0, 6.0]).expect("positive");
        let x = t.solve(&[8.0, 21.0, 24.0]);
        let off: f64 = x.iter().zip([1.0, 2.0, 3.0]).map(|(a, b)| (a - b).abs()).sum();
        assert!(off < 1e-12, "{x:?}");
        let inverse = t.inverse();
        // By Cramer's rule: the determinant is 60.
        for (at, cell) in
            [(0, 21.0 / 60.0), (4, 24.0 / 60.0), (8, 16.0 / 60.0), (1, -12.0 / 60.0), (5, -12.0 / 60.0)]
        {
            assert!((inverse[at] - cell).abs() < 1e-12, "{inverse:?}");
        }
        assert!(Triangle::of(2, vec![1.0, 0.0, 2.0, 4.0]).is_none());
    }
}
