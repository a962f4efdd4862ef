//! Configuration kept in files: what `apply` and `export` do to a server, seen from the shell.

use serde_json::Value;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use turnbuckle_tests::{Server, StoreKind, home::program};

const SHOP: &str = "\
kind: Subscription
name: paid
endpoint: shop
eventTypes: [order.*]
labels: {managed-by: git}
---
kind: Endpoint
name: shop
displayName: The shop
http:
  url: https://shop.example.org/hooks
retryPolicy: patient
labels: {managed-by: git}
---
kind: RetryPolicy
name: patient
exponential: {firstDelay: 5s, factor: 2, maxDelay: 300s}
labels: {managed-by: git}
---
kind: EventType
name: order.paid
labels: {managed-by: git}
---
kind: Source
name: github
preset: github
labels: {managed-by: git}
";

struct Repository {
    server: Server,
    folder: TempDir,
}

impl Repository {
    async fn new() -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(StoreKind::Embedded, &["--dev"]).await? else {
            return Ok(None);
        };
        Ok(Some(Self { server, folder: tempfile::tempdir()? }))
    }

    fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.folder.path().join(name), text)?)
    }

    fn runs(&self, line: &[&str]) -> anyhow::Result<Output> {
        let mut command: Command = program()?;
        command.args(["--server", &format!("http://{}", self.server.api)]).args(line);
        Ok(command.current_dir(self.folder.path()).stdin(Stdio::null()).output()?)
    }

    fn says(&self, line: &[&str]) -> anyhow::Result<String> {
        let output = self.runs(line)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{line:?}: {}\n{errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    fn fails(&self, line: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
        let output = self.runs(line)?;
        Ok((output.status.code(), String::from_utf8(output.stderr)?))
    }

    fn revision(&self) -> anyhow::Result<Value> {
        let text = self.says(&["audit", "list", "--limit", "1", "-o", "json"])?;
        let entries: Value = serde_json::from_str(&text)?;
        Ok(entries[0]["revision"].clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_make_a_tenant_and_applying_twice_changes_nothing() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    repository.write("shop.yaml", SHOP)?;
    let planned = repository.says(&["apply", "-f", ".", "--dry-run"])?;
    assert_eq!(planned.lines().filter(|line| line.starts_with("+ ")).count(), 5, "{planned}");
    assert_eq!(repository.says(&["endpoint", "list", "-o", "name"])?, "");

    let (code, told) =
        repository.fails(&["apply", "-f", ".", "--secrets-file", "no/such/folder"])?;
    assert!(code == Some(1) && told.contains("--secrets-file"), "{told}");
    assert_eq!(repository.says(&["endpoint", "list", "-o", "name"])?, "", "a secret was lost");

    repository.says(&["apply", "-f", ".", "--secrets-file", "secrets"])?;
    let secrets = std::fs::read_to_string(repository.folder.path().join("secrets"))?;
    assert!(secrets.starts_with("tenants/default/endpoints/shop whsec_"), "no secret was kept");

    let revision = repository.revision()?;
    let again = repository.says(&["apply", "-f", "."])?;
    assert!(again.lines().all(|line| line.starts_with("= ")), "{again}");
    assert_eq!(repository.revision()?, revision);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_each_field_and_partial_leaves_the_others_alone() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    repository.write("shop.yaml", SHOP)?;
    repository.says(&["apply", "-f", "shop.yaml"])?;
    let part = "kind: Endpoint\nname: shop\nmax_in_flight: 4\n";
    repository.write("part.yaml", part)?;

    let whole = repository.fails(&["apply", "-f", "part.yaml", "--dry-run"])?;
    assert_eq!(whole.0, Some(2), "an endpoint without a URL: {}", whole.1);
    let partial = repository.says(&["apply", "-f", "part.yaml", "--partial", "--dry-run"])?;
    let lines: Vec<&str> = partial.lines().collect();
    assert_eq!(lines.len(), 2, "{partial}");
    assert!(lines[0].starts_with("~ tenants/default/endpoints/shop"), "{partial}");
    assert!(lines[1].contains("maxInFlight: ") && lines[1].ends_with("-> 4"), "{partial}");

    repository.says(&["apply", "-f", "part.yaml", "--partial"])?;
    let shown = repository.says(&["endpoint", "get", "shop", "-o", "json"])?;
    let endpoint: Value = serde_json::from_str(&shown)?;
    assert_eq!(endpoint["displayName"], "The shop");
    assert_eq!(endpoint["maxInFlight"], 4);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_takes_what_bears_the_label_and_is_declared_no_more() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    repository.write("shop.yaml", SHOP)?;
    repository.says(&["apply", "-f", "shop.yaml"])?;
    repository.says(&["endpoint", "create", "by-hand", "--url", "https://hand.example.org/"])?;
    let less = SHOP.split("---\n").skip(2).collect::<Vec<_>>().join("---\n");
    repository.write("shop.yaml", &less)?;

    let (code, _) = repository.fails(&["apply", "-f", "shop.yaml", "--prune"])?;
    assert_eq!(code, Some(2), "pruning without a label");
    let label = ["--prune", "-l", "managed-by=git"];
    let line = [&["apply", "-f", "shop.yaml"][..], &label[..]].concat();
    let planned = repository.says(&[&line[..], &["--dry-run"]].concat())?;
    let gone: Vec<&str> = planned.lines().filter(|line| line.starts_with("- ")).collect();
    assert_eq!(
        gone,
        ["- tenants/default/subscriptions/paid", "- tenants/default/endpoints/shop"],
        "{planned}"
    );
    repository.says(&line)?;
    assert_eq!(
        repository.says(&["endpoint", "list", "-o", "name"])?,
        "tenants/default/endpoints/by-hand\n"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_applied_elsewhere_makes_the_same() -> anyhow::Result<()> {
    let (here, there) = (or_skip!(Repository::new().await?), or_skip!(Repository::new().await?));
    here.write("shop.yaml", SHOP)?;
    here.says(&["apply", "-f", "shop.yaml"])?;
    let exported = here.says(&["export"])?;
    let unchanged = {
        here.write("exported.yaml", &exported)?;
        here.says(&["apply", "-f", "exported.yaml"])?
    };
    assert!(unchanged.lines().all(|line| line.starts_with("= ")), "{unchanged}");

    there.write("exported.yaml", &exported)?;
    there.says(&["apply", "-f", "exported.yaml"])?;
    assert_eq!(there.says(&["export"])?, exported);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_files_change_nothing_and_each_fault_is_named() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    repository.write("a.yaml", "kind: EventType\nname: order.paid\n")?;
    repository.write(
        "b.yaml",
        "kind: Endpoint\nname: shop\nhttp: {uri: x}\n---\nkind: Tenat\nname: x\n",
    )?;
    let (code, told) = repository.fails(&["apply", "-f", "."])?;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("b.yaml, document 2: kind \"Tenat\" is unknown"), "{told}");
    repository.write("b.yaml", "kind: Endpoint\nname: shop\nhttp: {uri: x}\n")?;
    let (code, told) = repository.fails(&["apply", "-f", "."])?;
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("b.yaml, document 1") && told.contains("uri"), "{told}");
    assert_eq!(repository.says(&["event-type", "list", "-o", "name"])?, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_in_a_new_tenant_tells_what_is_wrong_and_only_that() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    let good = format!("kind: Tenant\nname: acme\n---\n{SHOP}");
    repository.write("good.yaml", &good)?;
    let planned =
        repository.says(&["--tenant", "acme", "apply", "-f", "good.yaml", "--dry-run"])?;
    assert_eq!(planned.lines().filter(|line| line.starts_with("+ ")).count(), 6, "{planned}");

    for (right, wrong, field) in [
        ("https://shop.example.org/hooks", "ftp://shop.example.org/hooks", "url"),
        ("eventTypes: [order.*]", "eventTypes: [order.*]\nfilter: \"data.x ==\"", "filter"),
    ] {
        repository.write("bad.yaml", &good.replace(right, wrong))?;
        let line = ["--tenant", "acme", "apply", "-f", "bad.yaml", "--dry-run"];
        let (code, told) = repository.fails(&line)?;
        assert!(code == Some(2) && told.contains(field), "{code:?} {told}");
    }
    repository.write("bad.yaml", &good.replace("retryPolicy: patient", "retryPolicy: nope"))?;
    let line = ["--tenant", "acme", "apply", "-f", "bad.yaml", "--dry-run"];
    let (code, told) = repository.fails(&line)?;
    assert!(code == Some(3) && told.contains("acme/retryPolicies/nope"), "{code:?} {told}");
    assert_eq!(repository.says(&["tenant", "list", "-o", "name"])?, "tenants/default\n");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn pruning_an_endpoint_takes_no_subscription_along_that_is_to_stay() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    repository.write("shop.yaml", SHOP)?;
    repository.says(&["apply", "-f", "shop.yaml"])?;
    // The endpoint leaves the files, and its subscription stays in them.
    let parts: Vec<&str> = SHOP.split("---\n").collect();
    repository.write("shop.yaml", &[parts[0], parts[3], parts[4]].join("---\n"))?;
    for dry_run in [true, false] {
        let mut line = vec!["apply", "-f", "shop.yaml", "--prune", "-l", "managed-by=git"];
        line.extend(dry_run.then_some("--dry-run"));
        let (code, told) = repository.fails(&line)?;
        let names = ["endpoints/shop was not deleted", "subscriptions/paid"];
        assert!(code == Some(4) && names.iter().all(|it| told.contains(it)), "{code:?} {told}");
    }
    assert_eq!(
        repository.says(&["subscription", "list", "-o", "name"])?,
        "tenants/default/subscriptions/paid\n"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_tells_what_is_wrong_below_what_is_not_made_yet() -> anyhow::Result<()> {
    let repository = or_skip!(Repository::new().await?);
    let documents = |url: &str| {
        format!(
            "kind: Tenant\nname: tenants/fresh\n---\nkind: Endpoint\nname: \
             tenants/fresh/endpoints/shop\nhttp: {{url: \"{url}\"}}\n"
        )
    };
    repository.write("fresh.yaml", &documents("https://shop.example.org/hooks"))?;
    let planned = repository.says(&["apply", "-f", "fresh.yaml", "--dry-run"])?;
    assert_eq!(planned.lines().filter(|line| line.starts_with("+ ")).count(), 2, "{planned}");
    repository.write("fresh.yaml", &documents("ftp://shop.example.org/"))?;
    let (code, told) = repository.fails(&["apply", "-f", "fresh.yaml", "--dry-run"])?;
    assert!(code == Some(2) && told.contains("endpoint.http.url"), "{code:?} {told}");
    Ok(())
}
