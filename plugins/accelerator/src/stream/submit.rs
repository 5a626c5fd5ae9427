//! Handing a batch over: the first commands of it that there is room for.
#![allow(
    unsafe_code,
    reason = "calls the runtime with the addresses of commands, advances counters"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::abi::{CMD_WORDS, CommandCopy, CommandSignal, CommandWait};
use unisono_plugin::{Batch, Command, Error, Result, Status};

use super::AcceleratorStream;
use super::control::{On, Waiting};
use super::step::{Purpose, Step};
use crate::event::{AcceleratorEvent, Awaited};
use crate::regions::is_private;
use crate::{FlagCommand, FlagKernel, MemoryOperation, Runtime};

/// Writes and waits that are handed over at once, at most.
const PENDING: usize = 128;

impl<R: Runtime> AcceleratorStream<R> {
    /// Looks at all commands of a batch before any is taken.
    pub(super) fn verify(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<()> {
        self.named.clear();
        self.waits_for_own = false;
        for command in batch {
            match command {
                Command::Copy(command) => self.check_copy(command)?,
                Command::Reduce(command) => self.check_reduce(command)?,
                Command::Scale(command) => self.check_scale(command)?,
                Command::Signal(command) => self.check_signal(command)?,
                Command::Wait(command) => {
                    let flag = self.named.len();
                    self.check_wait(command)?;
                    let flag = self.named.get(flag);
                    self.waits_for_own |= flag.is_some_and(|(_, id)| is_private(*id));
                }
                Command::Record(_) | Command::WaitEvent(_) => {}
                _ => return Err(Error::unsupported("a command that this stream has not")),
            }
        }
        Ok(())
    }

    /// Takes the first commands of a batch that there is room for.
    pub(super) fn take(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<u32> {
        self.advance();
        self.begin_together();
        self.only_if_together(batch)?;
        let is_held = self.script.is_some() && self.keeps_waits_back();
        let taken = self.take_some(batch);
        if is_held {
            self.held_by = self.accepted;
        }
        // What was written down of a batch that failed is not handed over.
        self.script = None;
        taken
    }

    fn take_some(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<u32> {
        self.shared.refuse(None);
        let mut taken = 0;
        for command in batch {
            let cost = cost::<R>(&command);
            let room = self.device.limit - (self.operations - self.reached).min(self.device.limit);
            // An empty stream takes any command: what is larger than its room must run, too.
            if cost > room && (taken > 0 || self.completed < self.accepted) {
                break;
            }
            if self.shared.is_aborted() || self.refuses(&command)? {
                break;
            }
            let number = self.accepted + 1;
            // From here on the command counts: an abort must find its wait.
            let handed = self.hand_over_beside(&command, number);
            self.accepted = number;
            self.operations += cost;
            taken += 1;
            self.publish(true);
            if let Err(error) = handed {
                return Err(self.fail(error));
            }
        }
        if taken > 0 {
            let last = self.accepted;
            if let Err(error) = self.spread() {
                return Err(self.fail(error));
            }
            self.mark(last);
            self.operations += 1;
            self.marks.push_back((last, self.operations));
            if let Err(error) = self.flush().and_then(|()| self.end_together()) {
                return Err(self.fail(error));
            }
        }
        Ok(taken)
    }

    /// Hands a command over, a copy perhaps later beside others.
    fn hand_over_beside(
        &mut self,
        command: &Command<'_, AcceleratorEvent<R>>,
        number: u64,
    ) -> Result<()> {
        if let Command::Copy(copy) = command
            && self.gather(copy)?
        {
            return Ok(());
        }
        self.spread()?;
        self.hand_over(command, number)
    }

    /// Hands a command over, or writes down what it comes down to.
    pub(super) fn hand_over(
        &mut self,
        command: &Command<'_, AcceleratorEvent<R>>,
        number: u64,
    ) -> Result<()> {
        match command {
            Command::Copy(command) => {
                self.flush()?;
                self.copy(command)
            }
            Command::Reduce(command) => {
                self.flush()?;
                self.step(Step::Reduce(**command))
            }
            Command::Scale(command) => {
                self.flush()?;
                self.step(Step::Scale(**command))
            }
            Command::Signal(command) => self.signal(command),
            Command::Wait(command) => self.wait(command, number),
            Command::Record(event) => self.record_event(event, number),
            Command::WaitEvent(event) => self.wait_event(event, number),
            _ => Ok(()),
        }
    }

    fn copy(&mut self, command: &CommandCopy) -> Result<()> {
        if is_nothing(command) {
            return Ok(());
        }
        self.step(Step::Copy(*command))
    }

    fn record_copy(&mut self, command: CommandCopy) -> Result<()> {
        if is_nothing(&command) {
            return Ok(());
        }
        self.flush()?;
        // SAFETY: checked to be memory of the device; the submitter keeps it for as long as replays run.
        unsafe { Step::Copy(command).record(&*self.device.runtime, self.native) }
    }

    fn step(&mut self, step: Step) -> Result<()> {
        match &mut self.script {
            Some(script) => {
                script.steps.push(step);
                Ok(())
            }
            // SAFETY: checked to be memory of the device; the submitter's promise keeps it.
            None => unsafe { step.run(&*self.device.runtime, self.native) },
        }
    }

    fn is_trial(&self) -> bool {
        self.script
            .as_ref()
            .is_some_and(|script| script.purpose == Purpose::Trial)
    }

    /// Advances a counter; its value then.
    fn count(&mut self, counter: u64) -> Result<u64> {
        if self.is_trial() {
            return Ok(0);
        }
        let host = self.host_of(counter)?;
        // SAFETY: signal memory, checked; one queue writes a counter, and this is it.
        let value = unsafe { AtomicU64::from_ptr(host as usize as *mut u64) };
        Ok(value.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }

    fn signal(&mut self, command: &CommandSignal) -> Result<()> {
        if self.recorded.contains(&command.counter) {
            self.flush()?;
            return self.flag_kernel(FlagKernel::Signal, &self.signal_command(command));
        }
        let value = self.count(command.counter)?;
        if command.head.flags & CMD_WORDS != 0 {
            for (word, at) in command.words.iter().zip((command.flag + 8..).step_by(8)) {
                self.push(MemoryOperation::Word {
                    address: at,
                    value: *word,
                })?;
            }
        }
        self.push(MemoryOperation::Write {
            address: command.flag,
            value,
        })
    }

    fn wait(&mut self, command: &CommandWait, number: u64) -> Result<()> {
        if self.recorded.contains(&command.counter) {
            self.flush()?;
            let on = self.wait_command(command, number);
            self.flag_kernel(FlagKernel::Wait, &on)?;
            self.mark(number);
            return Ok(());
        }
        let (flag, counter) = (self.host_of(command.flag)?, self.host_of(command.counter)?);
        let value = self.count(command.counter)?;
        let on = On::Flag {
            flag,
            counter,
            value,
        };
        self.begin(number, on)?;
        self.push(MemoryOperation::Wait {
            address: command.flag,
            value,
        })?;
        if command.head.flags & CMD_WORDS != 0 && self.device.runtime.has_flag_kernels() {
            self.flush()?;
            let check = FlagCommand {
                value,
                ..self.wait_command(command, number)
            };
            self.step(Step::Check(check))?;
        }
        self.mark(number);
        Ok(())
    }

    /// Notes a wait before it is handed over.
    fn begin(&mut self, number: u64, on: On) -> Result<()> {
        if self.is_trial() || self.shared.begin(Waiting { number, on }) {
            return Ok(());
        }
        Err(Error::new(Status::Aborted, "the stream was aborted"))
    }

    fn record_event(&mut self, event: &AcceleratorEvent<R>, number: u64) -> Result<()> {
        let (native, gates) = event.record();
        self.flush()?;
        self.not_together()?;
        self.device.runtime.record(self.native, native)?;
        for gate in gates {
            self.push(MemoryOperation::Write {
                address: gate.address(),
                value: 1,
            })?;
        }
        self.events.push_back((number, event.clone()));
        Ok(())
    }

    fn wait_event(&mut self, event: &AcceleratorEvent<R>, number: u64) -> Result<()> {
        match event.await_now()? {
            Awaited::Nothing => {}
            Awaited::Native(native) => {
                self.flush()?;
                self.not_together()?;
                self.device.runtime.wait_event(self.native, native)?;
            }
            Awaited::Gate(gate) => {
                let address = gate.address();
                self.begin(number, On::Gate(Arc::clone(&gate)))?;
                self.push(MemoryOperation::Wait { address, value: 1 })?;
            }
        }
        self.mark(number);
        self.events.push_back((number, event.clone()));
        Ok(())
    }

    /// Records a batch into the program's graph: counters are advanced where it runs, so that it can be replayed.
    pub(super) fn record(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<u32> {
        if !self.device.runtime.has_flag_kernels() {
            return Err(Error::unsupported(
                "this device cannot replay flags, so its streams record nothing",
            ));
        }
        // Before the first of it can run.
        self.shared.is_recorded.store(true, Ordering::Release);
        for command in batch {
            match command {
                Command::Signal(command) => {
                    self.recorded.insert(command.counter);
                    self.flag_kernel(FlagKernel::Signal, &self.signal_command(command))?;
                }
                Command::Wait(command) => {
                    self.recorded.insert(command.counter);
                    let on = self.wait_command(command, self.accepted + 1);
                    self.flag_kernel(FlagKernel::Wait, &on)?;
                }
                Command::WaitEvent(event) => match event.await_now()? {
                    Awaited::Nothing => {}
                    Awaited::Native(native) => {
                        self.device.runtime.wait_event(self.native, native)?;
                    }
                    Awaited::Gate(_) => {
                        return Err(Error::unsupported(
                            "a wait for an event that only the host completes cannot be recorded",
                        ));
                    }
                },
                Command::Copy(copy) => self.record_copy(*copy)?,
                command => self.hand_over(&command, self.accepted + 1)?,
            }
            self.accepted += 1;
        }
        self.flush()?;
        self.publish(false);
        Ok(batch.len())
    }

    fn signal_command(&self, command: &CommandSignal) -> FlagCommand {
        FlagCommand {
            flag: command.flag,
            counter: command.counter,
            words: command.words,
            flags: u64::from(command.head.flags & CMD_WORDS),
            ..FlagCommand::on(&self.shared.line)
        }
    }

    fn wait_command(&self, command: &CommandWait, number: u64) -> FlagCommand {
        FlagCommand {
            flag: command.flag,
            counter: command.counter,
            words: command.words,
            flags: u64::from(command.head.flags & CMD_WORDS),
            command: number,
            ..FlagCommand::on(&self.shared.line)
        }
    }

    fn flag_kernel(&self, kernel: FlagKernel, on: &FlagCommand) -> Result<()> {
        // SAFETY: flags and counters were checked; the line lives as long as the stream's commands.
        unsafe { self.device.runtime.flag(self.native, kernel, on) }
    }

    /// The stream will write how far it is.
    pub(super) fn mark(&mut self, number: u64) {
        let address = self.shared.line.address();
        let mark = MemoryOperation::Write {
            address,
            value: number,
        };
        match self.pending.last_mut() {
            // The mark of a wait that ends its batch.
            Some(last) if *last == mark => {}
            _ => self.pending.push(mark),
        }
    }

    fn push(&mut self, operation: MemoryOperation) -> Result<()> {
        if self.pending.len() >= PENDING {
            self.flush()?;
        }
        self.pending.push(operation);
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Some(script) = &mut self.script {
            let pending = self.pending.drain(..);
            script.steps.extend(pending.map(Step::Memory));
            return Ok(());
        }
        // SAFETY: flags and counters were checked, lines live as long as what names them.
        let done = unsafe { self.device.runtime.operate(self.native, &self.pending) };
        self.pending.clear();
        done
    }
}

/// Whether a copy moves no byte.
fn is_nothing(command: &CommandCopy) -> bool {
    command.bytes == 0 || command.dst == command.src && command.repeat == 1
}

/// Operations that a command takes in a queue of the device, with the mark behind it.
fn cost<R: Runtime>(command: &Command<'_, AcceleratorEvent<R>>) -> u64 {
    match command {
        Command::Copy(command) => R::copy_cost(command),
        Command::Reduce(command) => R::reduce_cost(command),
        Command::Signal(command) if command.head.flags & CMD_WORDS != 0 => 4,
        Command::Wait(_) | Command::Record(_) => 3,
        Command::WaitEvent(_) => 2,
        _ => 1,
    }
}
