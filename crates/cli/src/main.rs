//! The `wattwise` program. All of it is in the library: Cargo compiles a library while its dependencies still generate code, and
//! a program only when they are finished.

fn main() -> std::process::ExitCode {
    wattwise_cli::main()
}
