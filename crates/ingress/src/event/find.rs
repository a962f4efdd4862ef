//! Values of a request by the places that the settings name.

use turnbuckle_domain::{ValuePart, ValueSource};
use turnbuckle_signing::scheme::{JsonPath, Locator, Refusal, Request, Wish};

/// Stands for a part of a value in samples.
const FILLER: &str = "sample";

/// One way to find a value.
pub(crate) struct Finder {
    parts: Vec<Part>,
    separator: String,
}

enum Part {
    At(Locator),
    Fixed(String),
}

/// The places that the settings name.
pub(crate) fn all(sources: &[ValueSource]) -> Result<Vec<Finder>, String> {
    let finder = |source: &ValueSource| {
        let parts = source.parts.iter().map(part).collect::<Result<_, _>>()?;
        Ok(Finder { parts, separator: source.separator.clone() })
    };
    sources.iter().map(finder).collect()
}

/// Fields at the top of the payload.
pub(crate) fn usual(names: &[&str]) -> Result<Vec<Finder>, String> {
    let finder = |name: &&str| {
        let path = JsonPath::parse(name).map_err(|error| error.to_string())?;
        Ok(Finder { parts: vec![Part::At(Locator::Json(path))], separator: String::new() })
    };
    names.iter().map(finder).collect()
}

fn part(part: &ValuePart) -> Result<Part, String> {
    Ok(Part::At(match part {
        ValuePart::Header(name) => Locator::Header(name.clone()),
        ValuePart::Query(name) => Locator::Query(name.clone()),
        ValuePart::Form(name) => Locator::Form(name.clone()),
        ValuePart::JsonPath(path) => {
            Locator::Json(JsonPath::parse(path.as_str()).map_err(|error| error.to_string())?)
        }
        ValuePart::Fixed(text) => return Ok(Part::Fixed(text.clone())),
    }))
}

/// The first value that one of the finders gives.
pub(crate) fn first(
    finders: &[Finder],
    request: &Request<'_>,
    document: &[u8],
) -> Result<Option<String>, Refusal> {
    for finder in finders {
        if let Some(value) = finder.find(request, document)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

impl Finder {
    /// Where its values stand.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Locator> {
        self.parts.iter().filter_map(|part| match part {
            Part::At(at) => Some(at),
            Part::Fixed(_) => None,
        })
    }

    /// What a sample is to hold so that this finds a value. The first of its parts gets it, the others
    /// a filler: together they are one value.
    pub(super) fn wishes(&self, items: Option<&JsonPath>, text: &str) -> Vec<Wish> {
        let places = self.parts.iter().filter_map(|part| match part {
            Part::At(at) => Some(at),
            Part::Fixed(_) => None,
        });
        let wish = |(index, at): (usize, &Locator)| Wish {
            at: at.clone(),
            items: items.cloned(),
            text: if index == 0 { text.to_owned() } else { FILLER.to_owned() },
        };
        places.enumerate().map(wish).collect()
    }

    /// Nothing when a part is missing or empty, or is no text. What is there twice is refused: others
    /// might read the other one.
    fn find(&self, request: &Request<'_>, document: &[u8]) -> Result<Option<String>, Refusal> {
        let mut found = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            if index > 0 {
                found.push_str(&self.separator);
            }
            match part {
                Part::Fixed(text) => found.push_str(text),
                Part::At(at) => {
                    let value = match request.value_in(document, at) {
                        Ok(value) => value,
                        Err(error @ (Refusal::Repeated(_) | Refusal::TooLong(_))) => {
                            return Err(error);
                        }
                        Err(_) => None,
                    };
                    let text = value.as_deref().and_then(|value| std::str::from_utf8(value).ok());
                    let Some(text) = text.filter(|text| !text.is_empty()) else {
                        return Ok(None);
                    };
                    found.push_str(text);
                }
            }
        }
        Ok(Some(found))
    }
}
