use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::system;

/// Far more than a connection on loopback takes.
const CONNECT_NS: i64 = 60_000_000_000;

/// A listener whose queue is full: its kernel drops each SYN that comes.
struct Swallowing {
    address: SocketAddr,
    _listener: TcpListener,
    _queued: Vec<Connecting>,
}

impl Swallowing {
    async fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut queued: Vec<Connecting> = Vec::new();
        for _ in 0..4 {
            let mut connecting: Connecting = Box::pin(tcp(address));
            if timeout(Duration::from_millis(10), &mut connecting).await.is_err() {
                queued.push(connecting);
            }
        }
        Self { address, _listener: listener, _queued: queued }
    }
}

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn refusing() -> SocketAddr {
    listening().await.1
}

fn target(addresses: &[SocketAddr]) -> Target {
    Target { addresses: addresses.to_vec(), tls: None }
}

fn run<T>(test: impl Future<Output = T>) -> T {
    system::runtime().expect("an event loop").block_on(test)
}

#[test]
fn an_address_that_drops_packets_does_not_delay_the_next() {
    run(async {
        let swallowing = Swallowing::new().await;
        let (_listener, address) = listening().await;
        let (target, first) = (target(&[swallowing.address, address]), Cell::new(0));
        for _ in 0..2 {
            let stream = dial(&target, &first, CONNECT_NS).await.expect("one address accepts");
            assert_eq!(stream.peer_addr().unwrap(), address);
            assert_eq!(first.get(), 1);
        }
    });
}

#[test]
fn an_address_that_refuses_is_followed_by_the_next() {
    run(async {
        let (_listener, address) = listening().await;
        let (target, first) = (target(&[refusing().await, address]), Cell::new(0));
        assert!(dial(&target, &first, CONNECT_NS).await.is_ok());
        assert_eq!(first.get(), 1);
    });
}

#[test]
fn without_an_address_that_accepts_the_failure_of_the_last_that_did_is_returned() {
    run(async {
        // TCP has no broadcast: no packet is sent.
        let unreachable = "255.255.255.255:9".parse().unwrap();
        let target = target(&[refusing().await, unreachable]);
        for (last, failure) in [(0, Outcome::Refused), (1, Outcome::ConnectFailed)] {
            let failed = dial(&target, &Cell::new(last), CONNECT_NS).await;
            assert_eq!(failed.err(), Some(failure));
        }
    });
}
