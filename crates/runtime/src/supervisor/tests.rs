use super::*;
use std::{
    future::pending,
    io,
    sync::atomic::{AtomicBool, Ordering},
};

const GRACE: Duration = Duration::from_secs(10);

type Outcome = Result<(), io::Error>;

/// Adds a well-behaved task and a flag that tells whether it wound down.
fn polite(supervisor: &Supervisor) -> Arc<AtomicBool> {
    let wound_down = Arc::new(AtomicBool::new(false));
    let (flag, token) = (Arc::clone(&wound_down), supervisor.shutdown());
    supervisor.spawn("polite", OnExit::StopProcess, async move {
        token.cancelled().await;
        flag.store(true, Ordering::SeqCst);
        Outcome::Ok(())
    });
    wound_down
}

#[tokio::test]
async fn a_requested_stop_is_no_failure() {
    let supervisor = Supervisor::new();
    let wound_down = polite(&supervisor);
    supervisor.shutdown().cancel();
    supervisor.run_until_stopped(GRACE).await.unwrap();
    assert!(wound_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_critical_task_that_ends_stops_the_others() {
    let supervisor = Supervisor::new();
    let wound_down = polite(&supervisor);
    supervisor.spawn("brief", OnExit::StopProcess, async { Outcome::Ok(()) });
    let stopped = supervisor.run_until_stopped(GRACE).await.unwrap_err();
    assert!(matches!(stopped, Stopped::Ended { task: "brief" }), "{stopped}");
    assert!(wound_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_critical_task_that_fails_is_reported_with_its_cause() {
    let supervisor = Supervisor::new();
    let wound_down = polite(&supervisor);
    supervisor.spawn("broken", OnExit::StopProcess, async {
        Outcome::Err(io::Error::other("disk full"))
    });
    let stopped = supervisor.run_until_stopped(GRACE).await.unwrap_err();
    assert_eq!(chain(&stopped), "task broken failed: disk full");
    assert!(wound_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_critical_task_that_panics_stops_the_others() {
    let supervisor = Supervisor::new();
    let wound_down = polite(&supervisor);
    supervisor.spawn("fragile", OnExit::StopProcess, async {
        assert_eq!(pending_flag(), 1, "deliberate");
        Outcome::Ok(())
    });
    let stopped = supervisor.run_until_stopped(GRACE).await.unwrap_err();
    assert!(matches!(stopped, Stopped::Panicked { task: "fragile" }), "{stopped}");
    assert!(wound_down.load(Ordering::SeqCst));
}

fn pending_flag() -> u8 {
    0
}

#[tokio::test(start_paused = true)]
async fn tasks_of_no_importance_may_end_and_fail() {
    let supervisor = Supervisor::new();
    supervisor.spawn("brief", OnExit::Log, async { Outcome::Ok(()) });
    supervisor.spawn("broken", OnExit::Log, async { Outcome::Err(io::Error::other("no")) });
    let token = supervisor.shutdown();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!token.is_cancelled());
    token.cancel();
    supervisor.run_until_stopped(GRACE).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tasks_that_do_not_stop_are_named_and_cut_off() {
    let supervisor = Supervisor::new();
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    supervisor.spawn("deaf", OnExit::Log, async move {
        let _inside = inside;
        pending::<Outcome>().await
    });
    polite(&supervisor);
    supervisor.shutdown().cancel();
    let stopped = supervisor.run_until_stopped(GRACE).await.unwrap_err();
    assert_eq!(stopped.to_string(), "not stopped within 10 s: deaf");
    while Arc::strong_count(&held) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn short_tasks_are_waited_for_even_when_started_while_stopping() {
    let supervisor = Supervisor::new();
    let (short, token) = (supervisor.short_tasks(), supervisor.shutdown());
    let finished = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&finished);
    supervisor.spawn("worker", OnExit::StopProcess, async move {
        token.cancelled().await;
        short.spawn(async move {
            tokio::time::sleep(Duration::from_secs(3)).await;
            flag.store(true, Ordering::SeqCst);
        });
        Outcome::Ok(())
    });
    supervisor.shutdown().cancel();
    supervisor.run_until_stopped(GRACE).await.unwrap();
    assert!(finished.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_failure_while_stopping_is_reported() {
    let supervisor = Supervisor::new();
    let token = supervisor.shutdown();
    supervisor.spawn("writer", OnExit::StopProcess, async move {
        token.cancelled().await;
        Outcome::Err(io::Error::other("flush failed"))
    });
    supervisor.shutdown().cancel();
    let stopped = supervisor.run_until_stopped(GRACE).await.unwrap_err();
    assert_eq!(chain(&stopped), "task writer failed: flush failed");
}
