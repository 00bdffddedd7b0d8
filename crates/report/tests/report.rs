//! What a report's text promises, whatever a browser makes of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
mod support;

use wattwise_advice::result::{Comparison, Preferred, Responses};
use wattwise_advice::time::TimeKind;
use wattwise_page::{Section, page};
use wattwise_report::compare_html;

fn reports() -> Vec<String> {
    let (usual, usual_details) = support::usual();
    let (extreme, extreme_details) = support::extreme();
    let words = Section::Text { title: extreme.machine.clone(), body: extreme.machine.clone() };
    vec![
        compare_html(&usual, &usual_details, support::COMMAND),
        compare_html(&extreme, &extreme_details, &extreme.machine),
        page("study", &extreme.machine, &[words]),
    ]
}

#[test]
fn nothing_is_allowed_or_asked_from_outside() {
    for html in reports() {
        assert!(html.contains("content=\"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\""));
        for outward in ["src=", "@import", "url(", "href=\"http", "href=\"//"] {
            assert!(!html.contains(outward), "{outward}");
        }
    }
}

#[test]
fn names_do_not_become_markup() {
    for html in reports() {
        assert!(!html.contains("<script>alert"));
        assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    }
}

#[test]
fn the_tables_need_no_script() {
    let (comparison, details) = support::usual();
    let html = compare_html(&comparison, &details, support::COMMAND);
    for r in &comparison.results {
        assert!(html.contains(&format!("data-v=\"{}\"", r.policy)), "{}", r.policy);
        assert!(html.contains(&format!("data-v=\"{}\"", r.energy_j)), "{}", r.policy);
    }
    assert!(html.contains("modelled") && html.contains(&comparison.answer.text.replace(" %", "\u{a0}%")));
}

/// The headline names the reason of the choice, and only where the page's own figures bear it out.
#[test]
fn the_headline_says_why_a_tied_policy_is_recommended() {
    let headline = |change: &dyn Fn(&mut Comparison)| {
        let (mut comparison, details) = support::usual();
        let names: Vec<String> = comparison.results.iter().map(|r| r.policy.clone()).collect();
        let a = &mut comparison.answer;
        (a.winner, a.recommended, a.tied) = (None, names[3].clone(), names[4..6].to_vec());
        for (at, median) in [(3, 0.9), (4, 0.91), (5, 0.92)] {
            let r = &mut comparison.results[at];
            (r.admissible, r.uncertain.energy_ratio.median) = (true, median);
        }
        change(&mut comparison);
        let html = compare_html(&comparison, &details, support::COMMAND);
        let kind = html.split_once("<p class=\"kind\">").unwrap().1;
        kind.split_once('<').unwrap().0.to_owned()
    };
    let because = |preferred: Preferred| move |c: &mut Comparison| c.answer.preferred = Some(preferred);
    assert!(headline(&because(Preferred::Leads)).ends_with("this one uses the least energy"));
    let costs_more = |c: &mut Comparison| {
        because(Preferred::Leads)(c);
        c.results[3].uncertain.energy_ratio.median = 0.915;
    };
    assert!(!headline(&costs_more).contains("least energy"), "{}", headline(&costs_more));
    assert!(headline(&because(Preferred::Faster)).ends_with("this one is as good as the best, and faster"));
    assert!(headline(&because(Preferred::ChangesLess)).ends_with("and changes fewer settings"));
    let read_again = headline(&|_| {});
    assert!(read_again.starts_with("No clear difference between ") && !read_again.contains("this one"));
}

/// A figure of fewer replicas says of how many, and the heading of what is out does not claim a time.
#[test]
fn rows_that_were_left_early_say_so() {
    let (mut comparison, details) = support::usual();
    let whole = compare_html(&comparison, &details, support::COMMAND);
    assert!(whole.contains(&format!("The dot is the median of {} replicas, the line", comparison.replicas)));
    for (at, after) in [(1, 16), (2, 4)] {
        comparison.results[at].raced_out_after = Some(after);
    }
    let html = compare_html(&comparison, &details, support::COMMAND);
    assert!(html.contains("replicas (16 or 4 where a policy was dropped early)"));
    // Once in the chart of intervals, once in the table.
    for after in [4, 16] {
        assert_eq!(html.matches(&format!("<span class=\"tag left\">{after} replicas</span>")).count(), 2);
    }
    assert!(html.contains("Not within the time limit (10\u{a0}%) in 95\u{a0}% of the replicas"));
}

/// Energy over a longer time is not compared, so the least of it leads no bars, and says that it is of a longer time.
#[test]
fn what_ran_longer_comes_last_among_the_bars() {
    let (mut comparison, details) = support::usual();
    let least = comparison.results.iter().map(|r| r.window_energy_j).fold(f64::INFINITY, f64::min);
    for r in &mut comparison.results {
        r.over_own_time = false;
    }
    let longer = &mut comparison.results[1];
    (longer.over_own_time, longer.window_energy_j) = (true, least / 2.0);
    let name = format!("<span class=\"policy\">{}</span><b>", longer.policy);
    let html = compare_html(&comparison, &details, support::COMMAND);
    let energy = html.split_once("id=\"energy-h\"").unwrap().1.split_once("id=\"time-h\"").unwrap().0;
    let last = energy.rsplit_once("<div class=\"name\">").unwrap().1;
    assert!(last.starts_with(&name) && last.contains(" over a longer time</b>"), "{}", &last[..200]);
    assert_eq!(energy.matches("over a longer time</b>").count(), 1);
}

/// Gaps of single events are told with their number; the alarm is for what may change the answer.
#[test]
fn small_gaps_are_no_alarm() {
    let (mut comparison, details) = support::usual();
    let mut html = |warnings: &[&str]| {
        comparison.inputs.warnings = warnings.iter().map(|w| (*w).to_owned()).collect();
        compare_html(&comparison, &details, support::COMMAND)
    };
    let small = [
        "205 switches from idle were not recorded; each such task is assumed to start at its wake-up.",
        "No sched_waking events: the wakers of 7 wake-ups are guesses; record with -e sched:sched_waking.",
    ];
    let quiet = html(&small);
    assert!(quiet.contains("212 events") && !quiet.contains("read before you trust the figures"));
    let loud = html(&["the recording lost events", small[0]]);
    assert!(
        loud.contains("2 warnings</a>: read before you trust the figures") && loud.contains("205 events")
    );
}

/// The cells of a policy's row in the table of policies, and the heading of its group.
fn row<'h>(html: &'h str, policy: &str) -> (&'h str, &'h str) {
    let table = html.split_once("sortable figures grouped").unwrap().1.split_once("</table>").unwrap().0;
    let (before, after) = table.split_once(&format!("data-v=\"{policy}\"")).unwrap();
    let group = before.rsplit_once("rowgroup").unwrap().1;
    let title = group.split_once("<span>").unwrap().1.split_once("</span>").unwrap().0;
    (title, after.split_once("</tr>").unwrap().0)
}

/// What was dropped after too few replicas to judge its responses is not said to be within the limit, nor beyond it.
#[test]
fn what_was_not_judged_stands_by_itself() {
    let (mut comparison, details) = support::interactive();
    comparison.judged.kind = TimeKind::Response;
    let at =
        comparison.results.iter().position(|r| !r.tied && r.policy != comparison.answer.recommended).unwrap();
    let r = &mut comparison.results[at];
    (r.admissible, r.raced_out_after, r.within_share) = (true, Some(4), 0.0);
    r.responses = Some(Responses { judged: false, reference_waiting_s: 1.0, ..Responses::default() });
    let policy = r.policy.clone();
    let html = compare_html(&comparison, &details, support::COMMAND);
    let (title, cells) = row(&html, &policy);
    assert_eq!(title, "Dropped early: cannot be the best; the time limit was not judged");
    assert!(cells.contains("not judged"), "{cells}");
    // What was found too slow by then stays so.
    comparison.results[at].admissible = false;
    let html = compare_html(&comparison, &details, support::COMMAND);
    let (title, cells) = row(&html, &policy);
    assert!(
        title.starts_with("Some response is slower") && !cells.contains("not judged"),
        "{title}: {cells}"
    );
    comparison.results[at].admissible = true;
    // Nobody notices its responses: then there is nothing to judge.
    comparison.results[at].responses = Some(Responses::default());
    let html = compare_html(&comparison, &details, support::COMMAND);
    assert_eq!(row(&html, &policy).0, "The others within the limit");
}

/// Of what else the limit counts from only the case that applies is told.
#[test]
fn a_standard_says_what_it_is() {
    let (mut comparison, details) = support::usual();
    let mut limit = |standards: &[&str], default: Option<&str>| {
        comparison.standards = standards.iter().map(|s| (*s).to_owned()).collect();
        comparison.default_standard = default.map(str::to_owned);
        let html = compare_html(&comparison, &details, support::COMMAND);
        let limit = html.split_once("<dt>Time limit</dt><dd>").unwrap().1;
        limit.split_once("</dd>").unwrap().0.to_owned()
    };
    assert!(!limit(&[], None).contains("same limit"));
    let default = limit(&["hwp"], Some("hwp"));
    assert!(
        default.contains("against hwp (EPP balance_performance), the system’s default. A policy"),
        "{default}"
    );
    let both = limit(&["hwp", "schedutil"], Some("hwp"));
    assert!(both.contains("default, and against schedutil, in force before the last change."), "{both}");
}

/// Where no figure can be told apart from chance there is nothing to decide by.
#[test]
fn what_decides_is_left_out_where_nothing_does() {
    let (mut comparison, details) = support::usual();
    let has = |c: &Comparison| compare_html(c, &details, support::COMMAND).contains("id=\"decides\"");
    assert!(has(&comparison));
    comparison.deciding.as_mut().unwrap().figures.clear();
    assert!(!has(&comparison));
}

/// Of a comparison that was stopped in its second policy nobody learns that there is one policy only.
#[test]
fn a_policy_alone_may_be_what_a_stop_has_left() {
    let (mut comparison, details) = support::usual();
    let reference = comparison.reference.clone();
    comparison.results.retain(|r| r.policy == reference);
    comparison.answer.recommended = reference;
    let says = |c: &Comparison| {
        compare_html(c, &details[..1], support::COMMAND).to_lowercase().contains("the only policy")
    };
    assert!(says(&comparison));
    comparison.stopped = true;
    assert!(!says(&comparison));
}
