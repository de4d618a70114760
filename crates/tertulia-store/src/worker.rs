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
    pub(super) fn start(name: &str, state: T) -> StoreResult<Worker<T>> {
        Worker::spawn(name, move |waiting| work(state, waiting))
    }

    /// Starts a thread that opens the state that it then owns. Fails if opening fails.
    pub(super) async fn open(
        name: &str,
        open: impl FnOnce() -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<Worker<T>> {
        let (answer, opened) = oneshot::channel();
        let worker = Worker::spawn(name, move |waiting| match open() {
            Ok(state) => {
                let _ = answer.send(Ok(()));
                work(state, waiting);
            }
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        })?;
        opened.await.map_err(|_| gone())??;
        Ok(worker)
    }

    fn spawn(
        name: &str,
        run: impl FnOnce(mpsc::Receiver<Job<T>>) + Send + 'static,
    ) -> StoreResult<Worker<T>> {
        let (jobs, waiting) = mpsc::channel::<Job<T>>();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(waiting))
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
        if !sent {
            return Err(gone());
        }
        waiting.await.map_err(|_| gone())?
    }
}

fn work<T>(mut state: T, jobs: mpsc::Receiver<Job<T>>) {
    for job in jobs {
        job(&mut state);
    }
}

/// Runs one blocking job on a thread of its own.
pub(super) async fn on_thread<R: Send + 'static>(
    name: &str,
    job: impl FnOnce() -> StoreResult<R> + Send + 'static,
) -> StoreResult<R> {
    let (answer, waiting) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _ = answer.send(job());
        })
        .map_err(|error| StoreError::failed("cannot start a thread for the store", error))?;
    waiting.await.map_err(|_| gone())?
}

fn gone() -> StoreError {
    StoreError::failed("the store's thread has ended", "it stopped unexpectedly")
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
