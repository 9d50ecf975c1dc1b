//! Cookies of an iteration, for a single host.

/// Cookies, in the order in which they were set.
#[derive(Default)]
pub(crate) struct CookieJar {
    cookies: Vec<Cookie>,
}

struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl CookieJar {
    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Stores the cookie of a Set-Cookie header, or removes it if it has expired.
    ///
    /// The attributes Domain, Secure and `SameSite` are ignored: all requests go to one origin.
    /// A cookie without a path is sent with every request.
    pub(crate) fn store(&mut self, header: &[u8]) {
        let mut parts = header.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(pair) else { return };
        let (mut path, mut max_age, mut expires) = (&b"/"[..], None, None);
        for (attribute, value) in parts.filter_map(pair) {
            match attribute.to_ascii_lowercase().as_slice() {
                b"path" if value.starts_with(b"/") => path = value,
                b"max-age" => max_age = Some(value),
                b"expires" => expires = Some(value),
                _ => {}
            }
        }
        self.cookies.retain(|cookie| cookie.name != name || cookie.path != path);
        // Max-Age has precedence over Expires (RFC 6265 5.3).
        let is_expired = match (max_age, expires) {
            (Some(seconds), _) => seconds.starts_with(b"-") || seconds == b"0",
            (None, Some(date)) => is_past(date),
            (None, None) => false,
        };
        if !is_expired {
            let (name, value, path) = (name.to_vec(), value.to_vec(), path.to_vec());
            self.cookies.push(Cookie { name, value, path });
        }
    }

    /// Writes the Cookie header of a request with this path; nothing if no cookie matches.
    pub(crate) fn write_header(&self, path: &[u8], out: &mut Vec<u8>) {
        let mut before: &[u8] = b"Cookie: ";
        for cookie in self.cookies.iter().filter(|cookie| cookie.matches(path)) {
            for bytes in [before, &cookie.name, b"=", &cookie.value] {
                out.extend_from_slice(bytes);
            }
            before = b"; ";
        }
        if before == b"; " {
            out.extend_from_slice(b"\r\n");
        }
    }
}

impl Cookie {
    /// Matches a path (RFC 6265 5.1.4).
    fn matches(&self, path: &[u8]) -> bool {
        let Some(rest) = path.strip_prefix(&*self.path) else { return false };
        rest.is_empty() || self.path.ends_with(b"/") || rest.starts_with(b"/")
    }
}

fn pair(part: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = part.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (part[..at].trim_ascii(), part[at + 1..].trim_ascii());
    (!name.is_empty()).then_some((name, value))
}

/// Whether a date is in the last century: servers delete cookies with the first second of 1970.
fn is_past(date: &[u8]) -> bool {
    date.windows(4).any(|year| year.starts_with(b"19") && year.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(jar: &CookieJar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write_header(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_sent_below_their_path() {
        let mut jar = CookieJar::default();
        jar.store(b"a=1; Path=/realms/load/; Secure; SameSite=None");
        jar.store(b"b=\"x y\"; HttpOnly; path=/realms");
        assert_eq!(sent(&jar, "/realms/load/auth"), "Cookie: a=1; b=\"x y\"\r\n");
        assert_eq!(sent(&jar, "/realms"), "Cookie: b=\"x y\"\r\n");
        assert_eq!(sent(&jar, "/realmsother"), "");
    }

    #[test]
    fn a_cookie_is_replaced_by_one_of_the_same_name_and_removed_when_it_expires() {
        let mut jar = CookieJar::default();
        jar.store(b"a=1");
        jar.store(b"a=2");
        assert_eq!(sent(&jar, "/"), "Cookie: a=2\r\n");
        jar.store(b"a=; expires=Thu, 01 Jan 1970 00:00:00 GMT");
        jar.store(b"b=1; Max-Age=0; Expires=Fri, 01 Jan 2100 00:00:00 GMT");
        jar.store(b"c=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(sent(&jar, "/"), "Cookie: c=1\r\n");
        jar.clear();
        assert_eq!(sent(&jar, "/"), "");
    }

    #[test]
    fn invalid_cookies_are_ignored() {
        let mut jar = CookieJar::default();
        for header in [&b""[..], b"novalue", b"=x", b"; Path=/"] {
            jar.store(header);
        }
        assert_eq!(sent(&jar, "/"), "");
    }
}
