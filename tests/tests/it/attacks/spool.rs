//! The spool of the agents' hooks, after somebody else has written into it.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use memhost_tests::TestHost;
use serde_json::json;

use crate::agent_hooks::{Machine, files, serve};
use crate::support::Api;

/// A machine whose host is away, with one event in its spool.
fn waiting() -> (Machine, PathBuf, std::net::SocketAddr) {
    // The other tests take ports of 127.0.0.1, and would take this one before the host is back.
    let address = TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap();
    let machine = Machine::new(format!("http://{address}"));
    hook(&machine);
    let spool = files(&machine.path("state/spool")).remove(0);
    (machine, spool, address)
}

/// A hook. The process that it starts has ended, too.
fn hook(machine: &Machine) {
    let called =
        machine.call(&["agent-hooks", "claude"], &machine.payload("claude", "pre-tool-use"));
    assert_eq!((called.code, called.out.as_str()), (Some(0), ""), "{called:?}");
    let until = Instant::now() + Duration::from_secs(60);
    while machine.is_delivering() {
        assert!(Instant::now() < until, "the process that delivers has not ended");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_others_put_into_the_spool_is_not_sent_and_stops_nothing() {
    let (machine, spool, address) = waiting();
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    let at =
        |number: u32, size: &str| spool.join(format!("{number:020}-00000001-0000-{size}.json"));
    // They are in the way: each is before the event, and is called as one.
    std::fs::create_dir_all(at(1, "1").join("a/b/c")).unwrap();
    fifo(&at(2, "2"));
    symlink("/dev/zero", at(3, "3")).unwrap();
    let good = json!({
        "url": machine.url, "path": "/runtime/v1/companies/acme/events", "body": {"events": []},
    });
    let elsewhere = machine.path("elsewhere.json");
    std::fs::write(&elsewhere, good.to_string()).unwrap();
    symlink(&elsewhere, at(4, "4")).unwrap();
    let huge = std::fs::File::create(at(5, "5")).unwrap();
    huge.set_len(8 << 30).unwrap();
    // A path that makes another host of the address, and the token's way there.
    let steals = format!("@{}/", trap.local_addr().unwrap());
    for (number, path) in [
        (6, steals.as_str()),
        (7, "/control/v1/companies"),
        (8, "/runtime/v1/companies/a b\r\nx: y"),
    ] {
        let stored = json!({"url": machine.url, "path": path, "body": {}});
        std::fs::write(at(number, "9"), stored.to_string()).unwrap();
    }
    std::fs::write(at(9, "18446744073709551615"), "{}").unwrap();
    let mut deep = spool.join("deep");
    for _ in 0..100 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    for name in ["notes.json", "-.json", "..json", "a\u{1b}[2J.json", "0-0-0-0.json"] {
        std::fs::write(spool.join(name), "{}").unwrap();
    }
    let outside = machine.path("outside");
    std::fs::create_dir(&outside).unwrap();
    let kept = outside.join("00000000000000000001-00000001-0000-2.json");
    std::fs::write(&kept, "{}").unwrap();
    symlink(&outside, machine.path("state/spool/linked")).unwrap();
    let shown = machine.call(&["agent-hooks", "spool"], "");
    assert!(shown.out.lines().count() >= 2 && !shown.out.contains('\u{1b}'), "{shown:?}");

    let host = TestHost::new(&[]).await.unwrap();
    serve(&host, address).await;
    let flushed = machine.call(&["agent-hooks", "spool", "--flush"], "");
    assert_eq!(
        (flushed.code, flushed.out.as_str()),
        (Some(0), "1 delivered, 0 refused, 0 waiting\n"),
        "{flushed:?}"
    );
    let events = Api::new(&host).get("/control/v1/companies/acme/events").await;
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
    trap.set_nonblocking(true).unwrap();
    assert_eq!(
        trap.accept().unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "the token went elsewhere"
    );
    let all_stay = [
        at(1, "1"),
        at(2, "2"),
        at(3, "3"),
        at(4, "4"),
        elsewhere,
        spool.join("notes.json"),
        kept,
        deep,
    ];
    for stays in all_stay {
        assert!(stays.symlink_metadata().is_ok(), "{} is somebody's and gone", stays.display());
    }
}

#[test]
fn a_link_or_a_pipe_in_the_place_of_our_files_is_not_written_to() {
    let (machine, spool, _) = waiting();
    let flush = || machine.call(&["agent-hooks", "spool", "--flush"], "");
    std::fs::remove_file(spool.join("lock")).unwrap();
    fifo(&spool.join("lock"));
    let called = flush();
    assert!(called.code == Some(1) && called.errors.contains("error: "), "{called:?}");
    std::fs::remove_file(spool.join("lock")).unwrap();
    // The log is where a hook says so, and a file of somebody is not.
    let foreign = machine.path("foreign");
    std::fs::write(&foreign, "mine").unwrap();
    symlink(&foreign, spool.join("lock")).unwrap();
    let _ = std::fs::remove_file(machine.path("state/agent-hooks.log"));
    symlink(&foreign, machine.path("state/agent-hooks.log")).unwrap();
    assert_eq!(flush().code, Some(1));
    hook(&machine);
    // A directory of ours that is a link is none.
    std::fs::remove_file(spool.join("lock")).unwrap();
    let moved = machine.path("moved");
    std::fs::rename(&spool, &moved).unwrap();
    symlink(&moved, &spool).unwrap();
    let before = std::fs::read_dir(&moved).unwrap().count();
    hook(&machine);
    assert_eq!(std::fs::read_dir(&moved).unwrap().count(), before);
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "mine");
}
