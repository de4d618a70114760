//! A thread that owns a blocking resource such as a database connection.
//!
//! Storage calls block (a sync takes milliseconds on a busy disk); on their own thread they delay
//! neither the screen nor an agent's stream. Jobs run one after the other: the thread is the
//! writer.

use std::sync::Mutex;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::{StoreError, StoreResult};

type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// The thread's handle. Dropping it waits until all jobs are done and the owned state is dropped.
#[derive(Debug)]
pub(super) struct Worker<T> {
    jobs: Mutex<Option<mpsc::Sender<Job<T>>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread that owns `state`.
    pub(super) fn start(name: &str, mut state: T) -> StoreResult<Worker<T>> {
        let (jobs, waiting) = mpsc::channel::<Job<T>>();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for job in waiting {
                    job(&mut state);
                }
            })
            .map_err(|error| StoreError::failed("cannot start a thread for the store", error))?;
        Ok(Worker {
            jobs: Mutex::new(Some(jobs)),
            thread: Some(thread),
        })
    }

    /// Runs a job on the thread and waits for its result. Works under any executor.
    pub(super) async fn call<R: Send + 'static>(
        &self,
        job: impl FnOnce(&mut T) -> StoreResult<R> + Send + 'static,
    ) -> StoreResult<R> {
        let (answer, waiting) = oneshot::channel();
        let job: Job<T> = Box::new(move |state| {
            // The caller may have been dropped; the job is done all the same.
            let _ = answer.send(job(state));
        });
        let sent = match self.jobs.lock() {
            Ok(jobs) => jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()),
            Err(_) => false,
        };
        let gone = || StoreError::failed("the store's thread has ended", "it stopped unexpectedly");
        if !sent {
            return Err(gone());
        }
        waiting.await.map_err(|_| gone())?
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if let Ok(mut jobs) = self.jobs.lock() {
            jobs.take();
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
