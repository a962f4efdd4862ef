//! `turnbuckle key …`

use super::{
    common::{DryRun, read_secret},
    error::{Usage, printable},
    global::Session,
    key_status,
    names::{self, Collection},
    output::Format,
    values::{Span, parse_etag},
};
use turnbuckle_proto::v1;

/// What can be done with the keys of an endpoint or a source.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Shows the keys of an endpoint or a source, where their rotation stands, and what to do next; never
    /// their secrets.
    Status(RingArgs),
    /// Adds a key that does not sign yet, so that the receiver can learn it; of a source, one that is
    /// accepted from now on. Shows its secret, once.
    Stage(StageArgs),
    /// Sends one ping signed with the staged key alone, or with the key named, to see whether the
    /// receiver knows it. Sent by the delivery role.
    Test(TestArgs),
    /// Makes the staged key the active one; the one before signs on until the overlap ends.
    Activate(TurnArgs),
    /// Stage and activate in one step. Shows the new secret, once.
    Rotate(RotateArgs),
    /// Goes back to the key before.
    Rollback(TurnArgs),
    /// Holds the retiring key of an endpoint past its time, until the rotation is resumed, rolled back or
    /// ended.
    Pause(PauseArgs),
    /// Lets a paused rotation go on: the retiring key signs on until the overlap ends.
    Resume(TurnArgs),
    /// Destroys one key. The endpoint waits, sending nothing, when no usable key is left. A source refuses
    /// what is signed with it at once.
    Revoke(RevokeArgs),
    /// Shows the secret of one key again. Needs a server started with --allow-key-reveal.
    Reveal(RevealArgs),
}

/// Whose keys.
#[derive(Clone, Debug, clap::Args)]
pub struct RingOwner {
    /// Endpoint that the keys belong to.
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    pub endpoint: Option<String>,
    /// Source that the keys belong to.
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
}

impl RingOwner {
    /// Its full name.
    pub(super) fn name(&self, parent: &str) -> Result<String, Usage> {
        match (&self.source, &self.endpoint) {
            (Some(source), _) => Collection::Sources.name(parent, source),
            (None, endpoint) => {
                Collection::Endpoints.name(parent, endpoint.as_deref().unwrap_or_default())
            }
        }
    }
}

/// Which key ring.
#[derive(Clone, Debug, clap::Args)]
pub struct RingArgs {
    /// Whose keys.
    #[command(flatten)]
    pub owner: RingOwner,
}

/// Which key ring, and in which state.
#[derive(Clone, Debug, clap::Args)]
pub struct GuardedRing {
    /// Whose keys.
    #[command(flatten)]
    pub owner: RingOwner,
    /// Fail unless the key ring still has this etag. Without it, the present one is taken.
    #[arg(long, value_parser = parse_etag)]
    pub etag: Option<String>,
}

/// What a key signs with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    /// A secret shared with the receiver.
    HmacSha256,
    /// The receiver holds only the public half.
    Ed25519,
    /// Of a source: a secret that its sender knows too.
    SharedSecret,
    /// Of a source: a public key of its sender.
    PublicKey,
}

/// The new key.
#[derive(Clone, Debug, clap::Args)]
pub struct NewKey {
    /// What the new key signs with [default: hmac-sha256; of a source, what its scheme takes].
    #[arg(long, value_enum)]
    pub algorithm: Option<Algorithm>,
    /// File with a secret to import (whsec_… or whsk_…; of a source, the secret or public key as its sender
    /// shows it), - for stdin.
    #[arg(long, value_name = "FILE")]
    pub secret_file: Option<String>,
}

impl NewKey {
    fn to_proto(&self) -> anyhow::Result<(i32, String)> {
        let algorithm = match self.algorithm {
            // Leaves it to the secret, the scheme or the default.
            None => v1::KeyAlgorithm::Unspecified,
            Some(Algorithm::HmacSha256) => v1::KeyAlgorithm::HmacSha256,
            Some(Algorithm::Ed25519) => v1::KeyAlgorithm::Ed25519,
            Some(Algorithm::SharedSecret) => v1::KeyAlgorithm::SharedSecret,
            Some(Algorithm::PublicKey) => v1::KeyAlgorithm::PublicKey,
        };
        Ok((algorithm.into(), read_secret(self.secret_file.as_deref())?))
    }
}

/// Options of `key stage`.
#[derive(Clone, Debug, clap::Args)]
pub struct StageArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: GuardedRing,
    /// Which key.
    #[command(flatten)]
    pub key: NewKey,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `key test`.
#[derive(Clone, Debug, clap::Args)]
pub struct TestArgs {
    /// Endpoint that the key belongs to.
    pub endpoint: String,
    /// Key to test, as `key status` shows it [default: the staged one].
    #[arg(long)]
    pub key: Option<String>,
}

/// Options of `key activate`, `key rollback` and `key resume`.
#[derive(Clone, Debug, clap::Args)]
pub struct TurnArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: GuardedRing,
    /// How long the other key signs on, 0 to 30d [default: 24h; of a source 72h].
    #[arg(long, value_name = "DURATION")]
    pub overlap: Option<Span>,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `key pause`.
#[derive(Clone, Debug, clap::Args)]
pub struct PauseArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: GuardedRing,
    /// Why, for the record.
    #[arg(long)]
    pub reason: String,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `key reveal`.
#[derive(Clone, Debug, clap::Args)]
pub struct RevealArgs {
    /// Endpoint that the key belongs to.
    pub endpoint: String,
    /// Key to show, as `key status` shows it.
    pub key: String,
    /// Why, for the record.
    #[arg(long)]
    pub reason: String,
}

/// Options of `key rotate`.
#[derive(Clone, Debug, clap::Args)]
pub struct RotateArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: GuardedRing,
    /// Which key.
    #[command(flatten)]
    pub key: NewKey,
    /// How long the key before signs on, 0 to 30d [default: 24h; of a source 72h].
    #[arg(long, value_name = "DURATION")]
    pub overlap: Option<Span>,
    /// Ends an open rotation first: its staged key is dropped, its retiring key retired at once.
    #[arg(long)]
    pub force: bool,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

/// Options of `key revoke`. With --source the one positional argument is the key.
#[derive(Clone, Debug, clap::Args)]
#[command(allow_missing_positional = true)]
pub struct RevokeArgs {
    /// Which ring.
    #[command(flatten)]
    pub ring: GuardedRing,
    /// Key to destroy, as `key status` shows it.
    pub key: String,
    /// Why, for the record.
    #[arg(long)]
    pub reason: String,
    /// Whether it is meant.
    #[command(flatten)]
    pub dry: DryRun,
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    match verb {
        Verb::Status(args) => key_status::show(args, session).await,
        Verb::Test(args) => key_status::test(args, session).await,
        Verb::Stage(args) => stage(args, session).await,
        Verb::Rotate(args) => rotate(args, session).await,
        Verb::Activate(args) => turn(Turn::Activate, args, session).await,
        Verb::Rollback(args) => turn(Turn::Rollback, args, session).await,
        Verb::Resume(args) => turn(Turn::Resume, args, session).await,
        Verb::Pause(args) => pause(args, session).await,
        Verb::Revoke(args) => revoke(args, session).await,
        Verb::Reveal(args) => reveal(args, session).await,
    }
}

async fn stage(args: StageArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, etag) = guarded(session, args.ring).await?;
    let (algorithm, secret) = args.key.to_proto()?;
    let request = v1::StageKeyRequest {
        parent,
        etag,
        algorithm,
        secret,
        validate_only: args.dry.dry_run,
        ..Default::default()
    };
    let key = session.client.stage_key(request).await?;
    show_new_key(session, &key, args.dry)
}

async fn rotate(args: RotateArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, etag) = guarded(session, args.ring).await?;
    let (algorithm, secret) = args.key.to_proto()?;
    let request = v1::RotateKeyRequest {
        parent,
        etag,
        algorithm,
        secret,
        overlap: args.overlap.map(Span::to_proto),
        force: args.force,
        validate_only: args.dry.dry_run,
        ..Default::default()
    };
    let key = session.client.rotate_key(request).await?;
    show_new_key(session, &key, args.dry)
}

/// Verbs that need an overlap and nothing else.
#[derive(Clone, Copy)]
enum Turn {
    Activate,
    Rollback,
    Resume,
}

async fn turn(turn: Turn, args: TurnArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, etag) = guarded(session, args.ring).await?;
    let overlap = args.overlap.map(Span::to_proto);
    let validate_only = args.dry.dry_run;
    let request_id = String::new();
    let client = &session.client;
    let ring = match turn {
        Turn::Activate => {
            let request =
                v1::ActivateKeyRequest { parent, etag, overlap, validate_only, request_id };
            client.activate_key(request).await?
        }
        Turn::Rollback => {
            let request =
                v1::RollbackKeyRequest { parent, etag, overlap, validate_only, request_id };
            client.rollback_key(request).await?
        }
        Turn::Resume => {
            let request =
                v1::ResumeRotationRequest { parent, etag, overlap, validate_only, request_id };
            client.resume_rotation(request).await?
        }
    };
    show_ring(session, &ring, args.dry)
}

async fn pause(args: PauseArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, etag) = guarded(session, args.ring).await?;
    let request = v1::PauseRotationRequest {
        parent,
        etag,
        reason: args.reason,
        validate_only: args.dry.dry_run,
        ..Default::default()
    };
    let ring = session.client.pause_rotation(request).await?;
    show_ring(session, &ring, args.dry)
}

async fn revoke(args: RevokeArgs, session: &mut Session) -> anyhow::Result<()> {
    let (parent, etag) = guarded(session, args.ring).await?;
    let request = v1::RevokeKeyRequest {
        name: names::key(&parent, &args.key)?,
        etag,
        reason: args.reason,
        validate_only: args.dry.dry_run,
        ..Default::default()
    };
    let ring = session.client.revoke_key(request).await?;
    show_ring(session, &ring, args.dry)
}

async fn reveal(args: RevealArgs, session: &mut Session) -> anyhow::Result<()> {
    let parent = Collection::Endpoints.name(&session.parent, &args.endpoint)?;
    let name = names::key(&parent, &args.key)?;
    let request = v1::RevealKeyRequest { name, reason: args.reason };
    let key = session.client.key_rings().reveal_key(request).await?;
    session.output.one(key.get_ref())
}

/// The owner's name and the etag to send: the one given, or the present one.
async fn guarded(session: &Session, ring: GuardedRing) -> anyhow::Result<(String, String)> {
    let parent = ring.owner.name(&session.parent)?;
    let etag = match ring.etag {
        Some(etag) => etag,
        None => {
            let name = format!("{parent}/keyRing");
            let request = v1::GetKeyRingRequest { name };
            session.client.keys().get_key_ring(request).await?.into_inner().etag
        }
    };
    Ok((parent, etag))
}

/// People and scripts that want names see the keys; JSON and YAML show the ring with its etag.
/// What the ring is now, in words, goes beside the data.
fn show_ring(session: &mut Session, ring: &v1::KeyRing, dry: DryRun) -> anyhow::Result<()> {
    match session.output.format() {
        Format::Table | Format::Name => session.output.many(&ring.keys)?,
        Format::Json | Format::Yaml => session.output.one(ring)?,
    }
    session.output.note(&printable(&ring.summary))?;
    session.output.note_dry_run(dry.dry_run)
}

fn show_new_key(session: &mut Session, key: &v1::Key, dry: DryRun) -> anyhow::Result<()> {
    session.output.one(key)?;
    session.output.note(&printable(&key.ring_summary))?;
    session.output.note_dry_run(dry.dry_run)?;
    session.output.note_secret(&key.secret)
}
