//! One run: load, drain, figures.

use crate::{
    analysis::{Analysis, Latency},
    args::{DeliverArgs, Rate},
    clock,
    probe::Probe,
    procfs,
    publisher::{Published, Publisher},
    report::{Measured, Report, table},
    rewriter::Rewriter,
    rig::Rig,
};
use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// Between two looks at what is still to come.
const DRAIN_POLL: Duration = Duration::from_millis(50);
/// Between two full looks, when enough arrived but not everything: copies of megabytes.
const RECHECK: Duration = Duration::from_millis(500);
/// A duplicate that is under way when the last event arrives gets this long to show.
const STRAGGLERS: Duration = Duration::from_millis(300);

/// Runs `deliver`.
pub(crate) async fn command(args: DeliverArgs) -> anyhow::Result<ExitCode> {
    let report = measure(name_of(&args), &args).await?;
    let mut output = io::stdout().lock();
    if args.json {
        writeln!(output, "{}", serde_json::to_string(&report)?)?;
    } else {
        writeln!(output, "{}", table(std::slice::from_ref(&report)))?;
        explain(&mut output, &report)?;
    }
    Ok(exit_code(std::slice::from_ref(&report)))
}

/// 1 when anything was lost.
pub(crate) fn exit_code(reports: &[Report]) -> ExitCode {
    ExitCode::from(u8::from(reports.iter().any(|report| report.lost > 0)))
}

/// What a table has no room for.
pub(crate) fn explain(output: &mut impl io::Write, report: &Report) -> io::Result<()> {
    if let Some(refusal) = &report.refusal {
        writeln!(output, "{}: {} refused, first: {refusal}", report.case, report.refused)?;
    }
    if report.not_sent > 0 {
        writeln!(output, "{}: {} events found no free call", report.case, report.not_sent)?;
    }
    if report.config_per_s > 0.0 {
        let Latency { p50, p99, max } = report.config_ms;
        let rate = report.config_per_s;
        writeln!(
            output,
            "{}: {rate:.0} changes/s, {p50:.1}/{p99:.1}/{max:.0} ms each",
            report.case
        )?;
    }
    if report.drain_s.is_none() {
        writeln!(output, "{}: not everything had arrived when the wait was over", report.case)?;
    }
    Ok(())
}

fn name_of(args: &DeliverArgs) -> String {
    let rate = match args.rate {
        Rate::Max => "max".to_owned(),
        Rate::PerSecond(rate) => format!("{rate}/s"),
    };
    let kind = if args.fan_out { "fan-out" } else { "endpoints" };
    let hang = if args.hang > 0 { format!(", {} hang", args.hang) } else { String::new() };
    let changes = match args.config_writes {
        0 => String::new(),
        writes => format!(", {writes} changes/s"),
    };
    format!("{kind} {}{hang}, {} B, {rate}{changes}", args.endpoints, args.payload)
}

/// Starts everything, measures, and stops everything.
pub(crate) async fn measure(case: String, args: &DeliverArgs) -> anyhow::Result<Report> {
    let mut rig = Rig::start(args).await?;
    let end_us = clock::now_us() + clock::us(args.warm_up() + args.window());
    let rewriter = match args.config_writes {
        0 => None,
        writes => Some(Rewriter::start(rig.server.url(), &rig.parent, writes, end_us).await?),
    };
    let publisher =
        Publisher::start(args, rig.targets, rig.server.url(), rig.parent.clone()).await?;
    let warm_us = publisher.begin_us() + clock::us(args.warm_up());
    sleep_until(warm_us).await;
    let before = Probe::take(&rig).await?;
    sleep_until(warm_us + clock::us(args.window())).await;
    let after = Probe::take(&rig).await?;
    let published = publisher.finish().await?;
    let changes = match rewriter {
        Some(rewriter) => rewriter.finish().await?,
        None => Vec::new(),
    };
    anyhow::ensure!(
        published.sent.iter().any(|sent| sent.accepted_us.is_some()),
        "nothing was accepted: {}",
        published.refusal.as_deref().unwrap_or("nothing was sent")
    );
    let (analysis, drain_s) = drain(&mut rig, &published, Duration::from_secs(args.drain)).await?;
    let rss_mb = procfs::peak_rss_mb(rig.server.pid()?)?;
    let measured = Measured {
        analysis: &analysis,
        published: &published,
        changes: &changes,
        before,
        after,
        drain_s,
        rss_mb,
    };
    Report::new(case, args, &measured)
}

async fn sleep_until(at_us: i64) {
    let wait = u64::try_from(at_us - clock::now_us()).unwrap_or(0);
    sleep(Duration::from_micros(wait)).await;
}

/// Waits until every acknowledged event is where it belongs, or the time is over.
async fn drain(
    rig: &mut Rig,
    published: &Published,
    limit: Duration,
) -> anyhow::Result<(Analysis, Option<f64>)> {
    let begin = Instant::now();
    let accepted = published.sent.iter().filter(|sent| sent.accepted_us.is_some());
    let targets = rig.targets;
    let healthy = |event| targets.of(event).filter(|(_, is_healthy)| *is_healthy).count();
    let expected = u64::try_from(accepted.map(|sent| healthy(sent.event)).sum::<usize>())?;
    loop {
        while rig.receiver.healthy_count().await? < expected && begin.elapsed() < limit {
            sleep(DRAIN_POLL).await;
        }
        let drained = begin.elapsed();
        // A count may be reached by duplicates, so only the log tells.
        let analysis = Analysis::new(targets, published, &rig.receiver.dump().await?)?;
        if analysis.lost == 0 {
            sleep(STRAGGLERS).await;
            let analysis = Analysis::new(targets, published, &rig.receiver.dump().await?)?;
            return Ok((analysis, Some(drained.as_secs_f64())));
        }
        if begin.elapsed() >= limit {
            return Ok((analysis, None));
        }
        sleep(RECHECK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tests::parse;

    #[test]
    fn a_case_is_named_after_what_it_does() {
        let args = parse(&["--endpoints", "10", "--hang", "1", "--rate", "500"]);
        assert_eq!(name_of(&args), "endpoints 10, 1 hang, 1000 B, 500/s");
    }
}
