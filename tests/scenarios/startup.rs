//! What a server refuses to start on, and what it says then.

use turnbuckle_tests::{
    Home, PATIENCE, Scene, Server, StoreKind,
    home::{run, run_ok},
    http,
};

/// The exit code and log of a server that does not start.
async fn refusal(home: &Home, extra: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let process = Server::spawn(home, extra)?;
    let status = process.exit(PATIENCE).await?;
    // The end of the log comes with the end of the process, not before it.
    let missing = process.wait_for_line(PATIENCE, |_| None::<()>).await;
    Ok((status.code(), missing.err().map(|error| error.to_string()).unwrap_or_default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_is_refused_with_the_remedy_and_served_after_it() -> anyhow::Result<()> {
    let home = or_skip!(Home::unmigrated().await?);
    let (code, log) = refusal(&home, &[]).await?;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(log.contains("turnbuckle migrate"), "{log}");
    let url = home.database_url().unwrap_or_default();
    run_ok(&["migrate", "--database-url", &url])?;
    run_ok(&["migrate", "--database-url", &url])?;
    let server = Server::start_in(&home, &[]).await?;
    Scene::set(&server).await?;
    server.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_a_newer_program_is_refused() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let url = home.database_url().unwrap_or_default();
    let insert = "insert into seaql_migrations (version, applied_at) \
                  values ('m29991231_000001_from_the_future', 0)";
    home.execute(insert).await?;
    let (code, log) = refusal(&home, &[]).await?;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(log.contains("from_the_future") && log.contains("newer"), "{log}");
    let migrated = run(&["migrate", "--database-url", &url])?;
    assert!(!migrated.status.success());
    assert!(String::from_utf8_lossy(&migrated.stderr).contains("from_the_future"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_in_use_is_refused_and_its_owner_goes_on() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let (code, log) = refusal(server.home(), &[]).await?;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(log.contains("another process uses this data directory"), "{log}");
    assert!(log.contains("--data-dir"), "no remedy: {log}");
    Scene::set(&server).await?;
    server.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn options_out_of_bounds_are_all_named_at_once() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Embedded).await?);
    let (code, log) = refusal(&home, &["--lease", "10ms", "--grace", "2h"]).await?;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(log.contains("--lease") && log.contains("--grace"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_keeps_everything_over_a_restart_and_lost_keys_are_not_made_anew()
-> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let event = scene.publish("e", r#"{"kept": 1}"#).await?;
    server.stop().await?;
    let server = Server::start_in(server.home(), &[]).await?;
    let scene = Scene::of(&server).await?;
    let again = scene.publish("e", r#"{"kept": 1}"#).await?;
    assert!(again.duplicate && again.name == event.name);
    server.stop().await?;
    std::fs::remove_file(server.home().data_dir().join("keyring.json"))?;
    let (code, log) = refusal(server.home(), &[]).await?;
    assert!(code.is_some_and(|code| code != 0), "{code:?}");
    assert!(log.contains("keyring.json") && log.contains("--keyring-file"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_alive_ready_and_measured() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(http::get(server.admin, path).await?.status, 200, "{path}");
    }
    let missing = http::get(server.admin, "/nothing").await?;
    assert_eq!(missing.status, 404);
    assert!(missing.head.contains("application/problem+json"));
    let metrics = http::get(server.admin, "/metrics").await?;
    assert!(metrics.head.contains("text/plain"));
    assert!(metrics.body.contains("turnbuckle_shards_held 64"), "{}", metrics.body);
    Ok(())
}
