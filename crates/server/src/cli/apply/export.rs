//! `turnbuckle export`: a tenant's configuration as documents that `apply` takes.

use super::{
    kind::{KINDS, Kind},
    remote::Remote,
};
use crate::cli::{global::Session, output::Format, values::parse_pair};
use serde_json::{Map, Value};

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct ExportArgs {
    /// Only resources with this label; repeat for more, all must be there.
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE", value_parser = parse_pair)]
    labels: Vec<(String, String)>,
}

/// Writes YAML documents, or with `-o json` a JSON document each line, which `apply` reads as well.
pub(in crate::cli) async fn export(args: ExportArgs, session: &mut Session) -> anyhow::Result<()> {
    let mut remote = Remote::new(&session.client)?;
    let format = session.output.format();
    for kind in &KINDS {
        for row in remote.list(kind, &session.parent).await? {
            let labels = row.get("labels");
            let bears = args.labels.iter().all(|(key, value)| {
                labels.and_then(|labels| labels.get(key)) == Some(&Value::from(value.as_str()))
            });
            if !bears {
                continue;
            }
            let text = match format {
                Format::Name => match row.get("name") {
                    Some(Value::String(name)) => format!("{name}\n"),
                    _ => continue,
                },
                Format::Json => format!("---\n{}\n", serde_json::to_string(&declared(kind, row))?),
                Format::Table | Format::Yaml => yaml(kind, row)?,
            };
            session.output.raw(text.as_bytes())?;
        }
    }
    session.output.note("note: keys and the values of request headers are not exported")
}

/// `kind` and `name` first, where a reader looks.
fn yaml(kind: &Kind, row: Map<String, Value>) -> anyhow::Result<String> {
    let mut fields = declared(kind, row);
    let name = fields.remove("name");
    fields.remove("kind");
    let mut text = format!("---\nkind: {}\n", kind.name);
    if let Some(name) = name {
        text.push_str(&format!("name: {}", serde_norway::to_string(&name)?));
    }
    if !fields.is_empty() {
        text.push_str(&serde_norway::to_string(&fields)?);
    }
    Ok(text)
}

/// What files declare of a resource.
fn declared(kind: &Kind, row: Map<String, Value>) -> Map<String, Value> {
    let mut fields: Map<String, Value> =
        row.into_iter().filter(|(field, _)| field == "name" || kind.declares(field)).collect();
    fields.insert("kind".into(), Value::from(kind.name));
    fields
}
