//! The way to the server: a TCP connection to one of its addresses.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use tokio::net::TcpStream;

use crate::samples::Outcome;
use crate::target::Target;

/// Connects to the first address that answers; `first` is tried first and updated.
pub(crate) async fn dial(target: &Target, first: &mut usize) -> Result<TcpStream, Outcome> {
    let mut last = Outcome::ConnectFailed;
    for attempt in 0..target.addresses.len() {
        let index = (*first + attempt) % target.addresses.len();
        match tcp(target.addresses[index]).await {
            Ok(stream) => {
                *first = index;
                return Ok(stream);
            }
            Err(error) => last = connect_fault(error.kind()),
        }
    }
    Err(last)
}

async fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn connect_fault(kind: ErrorKind) -> Outcome {
    match kind {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::TimedOut => Outcome::ConnectTimeout,
        ErrorKind::ConnectionReset => Outcome::Reset,
        _ => Outcome::ConnectFailed,
    }
}
