//! Compiled code of the host's own component at the end of the program's file: a first start loads
//! it and compiles nothing. Loaders of programs ignore what follows the program. It is
//! `[code][seal, 32 bytes][length of the code, 8 bytes, little-endian][magic, 8 bytes]`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use wasmtime::Engine;

use super::compiler::CompilerProcess;
use super::engine::{Sandbox, code_config};
use super::error::AdmissionError;
use memhost_types::Digest;

const MAGIC: [u8; 8] = *b"memhostC";
/// What programs begin with, on Linux and on macOS.
const PROGRAMS: [[u8; 4]; 2] = [*b"\x7fELF", [0xcf, 0xfa, 0xed, 0xfe]];
/// The bytes behind the code.
const TRAILER: u64 = 32 + 8 + 8;

/// Compiles a component for usual processors, and appends the code to the file of a program. It
/// takes the place of what an earlier call has appended. Answers the size of the code in bytes.
///
/// # Errors
/// Where the component does not compile, or the file cannot be replaced.
pub fn carry_compiled(program: &Path, component: &[u8]) -> Result<u64, AdmissionError> {
    let code = usual_engine().and_then(|engine| engine.precompile_component(component));
    let code = code.map_err(|error| AdmissionError::io("compiling", "the component", error))?;
    append(program, Digest::of(component), &code)
        .map_err(|error| AdmissionError::io("writing", program.display().to_string(), error))?;
    Ok(code.len() as u64)
}

/// What the code of a component is told by: neither can be exchanged without it.
fn seal(digest: Digest, code: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(digest.to_string().as_bytes()).update(code);
    hasher.finalize()
}

/// An engine for the processors of the last ten years, whatever this machine has.
#[allow(unsafe_code, reason = "the only way to choose a processor; see the comment at the call")]
fn usual_engine() -> wasmtime::Result<Engine> {
    use std::env::consts::{ARCH, OS};
    let mut config = code_config(false);
    // A target that is named does not get the features of this machine.
    config.target(&format!("{ARCH}-unknown-{OS}"))?;
    if ARCH == "x86_64" {
        for flag in ["x86-64-v3", "has_avx"] {
            // SAFETY: these flags say only which instructions a processor has. An engine refuses
            // to load code for those that its processor lacks.
            unsafe { config.cranelift_flag_enable(flag) };
        }
    }
    Engine::new(&config)
}

fn append(program: &Path, digest: Digest, code: &[u8]) -> io::Result<()> {
    // A link stays one.
    let program = &program.canonicalize()?;
    if !program.is_file() {
        return Err(io::Error::other("it is no file; name a program"));
    }
    let mut whole = File::open(program)?;
    let mut head = [0; 4];
    if whole.read_exact(&mut head).is_err() || !PROGRAMS.contains(&head) {
        return Err(io::Error::other("it is no program; name the file of memhost"));
    }
    let (mode, length) = (whole.metadata()?.permissions(), whole.metadata()?.len());
    let end = find(&mut whole)?.map_or(length, |found| found.start);
    whole.rewind()?;
    let beside = program.parent().filter(|parent| !parent.as_os_str().is_empty());
    // A program that runs cannot be written, and is replaced.
    let mut file = tempfile::NamedTempFile::new_in(beside.unwrap_or(Path::new(".")))?;
    io::copy(&mut whole.take(end), &mut file)?;
    for part in [code, seal(digest, code).as_bytes(), &(code.len() as u64).to_le_bytes(), &MAGIC] {
        file.write_all(part)?;
    }
    file.as_file().set_permissions(mode)?;
    file.as_file().sync_all()?;
    file.persist(program).map_err(|error| error.error)?;
    Ok(())
}

/// Where the code is in a file, and its seal.
struct Found {
    start: u64,
    length: u64,
    seal: [u8; 32],
}

fn find(file: &mut File) -> io::Result<Option<Found>> {
    let Some(at) = file.metadata()?.len().checked_sub(TRAILER) else { return Ok(None) };
    let (mut seal, mut length, mut magic) = ([0; 32], [0; 8], [0; 8]);
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut seal)?;
    file.read_exact(&mut length)?;
    file.read_exact(&mut magic)?;
    let length = u64::from_le_bytes(length);
    let start = at.checked_sub(length).filter(|_| magic == MAGIC);
    Ok(start.map(|start| Found { start, length, seal }))
}

/// The code of this component in a program's file. `None`: it has none.
fn read(program: &Path, digest: Digest) -> io::Result<Option<Vec<u8>>> {
    let mut file = File::open(program)?;
    let Some(found) = find(&mut file)? else { return Ok(None) };
    let mut code = Vec::new();
    file.seek(SeekFrom::Start(found.start))?;
    file.take(found.length).read_to_end(&mut code)?;
    match seal(digest, &code) == found.seal {
        true => Ok(Some(code)),
        false => Err(io::Error::other("it is damaged, or of another component")),
    }
}

/// The component as the file of this program has it compiled. `None`: it has no code, or none for
/// this processor and these settings.
#[allow(unsafe_code, reason = "the only way to load compiled code; see the comment at the call")]
pub(super) fn load(sandbox: &Sandbox, digest: Digest) -> Option<wasmtime::component::Component> {
    let program = CompilerProcess::this_program().ok()?.program;
    let code = read(&program, digest).unwrap_or_else(|error| {
        tracing::warn!(%error, "the compiled code in the program's file is not used");
        None
    })?;
    // SAFETY: `deserialize` trusts its bytes. These are a part of the file of the program that
    // runs, as its machine code is: whoever can write them can write that as well.
    let loaded = unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, code) };
    loaded.inspect_err(|error| tracing::debug!(%error, "the program's code does not fit here")).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::SandboxOptions;

    /// The head of a component, and nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn what_is_appended_replaces_what_was_and_is_read_only_whole_and_for_its_component() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("program");
        let own = [b"\x7fELF", [7; 100_000].as_slice()].concat();
        fs::write(&program, &own[1..]).unwrap();
        assert!(append(&program, Digest::of(EMPTY), &[1]).is_err(), "it is no program");
        assert!(append(directory.path(), Digest::of(EMPTY), &[1]).is_err());
        fs::write(&program, &own).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o751)).unwrap();
        let digest = Digest::of(EMPTY);
        assert_eq!(read(&program, digest).unwrap(), None);
        append(&program, Digest::of(b"before"), &[1; 1_000]).unwrap();
        let length = carry_compiled(&program, EMPTY).unwrap();
        let whole = fs::read(&program).unwrap();
        assert_eq!(whole[..own.len()], own);
        assert_eq!(whole.len() as u64, own.len() as u64 + length + TRAILER);
        assert_eq!(fs::metadata(&program).unwrap().permissions().mode() & 0o777, 0o751);
        let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
        let code = read(&program, digest).unwrap().unwrap();
        // This machine has what the code needs, or says so.
        #[allow(unsafe_code, reason = "it was compiled above")]
        // SAFETY: it was compiled above.
        let loaded =
            unsafe { wasmtime::component::Component::deserialize(&sandbox.0.engine, &code) };
        if let Err(error) = loaded {
            let error = format!("{error:?}");
            assert!(error.contains("not available on the host"), "{error}");
        }
        assert!(read(&program, Digest::of(b"another")).is_err());
        for (place, is_found) in [(own.len(), true), (whole.len() - 1, false)] {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&program, &damaged).unwrap();
            assert_eq!(read(&program, digest).is_err(), is_found, "{place}");
            assert!(!matches!(read(&program, digest), Ok(Some(_))), "{place}");
        }
        // A length beyond the beginning of the file.
        fs::write(&program, &whole[own.len() + 1..]).unwrap();
        assert_eq!(read(&program, digest).unwrap(), None);
    }
}
