//! Use cases of sources.

use crate::{
    Dependencies,
    by::By,
    key_material::{KeyText, WantedKey},
    key_owner::Owner,
    names::SourceName,
    page::{Page, PageRequest},
    preset_settings,
    repeat::gone,
    verification,
    write::{Change, Upsert, upsert},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Answers, Caller, Dedup, Error, EventMapping, HandshakeChoice, IngestPath, IngestToken,
    IntakeLimits, KeyOwner, KeyRing, Labels, Made, Ordering, ReceiptSettings, ResourceId, Revision,
    SchemeChoice, Source, SourceId, SourceSettings, Tenant, TimestampWindow, Unprocessable,
    Violations,
};

/// A source with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceView {
    pub(crate) tenant: ResourceId,
    pub(crate) source: Source,
}

/// A source, with the one look at a secret that was made with it.
#[derive(Debug)]
pub(crate) struct CreatedSource {
    pub(crate) view: SourceView,
    pub(crate) secret: Option<KeyText>,
}

/// A source to be made. `Debug` hides what the source's hides.
#[derive(Clone)]
pub(crate) struct CreateSource {
    pub(crate) tenant: ResourceId,
    /// None: the server makes one.
    pub(crate) slug: Option<ResourceId>,
    pub(crate) display_name: String,
    pub(crate) scheme: SchemeChoice,
    pub(crate) scheme_settings: BTreeMap<String, String>,
    pub(crate) public_url: Option<String>,
    pub(crate) settings: SourceSettings,
    pub(crate) labels: Labels,
    /// None: the ring is empty.
    pub(crate) key: Option<WantedKey>,
}

/// Which sources to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListSources {
    pub(crate) tenant: ResourceId,
    pub(crate) page: PageRequest,
}

/// New values of the groups of settings: none keeps the old one, `Some(None)` fills it as at creation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) event: Option<Option<EventMapping>>,
    pub(crate) dedup: Option<Option<Dedup>>,
    pub(crate) ordering: Option<Option<Ordering>>,
    pub(crate) timestamp: Option<Option<TimestampWindow>>,
    pub(crate) limits: Option<Option<IntakeLimits>>,
    pub(crate) answers: Option<Option<Answers>>,
    pub(crate) handshake: Option<HandshakeChoice>,
    pub(crate) unprocessable: Option<Option<Unprocessable>>,
    pub(crate) receipts: Option<Option<ReceiptSettings>>,
}

impl Groups {
    /// The settings with these groups in their places; `filled` are those of a source that says nothing.
    pub(crate) fn apply(&self, filled: &SourceSettings, settings: &mut SourceSettings) {
        put(&self.event, &filled.event, &mut settings.event);
        put(&self.dedup, &filled.dedup, &mut settings.dedup);
        put(&self.ordering, &filled.ordering, &mut settings.ordering);
        put(&self.limits, &filled.limits, &mut settings.limits);
        put(&self.answers, &filled.answers, &mut settings.answers);
        put(&self.receipts, &filled.receipts, &mut settings.receipts);
        settings.timestamp = self.timestamp.unwrap_or(settings.timestamp);
        settings.handshake = self.handshake.unwrap_or(settings.handshake);
        put(&self.unprocessable, &filled.unprocessable, &mut settings.unprocessable);
    }
}

fn put<T: Clone>(group: &Option<Option<T>>, filled: &T, place: &mut T) {
    if let Some(new) = group {
        place.clone_from(new.as_ref().unwrap_or(filled));
    }
}

/// New values of a source's fields; none keeps the old one.
#[derive(Clone)]
pub(crate) struct UpdateSource {
    pub(crate) name: SourceName,
    pub(crate) etag: Option<Revision>,
    pub(crate) display_name: Option<String>,
    pub(crate) scheme: Option<SchemeChoice>,
    pub(crate) scheme_settings: Option<BTreeMap<String, String>>,
    pub(crate) public_url: Option<Option<String>>,
    pub(crate) groups: Groups,
    pub(crate) labels: Option<Labels>,
}

impl UpdateSource {
    fn apply(&self, source: &mut Source) -> Result<(), Error> {
        if let Some(display_name) = &self.display_name {
            source.display_name.clone_from(display_name);
        }
        if let Some(scheme) = &self.scheme {
            source.scheme.clone_from(scheme);
        }
        if let Some(texts) = &self.scheme_settings {
            source.scheme_settings.clone_from(texts);
        }
        if let Some(url) = &self.public_url {
            source.public_url.clone_from(url);
        }
        if let Some(labels) = &self.labels {
            source.labels.clone_from(labels);
        }
        let filled = preset_settings::filled(&source.scheme);
        self.groups.apply(&filled, &mut source.settings);
        // Some parts are the old ones, so these rules are only known now.
        let scheme = verification::scheme(&source.scheme)?;
        let mut violations = Violations::new();
        let (texts, settings) = (&source.scheme_settings, &source.settings);
        verification::check_whole(&scheme, texts, settings, &mut violations);
        violations.finish()
    }
}

/// A source to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteSource {
    pub(crate) name: SourceName,
    pub(crate) etag: Option<Revision>,
}

/// A source to get another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RotateIngestPath {
    pub(crate) name: SourceName,
    pub(crate) etag: Option<Revision>,
    pub(crate) overlap: Duration,
}

/// What can be done with sources.
pub(crate) struct Sources(pub(crate) Arc<Dependencies>);

impl Sources {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateSource,
    ) -> Result<CreatedSource, Error> {
        let tenant = self.0.enter(&by.caller, &command.tenant).await?;
        let again = |made| self.made(&tenant, command, made);
        self.0.once(by, Some(tenant.id), self.make(by, &tenant, command), again).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: &Tenant,
        command: &CreateSource,
    ) -> Result<CreatedSource, Error> {
        let source = self.draft(tenant, command)?;
        let name = SourceName { tenant: tenant.slug.clone(), id: source.slug.clone() };
        let (ring, secret) = self.first_ring(by, &source, command.key.as_ref())?;
        let write = self.0.store.create_source(source, ring, &by.change);
        let source = self.0.create(by, &name.to_string(), write).await?;
        Ok(CreatedSource { view: SourceView { tenant: name.tenant, source }, secret })
    }

    async fn made(
        &self,
        tenant: &Tenant,
        command: &CreateSource,
        made: Made,
    ) -> Result<CreatedSource, Error> {
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => own_slug(SourceId::from_uuid(made.id))?,
        };
        let name = SourceName { tenant: tenant.slug.clone(), id: slug };
        let source = self.still(tenant, &name, made).await?;
        // What the caller gave was not shown the first time either.
        let secret = match command.key {
            Some(WantedKey::FreshSecret) => self.secret_again(&source, &made).await?,
            _ => None,
        };
        Ok(CreatedSource { view: SourceView { tenant: name.tenant, source }, secret })
    }

    /// The source that an earlier call made or changed, as it is now. Another one that has its name
    /// since then does not count.
    async fn still(&self, tenant: &Tenant, name: &SourceName, made: Made) -> Result<Source, Error> {
        let found = self.0.store.source(tenant.id, &name.id).await?;
        let source = found.filter(|found| found.id.uuid() == made.id).ok_or_else(gone(name))?;
        self.0.propagation.applied(source.meta.revision).await;
        Ok(source)
    }

    /// The first secret of a source once more; none when the source is deleted meanwhile.
    async fn secret_again(&self, source: &Source, made: &Made) -> Result<Option<KeyText>, Error> {
        let place = (source.tenant, KeyOwner::Source(source.id));
        let ring = match self.0.store.key_ring(place.0, place.1).await {
            Ok(ring) => ring,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(self.0.key_again(place, &ring, made)?.and_then(|(_, secret)| secret))
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &SourceName,
    ) -> Result<SourceView, Error> {
        let source = self.read(caller, name).await?;
        Ok(SourceView { tenant: name.tenant.clone(), source })
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListSources,
    ) -> Result<Page<SourceView>, Error> {
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let after = command.page.after.as_deref();
        let rows = self.0.store.sources(tenant.id, after, command.page.fetch()).await?;
        let view = |source| Some(SourceView { tenant: tenant.slug.clone(), source });
        Ok(command.page.cut(rows, |row| row.slug.as_str()).filter_map(view))
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateSource,
    ) -> Result<SourceView, Error> {
        let resource = command.name.to_string();
        let change = Change { resource: &resource, etag: command.etag };
        let source = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |source| command.apply(source),
                |source: Source, seen| async move {
                    if command.scheme.is_some() {
                        self.keys_fit(&source, &command.name.to_string()).await?;
                    }
                    self.0.store.update_source(source, seen, &by.change).await
                },
            )
            .await?;
        Ok(SourceView { tenant: command.name.tenant.clone(), source })
    }

    pub(crate) async fn upsert(
        &self,
        by: &By,
        command: &Upsert<UpdateSource, CreateSource>,
    ) -> Result<CreatedSource, Error> {
        let Upsert { update, create } = command;
        let change = Change { resource: &update.name.to_string(), etag: update.etag };
        let present = || async {
            let view = self.update(by, update).await?;
            Ok(CreatedSource { view, secret: None })
        };
        upsert(&change, create.as_ref(), present, |create| self.create(by, create)).await
    }

    pub(crate) async fn delete(&self, by: &By, command: &DeleteSource) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |source| async move {
                    self.0.store.delete_source(&source, self.0.clock.now(), &by.change).await
                },
            )
            .await
    }

    pub(crate) async fn rotate_path(
        &self,
        by: &By,
        command: &RotateIngestPath,
    ) -> Result<SourceView, Error> {
        let tenant = &self.0.enter(&by.caller, &command.name.tenant).await?;
        let again = |made| async move {
            let source = self.still(tenant, &command.name, made).await?;
            Ok(SourceView { tenant: command.name.tenant.clone(), source })
        };
        self.0.once(by, Some(tenant.id), self.give_path(by, command), again).await
    }

    async fn give_path(&self, by: &By, command: &RotateIngestPath) -> Result<SourceView, Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        let source = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |source: &mut Source| {
                    source.path.rotate(fresh_token()?, command.overlap, self.0.clock.now());
                    Ok(())
                },
                |source, seen| self.0.store.update_source(source, seen, &by.change),
            )
            .await?;
        Ok(SourceView { tenant: command.name.tenant.clone(), source })
    }

    fn draft(&self, tenant: &Tenant, command: &CreateSource) -> Result<Source, Error> {
        let id = SourceId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => own_slug(id)?,
        };
        Ok(Source {
            id,
            tenant: tenant.id,
            slug,
            display_name: command.display_name.clone(),
            scheme: command.scheme.clone(),
            scheme_settings: command.scheme_settings.clone(),
            path: IngestPath::new(fresh_token()?),
            public_url: command.public_url.clone(),
            settings: command.settings.clone(),
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        })
    }

    /// The ring of a new source: with its first key, which is accepted and expected at once, or empty.
    fn first_ring(
        &self,
        by: &By,
        source: &Source,
        wanted: Option<&WantedKey>,
    ) -> Result<(KeyRing, Option<KeyText>), Error> {
        let Some(wanted) = wanted else {
            return Ok((KeyRing::default(), None));
        };
        let (now, owner) = (source.meta.created_at, Owner::Source(Box::new(source.clone())));
        if by.validates_only() {
            self.0.unmade_key(&owner, wanted, now)?;
            return Ok((KeyRing::default(), None));
        }
        let material = self.0.material(&owner, wanted)?;
        let key = self.0.seal((source.tenant, source.id.into()), &material, now)?;
        Ok((KeyRing::with_first(key, now), material.shown))
    }

    async fn keys_fit(&self, source: &Source, subject: &str) -> Result<(), Error> {
        let owner = KeyOwner::Source(source.id);
        let ring = self.0.store.key_ring(source.tenant, owner).await?;
        self.0.check_keys(source, ring.accepting(self.0.clock.now()), subject)
    }

    async fn read(&self, caller: &Caller, name: &SourceName) -> Result<Source, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.source(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }
}

/// The name of a source that was given none.
fn own_slug(id: SourceId) -> Result<ResourceId, Error> {
    ResourceId::new(id.to_string()).map_err(Error::internal)
}

/// A token nobody can guess, of the operating system's randomness.
fn fresh_token() -> Result<IngestToken, Error> {
    let mut bytes = [0; IngestToken::LENGTH];
    getrandom::fill(&mut bytes).map_err(Error::internal)?;
    Ok(IngestToken::from_random(bytes))
}
