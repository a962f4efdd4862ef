//! The Audit service.

use super::{decode, refuse};
use crate::{Dependencies, audit::Audit, convert::audit as convert};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{self, audit_server::Audit as Contract};

/// Serves the audit record.
pub(crate) struct Service(Audit);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Audit(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn list_audit_events(
        &self,
        request: Request<v1::ListAuditEventsRequest>,
    ) -> Result<Response<v1::ListAuditEventsResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }

    async fn get_audit_head(
        &self,
        request: Request<v1::GetAuditHeadRequest>,
    ) -> Result<Response<v1::AuditHead>, Status> {
        let (caller, command) = decode(request, convert::head)?;
        let answer = self.0.head(&caller, command.as_ref()).await.map_err(refuse)?;
        Ok(Response::new(convert::head_message(&answer)))
    }
}
