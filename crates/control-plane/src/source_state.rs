//! Sources between their creation and their end: read, taken from or not, brought back.

use crate::{
    by::By,
    kept::{Listed, Lookup, Undelete, live_page_of, page_of, place_of, to_bring_back},
    names::SourceName,
    page::Page,
    source::{ListSources, SourceVerb, SourceView, Sources},
    write::{Change, check_etag},
};
use turnbuckle_domain::{Caller, Error, Kept, Revision, Source, SourceId};

/// A source from which nothing is to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DisableSource {
    pub(crate) name: SourceName,
    pub(crate) etag: Option<Revision>,
    pub(crate) reason: String,
}

impl Sources {
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        command: &Lookup<SourceName>,
    ) -> Result<SourceView, Error> {
        let name = &command.name;
        let error = match self.read(caller, name).await {
            Ok(source) => return Ok(SourceView::live(&name.tenant, source)),
            Err(error) => error,
        };
        if !command.show_deleted || !matches!(error, Error::NotFound { .. }) {
            return Err(error);
        }
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let deleted = self.0.store.deleted_source(tenant.id, &name.id).await?.ok_or(error)?;
        let Kept { value: source, deleted_at } = deleted;
        Ok(SourceView { tenant: tenant.slug, source, deleted_at })
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListSources,
    ) -> Result<Page<Listed<SourceView>>, Error> {
        let (page, store) = (&command.page, &self.0.store);
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let rows = if command.show_deleted {
            let after = place_of(page, SourceId::uuid)?;
            let rows = store.kept_sources(tenant.id, after.as_ref(), page.fetch()).await?;
            page_of(page, rows, |row| (&row.slug, row.id))
        } else {
            let rows = store.sources(tenant.id, page.after.as_deref(), page.fetch()).await?;
            live_page_of(page, rows, |row| &row.slug)
        };
        Ok(rows.filter_map(|Listed { place, row: Kept { value: source, deleted_at } }| {
            let row = SourceView { tenant: tenant.slug.clone(), source, deleted_at };
            Some(Listed { place, row })
        }))
    }

    pub(crate) async fn undelete(
        &self,
        by: &By,
        command: &Undelete<SourceName, SourceId>,
    ) -> Result<SourceView, Error> {
        let (name, store) = (&command.name, &self.0.store);
        let tenant = self.0.enter(&by.caller, &name.tenant).await?;
        let found = match command.uid {
            Some(uid) => store.kept_source(tenant.id, uid).await?,
            None => store.deleted_source(tenant.id, &name.id).await?,
        };
        let found = found.filter(|kept| kept.value.slug == name.id);
        let lives = store.source(tenant.id, &name.id).await?.is_some();
        let resource = name.to_string();
        let deleted = to_bring_back(found, lives, &resource)?;
        check_etag(command.etag, deleted.meta.revision, &resource)?;
        let write = store.undelete_source(&deleted, self.0.clock.now(), &by.change);
        let source = self.0.create(by, &resource, write).await?;
        Ok(SourceView::live(&tenant.slug, source))
    }

    pub(crate) async fn disable(
        &self,
        by: &By,
        command: &DisableSource,
    ) -> Result<SourceView, Error> {
        let reason = Some(command.reason.clone());
        self.set_disabled(by, (&command.name, command.etag), &reason).await
    }

    pub(crate) async fn enable(&self, by: &By, command: &SourceVerb) -> Result<SourceView, Error> {
        self.set_disabled(by, (&command.name, command.etag), &None).await
    }

    async fn set_disabled(
        &self,
        by: &By,
        (name, etag): (&SourceName, Option<Revision>),
        disabled: &Option<String>,
    ) -> Result<SourceView, Error> {
        let change = Change { resource: &name.to_string(), etag };
        let source = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, name),
                |source: &mut Source| {
                    source.disabled.clone_from(disabled);
                    Ok(())
                },
                |source, seen| self.0.store.update_source(source, seen, None, &by.change),
            )
            .await?;
        Ok(SourceView::live(&name.tenant, source))
    }
}
