//! `escapes-directory` tries to leave its directory, in a capture and in a query, with raw WASI
//! calls without the checks of a libc. It answers one id for each try, `escaped:<try>` or
//! `refused:<try>:<error>`; a query also gives the texts. All must be refused. Links that point
//! outside stay in the directory, so code that walks the directory must not follow them.

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use well_behaved::sdk::types::*;
use well_behaved::{Guest, Reference, answer};

struct EscapesDirectory;

impl Guest for EscapesDirectory {
    const KEY: &str = "escapes-directory";

    fn describe() -> Description {
        well_behaved::describe(Self::KEY)
            .require(Permission::Directory(16 << 20), "To test its limits")
    }

    fn capture(_: &mut Reference, _: CaptureRequest) -> Result<CaptureResponse, Error> {
        Ok(attempts()?.into_iter().map(|(id, _)| id).collect::<Vec<_>>().into())
    }

    fn query(_: &mut Reference, _: QueryRequest) -> Result<ContextBundle, Error> {
        attempts().map(answer)
    }
}

fn attempts() -> Result<Vec<(String, String)>, Error> {
    let directories = get_directories();
    let granted: Vec<&str> = directories.iter().map(|(_, path)| path.as_str()).collect();
    let mut tried = vec![(format!("granted:{}", granted.join(",")), String::new())];
    let Some((data, _)) = directories.first() else { return Ok(tried) };
    let mut attempt = |name: &str, result: Result<String, ErrorCode>| match result {
        Ok(text) => tried.push((format!("escaped:{name}"), text)),
        Err(error) => {
            tried.push((format!("refused:{name}:{}", error.name()), error.message().to_owned()))
        }
    };
    let _ = write(data, "own", OpenFlags::CREATE);
    let _ = data.create_directory_at("sub");
    attempt("read-absolute", read(data, "/etc/passwd"));
    attempt("read-parent", read(data, "../../../../../../../../../../../../etc/passwd"));
    attempt("read-through-sub", read(data, "sub/../../../../../../../../../../etc/passwd"));
    attempt("list-parent", list(data, ".."));
    attempt("list-absolute", list(data, "/"));
    attempt("write-parent", write(data, "../escaped", OpenFlags::CREATE));
    attempt("write-absolute", write(data, "/tmp/escaped", OpenFlags::CREATE));
    attempt("truncate-parent", write(data, "../escaped", OpenFlags::TRUNCATE));
    attempt("make-directory", data.create_directory_at("../escaped.d").map(|()| String::new()));
    attempt("remove-parent", data.unlink_file_at("../escaped").map(|()| String::new()));
    attempt(
        "stat-parent",
        data.stat_at(PathFlags::SYMLINK_FOLLOW, "..").map(|stat| format!("{stat:?}")),
    );
    attempt("rename-parent", data.rename_at("own", data, "../escaped").map(|()| String::new()));
    attempt("rename-absolute", data.rename_at("own", data, "/tmp/escaped").map(|()| String::new()));
    attempt("rename-into", data.rename_at("../escaped", data, "taken").map(|()| String::new()));
    attempt("hard-link-absolute", hard_link(data, "/etc/passwd", "hard-absolute"));
    attempt(
        "hard-link-parent",
        hard_link(data, "../../../../../../../../../../etc/passwd", "hard-parent"),
    );
    attempt("hard-link-out", hard_link(data, "own", "../escaped-hard"));
    // Creating such a link may be allowed, following it may not.
    let _ = data.symlink_at("/etc", "link-absolute");
    attempt("read-link-absolute", read(data, "link-absolute/passwd"));
    let _ = data.symlink_at("../../../../../../../../../../../../etc", "link-parent");
    attempt("read-link-parent", read(data, "link-parent/passwd"));
    attempt("list-link-parent", list(data, "link-parent"));
    let _ = data.symlink_at("../escaped-by-link", "link-new");
    attempt("write-link", write(data, "link-new", OpenFlags::CREATE));
    attempt("hard-link-of-link", hard_link(data, "link-parent/passwd", "hard-of-link"));
    let _ = data.symlink_at("/proc/self/environ", "link-environ");
    attempt("read-environ", read(data, "link-environ"));
    Ok(tried)
}

fn open(
    from: &Descriptor,
    path: &str,
    how: OpenFlags,
    rights: DescriptorFlags,
) -> Result<Descriptor, ErrorCode> {
    from.open_at(PathFlags::SYMLINK_FOLLOW, path, how, rights)
}

fn read(from: &Descriptor, path: &str) -> Result<String, ErrorCode> {
    let (bytes, _) = open(from, path, OpenFlags::empty(), DescriptorFlags::READ)?.read(200, 0)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn write(from: &Descriptor, path: &str, how: OpenFlags) -> Result<String, ErrorCode> {
    open(from, path, how, DescriptorFlags::WRITE)?
        .write(b"a guest was here", 0)
        .map(|_| String::new())
}

fn list(from: &Descriptor, path: &str) -> Result<String, ErrorCode> {
    let entries =
        open(from, path, OpenFlags::DIRECTORY, DescriptorFlags::READ)?.read_directory()?;
    let names = std::iter::from_fn(|| entries.read_directory_entry().ok().flatten());
    Ok(names.take(20).map(|entry| entry.name).collect::<Vec<_>>().join(" "))
}

fn hard_link(data: &Descriptor, from: &str, to: &str) -> Result<String, ErrorCode> {
    data.link_at(PathFlags::empty(), from, data, to).map(|()| String::new())
}

well_behaved::export!(EscapesDirectory);
