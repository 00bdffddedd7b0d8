//! `include/wattwise_locks.h` says what `src/capi.rs` says. WATTWISE_BLESS=1 writes it anew.
#![cfg(not(any(loom, miri)))]

#[test]
fn the_header_has_not_drifted() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    let made = cbindgen::Builder::new().with_config(config).with_src(root.join("src/capi.rs")).generate();
    let mut text = Vec::new();
    made.expect("src/capi.rs is read").write(&mut text);
    let path = root.join("include/wattwise_locks.h");
    if std::env::var_os("WATTWISE_BLESS").is_some() {
        std::fs::write(&path, &text).expect("written");
    }
    let is = std::fs::read(&path).unwrap_or_default();
    assert!(
        is == text,
        "{} has drifted: WATTWISE_BLESS=1 cargo test -p wattwise-locks --test header",
        path.display()
    );
}
