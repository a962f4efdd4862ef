//! Where the rings of each kind of owner are kept.

use super::{
    cell::Malformed,
    entity::{endpoint, key_ring, signing_key, source, source_key_ring, verification_key},
    table::Table,
};
use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, EntityTrait, IntoActiveModel, UpdateMany, prelude::Uuid,
    sea_query::Expr,
};
use turnbuckle_domain::{
    Endpoint, EndpointId, Key, KeyRing, ResourceKind, Revision, RotationPause, SealedRecord,
    Source, SourceId, Timestamp,
};

/// Whose ring it is, as rows name it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingOwner {
    pub(super) id: Uuid,
    pub(super) tenant: Uuid,
}

impl From<&Endpoint> for RingOwner {
    fn from(endpoint: &Endpoint) -> Self {
        Self { id: endpoint.id.uuid(), tenant: endpoint.tenant.uuid() }
    }
}

impl From<&Source> for RingOwner {
    fn from(source: &Source) -> Self {
        Self { id: source.id.uuid(), tenant: source.tenant.uuid() }
    }
}

/// An entity whose rows can be read and written.
pub(super) trait Rows:
    EntityTrait<
        Model: Send + Sync + IntoActiveModel<Self::ActiveModel>,
        ActiveModel: ActiveModelTrait<Entity = Self> + Send,
        Column: Send + Sync,
    >
{
}

impl<E> Rows for E where
    E: EntityTrait<
            Model: Send + Sync + IntoActiveModel<E::ActiveModel>,
            ActiveModel: ActiveModelTrait<Entity = E> + Send,
            Column: Send + Sync,
        >
{
}

/// The tables of one kind of ring.
pub(super) trait RingTables {
    /// Who owns such rings.
    type Owner: Table;
    /// A row for each ring.
    type Ring: Rows;
    /// A row for each key.
    type Key: Rows;
    /// The id of an owner.
    type Id: Send;

    const RING_OWNER: <Self::Ring as EntityTrait>::Column;
    const RING_REVISION: <Self::Ring as EntityTrait>::Column;
    const KEY_ID: <Self::Key as EntityTrait>::Column;
    const KEY_OWNER: <Self::Key as EntityTrait>::Column;
    const KEY_POSITION: <Self::Key as EntityTrait>::Column;
    const KEY_STATE: <Self::Key as EntityTrait>::Column;
    const KEY_SECRET: <Self::Key as EntityTrait>::Column;
    const KEY_RETIRE_AT: <Self::Key as EntityTrait>::Column;
    const KEY_REVOKE_REASON: <Self::Key as EntityTrait>::Column;
    /// What such rings are called.
    const KIND: ResourceKind;
    /// Why the keys of a deleted owner are revoked.
    const OWNER_DELETED: &'static str;

    fn id(id: Uuid) -> Self::Id;
    fn encode_ring(
        owner: RingOwner,
        revision: Revision,
    ) -> <Self::Ring as EntityTrait>::ActiveModel;
    /// Writes whether the rotation is paused; none where it cannot be.
    fn set_pause(pause: Option<&RotationPause>) -> Option<UpdateMany<Self::Ring>>;
    /// Lets keys go that a pause holds.
    fn unhold(update: UpdateMany<Self::Key>) -> UpdateMany<Self::Key>;
    /// The owner of a ring.
    fn owner(row: &<Self::Ring as EntityTrait>::Model) -> Uuid;
    /// A ring with these keys.
    fn decode_ring(row: &<Self::Ring as EntityTrait>::Model, keys: Vec<Key>) -> KeyRing;
    fn encode_key(
        key: &Key,
        place: &signing_key::Place,
    ) -> Result<<Self::Key as EntityTrait>::ActiveModel, Malformed>;
    /// The owner of a key.
    fn key_owner(row: &<Self::Key as EntityTrait>::Model) -> Uuid;
    /// Owner and key.
    fn decode_key(row: <Self::Key as EntityTrait>::Model) -> Result<(Uuid, Key), Malformed>;
    /// The sealed secret of a row that has one, in its place.
    fn sealed(row: <Self::Key as EntityTrait>::Model) -> Result<SealedRecord, Malformed>;
}

/// Rings of endpoints: their keys sign.
pub(super) enum OfEndpoints {}

impl RingTables for OfEndpoints {
    type Owner = endpoint::Entity;
    type Ring = key_ring::Entity;
    type Key = signing_key::Entity;
    type Id = EndpointId;

    const RING_OWNER: key_ring::Column = key_ring::Column::EndpointId;
    const RING_REVISION: key_ring::Column = key_ring::Column::Revision;
    const KEY_ID: signing_key::Column = signing_key::Column::Id;
    const KEY_OWNER: signing_key::Column = signing_key::Column::EndpointId;
    const KEY_POSITION: signing_key::Column = signing_key::Column::Position;
    const KEY_STATE: signing_key::Column = signing_key::Column::State;
    const KEY_SECRET: signing_key::Column = signing_key::Column::Secret;
    const KEY_RETIRE_AT: signing_key::Column = signing_key::Column::RetireAtUs;
    const KEY_REVOKE_REASON: signing_key::Column = signing_key::Column::RevokeReason;
    const KIND: ResourceKind = ResourceKind::KeyRing;
    const OWNER_DELETED: &'static str = "endpoint deleted";

    fn id(id: Uuid) -> EndpointId {
        EndpointId::from_uuid(id)
    }

    fn encode_ring(owner: RingOwner, revision: Revision) -> key_ring::ActiveModel {
        key_ring::ActiveModel {
            endpoint_id: Set(owner.id),
            tenant_id: Set(owner.tenant),
            revision: Set(revision.0),
            // A new ring has no open rotation.
            pause_reason: Set(None),
            paused_at_us: Set(None),
            resumed_at_us: Set(None),
        }
    }

    fn set_pause(pause: Option<&RotationPause>) -> Option<UpdateMany<key_ring::Entity>> {
        use key_ring::Column;
        let paused_at = pause.map(|pause| pause.at.micros());
        let resumed_at = pause.and_then(|pause| pause.resumed_at).map(Timestamp::micros);
        let reason = pause.map(|pause| pause.reason.clone());
        let update = key_ring::Entity::update_many()
            .col_expr(Column::PauseReason, Expr::value(reason))
            .col_expr(Column::PausedAtUs, Expr::value(paused_at))
            .col_expr(Column::ResumedAtUs, Expr::value(resumed_at));
        Some(update)
    }

    fn unhold(update: UpdateMany<signing_key::Entity>) -> UpdateMany<signing_key::Entity> {
        update.col_expr(signing_key::Column::Held, Expr::value(0_i16))
    }

    fn owner(row: &key_ring::Model) -> Uuid {
        row.endpoint_id
    }

    fn decode_ring(row: &key_ring::Model, keys: Vec<Key>) -> KeyRing {
        KeyRing { keys, pause: key_ring::pause(row), revision: Revision(row.revision) }
    }

    fn encode_key(
        key: &Key,
        place: &signing_key::Place,
    ) -> Result<signing_key::ActiveModel, Malformed> {
        signing_key::encode(key, place)
    }

    fn key_owner(row: &signing_key::Model) -> Uuid {
        row.endpoint_id
    }

    fn decode_key(row: signing_key::Model) -> Result<(Uuid, Key), Malformed> {
        Ok((row.endpoint_id, signing_key::decode(row)?))
    }

    fn sealed(row: signing_key::Model) -> Result<SealedRecord, Malformed> {
        let owner = EndpointId::from_uuid(row.endpoint_id);
        signing_key::sealed(row, owner.into())
    }
}

/// Rings of sources: their keys verify.
pub(super) enum OfSources {}

impl RingTables for OfSources {
    type Owner = source::Entity;
    type Ring = source_key_ring::Entity;
    type Key = verification_key::Entity;
    type Id = SourceId;

    const RING_OWNER: source_key_ring::Column = source_key_ring::Column::SourceId;
    const RING_REVISION: source_key_ring::Column = source_key_ring::Column::Revision;
    const KEY_ID: verification_key::Column = verification_key::Column::Id;
    const KEY_OWNER: verification_key::Column = verification_key::Column::SourceId;
    const KEY_POSITION: verification_key::Column = verification_key::Column::Position;
    const KEY_STATE: verification_key::Column = verification_key::Column::State;
    const KEY_SECRET: verification_key::Column = verification_key::Column::Secret;
    const KEY_RETIRE_AT: verification_key::Column = verification_key::Column::RetireAtUs;
    const KEY_REVOKE_REASON: verification_key::Column = verification_key::Column::RevokeReason;
    const KIND: ResourceKind = ResourceKind::SourceKeyRing;
    const OWNER_DELETED: &'static str = "source deleted";

    fn id(id: Uuid) -> SourceId {
        SourceId::from_uuid(id)
    }

    fn encode_ring(owner: RingOwner, revision: Revision) -> source_key_ring::ActiveModel {
        source_key_ring::ActiveModel {
            source_id: Set(owner.id),
            tenant_id: Set(owner.tenant),
            revision: Set(revision.0),
        }
    }

    fn set_pause(_: Option<&RotationPause>) -> Option<UpdateMany<source_key_ring::Entity>> {
        None
    }

    fn unhold(
        update: UpdateMany<verification_key::Entity>,
    ) -> UpdateMany<verification_key::Entity> {
        update
    }

    fn owner(row: &source_key_ring::Model) -> Uuid {
        row.source_id
    }

    fn decode_ring(row: &source_key_ring::Model, keys: Vec<Key>) -> KeyRing {
        KeyRing { keys, pause: None, revision: Revision(row.revision) }
    }

    fn encode_key(
        key: &Key,
        place: &signing_key::Place,
    ) -> Result<verification_key::ActiveModel, Malformed> {
        Ok(signing_key::encode(key, place)?.into())
    }

    fn key_owner(row: &verification_key::Model) -> Uuid {
        row.source_id
    }

    fn decode_key(row: verification_key::Model) -> Result<(Uuid, Key), Malformed> {
        Ok((row.source_id, signing_key::decode(row.into())?))
    }

    fn sealed(row: verification_key::Model) -> Result<SealedRecord, Malformed> {
        let owner = SourceId::from_uuid(row.source_id);
        signing_key::sealed(row.into(), owner.into())
    }
}
