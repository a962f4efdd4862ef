//! Pull endpoints from the shell, from files, and from another language.

use anyhow::Context as _;
use std::{path::Path, process::Command};
use turnbuckle_proto::v1::{DeliveryState, Endpoint};
use turnbuckle_testkit::{process::Process, python};
use turnbuckle_tests::{PATIENCE, Scene, Server, StoreKind};

use crate::{cli::Person, pull::pull_endpoint};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_looks_at_what_waits_and_takes_it() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    person.says(&["event-type", "create", "order.paid"])?;
    let made = person.json(&["endpoint", "create", "jobs", "--pull", "--lease", "1m"])?;
    assert_eq!(made["pull"]["lease"], "60s");
    assert_eq!(made.get("signingSecret"), None);
    person.says(&["subscription", "create", "--endpoint", "jobs", "--type", "order.*"])?;
    for id in ["one", "two"] {
        person.says(&["event", "publish", "--type", "order.paid", "--id", id, "--data", "{}"])?;
    }
    let shown = person.json(&["pull", "jobs", "--max", "2"])?;
    assert_eq!(shown[0]["event"]["eventId"], "one");
    assert_eq!((&shown[1]["event"]["eventId"], &shown[1]["attempt"]), (&"two".into(), &1.into()));
    // Looking counts nothing: it is all there, and the first try still.
    let taken = person.json(&["pull", "jobs", "--max", "1", "--ack"])?;
    assert_eq!((&taken[0]["event"]["eventId"], &taken[0]["attempt"]), (&"one".into(), &1.into()));
    person.says(&["pull", "jobs", "--ack"])?;
    let nothing = person.json(&["pull", "jobs", "--wait", "100ms"])?;
    assert_eq!(nothing.as_array().map(Vec::len), Some(0));
    let done = person.json(&["delivery", "list", "--state", "delivered"])?;
    assert_eq!(done.as_array().map(Vec::len), Some(2));

    let changed = person.json(&["endpoint", "update", "jobs", "--ordered-by-subject"])?;
    assert_eq!(changed["pull"]["orderedBySubject"], true);
    assert_eq!(changed["pull"]["lease"], "60s");
    let (code, told) =
        person.fails(&["endpoint", "update", "jobs", "--url", "https://a.example"])?;
    assert!(code != Some(0) && told.contains("pull endpoint"), "{told}");
    let (code, told) = person.fails(&["key", "stage", "jobs"])?;
    assert!(code != Some(0) && told.contains("signs nothing"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_endpoint_is_kept_in_files() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    let file = person.directory.path().join("jobs.yaml");
    std::fs::write(
        &file,
        "kind: Endpoint\nname: jobs\npull: {lease: 45s, orderedBySubject: true}\n",
    )?;
    person.says(&["apply", "-f", "jobs.yaml"])?;
    let again = person.says(&["apply", "-f", "jobs.yaml"])?;
    assert!(again.starts_with("= "), "{again}");
    let exported = person.says(&["export"])?;
    assert!(exported.contains("orderedBySubject: true"), "{exported}");
    std::fs::write(&file, exported)?;
    let again = person.says(&["apply", "-f", "jobs.yaml"])?;
    assert!(again.lines().all(|line| line.starts_with("= ")), "{again}");
    Ok(())
}

/// The directory that the repository's files are found from.
fn repository() -> anyhow::Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the tests lie in the repository")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_in_python_takes_deliveries() -> anyhow::Result<()> {
    let python = or_skip!(python::with_grpc());
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let endpoint: Endpoint = scene.raw("jobs", pull_endpoint()).await?;
    let generated = tempfile::tempdir()?;
    let out = generated.path().display();
    let proto = repository()?.join("proto");
    let mut protoc = Command::new(&python);
    protoc.args(["-m", "grpc_tools.protoc", "-I"]).arg(&proto);
    protoc.args([format!("--python_out={out}"), format!("--grpc_python_out={out}")]);
    for file in std::fs::read_dir(proto.join("turnbuckle/v1"))? {
        protoc.arg(file?.path());
    }
    assert!(protoc.status()?.success(), "the contract does not generate for Python");

    scene.publish("before", r#"{"n": 1}"#).await?;
    // What it prints is looked for in its log, which is the standard error.
    let mut consume = Command::new("sh");
    consume.args(["-c", r#"exec "$0" "$@" 1>&2"#]).arg(&python);
    consume.arg(repository()?.join("crates/client/examples/python/consume.py"));
    consume.args([server.api.to_string(), endpoint.name]);
    consume.env("PYTHONPATH", generated.path());
    consume.env("TURNBUCKLE_TOKEN", server.home().token("consumer", Some("acme"))?);
    let consumer = Process::start(&mut consume)?;
    let said = |text: &'static str| move |line: &str| (line == text).then_some(());
    consumer.wait_for_line(PATIENCE, said(r#"before {"n": 1}"#)).await?;
    scene.publish("after", "2").await?;
    consumer.wait_for_line(PATIENCE, said("after 2")).await?;
    scene.drained().await?;
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 2);
    Ok(())
}
