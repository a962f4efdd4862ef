//! The Replays service.

use super::{convert, events, list, replay_convert};
use crate::{plane::DeliveryPlane, replay::Replays as UseCase};
use prost::Message as _;
use std::sync::Arc;
use tonic::{Request, Response, Status};
use turnbuckle_domain::{
    AuditId, Caller, ChangeContext, EndpointId, Error, Replay, ReplayId, ReplayState, RequestKey,
    ResourceId, TenantId,
};
use turnbuckle_proto::v1::{self, replays_server::Replays};
use turnbuckle_runtime::{
    grpc::{caller, status},
    page::{PageToken, page_size},
};

pub(super) struct ReplaysService {
    replays: Arc<UseCase>,
}

/// A replay by name, in a tenant that the caller may touch.
struct Named {
    slug: ResourceId,
    tenant: TenantId,
    id: ReplayId,
}

impl ReplaysService {
    pub(super) fn new(plane: &DeliveryPlane) -> Self {
        Self { replays: plane.replays() }
    }

    fn named(&self, caller: &Caller, name: &str) -> Result<Named, Error> {
        let (slug, id) = convert::child("name", name, "replays")?;
        let tenant = events::enter(self.replays.config(), caller, &slug)?;
        let id = id.parse().map_err(|_| not_found(name))?;
        Ok(Named { slug, tenant, id })
    }

    fn parent(&self, caller: &Caller, parent: &str) -> Result<(ResourceId, TenantId), Error> {
        let slug = convert::parent("parent", parent)?;
        let tenant = events::enter(self.replays.config(), caller, &slug)?;
        Ok((slug, tenant))
    }

    /// The endpoint that a replay is bound to.
    fn endpoint(
        &self,
        slug: &ResourceId,
        tenant: TenantId,
        name: &str,
    ) -> Result<Option<(EndpointId, ResourceId)>, Error> {
        if name.is_empty() {
            return Ok(None);
        }
        let (owner, id) = convert::child("replay.endpoint", name, "endpoints")?;
        let id = ResourceId::new(id).map_err(|_| not_found(name))?;
        let index = self.replays.config().load();
        let entry = index.endpoint_by_slug(tenant, &id).filter(|_| owner == *slug);
        Ok(Some((entry.ok_or_else(|| not_found(name))?.endpoint.id, id)))
    }

    fn replay(
        &self,
        caller: &Caller,
        (slug, tenant): (&ResourceId, TenantId),
        wish: Option<v1::Replay>,
        needs_reason: bool,
    ) -> Result<Replay, Error> {
        let wish = wish.unwrap_or_default();
        let endpoint = self.endpoint(slug, tenant, &wish.endpoint)?;
        let now = self.replays.clock().now();
        let draft = replay_convert::draft(slug, &wish, endpoint.as_ref().map(|one| one.0), now);
        let draft = draft.check(needs_reason)?;
        Ok(Replay {
            id: ReplayId::from_uuid(self.replays.ids().uuid()),
            tenant,
            endpoint_slug: endpoint.map(|one| one.1.to_string()).unwrap_or_default(),
            created_by: caller.subject.clone(),
            ..draft
        })
    }

    /// How a change is recorded.
    fn change(
        &self,
        caller: &Caller,
        method: &str,
        reason: String,
        request: Option<RequestKey>,
    ) -> ChangeContext {
        let id = self.replays.ids().uuid();
        ChangeContext {
            id: AuditId::from_uuid(id),
            at: self.replays.clock().now(),
            subject: caller.subject.clone(),
            role: caller.role,
            method: format!("turnbuckle.v1.Replays/{method}"),
            request_id: request.map_or(id, |request| request.id).to_string(),
            reason,
            validate_only: false,
            request,
        }
    }

    async fn create(
        &self,
        caller: &Caller,
        request: v1::CreateReplayRequest,
    ) -> Result<v1::Replay, Error> {
        let (slug, tenant) = self.parent(caller, &request.parent)?;
        let key = request_key(caller, &request)?;
        let replay = self.replay(caller, (&slug, tenant), request.replay, true)?;
        let change = self.change(caller, "CreateReplay", replay.reason.clone(), key);
        let made = self.replays.create(&slug, replay, &change).await?;
        Ok(replay_convert::replay(&slug, made))
    }

    async fn preview(
        &self,
        caller: &Caller,
        request: v1::PreviewReplayRequest,
    ) -> Result<v1::PreviewReplayResponse, Error> {
        let (slug, tenant) = self.parent(caller, &request.parent)?;
        let replay = self.replay(caller, (&slug, tenant), request.replay, false)?;
        let counted = self.replays.preview(&replay).await?;
        Ok(v1::PreviewReplayResponse {
            looked_at: replay_convert::number(counted.looked_at),
            matched: replay_convert::number(counted.matched),
            complete: counted.complete,
        })
    }

    async fn get(&self, caller: &Caller, name: &str) -> Result<v1::Replay, Error> {
        let Named { slug, tenant, id } = self.named(caller, name)?;
        let replay = self.replays.get(&slug, tenant, id).await?;
        Ok(replay_convert::replay(&slug, replay))
    }

    async fn list(
        &self,
        caller: &Caller,
        request: v1::ListReplaysRequest,
    ) -> Result<v1::ListReplaysResponse, Error> {
        let (slug, tenant) = self.parent(caller, &request.parent)?;
        let state = replay_convert::state_filter(request.state)?;
        let scope = format!("replays {slug} {state:?}");
        let after = PageToken::decode(&scope, &request.page_token)?
            .map(|last| last.parse::<ReplayId>())
            .transpose()
            .map_err(|_| Error::invalid("page_token", "is not one of this list"))?;
        let limit = page_size(request.page_size)?;
        let rows = self.replays.list(tenant, state, after, limit).await?;
        let key = |replay: &Replay| replay.id.to_string();
        let message = |replay| replay_convert::replay(&slug, replay);
        let (replays, next_page_token) = list::page(rows, limit, &scope, key, message);
        Ok(v1::ListReplaysResponse { replays, next_page_token })
    }

    async fn turn(
        &self,
        caller: &Caller,
        name: &str,
        (method, to): (&str, ReplayState),
    ) -> Result<v1::Replay, Error> {
        let Named { slug, tenant, id } = self.named(caller, name)?;
        let change = self.change(caller, method, String::new(), None);
        let replay = self.replays.turn(&slug, (tenant, id), to, &change).await?;
        Ok(replay_convert::replay(&slug, replay))
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { resource: name.to_owned() }
}

/// The id of the request with the hash of what it says; none when it has no id.
fn request_key(
    caller: &Caller,
    request: &v1::CreateReplayRequest,
) -> Result<Option<RequestKey>, Error> {
    if request.request_id.is_empty() {
        return Ok(None);
    }
    let said = v1::CreateReplayRequest { request_id: String::new(), ..request.clone() };
    let said = said.encode_to_vec();
    let key = RequestKey::new(&request.request_id, caller, [b"CreateReplay".as_slice(), &said]);
    key.map(Some).map_err(|error| Error::invalid("request_id", error.to_string()))
}

#[tonic::async_trait]
impl Replays for ReplaysService {
    async fn create_replay(
        &self,
        request: Request<v1::CreateReplayRequest>,
    ) -> Result<Response<v1::Replay>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = Box::pin(self.create(&caller, request.into_inner())).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn preview_replay(
        &self,
        request: Request<v1::PreviewReplayRequest>,
    ) -> Result<Response<v1::PreviewReplayResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.preview(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn get_replay(
        &self,
        request: Request<v1::GetReplayRequest>,
    ) -> Result<Response<v1::Replay>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.get(&caller, &request.get_ref().name).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn list_replays(
        &self,
        request: Request<v1::ListReplaysRequest>,
    ) -> Result<Response<v1::ListReplaysResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.list(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn pause_replay(
        &self,
        request: Request<v1::PauseReplayRequest>,
    ) -> Result<Response<v1::Replay>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let to = ("PauseReplay", ReplayState::Paused);
        let answer = self.turn(&caller, &request.get_ref().name, to).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn resume_replay(
        &self,
        request: Request<v1::ResumeReplayRequest>,
    ) -> Result<Response<v1::Replay>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let to = ("ResumeReplay", ReplayState::Pending);
        let answer = self.turn(&caller, &request.get_ref().name, to).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }

    async fn cancel_replay(
        &self,
        request: Request<v1::CancelReplayRequest>,
    ) -> Result<Response<v1::Replay>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let to = ("CancelReplay", ReplayState::Cancelled);
        let answer = self.turn(&caller, &request.get_ref().name, to).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }
}
