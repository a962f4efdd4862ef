//! Counts of what keys signed. Writes only add, so any number of processes may write at once.

use super::{
    ConfigDb,
    cell::{self, Malformed},
    entity::{key_answers, key_usage, signing_key},
    source_usage,
};
use crate::{error::store_error, immediate::begin_write};
use async_trait::async_trait;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, IdenStatic, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _,
    prelude::Uuid,
    sea_query::{Alias, CaseStatement, Expr, ExprTrait as _, OnConflict},
};
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    AnswerCounts, EndpointId, KeyPlace, KeyState, KeyTest, KeyUsageStore, KeyUse, KeyVerifications,
    RingUsage, Signers, SourceId, StoreError, TenantId, Timestamp,
};

/// The row that an insert could not add.
const NEW: &str = "excluded";

/// What a row of answers is of.
type AnswersKey = (Uuid, i64, i16, i32);

/// A row of answers to be added.
struct AnswersSum {
    tenant: Uuid,
    signers: Signers,
    answers: AnswerCounts,
    last_used_at: Timestamp,
}

/// Counts of a batch, one entry for each row. Sorted, so that writers that meet take their locks in
/// one order.
#[derive(Default)]
struct Sums {
    answers: BTreeMap<AnswersKey, AnswersSum>,
    keys: BTreeMap<Uuid, KeySum>,
}

/// A key's part of a batch.
struct KeySum {
    tenant: Uuid,
    endpoint: Uuid,
    signatures: u64,
    last_used_at: Timestamp,
}

impl Sums {
    fn of(uses: &[KeyUse]) -> Result<Self, Malformed> {
        let mut sums = Self::default();
        for one in uses {
            sums.add(one)?;
        }
        Ok(sums)
    }

    fn add(&mut self, one: &KeyUse) -> Result<(), Malformed> {
        let (tenant, endpoint) = (one.tenant.uuid(), one.endpoint.uuid());
        let day = cell::expect("day", one.last_used_at.unix_day().try_into().ok())?;
        let key = (endpoint, one.revision.0, i16::from(one.signers.count()), day);
        let (signers, last_used_at) = (one.signers, one.last_used_at);
        let fresh =
            || AnswersSum { tenant, signers, answers: AnswerCounts::default(), last_used_at };
        let sum = self.answers.entry(key).or_insert_with(fresh);
        sum.answers += one.answers;
        sum.last_used_at = sum.last_used_at.max(last_used_at);
        for key in signers.keys() {
            let fresh = || KeySum { tenant, endpoint, signatures: 0, last_used_at };
            let sum = self.keys.entry(key.uuid()).or_insert_with(fresh);
            sum.signatures = sum.signatures.saturating_add(one.answers.total());
            sum.last_used_at = sum.last_used_at.max(last_used_at);
        }
        Ok(())
    }
}

pub(super) fn count(column: &'static str, value: u64) -> Result<i64, Malformed> {
    cell::expect(column, value.try_into().ok())
}

/// The column of the row that is there, plus that of the row that was to be added.
pub(super) fn sum<C: IdenStatic + Copy + 'static>(table: &'static str, column: C) -> Expr {
    let there = Expr::col((Alias::new(table), Alias::new(column.as_str())));
    there.add(Expr::col((Alias::new(NEW), Alias::new(column.as_str()))))
}

/// The later one of the two; one that is not there is earlier than all.
pub(super) fn latest<C: IdenStatic + Copy + 'static>(table: &'static str, column: C) -> Expr {
    let there = Expr::col((Alias::new(table), Alias::new(column.as_str())));
    let new = Expr::col((Alias::new(NEW), Alias::new(column.as_str())));
    CaseStatement::new().case(there.clone().gt(new.clone()), there).finally(new).into()
}

async fn add_answers(
    db: &impl ConnectionTrait,
    sums: BTreeMap<AnswersKey, AnswersSum>,
) -> Result<(), StoreError> {
    use key_answers::{ActiveModel, Column, Entity};
    const TABLE: &str = "key_answers";
    let mut rows = Vec::with_capacity(sums.len());
    for ((endpoint, revision, signers, day), sum) in sums {
        rows.push(ActiveModel {
            endpoint_id: Set(endpoint),
            revision: Set(revision),
            signers: Set(signers),
            day: Set(day),
            tenant_id: Set(sum.tenant),
            first_key_id: Set(sum.signers.first.uuid()),
            second_key_id: Set(sum.signers.second.map(|key| key.uuid())),
            accepted: Set(count("accepted", sum.answers.accepted)?),
            denied: Set(count("denied", sum.answers.denied)?),
            other: Set(count("other", sum.answers.other)?),
            last_used_at_us: Set(sum.last_used_at.micros()),
        });
    }
    let add =
        OnConflict::columns([Column::EndpointId, Column::Revision, Column::Signers, Column::Day])
            .value(Column::Accepted, sum(TABLE, Column::Accepted))
            .value(Column::Denied, sum(TABLE, Column::Denied))
            .value(Column::Other, sum(TABLE, Column::Other))
            .value(Column::LastUsedAtUs, latest(TABLE, Column::LastUsedAtUs))
            .to_owned();
    let insert = Entity::insert_many(rows).on_conflict(add).exec_without_returning(db);
    insert.await.map_err(store_error)?;
    Ok(())
}

async fn add_signatures(
    db: &impl ConnectionTrait,
    sums: BTreeMap<Uuid, KeySum>,
) -> Result<(), StoreError> {
    use key_usage::{ActiveModel, Column, Entity};
    const TABLE: &str = "key_usage";
    let mut rows = Vec::with_capacity(sums.len());
    for (key, sum) in sums {
        rows.push(ActiveModel {
            key_id: Set(key),
            tenant_id: Set(sum.tenant),
            endpoint_id: Set(sum.endpoint),
            signatures: Set(count("signatures", sum.signatures)?),
            last_used_at_us: Set(Some(sum.last_used_at.micros())),
            tested_at_us: Set(None),
            test_outcome: Set(None),
            test_status: Set(None),
        });
    }
    let add = OnConflict::column(Column::KeyId)
        .value(Column::Signatures, sum(TABLE, Column::Signatures))
        .value(Column::LastUsedAtUs, latest(TABLE, Column::LastUsedAtUs))
        .to_owned();
    let insert = Entity::insert_many(rows).on_conflict(add).exec_without_returning(db);
    insert.await.map_err(store_error)?;
    Ok(())
}

#[async_trait]
impl KeyUsageStore for ConfigDb {
    async fn add_key_uses(&self, uses: &[KeyUse]) -> Result<(), StoreError> {
        if uses.is_empty() {
            return Ok(());
        }
        let Sums { answers, keys } = Sums::of(uses)?;
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        add_answers(&transaction, answers).await?;
        add_signatures(&transaction, keys).await?;
        transaction.commit().await.map_err(store_error)
    }

    async fn note_key_test(&self, place: KeyPlace, test: &KeyTest) -> Result<(), StoreError> {
        use key_usage::{ActiveModel, Column, Entity};
        let status = test.status.map(i16::try_from).transpose().ok();
        let row = ActiveModel {
            key_id: Set(place.key.uuid()),
            tenant_id: Set(place.tenant.uuid()),
            endpoint_id: Set(place.endpoint.uuid()),
            signatures: Set(0),
            last_used_at_us: Set(None),
            tested_at_us: Set(Some(test.at.micros())),
            test_outcome: Set(Some(test.outcome.clone().into_owned())),
            test_status: Set(cell::expect("test_status", status)?),
        };
        let replace = OnConflict::column(Column::KeyId)
            .update_columns([Column::TestedAtUs, Column::TestOutcome, Column::TestStatus])
            .to_owned();
        let insert = Entity::insert(row).on_conflict(replace).exec_without_returning(&self.db);
        insert.await.map_err(store_error)?;
        Ok(())
    }

    async fn ring_usage(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
    ) -> Result<RingUsage, StoreError> {
        let keys = key_usage::Entity::find()
            .filter(key_usage::Column::EndpointId.eq(endpoint.uuid()))
            .filter(key_usage::Column::TenantId.eq(tenant.uuid()))
            .order_by_asc(key_usage::Column::KeyId);
        let keys = keys.all(&self.db).await.map_err(store_error)?;
        // Of one revision, two keys sign before one does.
        let answers = key_answers::Entity::find()
            .filter(key_answers::Column::EndpointId.eq(endpoint.uuid()))
            .filter(key_answers::Column::TenantId.eq(tenant.uuid()))
            .order_by_asc(key_answers::Column::Revision)
            .order_by_desc(key_answers::Column::Signers)
            .order_by_asc(key_answers::Column::Day);
        let answers = answers.all(&self.db).await.map_err(store_error)?;
        Ok(RingUsage {
            keys: keys.into_iter().map(key_usage::decode).collect::<Result<_, _>>()?,
            answers: answers.iter().map(key_answers::decode).collect::<Result<_, _>>()?,
        })
    }

    async fn add_key_verifications(&self, uses: &[KeyVerifications]) -> Result<(), StoreError> {
        source_usage::add(&self.db, uses).await
    }

    async fn source_usage(
        &self,
        tenant: TenantId,
        source: SourceId,
    ) -> Result<RingUsage, StoreError> {
        source_usage::of(&self.db, tenant, source).await
    }

    async fn open_rotations(
        &self,
        now: Timestamp,
        after: Option<EndpointId>,
        limit: u16,
    ) -> Result<Vec<(TenantId, EndpointId)>, StoreError> {
        use signing_key::Column;
        let mut page = signing_key::Entity::find()
            .select_only()
            .columns([Column::TenantId, Column::EndpointId])
            .filter(Column::State.eq(KeyState::Retiring.as_str()))
            .filter(Column::Held.eq(0_i16))
            .filter(Column::RetireAtUs.gt(now.micros()));
        if let Some(after) = after {
            page = page.filter(Column::EndpointId.gt(after.uuid()));
        }
        let page = page.order_by_asc(Column::EndpointId).limit(u64::from(limit));
        let rows: Vec<(Uuid, Uuid)> = page.into_tuple().all(&self.db).await.map_err(store_error)?;
        let ids =
            |(tenant, endpoint)| (TenantId::from_uuid(tenant), EndpointId::from_uuid(endpoint));
        Ok(rows.into_iter().map(ids).collect())
    }

    async fn forget_answers(&self, now: Timestamp, keep: Duration) -> Result<(), StoreError> {
        let oldest = (now - keep).unix_day();
        let old = key_answers::Entity::delete_many()
            .filter(key_answers::Column::Day.lt(i32::try_from(oldest).unwrap_or(i32::MIN)));
        old.exec(&self.db).await.map_err(store_error)?;
        let known = signing_key::Entity::find().select_only().column(signing_key::Column::Id);
        let gone = key_usage::Entity::delete_many()
            .filter(key_usage::Column::KeyId.not_in_subquery(known.into_query()));
        gone.exec(&self.db).await.map_err(store_error)?;
        source_usage::forget(&self.db).await
    }
}
