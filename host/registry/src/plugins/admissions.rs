//! Admits files: reads them, checks their signatures, and compiles them. A few are worked on at the
//! same time, and one that compiles slowly leaves its place to the others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::plugins::components::ComponentsDir;
use crate::plugins::error::PluginError;
use crate::plugins::files;
use crate::plugins::progress::InProgress;
use crate::plugins::trust::{Signed, Trust};
use memhost_sandbox::{
    AdmissionError, CacheKey, CompileLimits, CompileStop, Compiler, Component, Sandbox,
};
use memhost_types::Digest;

/// Components that are admitted at the same time.
const PARALLEL: usize = 2;
/// How much computing may hold up those that wait. What takes longer begins again, with all of its
/// time, among its like: the one place of slow components. So no component waits for another one
/// longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// The context of every admission. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Admissions(Arc<Inner>);

struct Inner {
    sandbox: Sandbox,
    cache: CacheKey,
    components: ComponentsDir,
    trust: Arc<Trust>,
    quick: Semaphore,
    slow: Semaphore,
}

/// A component's file, read and checked.
struct Read {
    bytes: Arc<Vec<u8>>,
    signed: Signed,
    digest: Digest,
}

impl Admissions {
    pub(crate) fn new(
        sandbox: Sandbox,
        cache: CacheKey,
        components: ComponentsDir,
        trust: Arc<Trust>,
    ) -> Self {
        let (quick, slow) = (Semaphore::new(PARALLEL), Semaphore::new(1));
        Self(Arc::new(Inner { sandbox, cache, components, trust, quick, slow }))
    }

    /// Which files are trusted.
    pub(crate) fn trust(&self) -> &Trust {
        &self.0.trust
    }

    /// Admits a file of the plugins directory that was written at this time, and keeps a copy.
    pub(crate) async fn file(
        &self,
        path: &Path,
        written: (i64, i64),
        progress: &InProgress,
    ) -> Result<(Component, Signed), PluginError> {
        let read = || {
            let (trust, path) = (Arc::clone(&self.0.trust), path.to_owned());
            move || {
                let bytes = files::read(&path)?;
                let bytes = bytes.ok_or_else(|| PluginError::BeingWritten {
                    path: path.display().to_string(),
                })?;
                let signed = trust.check(&path, &bytes)?;
                Ok((bytes, signed))
            }
        };
        self.admit(written, path, read, || progress.set_slow()).await
    }

    /// Admits the copy of a build whose file is gone.
    pub(crate) async fn copy(&self, digest: Digest) -> Result<Component, PluginError> {
        let components = &self.0.components;
        let path = components.copy(digest);
        let written = files::written(&path).unwrap_or_default();
        let read = || {
            let components = components.clone();
            move || Ok((components.read(digest)?, Signed::No))
        };
        Ok(self.admit(written, &path, read, || {}).await?.0)
    }

    async fn admit<R>(
        &self,
        written: (i64, i64),
        path: &Path,
        read: impl Fn() -> R,
        set_slow: impl FnOnce(),
    ) -> Result<(Component, Signed), PluginError>
    where
        R: FnOnce() -> Result<(Vec<u8>, Signed), PluginError> + Send + 'static,
    {
        let Inner { quick, slow, .. } = &*self.0;
        let closed = |error: tokio::sync::AcquireError| PluginError::io("admitting", path, &error);
        {
            let _place = quick.acquire().await.map_err(closed)?;
            match self.attempt(written, path, read(), PATIENCE).await {
                Err(PluginError::Admission(error)) if self.is_impatience(&error) => {}
                done => return done,
            }
        }
        set_slow();
        let _place = slow.acquire().await.map_err(closed)?;
        // It is read again, so that nothing is in memory while it waits.
        self.attempt(written, path, read(), Duration::MAX).await
    }

    /// Whether compiling was stopped before its limits.
    fn is_impatience(&self, error: &AdmissionError) -> bool {
        let (AdmissionError::NotCompiled { stop, limits: given, .. }, Some(limits)) =
            (error, self.limits())
        else {
            return false;
        };
        match stop {
            CompileStop::Time => limits.time > given.time,
            CompileStop::Cpu => limits.cpu_seconds > given.cpu_seconds,
            CompileStop::Memory | CompileStop::Crash => false,
        }
    }

    fn limits(&self) -> Option<CompileLimits> {
        match self.0.sandbox.compiler() {
            Compiler::Process(process) => Some(process.limits),
            Compiler::InProcess => None,
        }
    }

    async fn attempt<R>(
        &self,
        written: (i64, i64),
        path: &Path,
        read: R,
        patience: Duration,
    ) -> Result<(Component, Signed), PluginError>
    where
        R: FnOnce() -> Result<(Vec<u8>, Signed), PluginError> + Send + 'static,
    {
        let Inner { sandbox, cache, components, .. } = &*self.0;
        let (known, compiler) = (components.clone(), sandbox.compiler().clone());
        let Read { bytes, signed, digest } = blocking(path, move || {
            let (bytes, signed) = read()?;
            let digest = Digest::of(&bytes);
            known.check_stopped(digest, written, &compiler)?;
            Ok(Read { bytes: Arc::new(bytes), signed, digest })
        })
        .await?;
        let admitted =
            Component::admit_within(sandbox, Arc::clone(&bytes), Some(cache), patience).await;
        let components = components.clone();
        match admitted {
            Ok(component) => {
                let is_signed = matches!(signed, Signed::By { .. });
                let file = path.to_owned();
                let written = blocking(path, move || {
                    components.forget_stopped(digest);
                    components.keep(digest, &bytes)?;
                    if is_signed && let Some(signature) = files::read_signature(&file) {
                        components.keep_signature(digest, &signature);
                    }
                    Ok(())
                });
                if let Err(error) = written.await {
                    tracing::warn!(%error, "a plugin has no copy: it stops serving when its file \
                        is removed");
                }
                Ok((component, signed))
            }
            Err(error) => {
                if matches!(error, AdmissionError::NotCompiled { .. })
                    && !self.is_impatience(&error)
                    && let Some(limits) = self.limits()
                {
                    let reason = error.to_string();
                    let stored = blocking(path, move || {
                        components.note_stopped(digest, written, limits, reason)
                    })
                    .await;
                    if let Err(error) = stored {
                        tracing::warn!(%error, "the next start compiles a plugin again that was \
                            stopped");
                    }
                }
                Err(error.into())
            }
        }
    }
}

/// Reads a file on its own, without a signature.
pub(crate) async fn read_alone(path: &Path) -> Result<Vec<u8>, PluginError> {
    let owned = path.to_owned();
    blocking(path, move || {
        files::read(&owned)?
            .ok_or_else(|| PluginError::BeingWritten { path: owned.display().to_string() })
    })
    .await
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, PluginError> + Send + 'static,
) -> Result<T, PluginError> {
    let done = memhost_executor::spawn_blocking(work).await;
    done.map_err(|error| PluginError::io("reading", path, &error))?
}
