//! The target of `make bench`: answers every request with 201 and 1.5 kB, and costs next to
//! nothing. A thread per connection; ends when its standard input is closed, with the number of the
//! requests that it has answered.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const BODY_BYTES: usize = 1500;
static ANSWERED: AtomicU64 = AtomicU64::new(0);

fn main() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    writeln!(io::stdout(), "{}", listener.local_addr()?.port())?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = move || drop(serve(stream));
            // Hundreds of connections need no 2 MB of stack each.
            drop(thread::Builder::new().stack_size(128 * 1024).spawn(serve));
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink())?;
    writeln!(io::stdout(), "{}", ANSWERED.load(Ordering::SeqCst))
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nX-Subject-Token: gAAAAABn\r\n\
         Connection: keep-alive\r\nContent-Length: {BODY_BYTES}\r\n\r\n{}",
        "x".repeat(BODY_BYTES)
    );
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    let mut filled = 0;
    loop {
        let read = stream.read(&mut buffer[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        while let Some(length) = request_length(&buffer[..filled]) {
            buffer.copy_within(length..filled, 0);
            filled -= length;
            // Before the answer: whoever has it finds it counted.
            ANSWERED.fetch_add(1, Ordering::SeqCst);
            stream.write_all(answer.as_bytes())?;
        }
    }
}

/// Length of the first request, head and body, once it is complete.
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
