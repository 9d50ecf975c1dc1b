//! Transport that makes h2 write the requests of several streams in one system call.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Transport without vectored writes.
///
/// With vectored writes, h2 sends every body above 256 bytes in a write of its own. Without them,
/// it copies bodies of up to 1 kB into one buffer, and the requests of all ready streams are
/// written together.
pub(super) struct Coalesced<T>(pub T);

impl<T: AsyncRead + Unpin> AsyncRead for Coalesced<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Coalesced<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Future, poll_fn};
    use std::rc::Rc;

    use bytes::Bytes;
    use h2::client::Builder;
    use http::Request;
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::LocalSet;

    use super::*;

    /// Transport with vectored writes that counts writes.
    struct Counted(DuplexStream, Rc<Cell<u32>>);

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buffer)
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.1.set(self.1.get() + 1);
            Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }

        fn is_write_vectored(&self) -> bool {
            true
        }
    }

    #[test]
    fn requests_that_are_ready_together_are_written_together() {
        let runtime = crate::system::runtime().expect("an event loop");
        LocalSet::new().block_on(&runtime, async {
            let (near, _far) = duplex(1 << 20);
            let writes = Rc::new(Cell::new(0));
            let counted = Coalesced(Counted(near, writes.clone()));
            let (mut requests, mut connection) =
                Builder::new().handshake::<_, Bytes>(counted).await.expect("no peer is needed");
            let mut streams = Vec::new();
            for _ in 0..16 {
                let request = Request::post("http://a/").body(()).expect("well formed");
                let (_, mut stream) = requests.send_request(request, false).expect("it is open");
                stream.send_data(Bytes::from(vec![b'x'; 400]), true).expect("it fits");
                streams.push(stream);
            }
            writes.set(0);
            poll_fn(|cx| Poll::Ready(Pin::new(&mut connection).poll(cx).is_ready())).await;
            assert_eq!(writes.get(), 1);
        });
    }
}
