//! The standard cases, one after the other.

use crate::{
    args::{Arguments, Command, DeliverArgs, StoreKind, SuiteArgs},
    deliver::{exit_code, explain, measure},
    report::table,
};
use anyhow::Context as _;
use clap::Parser as _;
use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};
use turnbuckle_pg_harness::{HOW_TO_GET_POSTGRES, PostgresBinaries};

/// No case is started after this, so that the suite ends within five minutes.
const BUDGET: Duration = Duration::from_secs(270);
/// Short enough for all cases on both stores, long enough for CPU times in steps of 10 ms.
const COMMON: &str = "--seconds 5 --warm-up 1 --drain 20";

/// Name and options of each case.
const CASES: [(&str, &str); 11] = [
    ("1 endpoint, 1 kB, 500/s", "--rate 500"),
    ("1 endpoint, 1 kB, 1000/s", "--rate 1000"),
    ("1 endpoint, 1 kB, max", ""),
    ("1 endpoint, 1 kB, batches of 50, max", "--batch 50 --in-flight 8"),
    ("fan-out 10, 1 kB, 200/s", "--endpoints 10 --fan-out --rate 200"),
    ("fan-out 10, 1 kB, max", "--endpoints 10 --fan-out"),
    ("10 endpoints, 1 kB, 1000/s", "--endpoints 10 --rate 1000"),
    ("1 of 10 hangs, 1 kB, 1000/s", "--endpoints 10 --hang 1 --rate 1000"),
    ("1 of 10 hangs, 1 kB, max", "--endpoints 10 --hang 1"),
    ("1 endpoint, 20 kB, 200/s", "--payload 20000 --rate 200"),
    ("1 endpoint, 20 kB, max", "--payload 20000"),
];

/// Runs `suite`.
pub(crate) async fn command(args: SuiteArgs) -> anyhow::Result<ExitCode> {
    let begin = Instant::now();
    let mut reports = Vec::new();
    for store in stores(args.store)? {
        for (name, options) in CASES {
            if begin.elapsed() > BUDGET {
                say(&format!("skipped, the time is over: {name}"));
                continue;
            }
            say(&format!("{store:?}: {name}"));
            let mut case = parse(options)?;
            case.store = store;
            case.server_bin.clone_from(&args.server_bin);
            let report = measure(name.to_owned(), &case).await.context(name)?;
            if args.json {
                writeln!(io::stdout().lock(), "{}", serde_json::to_string(&report)?)?;
            }
            reports.push(report);
        }
    }
    if !args.json {
        let mut output = io::stdout().lock();
        writeln!(output, "{}", table(&reports))?;
        for report in &reports {
            explain(&mut output, report)?;
        }
    }
    Ok(exit_code(&reports))
}

fn stores(chosen: Option<StoreKind>) -> anyhow::Result<Vec<StoreKind>> {
    let has_postgres = PostgresBinaries::find().is_some();
    match chosen {
        Some(StoreKind::Postgres) if !has_postgres => anyhow::bail!(HOW_TO_GET_POSTGRES),
        Some(store) => Ok(vec![store]),
        None if has_postgres => Ok(vec![StoreKind::Embedded, StoreKind::Postgres]),
        None => {
            say(&format!("without Postgres: {HOW_TO_GET_POSTGRES}"));
            Ok(vec![StoreKind::Embedded])
        }
    }
}

fn parse(options: &str) -> anyhow::Result<DeliverArgs> {
    let words = ["turnbuckle-bench", "deliver"].into_iter();
    let words = words.chain(COMMON.split_ascii_whitespace());
    match Arguments::try_parse_from(words.chain(options.split_ascii_whitespace()))?.command {
        Command::Deliver(args) => Ok(*args),
        _ => anyhow::bail!("a case is a deliver command"),
    }
}

fn say(text: &str) {
    // Progress is for a person who watches; without one it may vanish.
    drop(writeln!(io::stderr(), "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_run() {
        for (name, options) in CASES {
            let case = parse(options);
            assert!(case.and_then(|case| case.check()).is_ok(), "{name}");
        }
    }
}
