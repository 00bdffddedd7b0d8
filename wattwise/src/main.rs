//! The `wattwise` program: see [`wattwise::cmd`].

fn main() -> std::process::ExitCode {
    wattwise::cmd::main()
}
