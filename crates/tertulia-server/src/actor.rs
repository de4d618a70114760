//! The task of a live session: opens the conversation, executes its orders one by one, and closes
//! it when no client needs it or a client stops it. Agent processes live as long as the task.

use std::sync::Arc;

use tertulia_engine::frontend::Frontend;
use tertulia_store::check_message;
use tokio::sync::mpsc;

use crate::gate::Gate;
use crate::host::{Choice, Ended, HostResult, HostedTalk, Seated, Which};
use crate::hub::Hub;
use crate::protocol::{Answer, ErrorBody, ErrorKind, TalkState, TurnStatus};
use crate::room::{Order, Room, Talk, What};
use tertulia_engine::event::{SessionEnd, SessionEvent, Tone};

/// Runs the conversation of a room until it ends.
pub async fn lead(
    hub: Arc<Hub>,
    room: Arc<Room>,
    mut which: Which,
    choice: Choice,
    mut orders: mpsc::Receiver<Order>,
) {
    let Some(talk) = room.talk() else { return };
    loop {
        let mut actor = Actor {
            gate: Gate::new(hub.clone(), room.clone()),
            hub: &hub,
            room: &room,
            talk: &talk,
        };
        if let Some(trouble) = actor.run(which, &choice, &mut orders).await {
            while let Ok(order) = orders.try_recv() {
                room.take_up();
                room.dismiss(&order, Some(trouble.clone()));
            }
        }
        if room.end(&orders) {
            break;
        }
        // An order arrived while the conversation was closing: opens it again.
        which = match room.floor().meta {
            Some(meta) => Which::Known(meta.id),
            None => which,
        };
        room.enter(TalkState::Opening, hub.host().now());
    }
    hub.sweep(&room);
}

struct Actor<'a> {
    gate: Gate,
    hub: &'a Arc<Hub>,
    room: &'a Arc<Room>,
    talk: &'a Talk,
}

impl Actor<'_> {
    /// Opens the conversation, runs it and closes it. Returns why the remaining orders are dropped,
    /// if they are.
    async fn run(
        &mut self,
        which: Which,
        choice: &Choice,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Option<ErrorBody> {
        let opened = tokio::select! {
            biased;
            () = self.talk.stop.cancelled() => Err(stopped()),
            opened = open(self.hub, which, choice, &mut self.gate) => opened,
        };
        let Seated {
            talk: mut hosted,
            told,
        } = match opened {
            Ok(seated) => seated,
            Err(error) => {
                self.room.publish(SessionEvent::NotOpened {
                    error: error.clone(),
                });
                self.gone(SessionEnd::default());
                return Some(error);
            }
        };
        for told in told {
            self.tell(told.tone, told.text);
        }
        let floor = hosted.floor();
        if floor.id != self.room.id() {
            self.hub.moved(self.room, floor.id);
        }
        self.gate.of_kind(hosted.kind());
        self.room.publish(SessionEvent::Opened {
            floor: Box::new(floor),
        });
        self.room.permit(hosted.permissions());
        self.room.enter(TalkState::Waiting, self.hub.host().now());
        self.carry_out_all(hosted.as_mut(), orders).await;
        if self.room.is_answering() {
            // The turn was abandoned. Its partial answer is in the draft.
            let floor = hosted.floor();
            let now = self.hub.host().now();
            self.room.finish(done(TurnStatus::Cancelled), floor, now);
        }
        self.room.enter(TalkState::Leaving, self.hub.host().now());
        let gently = !self.talk.insist.is_cancelled();
        let farewell = hosted.leave(gently).await;
        drop(hosted);
        if farewell.unsaved {
            self.hub.left_unsaved(self.room.id(), &farewell);
        }
        self.gone(farewell);
        self.talk.stop.is_cancelled().then(stopped)
    }

    fn gone(&self, farewell: SessionEnd) {
        self.room.publish(SessionEvent::Gone { farewell });
    }

    async fn carry_out_all(
        &mut self,
        hosted: &mut dyn HostedTalk,
        orders: &mut mpsc::Receiver<Order>,
    ) {
        let idle = self.hub.limits().idle;
        loop {
            let order = tokio::select! {
                biased;
                () = self.talk.stop.cancelled() => return,
                order = orders.recv() => order,
                () = tokio::time::sleep(idle) => {
                    // Unsaved entries keep the conversation open; saving is retried.
                    let saved = self.save(hosted).await;
                    if self.hub.wants(self.room) || !saved {
                        continue;
                    }
                    return;
                }
            };
            let Some(order) = order else { return };
            self.room.take_up();
            if order.cancel.is_cancelled() {
                self.room.dismiss(&order, None);
                continue;
            }
            if matches!(order.what, What::Say(_) | What::Compact) {
                self.room.carry_out(&order, self.hub.host().now());
            }
            tokio::select! {
                biased;
                () = self.talk.insist.cancelled() => return,
                () = self.carry_out(order, hosted) => {}
            }
        }
    }

    async fn carry_out(&mut self, order: Order, hosted: &mut dyn HostedTalk) {
        let ended = match order.what {
            What::Open => return,
            What::Save => {
                let success = self.save(hosted).await;
                if let Some(asker) = &order.asker {
                    asker.tell(Answer::SessionSaved { success });
                }
                return;
            }
            What::Permit(change) => return self.room.change_permissions(&change),
            What::As(name) => {
                if let Err(why) = hosted.take_seat(name) {
                    self.tell(Tone::Warning, why);
                }
                let floor = Box::new(hosted.floor());
                return self.room.publish(SessionEvent::Over { floor });
            }
            What::Compact => {
                self.room.publish(SessionEvent::Began);
                let why = hosted.compact(&mut self.gate, &order.cancel).await;
                if let Some(why) = why {
                    self.tell(Tone::Note, why);
                }
                done(TurnStatus::Completed)
            }
            What::Say(words) => match check_message(&words) {
                Err(error) => {
                    let trouble = ErrorBody::new(ErrorKind::Invalid, error.to_string());
                    self.tell(Tone::Error, trouble.message.clone());
                    Ended {
                        trouble: Some(trouble),
                        ..done(TurnStatus::Refused)
                    }
                }
                Ok(()) => {
                    self.room.publish(SessionEvent::Began);
                    hosted.say(words, &mut self.gate, &order.cancel).await
                }
            },
        };
        self.gate.hear_out();
        let floor = hosted.floor();
        self.room.finish(ended, floor, self.hub.host().now());
    }

    /// Tries to save held messages. Returns true if everything is saved.
    async fn save(&mut self, hosted: &mut dyn HostedTalk) -> bool {
        if !hosted.floor().unsaved {
            return true;
        }
        let saved = hosted.save(&mut self.gate).await;
        let floor = Box::new(hosted.floor());
        self.room.publish(SessionEvent::Over { floor });
        saved
    }

    fn tell(&self, tone: Tone, text: String) {
        self.room.publish(SessionEvent::Notice { tone, text });
    }
}

async fn open(
    hub: &Arc<Hub>,
    which: Which,
    choice: &Choice,
    frontend: &mut dyn Frontend,
) -> HostResult<Seated> {
    hub.host().open(which, choice, frontend).await
}

fn done(status: TurnStatus) -> Ended {
    Ended {
        status,
        trouble: None,
        notices: Vec::new(),
    }
}

fn stopped() -> ErrorBody {
    ErrorBody::new(ErrorKind::Interrupted, "the session was stopped")
}
