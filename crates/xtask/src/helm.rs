//! `cargo xtask check-helm`: the chart, with the real helm and everything that judges what it renders.
//!
//! ```text
//!  ci/*.yaml ─┬─ helm lint --strict
//!             └─ helm template, per Kubernetes version ─┬─ schemas of that version
//!                                                       ├─ table of assertions (rules.rs)
//!                                                       ├─ the server's own settings parser
//!                                                       └─ policy scan
//!  values.yaml ─ table in the README
//! ```

mod readme;
mod render;
mod rules;
mod settings;

use crate::process::{capture, judge};
use crate::step::{self, Tally, Verdict};
use crate::tools;
use crate::workspace::Workspace;
use render::{Case, Rendered};

/// Where the chart is.
pub(crate) const CHART: &str = "helm/turnbuckle";

/// The oldest version that the chart takes, one in the middle, and the newest with schemas.
const KUBERNETES: [&str; 3] = ["1.30", "1.33", "1.37"];

/// Kinds of other projects' operators: their schemas are in no Kubernetes release.
const FOREIGN_KINDS: [&str; 5] =
    ["ScaledObject", "ServiceMonitor", "PrometheusRule", "GRPCRoute", "HTTPRoute"];

/// Checks of the policy scan that do not fit, each with its reason.
const NOT_FOR_US: [(&str, &str); 4] = [
    ("CKV_K8S_11", "no CPU limit: throttled processes miss their leases"),
    ("CKV_K8S_43", "digests are the operator's to pin: image.digest"),
    (
        "CKV_K8S_35",
        "the database URL is an environment variable, as every Postgres client takes it",
    ),
    ("CKV_K8S_15", "tags of releases are never moved, so there is nothing to pull again"),
];

type Step = (&'static str, fn(&Workspace) -> anyhow::Result<Verdict>);

/// Steps in the order of their cost.
pub(crate) const STEPS: [Step; 7] = [
    ("helm-readme", readme::check),
    ("helm-lint", lint),
    ("helm-refusals", refusals),
    ("helm-rules", rules),
    ("helm-schemas", schemas),
    ("helm-settings", settings::check),
    ("helm-policy", policy),
];

/// Runs the chart's steps alone; true when none failed.
pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<bool> {
    let mut tally = Tally::default();
    for (name, step) in STEPS {
        step::run(&mut tally, name, || step(workspace));
    }
    println!("{tally}");
    Ok(tally.failed == 0)
}

/// Writes the table of the chart's README.
pub(crate) fn write_readme(workspace: &Workspace) -> anyhow::Result<bool> {
    readme::write(workspace)
}

fn missing(program: &str) -> Verdict {
    Verdict::Skipped(format!("{program} is missing: {}", tools::HOW_TO_INSTALL))
}

fn lint(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    for case in Case::all(workspace)? {
        let mut command = workspace.command(&helm);
        let verdict = judge(command.args(["lint", "--strict", CHART]).args(case.arguments()))?;
        if let Verdict::Failed(text) = verdict {
            return Ok(Verdict::Failed(format!("{}: {text}", case.name)));
        }
    }
    Ok(Verdict::passed())
}

/// What must be refused before anything is installed, and the word that the refusal must have.
const REFUSALS: [(&[&str], &str); 11] = [
    (&["delivry.replicas=3"], "delivry"),
    (&["controlPlane.replica=3"], "replica"),
    (&["delivery.replicas=many"], "replicas"),
    (&["topology=three"], "topology"),
    (&["migrations.mode=sometimes"], "mode"),
    (&["image.digest=sha256:short"], "digest"),
    (&["settings.database_url=postgres://x"], "settings"),
    (&["database.existingSecret="], "database.existingSecret"),
    (&["nodeTokens.existingSecret="], "nodeTokens.existingSecret"),
    (&["hookIngress.enabled=true"], "hookIngress.host"),
    (&["delivery.keda.enabled=true", "delivery.autoscaling.enabled=true"], "delivery.keda.enabled"),
];

fn refusals(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    let mut complaints = Vec::new();
    for (values, word) in REFUSALS {
        let mut command = workspace.command(&helm);
        command.args(["template", "release", CHART, "-f", &format!("{CHART}/ci/roles.yaml")]);
        for value in values {
            command.args(["--set", value]);
        }
        let (success, text) = capture(&mut command)?;
        if success || !text.contains(word) {
            let what = if success { "is taken" } else { "is refused without that name" };
            complaints.push(format!("{}: {what}, expected {word:?}: {text}", values.join(", ")));
        }
    }
    Ok(Verdict::from_complaints(&complaints))
}

fn rules(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    let mut complaints = Vec::new();
    let mut objects = 0;
    for case in Case::all(workspace)? {
        let rendered = Rendered::new(workspace, &helm, &case, KUBERNETES[0])?;
        let again = Rendered::new(workspace, &helm, &case, KUBERNETES[0])?;
        if rendered.text != again.text {
            complaints.push(format!("{}: two renders differ: something is made anew", case.name));
        }
        objects += rendered.objects.len();
        let found = rules::complaints(&rendered, &case.external());
        complaints.extend(found.into_iter().map(|text| format!("{}: {text}", case.name)));
    }
    Ok(match complaints.is_empty() {
        true => Verdict::Passed(format!("{objects} objects")),
        false => Verdict::from_complaints(&complaints),
    })
}

fn schemas(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    let Some(validate) = tools::kubernetes_validate(workspace) else {
        return Ok(missing("kubernetes-validate"));
    };
    let scratch = tempfile::tempdir()?;
    let mut complaints = Vec::new();
    for case in Case::all(workspace)? {
        for version in KUBERNETES {
            let rendered = Rendered::new(workspace, &helm, &case, version)?;
            let file = scratch.path().join(format!("{}-{version}.yaml", case.name));
            std::fs::write(&file, &rendered.text)?;
            let mut command = workspace.command(&validate);
            let (success, text) = capture(command.args(["-k", version, "--strict"]).arg(&file))?;
            // A kind that it does not know is a warning only: a typing error would pass.
            let unknown = text.lines().filter(|line| line.contains("Couldn't find schema"));
            let unknown: Vec<&str> = unknown
                .filter(|line| !FOREIGN_KINDS.iter().any(|kind| line.contains(kind)))
                .collect();
            if !success || !unknown.is_empty() {
                complaints.push(format!("{} on {version}: {text}", case.name));
            }
        }
    }
    Ok(match complaints.is_empty() {
        true => Verdict::Passed(format!("Kubernetes {}", KUBERNETES.join(", "))),
        false => Verdict::from_complaints(&complaints),
    })
}

fn policy(workspace: &Workspace) -> anyhow::Result<Verdict> {
    let Some(helm) = tools::helm(workspace) else { return Ok(missing("helm")) };
    let Some(checkov) = tools::checkov(workspace) else { return Ok(missing("checkov")) };
    let scratch = tempfile::tempdir()?;
    for case in Case::all(workspace)? {
        let rendered = Rendered::new(workspace, &helm, &case, KUBERNETES[0])?;
        std::fs::write(scratch.path().join(format!("{}.yaml", case.name)), rendered.text)?;
    }
    let skipped: Vec<&str> = NOT_FOR_US.iter().map(|(check, _)| *check).collect();
    let mut command = workspace.command(&checkov);
    command.args(["--framework", "kubernetes", "--compact", "--quiet", "--skip-download"]);
    command.args(["--skip-check", &skipped.join(","), "--directory"]).arg(scratch.path());
    judge(&mut command)
}
