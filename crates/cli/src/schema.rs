//! The shapes of what `--json` prints, as JSON Schema in `docs/schema`.
//!
//! They are made from the types that are printed and from their comments. `WATTWISE_BLESS=1 cargo test -p wattwise
//! --lib schema` writes them anew; without it the tests compare. (`compare-3.json` is written by hand: it also says which
//! values make sense together.)

use crate::exit::Named;
use crate::machine::{calibrate, profile, record, restore, set};
use crate::model::{list, machines, reproduce, trace};
use crate::show::run;
use schemars::{JsonSchema, Schema};
use serde_json::json;
use std::path::Path;
use wattwise_live::ab::result as ab;
use wattwise_live::bench::{throughput, transition, wake};

/// The schema of a type whose `schema` says `version`.
fn of<T: JsonSchema>(version: &str) -> Schema {
    let mut schema = schemars::schema_for!(T);
    schema.insert("$id".to_owned(), json!(format!("urn:{}", version.replace(['.', '/'], ":"))));
    let field = schema.pointer_mut("/properties/schema").expect("every result names its schema");
    *field = json!({ "const": version, "description": "Names this schema and its version." });
    schema
}

/// Holds the schema in `docs/schema` against the type.
fn check<T: JsonSchema>(name: &str, version: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(name);
    let made = serde_json::to_string_pretty(&of::<T>(version)).expect("a schema is JSON") + "\n";
    if std::env::var_os("WATTWISE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("docs/schema can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "{name} is out of date: WATTWISE_BLESS=1 cargo test -p wattwise --lib schema");
}

#[test]
fn the_schemas_are_those_of_the_types() {
    check::<run::RunResult>("run-1.json", run::SCHEMA);
    check::<ab::Judgement>("ab-1.json", ab::SCHEMA);
    check::<wattwise_live::prove::result::Proof>("prove-1.json", wattwise_live::prove::result::SCHEMA);
    check::<Named<crate::machine::prove::PlanOutput>>(
        "prove-plan-1.json",
        crate::machine::prove::PLAN_SCHEMA,
    );
    check::<wattwise_lockbench::Bench>("bench-locks-1.json", wattwise_lockbench::SCHEMA);
    check::<Named<wattwise_lockbench::advise::LockAdvice>>(
        "locks-advice-1.json",
        wattwise_lockbench::advise::SCHEMA,
    );
    check::<transition::Matrix>("bench-transition-1.json", transition::SCHEMA);
    check::<throughput::Throughput>("bench-throughput-1.json", throughput::SCHEMA);
    check::<wake::WakeUps>("bench-wake-1.json", wake::SCHEMA);
    check::<Named<list::List<'_>>>("list-1.json", list::SCHEMA);
    check::<Named<list::Shown<'_>>>("show-1.json", list::SHOW_SCHEMA);
    check::<Named<machines::ShownMachine>>("machine-1.json", machines::SHOW_SCHEMA);
    check::<Named<machines::Compared>>("machine-compare-1.json", machines::COMPARE_SCHEMA);
    check::<Named<machines::CheckedModels>>("machine-check-2.json", machines::CHECK_SCHEMA);
    check::<Named<machines::Scored>>("score-1.json", machines::SCORE_SCHEMA);
    check::<Named<trace::Shown>>("trace-1.json", trace::SCHEMA);
    check::<Named<trace::Imported>>("import-1.json", trace::IMPORT_SCHEMA);
    check::<Named<wattwise_trace::record::RecordReport>>("record-1.json", record::SCHEMA);
    check::<Named<reproduce::Studies>>("reproduce-2.json", reproduce::SCHEMA);
    check::<Named<calibrate::Calibrated>>("calibration-1.json", calibrate::SCHEMA);
    check::<wattwise_tune::result::TuneResult>("tune-1.json", wattwise_tune::result::SCHEMA);
    check::<Named<wattwise_live::top::sample::Sample>>("top-1.json", wattwise_live::top::sample::SCHEMA);
    check::<set::SetOutput<'_>>("set-1.json", set::SCHEMA);
    check::<profile::Profiles>("profiles-1.json", profile::SCHEMA);
    check::<profile::ProfileStatus>("profile-status-1.json", profile::STATUS_SCHEMA);
    check::<restore::RestoreOutput>("restore-1.json", restore::SCHEMA);
}
