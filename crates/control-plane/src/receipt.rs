//! Use cases of receipts: reads only. They are written by the ingress.

use crate::{
    Dependencies,
    names::{ReceiptName, SourceName},
    page::{Page, PageRequest},
};
use std::sync::Arc;
use turnbuckle_domain::{Caller, Error, Receipt, ReceiptFilter, ReceiptId, ResourceId};

/// A receipt with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiptView {
    pub(crate) tenant: ResourceId,
    pub(crate) receipt: Receipt,
    /// Its id as page tokens carry it.
    pub(crate) place: String,
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
        Ok(view(&name.tenant, found.ok_or_else(not_found)?))
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
    ReceiptView { tenant: tenant.clone(), place: receipt.id.to_string(), receipt }
}
