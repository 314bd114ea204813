//! A world's routes, put into words on demand.

use oxshmem_engine::route::table::{Route, RouteExplanation};

use crate::error::{Error, Result};
use crate::world::World;

impl World {
    /// The routes of puts and gets to each PE's host memory. Made for this call; a program that reads them often
    /// keeps them.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let routes = &self.worker.engine.routes;
        (0..self.n_pes()).filter_map(|pe| routes.get(pe)).collect()
    }

    /// The routes of this PE to `pe`, by kind of operation and memory: the chosen ones, and the reason why each
    /// better one was refused.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchPe`].
    pub fn explain(&self, pe: usize) -> Result<RouteExplanation> {
        self.worker
            .engine
            .routes
            .explain(pe)
            .ok_or(Error::NoSuchPe {
                call: "explain",
                pe,
                size: self.n_pes(),
            })
    }
}
