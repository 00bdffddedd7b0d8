//! Mixes of bundled recordings: a day of a laptop, a day of a server. A weight is a share of the hours.

use crate::library;
use wattwise_model::workload::generate;

/// A named mix.
pub struct NamedMix {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Bundled workloads and their weights.
    pub works: &'static [(&'static str, f64)],
}

/// All named mixes.
pub static MIXES: &[NamedMix] = &[
    NamedMix {
        name: "laptop-day",
        summary: "a laptop's day: four hours at rest, two of browsing, one of films, half an hour of builds and saved data",
        works: &[
            ("idle-desktop", 4.0),
            ("browse-app", 2.0),
            ("video-play", 1.0),
            ("build", 0.3),
            ("sqlite", 0.2),
        ],
    },
    NamedMix {
        name: "server-day",
        summary: "a server's day: mostly waiting, then transactions, pages and a nightly backup",
        works: &[
            ("idle-server", 12.0),
            ("postgres", 6.0),
            ("node-http", 4.0),
            ("nginx", 1.5),
            ("backup", 0.5),
        ],
    },
];

/// The mix of that name.
pub fn find(name: &str) -> Option<&'static NamedMix> {
    MIXES.iter().find(|m| m.name == name)
}

/// The largest weight.
const MOST: f64 = 1e6;

/// Where the weight of a work begins: after the last `=`, unless that is a generator's parameter's, as in `periodic:hz=60`.
fn weight_at(text: &str) -> Option<usize> {
    let last = text.rfind('=')?;
    let parameter = text[..last].rfind([':', ',']).filter(|_| generate::find(text).is_some());
    parameter.is_none_or(|begin| text[begin..last].contains('=')).then_some(last)
}

/// A work as it is written, with its weight: `desktop=3`, `periodic:hz=60=3`. Without one it is 1. A file that has the whole name
/// is that file.
///
/// # Errors
/// One line, where the weight is no positive number.
pub fn weighted(text: &str) -> Result<(&str, f64), String> {
    let Some(at) = weight_at(text).filter(|_| !std::path::Path::new(text).exists()) else {
        return Ok((text, 1.0));
    };
    let (name, weight) = (&text[..at], &text[at + 1..]);
    let takes_none =
        |work: &str| generate::find(work).is_none() && library::workloads().iter().any(|b| b.name == work);
    if let Some((work, key)) = name.split_once(':').filter(|(work, _)| takes_none(work)) {
        return Err(format!(
            "{text}: {work} takes no parameters such as {key}; expected {work} alone, or a weight: {work}={weight}"
        ));
    }
    match weight.parse::<f64>() {
        Ok(w) if w > 0.0 && w <= MOST => Ok((name, w)),
        _ => Err(format!("{text}: expected a weight above 0 and at most {MOST} after '=', such as {name}=3")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_has_no_parameters() {
        let error = weighted("desktop:hz=3").unwrap_err();
        assert!(error.starts_with("desktop:hz=3: desktop takes no parameters such as hz"), "{error}");
        assert_eq!(weighted("periodic:hz=60=3"), Ok(("periodic:hz=60", 3.0)));
        assert_eq!(weighted("./a:b.toml=2"), Ok(("./a:b.toml", 2.0)));
    }

    #[test]
    fn named_mixes_are_of_what_is_bundled() {
        for mix in MIXES {
            for (name, weight) in mix.works {
                assert!(library::workload(name, &Default::default()).is_ok() && *weight > 0.0, "{name}");
            }
        }
        assert!(find("laptop-day").is_some() && find("laptop").is_none());
    }

    #[test]
    fn a_generators_parameter_is_no_weight() {
        for (text, name, weight) in [
            ("periodic:hz=60", "periodic:hz=60", 1.0),
            ("periodic:hz=60,duty=0.1", "periodic:hz=60,duty=0.1", 1.0),
            ("periodic:hz=60=3", "periodic:hz=60", 3.0),
            ("periodic:hz=60,duty=0.1=0.5", "periodic:hz=60,duty=0.1", 0.5),
            ("periodic=2", "periodic", 2.0),
        ] {
            assert_eq!(weighted(text), Ok((name, weight)));
        }
    }

    #[test]
    fn weights_are_positive_numbers() {
        assert_eq!(weighted("desktop=3"), Ok(("desktop", 3.0)));
        assert_eq!(weighted("desktop"), Ok(("desktop", 1.0)));
        assert_eq!(weighted("a=b=0.5"), Ok(("a=b", 0.5)));
        assert_eq!(weighted("a:b=0.5"), Ok(("a:b", 0.5)));
        for wrong in ["desktop=0", "desktop=-1", "desktop=", "desktop=inf", "desktop=nan", "desktop=x"] {
            assert!(weighted(wrong).is_err(), "{wrong}");
        }
    }
}
