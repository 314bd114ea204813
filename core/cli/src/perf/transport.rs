//! The transport that is measured.

use std::sync::Arc;

use oxshmem::{World, registry};
use oxshmem_transport::Transport;
#[cfg(feature = "verbs")]
use oxshmem_verbs::Verbs;

/// The transport that `--transport` names.
#[derive(Debug, Default)]
pub struct Given {
    /// All transports, if `None`.
    transport: Option<Arc<dyn Transport>>,
    #[cfg(feature = "verbs")]
    verbs: Option<Arc<Verbs>>,
}

impl Given {
    /// Finds it among the transports of this build.
    pub fn named(name: Option<&str>) -> anyhow::Result<Given> {
        let Some(name) = name else {
            return Ok(Given::default());
        };
        // An instance of its own, which can be asked for statistics.
        #[cfg(feature = "verbs")]
        if name == "verbs" {
            let verbs = Arc::new(Verbs::new());
            return Ok(Given {
                transport: Some(Arc::clone(&verbs) as Arc<dyn Transport>),
                verbs: Some(verbs),
            });
        }
        let all = registry::built_in();
        let names: Vec<&str> = all.iter().map(|transport| transport.name()).collect();
        let names = names.join(", ");
        let found = all.into_iter().find(|transport| transport.name() == name);
        anyhow::ensure!(
            found.is_some(),
            "there is no transport {name:?}; this build has {names}"
        );
        Ok(Given {
            transport: found,
            #[cfg(feature = "verbs")]
            verbs: None,
        })
    }

    /// Joins the job with this transport alone.
    pub fn join(&self) -> oxshmem::Result<World> {
        match &self.transport {
            Some(transport) => World::builder()
                .transports(vec![Arc::clone(transport)])
                .join(),
            None => World::init(),
        }
    }

    #[cfg(feature = "verbs")]
    pub fn verbs(&self) -> Option<&Arc<Verbs>> {
        self.verbs.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_found_by_its_name_or_the_names_are_told() {
        assert!(Given::named(None).unwrap().transport.is_none());
        let name = |given: Given| given.transport.map(|transport| transport.name());
        let loopback = Given::named(Some("loopback")).unwrap();
        assert_eq!(name(loopback), Some("loopback"));
        let error = Given::named(Some("pigeon")).unwrap_err().to_string();
        assert!(
            error.contains("pigeon") && error.contains("loopback"),
            "{error}"
        );
    }
}
