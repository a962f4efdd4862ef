//! What live and deleted resources have in common: how they are looked up, listed and brought back.

use crate::page::{Page, PageRequest};
use std::str::FromStr;
use turnbuckle_domain::{Error, Kept, KeptPlace, ResourceId, Revision};

/// Separates name and id of a place in a list. Neither has it.
const BETWEEN: char = ' ';

/// A resource to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lookup<N> {
    pub(crate) name: N,
    /// The one that was deleted last will do when none lives.
    pub(crate) show_deleted: bool,
}

/// A deleted resource to be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Undelete<N, I> {
    pub(crate) name: N,
    /// Which of several; none means the one that was deleted last.
    pub(crate) uid: Option<I>,
    pub(crate) etag: Option<Revision>,
}

/// A row of a list and its place there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed<V> {
    pub(crate) place: String,
    pub(crate) row: V,
}

/// The row where the page before ended.
pub(crate) fn place_of<I: FromStr>(
    page: &PageRequest,
    uuid: impl FnOnce(I) -> uuid::Uuid,
) -> Result<Option<KeptPlace>, Error> {
    let Some(after) = &page.after else {
        return Ok(None);
    };
    let place = after.split_once(BETWEEN).and_then(|(slug, id)| {
        let uid = uuid(id.parse::<I>().ok()?);
        Some(KeptPlace { slug: ResourceId::new(slug).ok()?, uid })
    });
    let unknown = || Error::invalid("page_token", "is not a token of this list");
    place.map(Some).ok_or_else(unknown)
}

/// A page of what was fetched of live and deleted ones.
pub(crate) fn page_of<T, I: ToString>(
    page: &PageRequest,
    rows: Vec<Kept<T>>,
    identity: impl Fn(&T) -> (&ResourceId, I),
) -> Page<Listed<Kept<T>>> {
    let listed = rows.into_iter().map(|row| {
        let (slug, id) = identity(&row.value);
        Listed { place: format!("{slug}{BETWEEN}{}", id.to_string()), row }
    });
    page.cut(listed.collect(), |listed: &Listed<Kept<T>>| listed.place.as_str())
}

/// A page of what was fetched of live ones.
pub(crate) fn live_page_of<T>(
    page: &PageRequest,
    rows: Vec<T>,
    slug: impl Fn(&T) -> &ResourceId,
) -> Page<Listed<Kept<T>>> {
    let listed =
        rows.into_iter().map(|row| Listed { place: slug(&row).to_string(), row: Kept::live(row) });
    page.cut(listed.collect(), |listed: &Listed<Kept<T>>| listed.place.as_str())
}

/// The deleted one among what was found under a name, or why there is none to bring back.
pub(crate) fn to_bring_back<T>(
    found: Option<Kept<T>>,
    lives: bool,
    resource: &str,
) -> Result<T, Error> {
    let resource = resource.to_owned();
    match found {
        Some(Kept { value, deleted_at: Some(_) }) => Ok(value),
        Some(Kept { deleted_at: None, .. }) => Err(Error::AlreadyExists { resource }),
        None if lives => Err(Error::AlreadyExists { resource }),
        None => Err(Error::NotFound { resource }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{EndpointId, Timestamp};

    fn request(after: Option<&str>) -> PageRequest {
        PageRequest { scope: "s".to_owned(), after: after.map(str::to_owned), limit: 1 }
    }

    #[test]
    fn a_page_ends_at_a_place_that_the_next_one_finds() {
        let slug = ResourceId::new("orders").unwrap();
        let ids: [EndpointId; 2] =
            ["ep_00000000000000000000000000", "ep_0123456789abcdefghjkmnpqr0"]
                .map(|text| text.parse().unwrap());
        let rows = ids.map(|id| Kept::live((slug.clone(), id))).to_vec();
        let page = page_of(&request(None), rows, |row| (&row.0, row.1));
        let next = page.next.as_deref();
        let place = place_of(&request(next), EndpointId::uuid).unwrap().unwrap();
        assert_eq!((place.slug, place.uid), (slug, ids[0].uuid()));
        assert_eq!(place_of(&request(None), EndpointId::uuid).unwrap(), None);
    }

    #[test]
    fn a_forged_place_is_refused() {
        let good = "ep_00000000000000000000000000";
        for bad in ["orders", "orders ", "orders x", "Orders", &format!("ORDERS {good}")] {
            let error = place_of(&request(Some(bad)), EndpointId::uuid).unwrap_err();
            assert!(error.to_string().contains("page_token"), "{bad}");
        }
    }

    #[test]
    fn only_what_is_deleted_is_brought_back() {
        let deleted = Kept { value: 1, deleted_at: Some(Timestamp::EPOCH) };
        assert_eq!(to_bring_back(Some(deleted.clone()), false, "r").unwrap(), 1);
        // The store says that the name is taken.
        assert_eq!(to_bring_back(Some(deleted), true, "r").unwrap(), 1);
        let reason = |found, lives| to_bring_back::<i32>(found, lives, "r").unwrap_err().reason();
        assert_eq!(reason(Some(Kept::live(1)), true), "ALREADY_EXISTS");
        assert_eq!(reason(None, true), "ALREADY_EXISTS");
        assert_eq!(reason(None, false), "NOT_FOUND");
    }
}
