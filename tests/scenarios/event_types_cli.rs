//! Event type versions and channels on the command line, against a server for development.

use anyhow::Context as _;
use serde_json::Value;
use std::process::{Output, Stdio};
use tempfile::TempDir;
use turnbuckle_tests::{Server, StoreKind, home::program};

/// Odd spaces, to see that it is kept as it is.
const SCHEMA: &str =
    "{ \"type\":\"object\",\n  \"properties\": { \"total\":{\"type\":\"number\"} } }\n";

struct Person {
    server: Server,
    directory: TempDir,
}

impl Person {
    async fn at_a_new_server() -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(StoreKind::Embedded, &["--dev"]).await? else {
            return Ok(None);
        };
        Ok(Some(Self { server, directory: tempfile::tempdir()? }))
    }

    /// Words are separated by spaces; `rest` is taken as it is.
    fn runs(&self, line: &str, rest: &[&str]) -> anyhow::Result<Output> {
        let mut command = program()?;
        command.args(["--server", &format!("http://{}", self.server.api)]);
        command.args(line.split_whitespace()).args(rest);
        Ok(command.current_dir(self.directory.path()).stdin(Stdio::null()).output()?)
    }

    fn says(&self, line: &str, rest: &[&str]) -> anyhow::Result<String> {
        let output = self.runs(line, rest)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{line}: {}\n{errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn json(&self, line: &str) -> anyhow::Result<Value> {
        let text = self.says(line, &["-o", "json"])?;
        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))
    }

    fn fails(&self, line: &str, rest: &[&str]) -> anyhow::Result<String> {
        let output = self.runs(line, rest)?;
        assert!(output.stdout.is_empty(), "{line} failed and printed data");
        assert!(!output.status.success(), "{line} succeeded");
        Ok(String::from_utf8(output.stderr)?)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_registered_shown_and_deleted() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    person.says("event-type create order.paid", &[])?;
    std::fs::write(person.directory.path().join("order.json"), SCHEMA)?;
    let create = "event-type version create order.paid 1 --schema @order.json";
    person.says(&format!("{create} --dry-run"), &[])?;
    assert_eq!(person.says("event-type version list order.paid -o name", &[])?, "");
    for _ in 0..2 {
        let name = person.says(&format!("{create} --upsert -o name"), &[])?;
        assert_eq!(name.trim(), "tenants/default/eventTypes/order.paid/versions/1");
    }
    assert!(person.fails(create, &[])?.contains("already exists"));
    let kept = person.says("event-type version get order.paid 1 --schema", &[])?;
    assert_eq!(kept, SCHEMA);

    let narrower = r#"{"type":"object","properties":{"total":{"type":"integer"}}}"#;
    let line = "event-type version create order.paid 2 --schema";
    let refused = person.fails(line, &[narrower])?;
    assert!(refused.contains("event_type_version.schema/properties/total/type"), "{refused}");
    let publish = "event publish --type order.paid --version 1 --data";
    let refused = person.fails(publish, &[r#"{"total":"12"}"#])?;
    assert!(refused.contains("event.data/total"), "{refused}");
    person.says(publish, &[r#"{"total":12}"#])?;

    let delete = "event-type version delete order.paid 1";
    let kept = person.fails(delete, &[])?;
    assert!(kept.contains("is the latest version"), "{kept}");
    let update = "event-type update order.paid --compatibility none --unknown-version refuse";
    let changed = person.json(update)?;
    assert_eq!(changed["compatibility"], "COMPATIBILITY_NONE");
    assert_eq!(changed["unknownVersion"], "UNKNOWN_VERSION_REFUSE");
    person.says(delete, &[])?;
    let refused = person.fails(publish, &["{}"])?;
    assert!(refused.contains("is no version of"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_asks_for_channels_and_the_record_shows_it() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    person.says("event-type create order.paid", &[])?;
    person.says("endpoint create shop --url http://127.0.0.1:9/", &[])?;
    let create = "subscription create eu --endpoint shop --type order.*";
    let dry = person.json(&format!("{create} --channel uk,eu --channel eu --dry-run"))?;
    assert_eq!(dry["channels"], serde_json::json!(["eu", "uk"]));
    let line = format!("{create} --channel uk,eu --upsert");
    let first = person.json(&line)?;
    assert_eq!(person.json(&line)?, first, "the same again changes nothing");
    let deliveries = |channels: &str| -> anyhow::Result<Value> {
        let line = format!("event publish --type order.paid --data 1 {channels} -o json");
        let made: Value = serde_json::from_str(&person.says(&line, &[])?)?;
        Ok(made["deliveries"].clone())
    };
    assert_eq!(deliveries("--channel uk")?, 1);
    assert_ne!(deliveries("--channel us")?, 1);
    assert_ne!(deliveries("")?, 1);
    person.says("subscription update eu --channel us", &[])?;
    assert_eq!(deliveries("--channel us,eu")?, 1);
    let cleared = person.json("subscription update eu --clear-channels")?;
    assert_eq!(cleared["channels"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(deliveries("")?, 1);

    let record = person.json("audit list --resource subscriptions/eu")?;
    let changes = |entry: usize| {
        let change = &record[entry]["changes"][0];
        let text = |side: &str| change[side].as_str().unwrap_or_default().to_owned();
        (text("field"), text("before"), text("after"))
    };
    let told = |field: &str, before: &str, after: &str| {
        (field.to_owned(), before.to_owned(), after.to_owned())
    };
    assert_eq!(changes(0), told("channels", "us", ""));
    assert_eq!(changes(1), told("channels", "eu, uk", "us"));
    let bad = person.fails(&format!("{create} --channel a$b"), &[])?;
    assert!(bad.contains("subscription.channels[0]"), "{bad}");
    Ok(())
}
