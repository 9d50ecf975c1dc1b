//! What is kept of an answer for later steps of its iteration: header values, values in a JSON body,
//! links, forms of an HTML page, cookies.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::cookies::Jar;
use crate::page::{self, Form, Site};

/// The longest body that is searched.
const MAX_BODY: usize = 1024 * 1024;

/// Where a value is found, and which capture keeps it.
pub(crate) struct Rule {
    pub source: Source,
    pub capture: usize,
    /// Its absence is no failure.
    pub optional: bool,
    /// Percent-encoded for a form body.
    pub is_encoded: bool,
    /// Any other value is a failure.
    pub equals: Option<String>,
}

pub(crate) enum Source {
    Header(String),
    Json(Pointer),
    /// The path of the link in this header, if it leads to this site.
    Link(String, Site),
    /// A parameter of the link in this header.
    Parameter(String, String),
    /// The path of the action of the form with this number.
    Action(usize, Site),
    /// The hidden fields of the form with this number.
    Hidden(usize),
}

impl Source {
    fn is_in_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Action(..) | Self::Hidden(_))
    }

    fn in_header<'a>(&self, name: &str, value: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Header(header) if name.eq_ignore_ascii_case(header) => Some(value),
            Self::Link(header, site) if name.eq_ignore_ascii_case(header) => {
                let link = str::from_utf8(value).ok()?;
                site.path(link).map(str::as_bytes)
            }
            Self::Parameter(header, parameter) if name.eq_ignore_ascii_case(header) => {
                let link = str::from_utf8(value).ok()?;
                page::parameter(link, parameter).map(str::as_bytes)
            }
            _ => None,
        }
    }

    fn in_body(&self, body: &[u8]) -> Option<String> {
        match self {
            Self::Json(pointer) => pointer.find(body),
            Self::Action(number, site) => {
                let action = Form::find(&String::from_utf8_lossy(body), *number)?.action()?;
                site.path(&action).map(str::to_owned)
            }
            Self::Hidden(number) => {
                Some(Form::find(&String::from_utf8_lossy(body), *number)?.hidden())
            }
            Self::Header(_) | Self::Link(..) | Self::Parameter(..) => None,
        }
    }
}

/// A place in a JSON document (RFC 6901).
pub(crate) struct Pointer {
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer to something inside the document; none when it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let token = |token: &str| {
            let is_escaped_well = token.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
            is_escaped_well.then(|| token.replace("~1", "/").replace("~0", "~"))
        };
        let tokens = text.strip_prefix('/')?.split('/').map(token).collect::<Option<_>>()?;
        Some(Self { tokens })
    }

    /// The text, number or truth value that stands there.
    fn find(&self, body: &[u8]) -> Option<String> {
        let mut document = serde_json::Deserializer::from_slice(body);
        Walk { tokens: &self.tokens }.deserialize(&mut document).ok().flatten()
    }
}

/// One iteration's captures, and the body that is searched for them.
pub(crate) struct Captured {
    pub values: Vec<Vec<u8>>,
    /// The iteration's cookies, if it keeps any.
    pub jar: Option<Jar>,
    /// The body was longer than what is searched.
    pub is_too_long: bool,
    /// A value was not the one that its rule expects.
    pub is_unexpected: bool,
    body: Vec<u8>,
}

impl Captured {
    pub(crate) fn new(captures: usize, has_cookies: bool) -> Self {
        Self {
            values: vec![Vec::new(); captures],
            jar: has_cookies.then(Jar::default),
            is_too_long: false,
            is_unexpected: false,
            body: Vec::new(),
        }
    }

    /// Forgets an iteration.
    pub(crate) fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        if let Some(jar) = &mut self.jar {
            jar.clear();
        }
    }

    /// Forgets what these rules keep.
    pub(crate) fn forget(&mut self, rules: &[Rule]) {
        for rule in rules {
            self.values[rule.capture].clear();
        }
    }

    /// Forgets what these rules kept before, and keeps what goes by.
    pub(crate) fn listen<'a>(&'a mut self, rules: &'a [Rule]) -> Listener<'a> {
        self.body.clear();
        self.is_too_long = false;
        self.is_unexpected = false;
        self.forget(rules);
        let wants_body = rules.iter().any(|rule| rule.source.is_in_body());
        Listener { rules, wants_body, captured: self }
    }
}

/// Sees an answer go by and keeps what the rules name.
pub(crate) struct Listener<'a> {
    rules: &'a [Rule],
    wants_body: bool,
    captured: &'a mut Captured,
}

impl Listener<'_> {
    pub(crate) fn header(&mut self, name: &str, value: &[u8]) {
        for rule in self.rules {
            if let Some(found) = rule.source.in_header(name, value) {
                let kept = &mut self.captured.values[rule.capture];
                kept.clear();
                kept.extend_from_slice(found);
            }
        }
        if let Some(jar) = &mut self.captured.jar
            && name.eq_ignore_ascii_case("set-cookie")
        {
            jar.keep(value);
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

    /// The answer is complete.
    pub(crate) fn finish(self) {
        if !self.wants_body {
            return;
        }
        for rule in self.rules {
            let Some(value) = rule.source.in_body(&self.captured.body) else { continue };
            self.captured.is_unexpected |= rule.equals.as_ref().is_some_and(|it| *it != value);
            let value = if rule.is_encoded { page::encoded(&value) } else { value };
            self.captured.values[rule.capture] = value.into_bytes();
        }
    }
}

/// Goes down a document along the tokens, and skips everything else.
#[derive(Clone, Copy)]
struct Walk<'a> {
    tokens: &'a [String],
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, document: D) -> Result<Self::Value, D::Error> {
        document.deserialize_any(self)
    }
}

impl Walk<'_> {
    fn scalar(self, value: &impl ToString) -> Option<String> {
        self.tokens.is_empty().then(|| value.to_string())
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
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
                    found = map.next_value_seed(Walk { tokens: rest })?;
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
                match sequence.next_element_seed(Walk { tokens: rest })? {
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
    fn a_pointer_finds_texts_numbers_and_truth_values() {
        assert_eq!(find("/token/user/id").as_deref(), Some("u1"));
        assert_eq!(find("/token/user/na~1me").as_deref(), Some("A~n\"n"));
        assert_eq!(find("/token/roles/1/name").as_deref(), Some("member"));
        assert_eq!(find("/token/n").as_deref(), Some("-3"));
        assert_eq!(find("/token/ok").as_deref(), Some("true"));
    }

    #[test]
    fn what_is_not_there_or_no_single_value_is_not_found() {
        for pointer in ["/token", "/none", "/token/none", "/token/roles/2/name", "/token/user/id/x"]
        {
            assert_eq!(find(pointer), None, "{pointer}");
        }
        assert_eq!(Pointer::parse("/a").and_then(|pointer| pointer.find(b"{\"a\": ")), None);
    }

    #[test]
    fn a_malformed_pointer_is_none() {
        for text in ["", "a", "a/b", "/~", "/a~2"] {
            assert!(Pointer::parse(text).is_none(), "{text}");
        }
    }
}
