/** The receiver of a notifier: the form of its requests, and the way there. */
import { openReceiver, type Receiver } from '../../kit/io/post.ts'
import { signing } from '../../kit/io/signing.ts'
import type { Clock } from '../../kit/running.ts'
import type { NotifyTable } from './config.ts'
import type { NotifyWire } from './notification.ts'
import { alertmanagerWire } from './wires/alertmanager.ts'
import { ntfyWire } from './wires/ntfy.ts'
import { slackWire } from './wires/slack.ts'
import { webhookWire } from './wires/webhook.ts'

export interface NotifyDestination {
  readonly wire: NotifyWire
  readonly receiver: Receiver
}

export function notifyDestination(
  table: NotifyTable,
  clock: Pick<Clock, 'setTimeout' | 'clear' | 'wallMs'>,
): NotifyDestination {
  const { protocol, href } = table.url
  if (protocol === 'ntfy') {
    const wire = ntfyWire(href, table)
    return { wire, receiver: openReceiver({ ...table, href: wire.href }, clock) }
  }
  const receiver = openReceiver({ ...table, href }, clock)
  if (protocol === 'slack') return { wire: slackWire(table), receiver }
  if (protocol === 'alertmanager') return { wire: alertmanagerWire(table), receiver }
  return { wire: webhookWire(table), receiver: signing(receiver, table.secretFile, clock) }
}
