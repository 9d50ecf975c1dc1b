//! Outcomes of requests.

/// Result of a request; the codes are those of `loadstone.engine.outcome.Outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Response with an expected status.
    Ok = 0,
    /// Response with another status.
    HttpStatus = 1,
    /// Connection refused.
    Refused = 2,
    /// No route, or another failure to connect.
    ConnectFailed = 3,
    /// Time-out while connecting, or during the TLS handshake.
    ConnectTimeout = 4,
    /// TLS handshake failed, or the certificate was rejected.
    TlsFailed = 5,
    /// Time-out while writing the request.
    WriteTimeout = 6,
    /// Time-out before the first byte of the response.
    FirstByteTimeout = 7,
    /// Time-out before the response was complete.
    BodyTimeout = 8,
    /// Connection reset.
    Reset = 9,
    /// Connection closed before the response was complete.
    ClosedEarly = 10,
    /// Response that is not valid HTTP, or exceeds the limits of the parser.
    BadHttp = 11,
    /// Due, but the run ended before it could be sent, or answered.
    NotSent = 12,
    /// No local port left for a connection (`EADDRNOTAVAIL`).
    NoPort = 13,
    /// Body longer than captures are searched in.
    TooLong = 14,
    /// Expired server certificate.
    CertificateExpired = 15,
    /// Captured value that differs from the expected one.
    WrongContent = 16,
    /// No free value in a chain.
    NoneFree = 17,
    /// No file descriptor left for a connection (`EMFILE`, `ENFILE`).
    NoFile = 18,
    /// Time-out of the iteration.
    TimedOut = 65,
}

impl Outcome {
    /// Whether it is a time-out, or a wait that the run's end cut short.
    pub(crate) fn is_timeout(self) -> bool {
        matches!(
            self,
            Self::ConnectTimeout
                | Self::WriteTimeout
                | Self::FirstByteTimeout
                | Self::BodyTimeout
                | Self::NotSent
                | Self::TimedOut
        )
    }
}
