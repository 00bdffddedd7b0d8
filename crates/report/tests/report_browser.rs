//! The reports in a real browser: they load nothing, complain of nothing, fit, zoom and sort.
//!
//! Screenshots stay in the build folder (`tmp/report-*.png`) for people to look at.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/browser.rs"]
mod browser;
#[path = "support/mod.rs"]
mod support;

use std::path::PathBuf;

use browser::{Browser, Page, View};
use wattwise_page::{Axis, AxisScale, Bars, Heatmap, LineShape, Plot, Point, Section, Series, Table, page};
use wattwise_report::compare_html;

const DESKTOP: View = View { width: 1280, height: 900, dark: false };
const DESKTOP_DARK: View = View { dark: true, ..DESKTOP };
const PHONE: View = View { width: 420, height: 900, dark: false };
const PHONE_DARK: View = View { dark: true, ..PHONE };
const VIEWS: [(&str, View); 4] =
    [("light", DESKTOP), ("dark", DESKTOP_DARK), ("phone", PHONE), ("phone-dark", PHONE_DARK)];

fn kept(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"))
}

fn write(name: &str, html: &str) -> PathBuf {
    let file = kept(name);
    std::fs::write(&file, html).unwrap();
    file
}

/// In every view: nothing to complain of, no sideways scrolling, a picture to look at.
fn sound_in_every_view(browser: &mut Browser, name: &str, file: &std::path::Path) {
    for (view_name, view) in VIEWS {
        let mut page = browser.open(file, view);
        assert_eq!(page.complaints(), Vec::<String>::new(), "{name}, {view_name}");
        let wide = page.number("document.documentElement.scrollWidth");
        assert!(wide <= f64::from(view.width), "{name}, {view_name}: the page is {wide} px wide");
        page.screenshot(&kept(&format!("{name}-{view_name}.png")), true).unwrap();
    }
}

/// Left and right end that each chart of the timeline shows.
fn ranges(page: &mut Page<'_>) -> Vec<[f64; 2]> {
    serde_json::from_value(page.eval("wattwiseReport.ranges()")).unwrap()
}

fn close(a: f64, b: f64, span: f64) -> bool {
    (a - b).abs() < span * 0.02
}

#[test]
fn a_comparison_can_be_read_zoomed_and_sorted() {
    let Some(mut browser) = Browser::start("usual") else { return };
    let (comparison, details) = support::usual();
    let html = compare_html(&comparison, &details, support::COMMAND);
    assert!(html.len() < 1_500_000, "{} bytes", html.len());
    let file = write("usual.html", &html);
    sound_in_every_view(&mut browser, "usual", &file);

    for view in [DESKTOP, DESKTOP_DARK, PHONE] {
        let mut page = browser.open(&file, view);
        let end = page.number("wattwiseReport.end()");

        // Drag over the power chart of the first policy: all six charts follow.
        let all = ranges(&mut page);
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|r| r[0] == 0.0 && r[1] == end), "{all:?}");
        page.drag("#lanes .u-over", 0.25, 0.5);
        let zoomed = ranges(&mut page);
        assert!(zoomed.iter().all(|r| r == &zoomed[0]), "{zoomed:?}");
        assert!(close(zoomed[0][0], end * 0.25, end) && close(zoomed[0][1], end * 0.5, end), "{zoomed:?}");
        if view.width > 600 {
            let name = if view.dark { "zoomed-dark.png" } else { "zoomed-light.png" };
            page.place("#timeline");
            page.screenshot(&kept(name), false).unwrap();
        }
        // Over a strip of the second policy: deeper, and again all.
        page.drag("#lanes > :last-child .strips:last-of-type .u-over", 0.5, 0.75);
        let deeper = ranges(&mut page);
        assert!(deeper.iter().all(|r| r == &deeper[0]), "{deeper:?}");
        assert!(deeper[0][0] > zoomed[0][0] && deeper[0][1] < zoomed[0][1], "{deeper:?}");
        page.double_click("#lanes .strips .u-over");
        assert_eq!(ranges(&mut page), all, "a double click resets");
        page.click("[data-zoom=in]");
        let button = ranges(&mut page);
        assert!(close(button[0][1] - button[0][0], end / 2.0, end), "{button:?}");
        page.click("[data-zoom=all]");
        assert_eq!(ranges(&mut page), all, "the button resets");

        // The pointer over a chart is put into words.
        let [left, top, width, height] = page.place("#lanes .strips .u-over");
        page.mouse("mouseMoved", left + width * 0.3, top + height * 0.6, 0);
        page.settle();
        let said = page.eval("document.querySelector('#lanes .readout').textContent");
        assert!(said.as_str().unwrap().contains("cpu2"), "{said}");

        // Another policy, and none beside it.
        let third = &comparison.results[3].policy;
        page.eval(&format!(
            "(() => {{ const s = document.getElementById('policy-a'); s.value = {:?}; s.dispatchEvent(new Event('change')); }})()",
            third
        ));
        page.settle();
        assert_eq!(page.eval("document.querySelector('.lane-title').textContent"), third.as_str());
        page.eval("(() => { const s = document.getElementById('policy-b'); s.value = ''; s.dispatchEvent(new Event('change')); })()");
        page.settle();
        assert_eq!(ranges(&mut page).len(), 3);

        sorts_within_its_groups(&mut page);

        charts_show_every_policy(&mut page);
        assert_eq!(page.complaints(), Vec::<String>::new(), "{view:?}");
    }

    // A window that becomes narrower: no chart is wider than its card, and the page does not scroll sideways.
    let mut page = browser.open(&file, DESKTOP);
    page.resize(View { width: 390, ..DESKTOP });
    page.wait(
        "[...document.querySelectorAll('.uplot, #scatter svg')].every(c => c.getBoundingClientRect().right <= \
         c.closest('.card').getBoundingClientRect().right) && document.documentElement.scrollWidth <= innerWidth",
    );
    let names = "[...document.querySelectorAll('.whisker .name, .stack .name .policy')].every(n => n.scrollWidth <= n.clientWidth)";
    assert_eq!(page.eval(names), true, "a name is cut");

    // The colours follow the reader's choice while the page is open, and paper is light.
    let mut page = browser.open(&file, DESKTOP);
    page.resize(DESKTOP_DARK);
    page.settle();
    page.place("#timeline");
    page.screenshot(&kept("switched.png"), false).unwrap();
    page.pdf(&kept("usual.pdf")).unwrap();
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// The trade-off and the latencies.
fn charts_show_every_policy(page: &mut Page<'_>) {
    // The scatter: every policy a point or, far off, in words; labels that do not overlap.
    let shown = page.number("document.querySelectorAll('#scatter .point').length");
    let named = page.eval("document.getElementById('front').textContent");
    let named = named.as_str().unwrap();
    let far = named.matches("(time ").count();
    // Energy over a longer time is no share of the reference's.
    let apart = named.split_once("Not shown, since they did not finish within the window: ");
    let apart =
        apart.map_or(0, |(_, rest)| rest.split_once('.').map_or(rest, |(list, _)| list).split(", ").count());
    assert!(shown >= 8.0 && shown + (far + apart) as f64 == 12.0, "{shown} points; {named}");
    let keys = page.eval("document.getElementById('scatter-key').textContent");
    assert!(keys.as_str().unwrap().contains("recommended"), "{keys}");
    let overlaps = page.number(
        "(() => { const b = [...document.querySelectorAll('#scatter .label')].map(l => l.getBoundingClientRect());\
         return b.filter((p, i) => b.some((q, k) => k > i && p.left < q.right && q.left < p.right && p.top + 2 < q.bottom && q.top + 2 < p.bottom)).length; })()",
    );
    assert_eq!(overlaps, 0.0);
    for shown in ["window", "own"] {
        page.eval(&format!("document.querySelector('input[value={shown}]').click()"));
        assert_eq!(page.number("document.querySelectorAll('#scatter .point').length"), 12.0);
    }
    assert_eq!(page.number("document.querySelectorAll('#scatter .range').length"), 0.0, "one run has none");

    // Latencies: ticking one more shows one more.
    page.eval(
        "document.querySelectorAll('#wake-policies input').forEach(i => { if (!i.checked) i.click(); })",
    );
    assert_eq!(page.number("document.querySelectorAll('#ccdf canvas').length"), 1.0);
}

/// Up, then down; each group for itself.
fn sorts_within_its_groups(page: &mut Page<'_>) {
    let column = "[...document.querySelectorAll('.grouped tbody')].map(b => [...b.rows].slice(1).map(r => Number(r.cells[1].dataset.v)))";
    page.click(".grouped thead th:nth-child(2) button");
    let up: Vec<Vec<f64>> = serde_json::from_value(page.eval(column)).unwrap();
    assert!(up.iter().map(Vec::len).sum::<usize>() == 12 && up.iter().all(|g| g.is_sorted()), "{up:?}");
    assert_eq!(page.eval("document.querySelector('.grouped th:nth-child(2)').ariaSort"), "ascending");
    page.click(".grouped thead th:nth-child(2) button");
    let down: Vec<Vec<f64>> = serde_json::from_value(page.eval(column)).unwrap();
    assert!(down.iter().all(|g| g.iter().rev().is_sorted()), "{down:?}");
}

/// What is not a number is said, and nothing of it is drawn.
#[test]
fn absent_figures_are_said() {
    let Some(mut browser) = Browser::start("absent") else { return };
    let cases = [
        ("exact", support::exact()),
        ("no-numbers", support::without_numbers()),
        ("interactive", support::interactive()),
    ];
    for (name, (comparison, details)) in cases {
        let file = write(&format!("{name}.html"), &compare_html(&comparison, &details, "wattwise compare"));
        sound_in_every_view(&mut browser, name, &file);
        let mut page = browser.open(&file, DESKTOP);
        let text = page.eval("document.body.innerText");
        for word in ["NaN", "Infinity", "null", "undefined"] {
            assert!(!text.as_str().unwrap().contains(word), "{name} shows {word}");
        }
        let axes = page.eval("document.querySelector('#scatter svg').textContent");
        let waiting = axes.as_str().unwrap().contains("waiting for responses against the reference, %");
        assert_eq!(waiting, name == "interactive", "{name}: {axes}");
        let lines = page.number("document.querySelectorAll('.whisker i').length");
        assert_eq!(lines > 0.0, name == "interactive", "{name}");
    }
}

#[test]
fn an_extreme_comparison_stays_in_its_page() {
    let Some(mut browser) = Browser::start("extreme") else { return };
    let (comparison, details) = support::extreme();
    let html = compare_html(&comparison, &details, &comparison.machine);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    let file = write("extreme.html", &html);
    sound_in_every_view(&mut browser, "extreme", &file);

    let mut page = browser.open(&file, DESKTOP);
    let name = comparison.machine.as_str();
    assert_eq!(page.eval("wattwiseReport.data.comparison.machine"), name);
    assert_eq!(
        page.eval("document.querySelector('h1').textContent.replace(/\\s+/g, ' ').trim()"),
        format!("{name} on {name}")
    );
    assert_eq!(page.number("document.querySelectorAll('script').length"), 4.0, "no script but ours");
    assert_eq!(ranges(&mut page).len(), 3);
    page.drag("#lanes .u-over", 0.4, 0.6);
    page.place("#timeline");
    page.screenshot(&kept("extreme-zoomed.png"), false).unwrap();
    assert_eq!(page.complaints(), Vec::<String>::new());

    // Neither timelines nor latencies: what is left still stands.
    let file = write("bare.html", &compare_html(&comparison, &[], "wattwise compare"));
    let mut page = browser.open(&file, PHONE);
    assert_eq!(page.eval("document.getElementById('timeline')"), serde_json::Value::Null);
    assert_eq!(page.complaints(), Vec::<String>::new());
}

/// Curves of every shape.
fn plot() -> Plot {
    let curve = |name: &str, shape, scale: f64| Series {
        name: name.to_owned(),
        shape,
        points: (0..16)
            .map(|i| {
                let y = scale * f64::from((i * 7) % 5 + 1);
                Point {
                    x: f64::from(i) * 0.5,
                    y,
                    error: (shape == LineShape::Points).then_some((y * 0.9, y * 1.15)),
                }
            })
            .collect(),
    };
    let axis = |name: &str, unit: &str, scale| Axis {
        name: name.to_owned(),
        unit: unit.to_owned(),
        scale,
        ..Axis::default()
    };
    Plot {
        title: "Speed over time (synthetic)".to_owned(),
        x: axis("time", "s", AxisScale::Linear),
        y: axis("speed", "Hz", AxisScale::Linear),
        series: vec![
            curve("set", LineShape::Step, 3e8),
            curve("asked for", LineShape::Line, 3.1e8),
            curve("published", LineShape::Points, 2.9e8),
        ],
        note: "Made up for the test.".to_owned(),
    }
}

fn table() -> Table {
    Table {
        title: "Published and predicted".to_owned(),
        head: ["Case", "Published, J", "Predicted, J", "Difference"].map(str::to_owned).to_vec(),
        rows: vec![
            ["idle", "120.5", "118.2", "−1.9 %"].map(str::to_owned).to_vec(),
            ["build", "64.0", "70.1", "+9.5 %"].map(str::to_owned).to_vec(),
        ],
        note: "Predicted, not measured.".to_owned(),
    }
}

fn heatmap() -> Heatmap {
    Heatmap {
        title: "Delay of a change of speed".to_owned(),
        row_name: "from".to_owned(),
        column_name: "to".to_owned(),
        rows: (0..8).map(|i| format!("{} MHz", 600 + 200 * i)).collect(),
        columns: (0..8).map(|i| format!("{} MHz", 600 + 200 * i)).collect(),
        values: (0..8)
            .map(|r| {
                (0..8).map(|c| if r == c { f64::NAN } else { f64::from(i32::abs(r - c) * 11 + 20) }).collect()
            })
            .collect(),
        unit: "µs".to_owned(),
        note: String::new(),
    }
}

fn bars() -> Bars {
    Bars {
        title: "Energy by policy".to_owned(),
        unit: "J".to_owned(),
        series: vec!["published".to_owned(), "predicted".to_owned()],
        groups: vec![
            ("performance".to_owned(), vec![Some((120.0, Some((112.0, 131.0)))), Some((118.0, None))]),
            ("powersave".to_owned(), vec![Some((94.0, None)), None]),
        ],
        note: String::new(),
    }
}

#[test]
fn a_study_is_one_page_of_charts_and_tables() {
    let Some(mut browser) = Browser::start("study") else { return };
    let plot = plot();
    std::fs::write(kept("steps.svg"), plot.svg()).unwrap();
    let html = page(
        "study",
        "Synthetic study </script>",
        &[
            Section::Text {
                title: "What it shows".to_owned(),
                body: "Nothing: every figure is made up.\n\nA second paragraph.".to_owned(),
            },
            Section::Table(table()),
            Section::Steps(plot),
            Section::Heatmap(heatmap()),
            Section::Bars(bars()),
        ],
    );
    let file = write("study.html", &html);
    sound_in_every_view(&mut browser, "study", &file);
    let mut page = browser.open(&file, DESKTOP);
    page.click("table.sortable thead th:nth-child(2) button");
    assert_eq!(page.eval("document.querySelector('table.sortable tbody th').textContent"), "build");
    assert_eq!(page.complaints(), Vec::<String>::new());
}
