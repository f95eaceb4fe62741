//! Which connection makes room for which.

use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::options::{ConnectionOptions, raise_open_files, within};
use super::places::{Connections, Phase, Place, RESERVED};
use super::request_body::RequestBody;

fn address(last: u8) -> Option<IpAddr> {
    Some(IpAddr::from([127, 0, 0, last]))
}

fn connections(max: usize, max_per_address: usize) -> Arc<Connections> {
    Connections::new(ConnectionOptions { max, max_per_address, ..ConnectionOptions::default() })
}

/// Whether somebody took its place.
fn is_evicted(place: &Place) -> bool {
    !place.all.open.lock().by_number.contains_key(&place.number)
}

#[tokio::test(start_paused = true)]
async fn the_oldest_of_those_that_the_host_waits_for_goes_first() {
    let all = connections(5, 5);
    let mut places = Vec::new();
    for phase in [Phase::Busy, Phase::Body, Phase::Idle, Phase::New, Phase::New] {
        let place = all.admit(address(1)).unwrap();
        place.connection.enter(phase);
        places.push(place);
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    for gone in [3, 4, 2, 1] {
        let next = all.admit(address(1)).unwrap();
        assert!(!next.connection.is_reserved && is_evicted(&places[gone]), "{gone}");
        next.connection.enter(Phase::Busy);
        places.push(next);
    }
    assert!(!is_evicted(&places[0]), "a request in progress is not ended");
    let reserved = all.admit(address(1)).unwrap();
    assert!(reserved.connection.is_reserved);
    drop(places);
    assert!(!all.admit(address(1)).unwrap().connection.is_reserved, "dropped places are free");
}

/// Bodies that do not come fill the limit: a request that has just come is not closed for the next
/// one of them.
#[tokio::test(start_paused = true)]
async fn a_new_connection_is_not_closed_for_many_that_keep_the_host_waiting() {
    let all = connections(4, 4);
    for many in [Phase::Body, Phase::Idle] {
        let held: Vec<Place> = (0..3).map(|_| all.admit(address(1)).unwrap()).collect();
        held.iter().for_each(|place| place.connection.enter(many));
        let new = all.admit(address(1)).unwrap();
        let next = all.admit(address(1)).unwrap();
        next.connection.enter(many);
        assert!(is_evicted(&held[0]) && !is_evicted(&new) && !is_evicted(&next), "{many:?}");
    }
}

#[tokio::test]
async fn an_address_makes_room_among_its_own() {
    let all = connections(100, 2);
    let others = [all.admit(address(1)).unwrap(), all.admit(address(1)).unwrap()];
    let mine = [all.admit(address(2)).unwrap(), all.admit(address(2)).unwrap()];
    let next = all.admit(address(2)).unwrap();
    assert!(is_evicted(&mine[0]) && !others.iter().any(is_evicted) && !next.connection.is_reserved);
    let socket: Vec<Place> = (0..5).map(|_| all.admit(None).unwrap()).collect();
    assert!(socket.iter().all(|place| !place.connection.is_reserved && !is_evicted(place)));
}

/// One side has every address of a network of 64 bits, so that it could have a limit for each.
#[tokio::test]
async fn a_network_of_ipv6_counts_as_one_address() {
    let all = connections(100, 2);
    let of = |text: &str| all.admit(text.parse().ok()).unwrap();
    let other = of("2001:db8:0:2::1");
    let mine = [of("2001:db8:0:1::1"), of("2001:db8:0:1::2")];
    let next = of("2001:db8:0:1:ffff::3");
    assert!(
        is_evicted(&mine[0]) && !is_evicted(&mine[1]) && !is_evicted(&other) && !is_evicted(&next)
    );
    drop((mine, next));
    assert!(all.open.lock().by_address.len() == 1, "the places of a network are given back");
}

#[tokio::test]
async fn reserved_places_are_bounded_and_make_room_for_each_other() {
    let all = connections(1, 1);
    let first = all.admit(None).unwrap();
    first.connection.enter(Phase::Busy);
    let reserved: Vec<Place> = (0..RESERVED).map(|_| all.admit(None).unwrap()).collect();
    assert!(reserved.iter().all(|place| place.connection.is_reserved));
    let next = all.admit(None).unwrap();
    assert!(is_evicted(&reserved[0]));
    for place in reserved.iter().chain([&next]) {
        place.connection.enter(Phase::Busy);
    }
    assert!(all.admit(None).is_none());
    assert_eq!(all.open.lock().reserved, RESERVED);
}

#[test]
fn a_process_with_few_files_has_fewer_connections() {
    assert!(raise_open_files() >= 64);
    assert_eq!(within(ConnectionOptions::default(), 1_024).max, 512);
    assert_eq!(within(ConnectionOptions::default(), u64::MAX), ConnectionOptions::default());
}

/// 100 parts of a body with a pause before each.
fn parts(
    pause: Duration,
    bytes: usize,
) -> std::pin::Pin<
    Box<impl tokio_stream::Stream<Item = Result<Frame<axum::body::Bytes>, std::io::Error>>>,
> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        for _ in 0..100 {
            tokio::time::sleep(pause).await;
            if sender.send(Ok(Frame::data(vec![b'x'; bytes].into()))).await.is_err() {
                return;
            }
        }
    });
    Box::pin(tokio_stream::wrappers::ReceiverStream::new(receiver))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_keeps_coming_is_waited_for_and_one_that_does_not_is_not() {
    let place = connections(1, 1).admit(None).unwrap();
    let time = Duration::from_secs(30);
    let of = |pause: Duration, bytes: usize| {
        RequestBody::new(StreamBody::new(parts(pause, bytes)), Arc::clone(&place.connection), time)
    };
    // 100 parts, a second apart: as fast as it must be.
    let read = of(Duration::from_secs(1), 16 * 1024).collect().await.unwrap().to_bytes();
    assert_eq!(read.len(), 100 * 16 * 1024);
    let error = of(Duration::from_secs(1), 1).collect().await.err().unwrap();
    assert!(error.to_string().contains("slowly"), "{error}");
}

/// What came quickly buys no silence after it.
#[tokio::test(start_paused = true)]
async fn the_rest_of_a_body_is_waited_for_no_longer_than_its_beginning() {
    let place = connections(1, 1).admit(None).unwrap();
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<_, std::io::Error>>(1);
    sender.send(Ok(Frame::data(axum::body::Bytes::from(vec![b'x'; 8 << 20])))).await.unwrap();
    let body = StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
    let time = Duration::from_secs(30);
    let started = Instant::now();
    let error =
        RequestBody::new(body, Arc::clone(&place.connection), time).collect().await.err().unwrap();
    assert!(error.to_string().contains("slowly"), "{error}");
    assert_eq!(started.elapsed().as_secs(), 30);
}
