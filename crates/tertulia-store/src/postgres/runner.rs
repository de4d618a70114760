//! The thread of a store: its runtime drives the connections and runs the operations, many at a time.
//! Callers may await them under any executor.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc as blocking;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::server::Server;
use crate::{StoreError, StoreResult};

/// How long operations may take to end after the store is dropped.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Job = Box<dyn FnOnce(Rc<Server>) -> Task + Send>;

/// Handle of the thread. Dropping it waits for the operations that run.
#[derive(Debug)]
pub(super) struct Runner {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Runner {
    /// Starts the thread, which makes the server's side.
    pub(super) fn start(
        make: impl FnOnce() -> StoreResult<Server> + Send + 'static,
    ) -> StoreResult<Runner> {
        let failed = |error| StoreError::failed("cannot start a thread for the store", error);
        let (jobs, waiting) = mpsc::unbounded_channel();
        let (answer, made) = blocking::channel();
        let run = move || {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .build_local(LocalOptions::default())
                .map_err(failed);
            match runtime.and_then(|runtime| Ok((runtime, make()?))) {
                Ok((runtime, server)) => {
                    let _ = answer.send(Ok(()));
                    work(&runtime, Rc::new(server), waiting);
                }
                Err(error) => {
                    let _ = answer.send(Err(error));
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("tertulia-postgres".to_owned())
            .spawn(run)
            .map_err(failed)?;
        made.recv().map_err(|_| gone())??;
        Ok(Runner {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Runs an operation on the thread, also to its end if the caller is dropped.
    pub(super) async fn call<R, T>(
        &self,
        job: impl FnOnce(Rc<Server>) -> T + Send + 'static,
    ) -> StoreResult<R>
    where
        R: Send + 'static,
        T: Future<Output = StoreResult<R>> + 'static,
    {
        let (answer, waiting) = oneshot::channel();
        self.send(Box::new(move |server| {
            let work = job(server);
            Box::pin(async move {
                let _ = answer.send(work.await);
            })
        }))?;
        waiting.await.map_err(|_| gone())?
    }

    /// Runs an operation on the thread and blocks until it is done, for at most `limit`.
    pub(super) fn call_blocking<R, T>(
        &self,
        limit: Option<Duration>,
        job: impl FnOnce(Rc<Server>) -> T + Send + 'static,
    ) -> StoreResult<R>
    where
        R: Send + 'static,
        T: Future<Output = StoreResult<R>> + 'static,
    {
        let (answer, waiting) = blocking::channel();
        self.send(Box::new(move |server| {
            let work = job(server);
            Box::pin(async move {
                let _ = answer.send(work.await);
            })
        }))?;
        match limit {
            None => waiting.recv().map_err(|_| gone())?,
            Some(limit) => waiting.recv_timeout(limit).map_err(|_| gone())?,
        }
    }

    fn send(&self, job: Job) -> StoreResult<()> {
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job).is_ok());
        match sent {
            Some(true) => Ok(()),
            _ => Err(gone()),
        }
    }
}

fn work(runtime: &LocalRuntime, server: Rc<Server>, mut jobs: mpsc::UnboundedReceiver<Job>) {
    runtime.block_on(async move {
        // Each operation holds a sender: the channel ends with the last of them. To await them one by
        // one would wake this loop twice per operation.
        let (running, mut ended) = mpsc::channel::<()>(1);
        while let Some(job) = jobs.recv().await {
            let (work, running) = (job(server.clone()), running.clone());
            tokio::task::spawn_local(async move {
                work.await;
                drop(running);
            });
        }
        drop(running);
        let _ = timeout(LEAVE_WITHIN, ended.recv()).await;
    });
}

fn gone() -> StoreError {
    StoreError::failed("the store's thread has ended", "it stopped unexpectedly")
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.jobs.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
