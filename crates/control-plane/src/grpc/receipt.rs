//! The Receipts service.

use super::{decode, decode_change, refuse};
use crate::{Dependencies, convert::receipt as convert, receipt::Receipts};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_proto::v1::{
    self,
    receipts_server::{Receipts as Contract, SERVICE_NAME},
};

/// Serves receipts.
pub(crate) struct Service(Receipts);

impl Service {
    pub(crate) fn new(dependencies: Arc<Dependencies>) -> Self {
        Self(Receipts(dependencies))
    }
}

#[tonic::async_trait]
impl Contract for Service {
    async fn get_receipt(
        &self,
        request: Request<v1::GetReceiptRequest>,
    ) -> Result<Response<v1::Receipt>, Status> {
        let (caller, command) = decode(request, convert::get)?;
        let answer = self.0.get(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::message(&answer)))
    }

    async fn replay_receipt(
        &self,
        request: Request<v1::ReplayReceiptRequest>,
    ) -> Result<Response<v1::ReplayReceiptResponse>, Status> {
        let method = (SERVICE_NAME, "ReplayReceipt");
        let (by, command) = decode_change(&self.0.0, method, request, convert::replay)?;
        let answer = self.0.replay(&by, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::replayed(&command.name, &answer)))
    }

    async fn list_receipts(
        &self,
        request: Request<v1::ListReceiptsRequest>,
    ) -> Result<Response<v1::ListReceiptsResponse>, Status> {
        let (caller, command) = decode(request, convert::list)?;
        let answer = self.0.list(&caller, &command).await.map_err(refuse)?;
        Ok(Response::new(convert::messages(&answer)))
    }
}
