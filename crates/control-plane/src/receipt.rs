//! Use cases of receipts: reads, and taking a kept request again. They are written by the ingress.

use crate::{
    Dependencies,
    by::By,
    names::{ReceiptName, SourceName},
    page::{Page, PageRequest},
};
use std::sync::Arc;
use turnbuckle_domain::{
    Caller, DeliveryFilter, Error, EventUid, Fields, Precondition, Processing, Receipt,
    ReceiptFilter, ReceiptId, ResourceId, Taken, TenantId, Timestamp,
};

/// A receipt with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiptView {
    pub(crate) tenant: ResourceId,
    pub(crate) receipt: Receipt,
    /// Its id as page tokens carry it.
    pub(crate) place: String,
    /// How far its event is; for one receipt only.
    pub(crate) processing: Option<(Timestamp, Processing)>,
}

/// A receipt to be taken again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplayReceipt {
    pub(crate) name: ReceiptName,
    pub(crate) only_new: bool,
}

/// Which receipts to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListReceipts {
    pub(crate) tenant: ResourceId,
    pub(crate) source: Option<SourceName>,
    /// Without the source, whose id is not known yet.
    pub(crate) filter: ReceiptFilter,
    pub(crate) after: Option<ReceiptId>,
    pub(crate) page: PageRequest,
}

/// What can be done with receipts.
pub(crate) struct Receipts(pub(crate) Arc<Dependencies>);

impl Receipts {
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &ReceiptName,
    ) -> Result<ReceiptView, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.receipts.receipt(tenant.id, name.id).await?;
        let not_found = || Error::NotFound { resource: name.to_string() };
        let mut view = view(&name.tenant, found.ok_or_else(not_found)?);
        if let Some(event) = view.receipt.event {
            view.processing = self.processing(tenant.id, event).await?;
        }
        Ok(view)
    }

    /// When an event was accepted, and how far it is since; none when it is gone.
    async fn processing(
        &self,
        tenant: TenantId,
        event: EventUid,
    ) -> Result<Option<(Timestamp, Processing)>, Error> {
        let history = &self.0.history;
        let Some(found) = history.event(tenant, event).await? else { return Ok(None) };
        let filter = DeliveryFilter { event: Some(event), ..DeliveryFilter::default() };
        let views = history.deliveries(tenant, &filter, None, Processing::DELIVERIES).await?;
        let processing = Processing::of(views.iter().map(|view| &view.delivery));
        Ok(Some((found.accepted_at, processing)))
    }

    /// Takes a kept request again. It is recorded before anything is made: there are no events of a
    /// replay without its entry.
    pub(crate) async fn replay(
        &self,
        by: &By,
        command: &ReplayReceipt,
    ) -> Result<Vec<Taken>, Error> {
        let name = &command.name;
        let tenant = self.0.enter(&by.caller, &name.tenant).await?;
        let not_found = || Error::NotFound { resource: name.to_string() };
        let found = self.0.receipts.receipt(tenant.id, name.id).await?;
        let receipt = found.ok_or_else(not_found)?;
        let refused = |kind, message: &str| Error::Precondition {
            kind,
            subject: name.to_string(),
            message: message.to_owned(),
        };
        if receipt.payload.is_none() {
            let message = "no payload is kept of this request, or no more: its sender has to send it \
                           again; set receipts.payload_retention of the source to keep payloads";
            return Err(refused(Precondition::PayloadGone, message));
        }
        let slug = ResourceId::new(receipt.source_slug.as_str());
        let slug = slug.map_err(|error| Error::internal(error.to_string()))?;
        let source = self.0.store.source(tenant.id, &slug).await?;
        // Another source of that name has nothing to do with it.
        let source = source.filter(|source| source.id == receipt.source);
        let gone = || refused(Precondition::ReferenceDeleted, "the source it came to is deleted");
        let source = source.ok_or_else(gone)?;
        let off = || refused(Precondition::SwitchedOff, "this process takes no events");
        let replays = self.0.replays.as_ref().ok_or_else(off)?;
        let words = if command.only_new { "only new" } else { "all" };
        let what = Fields::from([("replayed".to_owned(), words.to_owned())]);
        self.0.store.record_action(tenant.id, name.to_string(), what, &by.change).await?;
        replays.replay(&source, &receipt, command.only_new).await
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListReceipts,
    ) -> Result<Page<ReceiptView>, Error> {
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let mut filter = command.filter.clone();
        if let Some(name) = &command.source {
            let found = self.0.store.source(tenant.id, &name.id).await?;
            let not_found = || Error::NotFound { resource: name.to_string() };
            filter.source = Some(found.ok_or_else(not_found)?.id);
        }
        let (after, limit) = (command.after, command.page.fetch());
        let rows = self.0.receipts.receipts(tenant.id, &filter, after, limit).await?;
        let views = rows.into_iter().map(|receipt| view(&command.tenant, receipt)).collect();
        Ok(command.page.cut(views, |view: &ReceiptView| view.place.as_str()))
    }
}

fn view(tenant: &ResourceId, receipt: Receipt) -> ReceiptView {
    let place = receipt.id.to_string();
    ReceiptView { tenant: tenant.clone(), place, receipt, processing: None }
}
