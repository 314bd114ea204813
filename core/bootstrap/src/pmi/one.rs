//! PMI-1: a line for each question and a line for each answer.

use std::time::Instant;

use super::fields::Fields;
use super::socket::Socket;
use super::version::{MAPPING, Protocol, unexpected};
use crate::error::Result;

/// A client whose session is accepted.
#[derive(Debug)]
pub(super) struct Client {
    socket: Socket,
}

impl Client {
    pub(super) fn open(socket: Socket) -> Result<Client> {
        let mut client = Client { socket };
        client.ask(
            "joining",
            "cmd=init pmi_version=1 pmi_subversion=1",
            "response_to_init",
        )?;
        Ok(client)
    }

    fn ask(&mut self, step: &'static str, question: &str, answer: &str) -> Result<Fields> {
        self.socket.send(step, format!("{question}\n").as_bytes())?;
        let line = self.socket.line(step)?;
        Fields::of_line(&line).expect(self.socket.interface, step, answer)
    }

    fn value(&mut self, step: &'static str, fields: &Fields, name: &str) -> Result<String> {
        let found = fields.get(name).filter(|value| !value.is_empty());
        found.map(str::to_owned).ok_or_else(|| {
            let what = format!("the answer has no {name}");
            unexpected(self.socket.interface, step, what)
        })
    }

    /// The name of the job's key-value space.
    fn space(&mut self) -> Result<String> {
        let step = "finding the job's key-value space";
        let answer = self.ask(step, "cmd=get_my_kvsname", "my_kvsname")?;
        self.value(step, &answer, "kvsname")
    }

    fn get(&mut self, step: &'static str, space: &str, key: &str) -> Result<String> {
        let question = format!("cmd=get kvsname={space} key={key}");
        let answer = self.ask(step, &question, "get_result")?;
        self.value(step, &answer, "value")
    }
}

impl Protocol for Client {
    fn wait_until(&mut self, end: Instant) {
        self.socket.wait_until(end);
    }

    fn mapping(&mut self) -> Result<String> {
        let space = self.space()?;
        self.get("finding the PEs' hosts", &space, MAPPING)
    }

    fn exchange(&mut self, key: &str, published: Option<&str>) -> Result<String> {
        let space = self.space()?;
        if let Some(value) = published {
            let question = format!("cmd=put kvsname={space} key={key} value={value}");
            self.ask("publishing the rendezvous", &question, "put_result")?;
        }
        self.ask("waiting for the other PEs", "cmd=barrier_in", "barrier_out")?;
        self.get("looking up the rendezvous", &space, key)
    }

    fn finalize(&mut self) -> Result<()> {
        self.ask("finalizing", "cmd=finalize", "finalize_ack")?;
        Ok(())
    }
}
