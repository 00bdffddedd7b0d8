//! What a report's text promises, whatever a browser makes of it.

#[path = "support/mod.rs"]
mod support;

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
    assert!(html.contains("modelled") && html.contains(&comparison.answer.text));
}
