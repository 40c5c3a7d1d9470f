//! Everything of the `mcp-proxy` program but its entry point.
//!
//! A library, because cargo compiles one next to the crates that it uses, and starts on a program only when they
//! are finished.

use std::process::ExitCode;

mod cli;
mod config;
mod printer;
mod run;
mod sweeper;

/// Runs the program with the arguments of this process: as a guard of a server process, as a sweeper, as a worker
/// for jq, or as its user asked.
pub fn run() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_else(|| "mcp-proxy".into());
    let mut args = args.peekable();
    // A guard must be small and start fast: it is told apart before anything else happens.
    if args
        .peek()
        .is_some_and(|word| word == mcp_proxy_transport::process::GUARD_WORD)
    {
        args.next();
        return mcp_proxy_transport::process::guard_main(args);
    }
    if args
        .peek()
        .is_some_and(|word| word == sweeper::SWEEPER_WORD)
    {
        args.next();
        return sweeper::sweeper_main(args);
    }
    if args
        .peek()
        .is_some_and(|word| word == mcp_proxy_spill::JQ_WORKER_WORD)
    {
        return mcp_proxy_spill::jq_worker_main();
    }
    let outcome = run::run(std::iter::once(program).chain(args).collect());
    printer::background::flush();
    outcome
}
