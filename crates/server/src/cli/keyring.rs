//! `turnbuckle keyring status` and `turnbuckle keyring rewrap`.

use super::{error::printable, global::Session, output::Format};
use turnbuckle_proto::v1;

/// What a server can do with key-encryption keys.
#[derive(Clone, Copy, Debug, clap::Subcommand)]
pub enum Verb {
    /// Counts the stored secrets under each key-encryption key, and says which may be taken out.
    Status,
    /// Moves all stored secrets to the primary key-encryption key, while everything goes on. Run it
    /// again when it was cut short: it goes on where it ended.
    Rewrap,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    if let Verb::Rewrap = verb {
        rewrap(session).await?;
    }
    let request = v1::GetKeyringStatusRequest {};
    let status = session.client.keyring().get_keyring_status(request).await?.into_inner();
    match session.output.format() {
        Format::Json | Format::Yaml => session.output.one(&status),
        Format::Name => session.output.many(&status.keys),
        Format::Table => {
            session.output.many(&status.keys)?;
            session.output.raw(format!("\n{}\n", printable(&status.summary)).as_bytes())
        }
    }
}

/// Each call goes on for some seconds; the server keeps how far it has come.
async fn rewrap(session: &mut Session) -> anyhow::Result<()> {
    loop {
        let request = v1::RewrapSecretsRequest::default();
        let answer = session.client.keyring().rewrap_secrets(request).await?.into_inner();
        let v1::RewrapProgress { to, moved, unreadable, .. } = answer.progress.unwrap_or_default();
        session.output.note(&format!("{moved} secrets moved to {}", printable(&to)))?;
        if unreadable > 0 {
            session.output.note(&format!(
                "{unreadable} secrets cannot be opened with this keyring and stay as they are"
            ))?;
        }
        if answer.done {
            return Ok(());
        }
    }
}
