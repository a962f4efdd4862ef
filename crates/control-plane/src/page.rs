//! One page of a list.

/// Which rows a caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageRequest {
    /// What is listed; a token of another list is refused.
    pub(crate) scope: String,
    /// Rows after this one.
    pub(crate) after: Option<String>,
    /// Most rows.
    pub(crate) limit: u16,
}

impl PageRequest {
    /// Rows to ask the store for: one more than fits, which tells whether there is another page.
    pub(crate) const fn fetch(&self) -> u16 {
        self.limit.saturating_add(1)
    }

    /// Makes a page of what was fetched; `key` is what the list is sorted by.
    pub(crate) fn cut<T>(&self, mut rows: Vec<T>, key: impl Fn(&T) -> &str) -> Page<T> {
        let limit = usize::from(self.limit);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(|last| key(last).to_owned());
        Page { scope: self.scope.clone(), rows, next }
    }
}

/// Some rows of a list, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page<T> {
    /// What is listed.
    pub(crate) scope: String,
    /// The rows.
    pub(crate) rows: Vec<T>,
    /// The row after which the next page starts; none at the end.
    pub(crate) next: Option<String>,
}

impl<T> Page<T> {
    /// The same page of other rows, without those that have gone. Where the next page starts does
    /// not depend on them.
    pub(crate) fn filter_map<U>(self, change: impl FnMut(T) -> Option<U>) -> Page<U> {
        let rows = self.rows.into_iter().filter_map(change).collect();
        Page { scope: self.scope, rows, next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(limit: u16) -> PageRequest {
        PageRequest { scope: "scope".to_owned(), after: None, limit }
    }

    #[test]
    fn one_row_more_than_asked_for_tells_of_another_page() {
        assert_eq!(request(2).fetch(), 3);
        let page = request(2).cut(vec!["a", "b", "c"], |row| row);
        assert_eq!((page.rows, page.next.as_deref()), (vec!["a", "b"], Some("b")));
        let page = request(2).cut(vec!["a", "b"], |row| row);
        assert_eq!((page.rows, page.next), (vec!["a", "b"], None));
    }

    #[test]
    fn a_page_whose_rows_have_gone_still_leads_on() {
        let page = request(1).cut(vec!["a", "b"], |row| row).filter_map(|_| None::<&str>);
        assert_eq!((page.rows, page.next.as_deref()), (Vec::new(), Some("a")));
    }
}
