//! A future that JavaScript moves: it goes on only while [`Task::poll`] runs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;
use std::task::{Context, Poll, Waker};

/// What is under way, if anything is.
#[derive(Default)]
pub struct Task {
    future: Option<Pin<Box<dyn Future<Output = String>>>>,
    woken: Arc<Woken>,
}

/// Whether something woke the task while it was polled.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Task {
    /// Nothing has happened yet.
    pub fn new(future: impl Future<Output = String> + 'static) -> Self {
        Self { future: Some(Box::pin(future)), woken: Arc::default() }
    }

    /// Goes on as far as it can; the output comes back once. To be called after anything that the future may wait for.
    pub fn poll(&mut self) -> Option<String> {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut context = Context::from_waker(&waker);
        while let Some(future) = self.future.as_mut() {
            self.woken.0.store(false, Ordering::Relaxed);
            match future.as_mut().poll(&mut context) {
                Poll::Ready(end) => {
                    self.future = None;
                    return Some(end);
                }
                Poll::Pending if self.woken.0.load(Ordering::Relaxed) => {}
                Poll::Pending => break,
            }
        }
        None
    }
}
