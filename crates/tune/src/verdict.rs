//! What follows of a search, in words, and the policy file.

use crate::gain::Gain;
use crate::result::{Part, Test, Verdict};
use wattwise_advice::answer::change;
use wattwise_advice::result::Interval;
use wattwise_advice::rule::Goal;
use wattwise_advice::ties::NOTICEABLE;

/// What a verdict speaks of.
pub(crate) struct Words<'a> {
    pub(crate) winner: &'a str,
    pub(crate) defaults: &'a str,
    pub(crate) reference: &'a str,
    pub(crate) goal: Goal,
}

/// What follows of a search that came to its end.
pub(crate) fn verdict(w: &Words<'_>, train: Option<Gain>, test: Option<&Test>) -> Verdict {
    let Words { winner, defaults, reference, goal } = w;
    let Some(test) = test else {
        return Verdict { worth_it: None, text: untested(w, train) };
    };
    let n = test.against_reference.recordings;
    let on = if n == 1 { "on 1 recording".into() } else { format!("on {n} recordings") };
    let on = format!("{on} that the search did not use");
    let over_reference = in_words(test.against_reference, *goal, reference);
    let no = |text: String| Verdict { worth_it: Some(false), text: format!("Not worth it. {text}") };
    if winner == defaults && defaults == reference {
        return no(format!("Keep {reference}: the search found nothing better."));
    }
    if !test.admissible {
        return no(format!("{winner} exceeds the limits {on}: keep {reference}."));
    }
    if !test.against_reference.saves(NOTICEABLE) {
        return no(format!("{winner}, {on}: {over_reference}. Keep {reference}."));
    }
    if winner == defaults {
        return Verdict {
            worth_it: Some(true),
            text: format!("Use {winner} as it is: no other settings were better. {over_reference}, {on}."),
        };
    }
    let over_defaults = in_words(test.against_defaults, *goal, &format!("{defaults} as it is"));
    if reference != defaults && !test.against_defaults.saves(NOTICEABLE) {
        return no(format!(
            "{winner}, {on}: {over_reference}, but {over_defaults}: {defaults} with its own settings does as well."
        ));
    }
    let and = if reference == defaults { String::new() } else { format!(", and {over_defaults}") };
    Verdict { worth_it: Some(true), text: format!("Worth it. {winner}, {on}: {over_reference}{and}.") }
}

/// What follows of a search that was stopped: nothing yet.
pub(crate) fn of_stopped(w: &Words<'_>, train: Option<Gain>, (part, trials): (Part, &str)) -> Verdict {
    let Words { winner, reference, goal, .. } = w;
    let so_far = match train {
        Some(g) => format!(
            "Best on the recordings of the search so far: {winner}, which {}. Expect less on others.",
            in_words(g, *goal, reference)
        ),
        None => format!("None of the policies tried so far keeps the limits; {winner} stands in."),
    };
    let place = match part {
        Part::Search => format!("in the search, after {trials}"),
        Part::Confirm => format!("after {trials}, before the best of them were run again"),
        Part::Test => format!("in the test, after a search of {trials}"),
    };
    Verdict { worth_it: None, text: format!("Stopped {place}: nothing is tested yet. {so_far}") }
}

/// Without a test there is no verdict: results on the recordings of the search are optimistic.
fn untested(w: &Words<'_>, train: Option<Gain>) -> String {
    let Words { winner, reference, goal, .. } = w;
    let why = "Not tested: the search used every recording. Give more of your work with --test.";
    if winner == reference {
        return format!("Keep {reference}: the search found nothing better. {why}");
    }
    let seen = train.map_or_else(String::new, |g| format!(": {winner} {}", in_words(g, *goal, reference)));
    format!("Best in the search{seen}; expect less on other recordings. {why}")
}

/// As a predicate: "saves 3.1 % energy against schedutil (1.2 to 5.0 %)".
fn in_words(g: Gain, goal: Goal, against: &str) -> String {
    let goal = goal.name();
    let interval = Interval { median: g.ratio, low: g.low, high: g.high };
    let (range, sign) = change(interval);
    let percent = ((g.ratio - 1.0) * 100.0).abs();
    match sign {
        -1 => format!("saves {percent:.1} % {goal} against {against} ({range})"),
        1 => format!("needs {percent:.1} % more {goal} than {against} ({range})"),
        _ if range == "the same" => format!("needs the same {goal} as {against}"),
        _ => format!(
            "shows no clear difference in {goal} from {against} ({} %: {range})",
            wattwise_figure::signed((g.ratio - 1.0) * 100.0, 1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(ratio: f64, low: f64, high: f64) -> Gain {
        Gain { ratio, low, high, recordings: 3 }
    }

    fn test(against_reference: Gain, against_defaults: Gain) -> Test {
        Test {
            against_reference,
            against_defaults,
            defaults_against_reference: gain(1.0, 0.99, 1.01),
            time_ratio: 1.0,
            p99_ratio: 1.0,
            admissible: true,
            gap: None,
            each: Vec::new(),
        }
    }

    #[test]
    fn a_gain_that_may_be_chance_or_the_defaults_is_not_worth_it() {
        let words = |winner| Words { winner, defaults: "burst", reference: "schedutil", goal: Goal::Energy };
        let (sure, slight, chance) =
            (gain(0.95, 0.93, 0.97), gain(0.995, 0.99, 0.999), gain(0.95, 0.89, 1.01));
        let of = |w: &'static str, a, b| {
            let v = verdict(&words(w), None, Some(&test(a, b)));
            (v.worth_it, v.text)
        };
        let (worth, text) = of("burst:busy=1", sure, sure);
        assert_eq!(worth, Some(true), "{text}");
        assert!(text.contains("saves 5.0 % energy against schedutil (3.0 to 7.0 %)"), "{text}");
        for (a, b) in [(slight, sure), (chance, sure), (sure, slight), (sure, chance)] {
            let (worth, text) = of("burst:busy=1", a, b);
            assert!(worth == Some(false) && text.starts_with("Not worth it"), "{text}");
        }
        assert!(of("burst:busy=1", sure, chance).1.contains("burst with its own settings does as well"));
        let (worth, text) = of("burst", sure, gain(1.0, 1.0, 1.0));
        assert!(worth == Some(true) && text.contains("as it is"), "{text}");
        let late = Test { admissible: false, ..test(sure, sure) };
        assert_eq!(verdict(&words("burst:busy=1"), None, Some(&late)).worth_it, Some(false));
        let untested = verdict(&words("burst:busy=1"), Some(sure), None);
        let text = untested.text;
        assert!(
            untested.worth_it.is_none() && text.starts_with("Best in the search: burst:busy=1 saves 5.0 %"),
            "{text}"
        );
        assert!(text.contains("Not tested"), "{text}");
        let kept = Words { reference: "burst", ..words("burst") };
        assert!(verdict(&kept, Some(sure), None).text.starts_with("Keep burst: "));
    }
}
