//! Messages for an extension that is not known here any more. The side that sent them must not wait for ever.

use crate::context::RelayContext;
use crate::exchange::{ToClients, ToExtension};
use crate::fault::{Delivered, RelayFault};
use crate::ids::ExtensionId;

/// Answers and counts a message for such an extension.
pub(super) fn answer(
    extension: &ExtensionId,
    message: ToExtension,
    context: &mut RelayContext<'_>,
) {
    let news = match message {
        ToExtension::ClientCount(_) => return,
        ToExtension::Suspend { .. } => None,
        ToExtension::Attach { .. } => Some(ToClients::Offline {
            extension: extension.clone(),
            reason: "Extension closed",
        }),
        ToExtension::Detach { connection, .. } => Some(ToClients::Detached { connection }),
        ToExtension::Supersede { connection } => Some(ToClients::Superseded { connection }),
        ToExtension::Command(command) => Some(ToClients::Answer {
            connection: command.connection,
            number: command.number,
            outcome: Err(RelayFault::ExtensionGone(Delivered::No)),
        }),
    };
    context.counters.unroutable += 1;
    if let Some(news) = news {
        context.exchange.to_clients(news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::SharedRelayState;
    use crate::ids::IdSource;
    use crate::settings::RelaySettings;
    use crate::time::RelayTime;

    #[test]
    fn messages_for_an_extension_that_is_forgotten_are_answered_and_counted() {
        let ids = IdSource::Counting(0);
        let mut shared = SharedRelayState::new("ada", RelaySettings::default(), ids);
        let mut context = shared.context(RelayTime::default());
        let extension = ExtensionId::named("ext-gone");
        let connection = context.ids.connection();
        let client = context.ids.client(None);
        for message in [
            ToExtension::Attach {
                connection: connection.clone(),
                client,
            },
            ToExtension::Supersede {
                connection: connection.clone(),
            },
            ToExtension::Detach {
                connection,
                reason: "",
            },
            ToExtension::ClientCount(1),
        ] {
            answer(&extension, message, &mut context);
        }
        let answers: Vec<_> = shared.exchange.for_clients.drain(..).collect();
        assert!(matches!(
            &answers[..],
            [
                ToClients::Offline { .. },
                ToClients::Superseded { .. },
                ToClients::Detached { .. }
            ]
        ));
        assert_eq!(shared.counters.unroutable, 3);
    }
}
