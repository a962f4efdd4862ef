//! Signals end the real process, so a child process takes them: this test run again with a mark in
//! its environment.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test program: the child tells its parent over standard output"
)]

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};
use turnbuckle_runtime::supervisor::{OnExit, Signals, Supervisor};

const CHILD: &str = "TURNBUCKLE_TEST_SIGNAL_CHILD";

fn start(behaviour: &str, test: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(CHILD, behaviour)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

fn wait_for(output: &mut BufReader<std::process::ChildStdout>, word: &str) {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended before {word}");
    }
}

fn send(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// What the child does: one task that stops when asked, or never.
fn act(behaviour: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stopped = runtime.block_on(async {
        let supervisor = Supervisor::new();
        supervisor.stop_on(Signals::listen().unwrap());
        let (token, deaf) = (supervisor.shutdown(), behaviour == "deaf");
        supervisor.spawn("task", OnExit::StopProcess, async move {
            println!("listening");
            token.cancelled().await;
            println!("asked");
            if deaf {
                std::future::pending::<()>().await;
            }
            Ok::<(), std::io::Error>(())
        });
        supervisor.run_until_stopped(Duration::from_secs(600)).await
    });
    stopped.unwrap();
}

#[test]
fn the_first_signal_stops_the_process_in_order() {
    if let Ok(behaviour) = std::env::var(CHILD) {
        return act(&behaviour);
    }
    for signal in ["-TERM", "-INT"] {
        let (mut child, mut output) =
            start("polite", "the_first_signal_stops_the_process_in_order");
        wait_for(&mut output, "listening");
        send(&child, signal);
        wait_for(&mut output, "asked");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn the_second_signal_ends_the_process_at_once() {
    if let Ok(behaviour) = std::env::var(CHILD) {
        return act(&behaviour);
    }
    let (mut child, mut output) = start("deaf", "the_second_signal_ends_the_process_at_once");
    wait_for(&mut output, "listening");
    send(&child, "-TERM");
    wait_for(&mut output, "asked");
    send(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
