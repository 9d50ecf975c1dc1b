//! HTTP target of `make verify`: responds to every request with 201 and 1.5 kB at minimal cost.
//!
//! One thread with one epoll instance, so that no other thread is woken for a request, which would
//! cost the client CPU time. Prints its port; exits when standard input is closed, and prints the
//! number of requests.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

const BODY_BYTES: usize = 1500;
const BUFFER_BYTES: usize = 16 * 1024;
const EVENTS: usize = 256;
// Above the indices of connections.
const LISTENER: u64 = u64::MAX;
const STDIN: u64 = u64::MAX - 1;

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

fn main() -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Subject-Token: gAAAAABn\r\n\
         Connection: keep-alive\r\nContent-Length: {BODY_BYTES}\r\n\r\n{}",
        "x".repeat(BODY_BYTES)
    )
    .into_bytes();
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&poll, io::stdin().as_fd(), EventData::new_u64(STDIN), EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    let mut count: u64 = 0;
    loop {
        events.clear();
        match epoll::wait(&poll, spare_capacity(&mut events), None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        for event in &events {
            match event.data.u64() {
                LISTENER => {
                    let stream = listener.accept()?.0;
                    stream.set_nodelay(true)?;
                    let index = free_index(&mut connections);
                    let data = EventData::new_u64(index as u64);
                    epoll::add(&poll, &stream, data, EventFlags::IN)?;
                    let buffer = vec![0; BUFFER_BYTES];
                    connections[index] = Some(Connection { stream, buffer, filled: 0 });
                }
                STDIN => return writeln!(io::stdout(), "{count}"),
                index => {
                    let slot = usize::try_from(index).ok().and_then(|at| connections.get_mut(at));
                    let Some(slot) = slot else { continue };
                    // Closing the socket takes it out of the epoll set.
                    if let Some(connection) = slot
                        && serve(connection, &response, &mut count).is_err()
                    {
                        *slot = None;
                    }
                }
            }
        }
    }
}

fn free_index(connections: &mut Vec<Option<Connection>>) -> usize {
    connections.iter().position(Option::is_none).unwrap_or_else(|| {
        connections.push(None);
        connections.len() - 1
    })
}

/// Reads once and responds to the requests; an error ends the connection.
fn serve(connection: &mut Connection, response: &[u8], count: &mut u64) -> io::Result<()> {
    let Connection { stream, buffer, filled } = connection;
    let read = stream.read(&mut buffer[*filled..])?;
    if read == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    *filled += read;
    while let Some(length) = request_length(&buffer[..*filled]) {
        buffer.copy_within(length..*filled, 0);
        *filled -= length;
        // Counted first, so that a client that has the response finds it counted.
        *count += 1;
        stream.write_all(response)?;
    }
    Ok(())
}

/// Returns the length of the first request, once it is complete.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let body = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    (bytes.len() >= head + body).then_some(head + body)
}
