#![no_main]
//! `cargo +nightly fuzz run profiles_toml`; seeds: what is built in. A file is profiles, or one line that names its place.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match wattwise_daemon::config::Config::from_text("fuzz.toml", text) {
        Err(e) => assert!(!e.to_string().contains('\n')),
        Ok(config) => {
            for profile in config.profiles.values() {
                assert!(wattwise_daemon::config::check_name(&profile.name).is_ok());
                _ = profile.base.to_string();
            }
        }
    }
});
