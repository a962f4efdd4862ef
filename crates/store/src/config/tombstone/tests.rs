//! Each column of a kept table is named here as one that a purge keeps or blanks. One that is added
//! does not compile until somebody has decided.

use super::*;
use sea_orm::IdenStatic as _;
use std::collections::BTreeSet;

macro_rules! decided {
    ($name:ident, $entity:ident: keeps $kept:tt blanks $blanked:tt) => {
        #[test]
        fn $name() {
            decided!(@columns $entity $kept $blanked);
            let expected = decided!(@names $blanked);
            let blank = <$entity::Entity as Keeps>::blank();
            let blank: BTreeSet<&str> = blank.iter().map(|(column, _)| column.as_str()).collect();
            assert_eq!(blank, expected);
        }
    };
    (@columns $entity:ident [$($kept:ident)*] [$($blanked:ident)*]) => {
        let _: fn($entity::Model) = |$entity::Model { $($kept: _,)* $($blanked: _,)* }| ();
    };
    (@names [$($blanked:ident)*]) => {
        BTreeSet::from([$(stringify!($blanked)),*])
    };
}

decided!(endpoint_columns, endpoint:
    keeps [
        id tenant_id slug timeout_us signature_profile retry_policy_id max_in_flight created_at_us
        updated_at_us deleted_at_us purged_at_us revision
    ]
    blanks [display_name url headers header_prefix state disable_reason labels]
);

decided!(subscription_columns, subscription:
    keeps [
        id tenant_id slug endpoint_id format created_at_us updated_at_us deleted_at_us purged_at_us
        revision
    ]
    blanks [patterns filter labels channels]
);

decided!(retry_policy_columns, retry_policy:
    keeps [
        id tenant_id slug version created_at_us updated_at_us deleted_at_us purged_at_us revision
    ]
    blanks [rule labels]
);
