//! Values captured from headers, JSON bodies, links, forms and cookies of responses.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::cookies::CookieJar;
use crate::links::{self, Form, LinkOrigin};

/// Limit on bodies that are searched, in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// Source of a captured value, and the index that it is stored at.
pub(crate) struct CaptureRule {
    pub source: Source,
    pub capture: usize,
    /// A missing value is not a failure.
    pub optional: bool,
    /// The value is percent-encoded for a form body.
    pub is_encoded: bool,
    /// Any other value is a failure.
    pub equals: Option<String>,
}

/// Place in a response that a value is captured from.
pub(crate) enum Source {
    Header(String),
    Json(Pointer),
    /// Path of the link in a header, if it leads to this origin.
    Link(String, LinkOrigin),
    /// Query parameter of the link in a header.
    Parameter(String, String),
    /// Path of the action of the form with this number.
    Action(usize, LinkOrigin),
    /// Hidden fields of the form with this number.
    Hidden(usize),
}

impl Source {
    fn is_in_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Action(..) | Self::Hidden(_))
    }

    fn in_header<'a>(&self, name: &str, value: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Header(header) if name.eq_ignore_ascii_case(header) => Some(value),
            Self::Link(header, origin) if name.eq_ignore_ascii_case(header) => {
                let link = str::from_utf8(value).ok()?;
                origin.path(link).map(str::as_bytes)
            }
            Self::Parameter(header, parameter) if name.eq_ignore_ascii_case(header) => {
                let link = str::from_utf8(value).ok()?;
                links::query_parameter(link, parameter).map(str::as_bytes)
            }
            _ => None,
        }
    }

    fn in_body(&self, body: &[u8]) -> Option<String> {
        match self {
            Self::Json(pointer) => pointer.find(body),
            Self::Action(number, origin) => {
                let action = Form::find(&String::from_utf8_lossy(body), *number)?.action()?;
                origin.path(&action).map(str::to_owned)
            }
            Self::Hidden(number) => {
                Some(Form::find(&String::from_utf8_lossy(body), *number)?.hidden_fields())
            }
            Self::Header(_) | Self::Link(..) | Self::Parameter(..) => None,
        }
    }
}

/// JSON pointer (RFC 6901).
pub(crate) struct Pointer {
    tokens: Vec<String>,
}

impl Pointer {
    /// Parses a pointer; none if it is malformed or points to the whole document.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let token = |token: &str| {
            let is_escaped_well = token.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            is_escaped_well.then(|| token.replace("~1", "/").replace("~0", "~"))
        };
        let tokens = text.strip_prefix('/')?.split('/').map(token).collect::<Option<_>>()?;
        Some(Self { tokens })
    }

    /// Returns the string, number or boolean that it points to.
    fn find(&self, body: &[u8]) -> Option<String> {
        let mut document = serde_json::Deserializer::from_slice(body);
        PointerSearch { tokens: &self.tokens }.deserialize(&mut document).ok().flatten()
    }
}

/// Captured values of an iteration, and the body of its current response.
pub(crate) struct Captures {
    pub values: Vec<Vec<u8>>,
    /// Cookies of the iteration, if it keeps any.
    pub jar: Option<CookieJar>,
    /// The body exceeded `MAX_BODY`.
    pub is_too_long: bool,
    /// A value differed from the expected one.
    pub is_unexpected: bool,
    body: Vec<u8>,
}

impl Captures {
    pub(crate) fn new(captures: usize, has_cookies: bool) -> Self {
        Self {
            values: vec![Vec::new(); captures],
            jar: has_cookies.then(CookieJar::default),
            is_too_long: false,
            is_unexpected: false,
            body: Vec::new(),
        }
    }

    /// Removes all values and cookies.
    pub(crate) fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        if let Some(jar) = &mut self.jar {
            jar.clear();
        }
    }

    /// Removes the values of these rules.
    pub(crate) fn remove(&mut self, rules: &[CaptureRule]) {
        for rule in rules {
            self.values[rule.capture].clear();
        }
    }

    /// Removes the values of these rules and returns a sink that captures new ones.
    pub(crate) fn sink<'a>(&'a mut self, rules: &'a [CaptureRule]) -> CaptureSink<'a> {
        self.body.clear();
        self.is_too_long = false;
        self.is_unexpected = false;
        self.remove(rules);
        let wants_body = rules.iter().any(|rule| rule.source.is_in_body());
        CaptureSink { rules, wants_body, captured: self }
    }
}

/// Receives headers and body of a response and captures values.
pub(crate) struct CaptureSink<'a> {
    rules: &'a [CaptureRule],
    wants_body: bool,
    captured: &'a mut Captures,
}

impl CaptureSink<'_> {
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) {
        for rule in self.rules {
            if let Some(found) = rule.source.in_header(name, value) {
                let value = &mut self.captured.values[rule.capture];
                value.clear();
                value.extend_from_slice(found);
            }
        }
        if let Some(jar) = &mut self.captured.jar
            && name.eq_ignore_ascii_case("set-cookie")
        {
            jar.store(value);
        }
    }

    pub(crate) fn body(&mut self, bytes: &[u8]) {
        if self.wants_body {
            self.captured.body.extend_from_slice(bytes);
            if self.captured.body.len() > MAX_BODY {
                self.captured.body.clear();
                self.captured.is_too_long = true;
                self.wants_body = false;
            }
        }
    }

    /// Captures values from the complete body.
    pub(crate) fn finish(self) {
        if !self.wants_body {
            return;
        }
        for rule in self.rules {
            let Some(value) = rule.source.in_body(&self.captured.body) else { continue };
            self.captured.is_unexpected |= rule.equals.as_ref().is_some_and(|it| *it != value);
            let value = if rule.is_encoded { links::percent_encode(&value) } else { value };
            self.captured.values[rule.capture] = value.into_bytes();
        }
    }
}

/// Deserializer that follows a pointer and skips everything else.
#[derive(Clone, Copy)]
struct PointerSearch<'a> {
    tokens: &'a [String],
}

impl<'de> DeserializeSeed<'de> for PointerSearch<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<Self::Value, D::Error> {
        document.deserialize_any(self)
    }
}

impl PointerSearch<'_> {
    fn scalar(self, value: &impl ToString) -> Option<String> {
        self.tokens.is_empty().then(|| value.to_string())
    }
}

impl<'de> Visitor<'de> for PointerSearch<'_> {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.scalar(&value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.scalar(&value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.scalar(&value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.scalar(&value))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.scalar(&value))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            match self.tokens.split_first() {
                Some((token, rest)) if *token == key => {
                    found = map.next_value_seed(PointerSearch { tokens: rest })?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let (wanted, rest) = match self.tokens.split_first() {
            Some((token, rest)) => (token.parse::<usize>().ok(), rest),
            None => (None, self.tokens),
        };
        let mut found = None;
        for index in 0.. {
            if wanted == Some(index) {
                match sequence.next_element_seed(PointerSearch { tokens: rest })? {
                    Some(value) => found = value,
                    None => break,
                }
            } else if sequence.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"token": {"user": {"id": "u1", "na/me": "A~n\"n"},
        "roles": [{"name": "reader"}, {"name": "member"}], "n": -3, "ok": true, "none": null}}"#;

    fn find(pointer: &str) -> Option<String> {
        Pointer::parse(pointer)?.find(BODY.as_bytes())
    }

    #[test]
    fn a_pointer_finds_strings_numbers_and_booleans() {
        assert_eq!(find("/token/user/id").as_deref(), Some("u1"));
        assert_eq!(find("/token/user/na~1me").as_deref(), Some("A~n\"n"));
        assert_eq!(find("/token/roles/1/name").as_deref(), Some("member"));
        assert_eq!(find("/token/n").as_deref(), Some("-3"));
        assert_eq!(find("/token/ok").as_deref(), Some("true"));
    }

    #[test]
    fn a_pointer_does_not_find_missing_values_objects_or_arrays() {
        for pointer in ["/token", "/none", "/token/none", "/token/roles/2/name", "/token/user/id/x"]
        {
            assert_eq!(find(pointer), None, "{pointer}");
        }
        assert_eq!(Pointer::parse("/a").and_then(|pointer| pointer.find(b"{\"a\": ")), None);
    }

    #[test]
    fn a_malformed_pointer_is_rejected() {
        for text in ["", "a", "a/b", "/~", "/a~2"] {
            assert!(Pointer::parse(text).is_none(), "{text}");
        }
    }
}
