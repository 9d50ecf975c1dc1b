//! Links and HTML forms in responses, such as redirects and login pages.

use crate::plan::{Origin, Scheme};

/// Origin that links may lead to.
#[derive(Clone)]
pub(crate) struct LinkOrigin {
    /// `http://host:port`, and without the port if it is the scheme's default.
    names: Vec<String>,
}

impl LinkOrigin {
    pub(crate) fn new(origin: &Origin) -> Self {
        let Origin { scheme, host, port, .. } = origin;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let (scheme, usual) = match scheme {
            Scheme::Http => ("http", 80),
            Scheme::Https => ("https", 443),
        };
        let mut names = vec![format!("{scheme}://{host}:{port}")];
        if *port == usual {
            names.push(format!("{scheme}://{host}"));
        }
        Self { names }
    }

    /// Returns path and query of a link without the first slash; none if it leads to another
    /// origin, or is relative to the path of its page.
    pub(crate) fn path<'a>(&self, link: &'a str) -> Option<&'a str> {
        let link = link.split('#').next()?;
        let path = self.names.iter().find_map(|name| strip_name(link, name)).unwrap_or(link);
        let path = path.strip_prefix('/')?;
        // "//host/" is a link to another host.
        (!path.starts_with('/')).then_some(path)
    }
}

/// Strips the origin from a link; none if the link has another one.
fn strip_name<'a>(link: &'a str, name: &str) -> Option<&'a str> {
    let start = link.get(..name.len())?;
    let rest = &link[name.len()..];
    (start.eq_ignore_ascii_case(name) && rest.starts_with('/')).then_some(rest)
}

/// Returns the value of a query parameter as it is encoded in the link.
pub(crate) fn query_parameter<'a>(link: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = link.split('#').next()?.split_once('?')?;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// Form of an HTML page.
pub(crate) struct Form<'a> {
    tag: &'a str,
    inside: &'a str,
}

impl<'a> Form<'a> {
    /// Finds a form by its number, from 0.
    pub(crate) fn find(page: &'a str, number: usize) -> Option<Self> {
        let mut rest = page;
        for _ in 0..=number {
            rest = after_tag(rest, "<form")?;
        }
        let (tag, inside) = split_tag(rest)?;
        let end = find(inside, "</form").unwrap_or(inside.len());
        Some(Self { tag, inside: &inside[..end] })
    }

    /// Returns what is in it without comments.
    fn content(&self) -> String {
        let mut content = String::with_capacity(self.inside.len());
        let mut rest = self.inside;
        while let Some((before, comment)) = rest.split_once("<!--") {
            content.push_str(before);
            rest = comment.split_once("-->").map_or("", |(_, behind)| behind);
        }
        content.push_str(rest);
        content
    }

    pub(crate) fn action(&self) -> Option<String> {
        attribute(self.tag, "action")
    }

    /// Returns the hidden fields, encoded for a form body: `a=1&b=2`.
    pub(crate) fn hidden_fields(&self) -> String {
        let mut fields = Vec::new();
        let content = self.content();
        let mut rest = content.as_str();
        while let Some((tag, behind)) = after_tag(rest, "<input").and_then(split_tag) {
            rest = behind;
            let is_hidden =
                attribute(tag, "type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
            if let (true, Some(name)) = (is_hidden, attribute(tag, "name")) {
                let value = attribute(tag, "value").unwrap_or_default();
                fields.push(format!("{}={}", percent_encode(&name), percent_encode(&value)));
            }
        }
        fields.join("&")
    }
}

/// Percent-encodes a value for a form body.
pub(crate) fn percent_encode(value: &str) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
    out
}

fn find(text: &str, word: &str) -> Option<usize> {
    text.as_bytes().windows(word.len()).position(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Returns the text after a tag's name; `<formula` is not `<form`.
fn after_tag<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let mut rest = text;
    loop {
        rest = &rest[find(rest, word)? + word.len()..];
        if !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
            return Some(rest);
        }
    }
}

/// Splits text at the end of a tag.
fn split_tag(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (None, '>') => return Some((&text[..at], &text[at + 1..])),
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    None
}

/// Returns the unescaped value of a tag's attribute.
fn attribute(tag: &str, wanted: &str) -> Option<String> {
    let mut rest = tag.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter == '=' || letter.is_ascii_whitespace());
        let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let (value, behind) = match behind.strip_prefix('=') {
            None => ("", behind),
            Some(value) => split_value(value.trim_start()),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(unescape(value));
        }
        rest = behind.trim_start();
    }
    None
}

fn split_value(text: &str) -> (&str, &str) {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => text[1..].split_once(quote).unwrap_or((&text[1..], "")),
        _ => text.split_at(text.find(|it: char| it.is_ascii_whitespace()).unwrap_or(text.len())),
    }
}

/// Resolves character references: the five of XML, and numeric ones.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = rest.split_once(';').and_then(|(name, after)| Some((reference(name)?, after)));
        let (letter, after) = found.unwrap_or(('&', &rest[1..]));
        out.push(letter);
        rest = after;
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    match name {
        "&amp" => Some('&'),
        "&lt" => Some('<'),
        "&gt" => Some('>'),
        "&quot" => Some('"'),
        "&apos" => Some('\''),
        _ => {
            let number = name.strip_prefix("&#")?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Tls;

    fn origin(host: &str, port: u16) -> LinkOrigin {
        let tls = Tls { verify: true, ca_file: None, cert_file: None, key_file: None };
        LinkOrigin::new(&Origin { scheme: Scheme::Http, host: host.to_owned(), port, tls })
    }

    #[test]
    fn only_links_to_the_same_origin_have_a_path() {
        let here = origin("127.0.0.1", 8080);
        assert_eq!(here.path("/auth/x?a=1#top"), Some("auth/x?a=1"));
        assert_eq!(here.path("http://127.0.0.1:8080/auth"), Some("auth"));
        for other in [
            "http://127.0.0.1:80801/auth",
            "https://127.0.0.1:8080/auth",
            "http://127.0.0.1:8080.example/auth",
            "http://other/auth",
            "//other/auth",
            "auth",
            "",
        ] {
            assert_eq!(here.path(other), None, "{other}");
        }
        assert_eq!(origin("idp.example", 80).path("HTTP://IDP.example/a"), Some("a"));
    }

    #[test]
    fn a_query_parameter_is_found_by_its_full_name() {
        let link = "http://127.0.0.1:1/cb?state=s&xcode=no&code=a%2Bb&iss=x#code=no";
        assert_eq!(query_parameter(link, "code"), Some("a%2Bb"));
        assert_eq!(query_parameter(link, "error"), None);
        assert_eq!(query_parameter("/cb", "code"), None);
    }

    const PAGE: &str = r#"<p>a formula: <formula action="/no"></p><form action='/first'></form>
        <FORM id=login method="post"
          action="http://127.0.0.1:8080/login?a=1&amp;b=&#39;&#x3e;" onsubmit="a > b">
        <input type=hidden name="_csrf" value="a b&amp;c"><input name="username">
        <!-- <input type="hidden" name="old" value="1"> -->
        <INPUT value="" name="id" type="hidden"/></form><input type="hidden" name="z" value="z">"#;

    #[test]
    fn a_form_is_found_by_its_number_with_action_and_hidden_fields() {
        let login = Form::find(PAGE, 1).unwrap();
        assert_eq!(login.action().as_deref(), Some("http://127.0.0.1:8080/login?a=1&b='>"));
        assert_eq!(login.hidden_fields(), "_csrf=a%20b%26c&id=");
        assert_eq!(Form::find(PAGE, 0).unwrap().action().as_deref(), Some("/first"));
        assert!(Form::find(PAGE, 2).is_none());
        assert_eq!(Form::find("<form >", 0).and_then(|form| form.action()), None);
    }
}
