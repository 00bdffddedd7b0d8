//! Scans: one policy with a range for a value, `schedutil:rate_limit=1ms..20ms:n5`, stands for many policies.
//!
//! `FROM..TO:nPOINTS` has that many values at even distances, both ends among them; `FROM..TO:bySTEP` counts up from
//! `FROM` and stops at or before `TO`. A unit may be written once (`1..20ms`); the values have `FROM`'s. Several scans in one
//! policy make every combination, the first scan changing slowest.

use crate::spec::{PolicyError, PolicySpec};
use wattwise_figure::units::trim;
use wattwise_policy::{number_and_unit, unit_ratio};

/// Policies that one text may stand for: each is a whole replay.
const MOST: usize = 1000;

/// Reads a policy, or every policy of its scans.
///
/// # Errors
/// One line, where a scan has no end, runs backwards or has too many points, or a policy of it is wrong.
pub fn expand(text: &str) -> Result<Vec<PolicySpec>, PolicyError> {
    texts(text)?.iter().map(|t| PolicySpec::parse(t)).collect()
}

/// Every combination of the scans' values.
fn texts(text: &str) -> Result<Vec<String>, PolicyError> {
    let mut all = vec![String::new()];
    let mut rest = text;
    while let Some((before, scan, after)) = first_scan(rest) {
        let wrong =
            |problem: String| PolicyError::Scan { given: text.to_owned(), scan: scan.to_owned(), problem };
        let values = values(scan).map_err(wrong)?;
        let count = all.len().saturating_mul(values.len());
        if count > MOST {
            return Err(wrong(format!("{count} policies in all, and {MOST} are the most")));
        }
        all = all
            .iter()
            .flat_map(|start| values.iter().map(move |value| format!("{start}{before}{value}")))
            .collect();
        rest = after;
    }
    all.iter_mut().for_each(|t| t.push_str(rest));
    Ok(all)
}

/// What comes before the first value that is a scan, the scan, and the rest.
fn first_scan(text: &str) -> Option<(&str, &str, &str)> {
    // A file's path may go upwards.
    if text.ends_with(".toml") {
        return None;
    }
    let dots = text.find("..")?;
    let begin = text[..dots].rfind('=')? + 1;
    let end = text[dots..].find([',', '+']).map_or(text.len(), |i| dots + i);
    Some((&text[..begin], &text[begin..end], &text[end..]))
}

/// A scan's values as they are written; or what is wrong with it.
fn values(scan: &str) -> Result<Vec<String>, String> {
    let (from, rest) = scan.split_once("..").unwrap_or((scan, ""));
    let (to, how) = rest.split_once(':').unwrap_or((rest, ""));
    if from.is_empty() || to.is_empty() {
        return Err(format!("it has no {}", if from.is_empty() { "beginning" } else { "end" }));
    }
    let (first, unit) = number(from)?;
    let (last, last_unit) = number(to)?;
    let unit = if unit.is_empty() { last_unit } else { unit };
    let in_unit = |value: f64, written: &str| {
        let ratio = if written.is_empty() { Some(1.0) } else { unit_ratio(written, unit) };
        ratio.map(|r| value * r).ok_or_else(|| format!("{written} and {unit} are different things"))
    };
    let last = in_unit(last, last_unit)?;
    if last <= first {
        return Err(format!("{to} is not above {from}"));
    }
    let (step, points) = if let Some(points) = how.strip_prefix('n') {
        let points: usize = points.parse().map_err(|_| format!("'{points}' is no number of points"))?;
        if points < 2 {
            return Err("a scan has two points or more".into());
        }
        ((last - first) / (points - 1) as f64, points)
    } else if let Some(step) = how.strip_prefix("by") {
        let (size, step_unit) = number(step)?;
        let size = in_unit(size, step_unit)?;
        if size <= 0.0 {
            return Err(format!("{step} is no step upwards"));
        }
        // What is short of a whole step by rounding alone is one.
        (size, ((last - first) / size + 1e-9) as usize + 1)
    } else {
        return Err("it does not say which values".into());
    };
    if points > MOST {
        return Err(format!("{points} points, and {MOST} are the most"));
    }
    Ok((0..points).map(|i| format!("{}{unit}", trim(first + step * i as f64, 6))).collect())
}

fn number(text: &str) -> Result<(f64, &str), String> {
    number_and_unit(text)
        .filter(|(number, _)| number.is_finite())
        .ok_or_else(|| format!("'{text}' is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        expand(text).unwrap_or_else(|e| panic!("{e}")).into_iter().map(|p| p.text).collect()
    }

    #[test]
    fn a_scan_by_points_has_both_ends() {
        let rates = [1000, 5750, 10500, 15250, 20000].map(|us| format!("schedutil:rate_limit={us}"));
        assert_eq!(all("schedutil:rate_limit=1ms..20ms:n5"), rates);
        assert_eq!(all("schedutil:rate_limit=1..20ms:n5"), rates, "one unit for both");
        assert_eq!(all("schedutil:rate_limit=1000us..20ms:n5"), rates);
        assert_eq!(all("schedutil:rate_limit=1000..20000:n5"), rates);
    }

    #[test]
    fn a_scan_by_steps_stops_at_its_end() {
        let caps = |percents: &[u32]| -> Vec<String> {
            percents.iter().map(|p| format!("schedutil+max={p}%")).collect()
        };
        assert_eq!(all("schedutil+max=50%..100%:by10%"), caps(&[50, 60, 70, 80, 90, 100]));
        assert_eq!(all("schedutil+max=50..75%:by10"), caps(&[50, 60, 70]));
        assert_eq!(
            all("schedutil+max=0.1..0.3GHz:by0.1"),
            [100, 200, 300].map(|m| format!("schedutil+max={m}MHz"))
        );
    }

    #[test]
    fn scans_combine() {
        assert_eq!(
            all("burst:busy=2..4:by2,idle=5..6:n2+teo+max=50..60%:n2"),
            [
                "burst:busy=2,idle=5+teo+max=50%",
                "burst:busy=2,idle=5+teo+max=60%",
                "burst:busy=2,idle=6+teo+max=50%",
                "burst:busy=2,idle=6+teo+max=60%",
                "burst:busy=4,idle=5+teo+max=50%",
                "burst:busy=4,idle=5+teo+max=60%",
                "burst:busy=4,idle=6+teo+max=50%",
                "burst:busy=4,idle=6+teo+max=60%",
            ]
        );
        assert_eq!(all("performance"), ["performance"]);
        assert_eq!(all("powerd++"), ["powerd++"]);
    }

    #[test]
    fn what_is_no_scan_is_one_line() {
        for (given, told) in [
            ("schedutil:rate_limit=1ms..:n5", "it has no end"),
            ("schedutil:rate_limit=1ms..", "it has no end"),
            ("schedutil:rate_limit=..20ms:n5", "it has no beginning"),
            ("schedutil:rate_limit=1ms..20ms", "does not say which values"),
            ("schedutil:rate_limit=1ms..20ms:5", "does not say which values"),
            ("schedutil:rate_limit=20ms..1ms:n5", "1ms is not above 20ms"),
            ("schedutil:rate_limit=1ms..1000us:n5", "1000us is not above 1ms"),
            ("schedutil:rate_limit=1ms..20MHz:n5", "MHz and ms are different things"),
            ("schedutil:rate_limit=1ms..20ms:n1", "two points or more"),
            ("schedutil:rate_limit=1ms..20ms:n1001", "1001 points, and 1000 are the most"),
            ("schedutil:rate_limit=1ms..20ms:by0", "no step upwards"),
            ("schedutil:rate_limit=1us..20ms:by1us", "20000 points"),
            ("schedutil:rate_limit=1ms..inf:n5", "is no number"),
            ("schedutil:rate_limit=a..b:n5", "'a' is no number"),
            ("burst:busy=1..100:n40,idle=1..100:n40", "1600 policies in all"),
            ("schedutil:rate_limit=1s..20s:n5", "rate_limit=2s: expected a number from -1 to 1000000 us"),
            ("powerd:poll=1..5:n5,nonsense=1", "no parameter 'nonsense'"),
        ] {
            let error = expand(given).err().unwrap_or_else(|| panic!("{given} passes")).to_string();
            let told = told.replace("rate_limit=2s", "rate_limit=5.75s");
            assert!(error.contains(&told) && !error.contains('\n'), "{given}: {error}");
        }
    }
}
