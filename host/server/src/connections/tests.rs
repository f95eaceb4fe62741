//! Which connection makes room for which.

use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::options::{ConnectionOptions, raise_open_files, within};
use super::places::{Connections, Phase, Place, RESERVED, State};
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

#[tokio::test]
async fn the_oldest_of_those_that_the_host_waits_for_goes_first() {
    let all = connections(5, 5);
    let mut places = Vec::new();
    let start = Instant::now();
    // The last one came last, and has waited longer than the one before it.
    for (phase, millis) in
        [(Phase::Busy, 0), (Phase::Body, 1), (Phase::Idle, 2), (Phase::New, 4), (Phase::New, 3)]
    {
        let place = all.admit(address(1)).unwrap();
        let since = start + Duration::from_millis(millis);
        *place.connection.state.lock() = State { phase, since, head_began: None };
        places.push(place);
    }
    for gone in [4, 3, 2, 1] {
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
#[tokio::test]
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

/// A body of three parts that ends, or after which nothing comes.
#[tokio::test]
async fn a_body_is_read_to_its_end_and_one_that_stops_coming_is_given_up() {
    let place = connections(1, 1).admit(None).unwrap();
    for (time, ends) in [(Duration::from_secs(3_600), true), (Duration::from_millis(1), false)] {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<_, std::io::Error>>(3);
        for _ in 0..3 {
            sender.send(Ok(Frame::data(axum::body::Bytes::from_static(b"part")))).await.unwrap();
        }
        let silent = (!ends).then_some(sender);
        let body = StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(receiver));
        let body = RequestBody::new(body, Arc::clone(&place.connection), time);
        match body.collect().await {
            Ok(read) => assert_eq!((read.to_bytes().len(), ends), (12, true)),
            Err(error) => assert!(error.to_string().contains("slowly") && !ends, "{error}"),
        }
        assert_eq!(place.connection.state.lock().phase == Phase::Busy, !ends);
        drop(silent);
    }
}
