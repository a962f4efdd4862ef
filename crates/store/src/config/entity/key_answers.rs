//! Answers by what signed, a row for each day.

use crate::config::cell::{self, Malformed};
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{AnswerCounts, KeyId, Revision, SignedAnswers, Signers, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "key_answers")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub revision: i64,
    #[sea_orm(primary_key, auto_increment = false)]
    pub signers: i16,
    #[sea_orm(primary_key, auto_increment = false)]
    pub day: i32,
    pub tenant_id: Uuid,
    pub first_key_id: Uuid,
    pub second_key_id: Option<Uuid>,
    pub accepted: i64,
    pub denied: i64,
    pub other: i64,
    pub last_used_at_us: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn decode(row: &Model) -> Result<SignedAnswers, Malformed> {
    let count = |column, value: i64| cell::expect(column, value.try_into().ok());
    Ok(SignedAnswers {
        revision: Revision(row.revision),
        signers: Signers {
            first: KeyId::from_uuid(row.first_key_id),
            second: row.second_key_id.map(KeyId::from_uuid),
        },
        day: row.day.into(),
        answers: AnswerCounts {
            accepted: count("accepted", row.accepted)?,
            denied: count("denied", row.denied)?,
            other: count("other", row.other)?,
        },
        last_used_at: Timestamp::from_micros(row.last_used_at_us),
    })
}
