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
