//! The command line, as child processes against a server for development.

use anyhow::Context as _;
use serde_json::Value;
use std::{
    path::PathBuf,
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{PATIENCE, Server, StoreKind, eventually, home::program};

/// No JSON printer would write it so: only bytes taken as they are come out like this.
const DATA: &str = "{ \"total\" : 12.50,\n  \"id\":9007199254740993 }\n";

/// A person in a directory of their own, before a fresh server.
pub(crate) struct Person {
    server: Server,
    pub(crate) directory: TempDir,
}

impl Person {
    pub(crate) async fn at_a_new_server() -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(StoreKind::Embedded, &["--dev"]).await? else {
            return Ok(None);
        };
        Ok(Some(Self { server, directory: tempfile::tempdir()? }))
    }

    /// The same with a type, two endpoints, and a subscription of one of them.
    async fn with_a_shop(url: &str) -> anyhow::Result<Option<Self>> {
        let Some(person) = Self::at_a_new_server().await? else { return Ok(None) };
        person.says(&["event-type", "create", "order.paid"])?;
        person.says(&["endpoint", "create", "shop", "--url", url])?;
        person.says(&["endpoint", "create", "quiet", "--url", url])?;
        person.says(&[
            "subscription",
            "create",
            "all",
            "--endpoint",
            "shop",
            "--type",
            "order.*",
            "--format",
            "raw",
        ])?;
        Ok(Some(person))
    }

    fn command(&self, line: &[&str]) -> anyhow::Result<Command> {
        let mut command = program()?;
        command.args(["--server", &format!("http://{}", self.server.api)]).args(line);
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        Ok(command)
    }

    fn runs(&self, line: &[&str]) -> anyhow::Result<Output> {
        Ok(self.command(line)?.output()?)
    }

    /// What a command that succeeds prints.
    pub(crate) fn says(&self, line: &[&str]) -> anyhow::Result<String> {
        let output = self.runs(line)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{line:?}: {}\n{errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(crate) fn json(&self, line: &[&str]) -> anyhow::Result<Value> {
        let text = self.says(&[line, &["-o", "json"]].concat())?;
        serde_json::from_str(&text).with_context(|| format!("no JSON: {text}"))
    }

    /// Exit code and standard error of a command that fails, and prints nothing else.
    pub(crate) fn fails(&self, line: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
        let output = self.runs(line)?;
        assert!(output.stdout.is_empty(), "{line:?} failed and printed data");
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    }

    fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Publishes the file and gives the event's name.
    fn publishes(&self, id: &str) -> anyhow::Result<String> {
        self.file("order.json", DATA)?;
        let line = ["event", "publish", "--type", "order.paid", "--id", id];
        let name = self.says(&[&line[..], &["--data", "@order.json", "-o", "name"]].concat())?;
        Ok(name.trim().to_owned())
    }

    /// The one delivery of an event, once it is in this state.
    async fn delivery(&self, event: &str, state: &str) -> anyhow::Result<Value> {
        eventually(&format!("the command line shows a delivery as {state}"), async || {
            let found = self.json(&["delivery", "list", "--event", event, "--state", state])?;
            Ok(found.get(0).cloned())
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_tried_step_by_step_and_its_exit_says_how_it_went() -> anyhow::Result<()> {
    let person = or_skip!(Person::at_a_new_server().await?);
    person.says(&["source", "create", "shop", "--preset", "github", "--generate-secret"])?;
    let told = person.says(&["source", "test", "shop"])?;
    for step in ["sample", "limits", "signature", "event", "dedup", "answer"] {
        assert!(told.contains(&format!("ok {step}")), "{told}");
    }
    assert!(told.contains("Nothing was stored"), "{told}");
    let file = person.directory.path().join("captured.txt");
    std::fs::write(&file, "POST /in/x HTTP/1.1\nX-Hub-Signature-256: sha256=00\n\n{}")?;
    let output = person.runs(&["source", "test", "shop", "--request", "captured.txt"])?;
    let told = String::from_utf8(output.stdout)?;
    assert!(!output.status.success() && told.contains("NO signature"), "{told}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_published_file_arrives_byte_for_byte() -> anyhow::Result<()> {
    let receiver = Receiver::start(Script::default()).await?;
    let person = or_skip!(Person::with_a_shop(&receiver.url("/")).await?);
    let event = person.publishes("e1")?;
    assert!(event.starts_with("tenants/default/events/"), "{event}");
    let received = &receiver.wait_for(1, PATIENCE).await?[0];
    assert_eq!(received.body, DATA);
    assert_eq!(received.header("webhook-id"), Some("e1"));
    assert_eq!(person.publishes("e1")?, event, "the same id is the same event");
    let delivery = person.delivery(&event, "delivered").await?;
    assert_eq!(delivery["endpoint"], "tenants/default/endpoints/shop");
    let table = person.says(&["delivery", "list"])?;
    assert!(table.lines().any(|row| row.contains("e1") && row.contains("delivered")), "{table}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_a_table_an_array_a_document_or_names() -> anyhow::Result<()> {
    let person = or_skip!(Person::with_a_shop("http://127.0.0.1:9/").await?);
    let list = |format| person.says(&["endpoint", "list", "-o", format]);
    let names = ["tenants/default/endpoints/quiet", "tenants/default/endpoints/shop"];
    assert_eq!(list("name")?.lines().collect::<Vec<_>>(), names);

    let array = person.json(&["endpoint", "list"])?;
    let array = array.as_array().context("not an array")?;
    assert_eq!(array.iter().map(|endpoint| &endpoint["name"]).collect::<Vec<_>>(), names);
    assert!(array.iter().all(|endpoint| endpoint["http"]["url"] == "http://127.0.0.1:9/"));

    let table = list("table")?;
    assert_eq!(person.says(&["endpoint", "list"])?.lines().count(), table.lines().count());
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("NAME") && rows.len() == 3, "{table}");
    assert!(rows[1].starts_with("quiet ") && rows[2].starts_with("shop "), "{table}");

    let yaml = list("yaml")?;
    for name in names {
        assert!(yaml.lines().any(|line| line.trim() == format!("name: {name}")), "{yaml}");
    }
    assert_eq!(yaml.lines().filter(|line| line.starts_with("- ")).count(), 2, "{yaml}");
    for text in [table, yaml, list("json")?] {
        assert!(!text.contains("whsec_"), "a list shows a secret");
        assert!(!text.contains('\u{1b}'), "an escape sequence, and nobody's terminal");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_delivery_is_found_looked_into_and_retried() -> anyhow::Result<()> {
    let receiver = Receiver::start(Script::always(Answer::status(404))).await?;
    let person = or_skip!(Person::with_a_shop(&receiver.url("/")).await?);
    let event = person.publishes("e1")?;
    let dead = person.delivery(&event, "dead").await?;
    let name = dead["name"].as_str().context("no name")?;
    let table = person.says(&["delivery", "attempts", name])?;
    assert!(table.starts_with("ATTEMPT") && table.contains("404"), "{table}");
    receiver.change_script(Script::default());
    let opened: Value = person.json(&["delivery", "retry", name])?;
    assert_eq!(opened["name"], dead["name"]);
    let done = person.delivery(&event, "delivered").await?;
    assert_eq!((&done["name"], &done["attempts"]), (&dead["name"], &Value::from(2)));
    // By its short name, too.
    let short = name.rsplit('/').next().unwrap_or_default();
    let attempts = person.json(&["delivery", "attempts", short])?;
    let numbers: Vec<_> =
        attempts.as_array().context("not an array")?.iter().map(|one| &one["number"]).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(receiver.count(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_code_says_what_kind_of_failure_it_was() -> anyhow::Result<()> {
    let url = "http://127.0.0.1:9/";
    let person = or_skip!(Person::with_a_shop(url).await?);
    let cases: [(&[&str], i32, &str); 8] = [
        (&["event", "publish", "--type", "order.paid"], 2, "--data"),
        (&["endpoint", "list", "--colour"], 2, "--colour"),
        (&["endpoint", "create", "Bad Id", "--url", url], 2, "endpoint_id"),
        (&["event", "publish", "--type", "order.lost", "--data", "{}"], 2, "order.lost"),
        (&["endpoint", "get", "nobody"], 3, "nobody"),
        (&["delivery", "retry", "dlv_00000000000000000000000000"], 3, "not found"),
        (&["endpoint", "create", "shop", "--url", url], 4, "already exists"),
        (&["event-type", "create", "order.paid"], 4, "already exists"),
    ];
    for (line, expected, told) in cases {
        let (code, errors) = person.fails(line)?;
        assert_eq!(code, Some(expected), "{line:?}: {errors}");
        assert!(errors.starts_with("error: ") && errors.contains(told), "{line:?}: {errors}");
    }
    person.server.stop().await?;
    let (code, errors) = person.fails(&["endpoint", "list"])?;
    assert_eq!(code, Some(6), "{errors}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_failure() -> anyhow::Result<()> {
    let person = or_skip!(Person::with_a_shop("http://127.0.0.1:9/").await?);
    let lines: [&[&str]; 5] = [
        &["endpoint", "list"],
        &["endpoint", "list", "-o", "json"],
        &["endpoint", "get", "shop", "-o", "yaml"],
        &["completion", "bash"],
        &["--help"],
    ];
    for line in lines {
        // Gone before the first byte: a reader that is only quick to go would race.
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let output = person.command(line)?.stdout(writer).stderr(Stdio::piped()).output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.is_empty(), "{line:?}: {errors}");
        assert_eq!(output.status.code(), Some(0), "{line:?}");
    }
    Ok(())
}

#[test]
fn completion_is_a_script_that_the_shell_takes() -> anyhow::Result<()> {
    let output = program()?.args(["completion", "bash"]).output()?;
    assert!(output.status.success() && output.stderr.is_empty());
    let script = String::from_utf8(output.stdout)?;
    for word in ["complete ", "turnbuckle", "event-type", "--data-dir"] {
        assert!(script.contains(word), "{word} is missing");
    }
    Ok(())
}
