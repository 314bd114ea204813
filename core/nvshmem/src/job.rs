//! The first stage of the start: the job and its hosts.

use std::sync::Arc;

use oxshmem::bindings;
use oxshmem_bootstrap::Bootstrap;

use crate::failure::{Done, Failure};
use crate::numbers;
use crate::pe::Pe;
use crate::places::Places;
use crate::types::NO_DEVICE;

/// The job of this process.
pub(crate) struct Job {
    /// Until the world has it.
    bootstrap: Option<Arc<dyn Bootstrap>>,
    pub(crate) me: usize,
    pub(crate) n: usize,
    pub(crate) places: Places,
    /// The GPU that the attributes named, if they did.
    device: Option<usize>,
    /// Whether the environment describes the job: a process joins it once, so that it is kept for a later init.
    is_of_environment: bool,
    /// Inits that no finalize has answered yet.
    initialized: usize,
    pe: Option<Pe>,
}

// SAFETY: a world and what belongs to it move between threads; `state` gives the job to one thread at a time.
unsafe impl Send for Job {}

impl Job {
    /// The job of a bootstrap. Collective.
    pub(crate) fn join(
        bootstrap: Arc<dyn Bootstrap>,
        is_of_environment: bool,
        device: i32,
    ) -> Done<Job> {
        let names = bootstrap.allgather(bindings::host_id().as_bytes())?;
        let places = Places::of(&names);
        let (me, n) = (bootstrap.rank() as usize, bootstrap.size() as usize);
        Ok(Job {
            bootstrap: Some(bootstrap),
            me,
            n,
            places,
            device: usize::try_from(device).ok().filter(|_| device != NO_DEVICE),
            is_of_environment,
            initialized: 0,
            pe: None,
        })
    }

    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized > 0
    }

    /// Whether the GPU's part is open.
    pub(crate) fn is_open(&self) -> bool {
        self.pe.is_some()
    }

    /// One more init. Where every PE has a current GPU the GPU's part opens, too. Collective, if it is the first. An init that fails
    /// is none.
    pub(crate) fn begin(&mut self, call: &'static str) -> Done {
        if self.initialized == 0 {
            // Messages name this PE.
            numbers::set(self.me as i32, self.n as i32);
            if let Err(failure) = self.begin_first(call) {
                numbers::set(-1, -1);
                return Err(failure);
            }
        }
        self.initialized += 1;
        Ok(())
    }

    fn begin_first(&mut self, call: &'static str) -> Done {
        if let Some(pe) = &mut self.pe {
            return pe.begin_again(call);
        }
        let Some(bootstrap) = &self.bootstrap else {
            return Err(Failure::Start(
                "this job has ended, or could not begin; a process cannot join it again: start the program anew".into(),
            ));
        };
        // Without a driver there is no current GPU, either: the call that needs one says why.
        let has_gpu = self.device.is_some()
            // SAFETY: it is only looked for.
            || unsafe { bindings::current_context(call) }.is_ok_and(|context| context.is_some());
        let all = bootstrap.allgather(&[u8::from(has_gpu)])?;
        if all.iter().all(|has| has == &[1]) {
            self.open_gpu(call)?;
        }
        Ok(())
    }

    /// The PE and its GPU. The first call opens it, on the GPU that is current. Collective.
    pub(crate) fn open_gpu(&mut self, call: &'static str) -> Done<&mut Pe> {
        if self.pe.is_none() {
            let Some(bootstrap) = self.bootstrap.take() else {
                return Err(Failure::Start(
                    "the GPU's part of the library could not be opened: the first error says why; end the program, and mend that"
                        .into(),
                ));
            };
            self.pe = Some(Pe::open(call, bootstrap, &self.places, self.device)?);
        }
        self.pe.as_mut().ok_or(Failure::NotInitialized)
    }

    /// The GPU's part, if it is open. This opens none.
    pub(crate) fn opened(&mut self) -> Option<&mut Pe> {
        self.pe.as_mut()
    }

    /// Answers an init. With the last one the PE leaves, or rests until the next init: gives whether there is no job any more.
    /// Collective.
    pub(crate) fn end(&mut self) -> Done<bool> {
        if self.initialized > 1 {
            self.initialized -= 1;
            return match &mut self.pe {
                Some(pe) => pe.barrier_all().map(|()| false),
                None => Ok(false),
            };
        }
        if self.is_of_environment {
            if let Some(pe) = &mut self.pe {
                pe.rest()?;
            }
            self.initialized = 0;
            return Ok(false);
        }
        match self.pe.take() {
            Some(pe) => pe.finalize()?,
            None => self.leave(),
        }
        self.initialized = 0;
        Ok(true)
    }

    /// Says goodbye where there is no world that would.
    fn leave(&mut self) {
        if let Some(bootstrap) = self.bootstrap.take() {
            bootstrap.leave();
            bootstrap.outlast();
        }
    }

    /// The end of the process: leaves the job, and frees nothing. A program that has not finalized does so here.
    pub(crate) fn leave_at_exit(mut self) -> Done {
        match self.pe.take() {
            Some(pe) if self.initialized > 0 => pe.finalize_at_exit(),
            Some(pe) => pe.detach(),
            None => {
                self.leave();
                Ok(())
            }
        }
    }
}
