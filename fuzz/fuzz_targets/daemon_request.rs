#![no_main]
//! `cargo +nightly fuzz run daemon_request`: what anybody may send to the daemon's socket.

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for line in data.split(|b| *b == b'\n') {
        match wattwise_daemon::protocol::request(line) {
            Err(why) => assert!(!why.contains('\n')),
            Ok(request) => {
                // What is read is written and read again the same.
                let again = serde_json::to_vec(&request).expect("JSON");
                assert_eq!(wattwise_daemon::protocol::request(&again).ok().as_ref(), Some(&request).filter(|_| again.len() <= 4096));
            }
        }
    }
});
