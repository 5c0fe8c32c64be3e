/** The destination of a notifier: the form of its requests, the way there, and what its answers mean. */
import { TemplateError } from '../../../promql/template/parse.ts'
import { answerText, openReceiver, type Receiver, retryAfterMs } from '../../kit/io/post.ts'
import { signing } from '../../kit/io/signing.ts'
import type { Clock } from '../../kit/running.ts'
import type { NotifierTable } from './bodies.ts'
import { emailDestination } from './email.ts'
import type { Notification, NotifyDestination, NotifyWire } from './notification.ts'
import { alertmanagerWire } from './wires/alertmanager.ts'
import { bodyWire } from './wires/body.ts'
import { ntfyWire } from './wires/ntfy.ts'
import { webhookWire } from './wires/webhook.ts'

/** Answers by which a receiver says that it will never take what was sent: the others are mended by somebody, or pass. */
const REFUSALS: readonly number[] = [400, 413, 415, 422]

/** It says nothing but that it comes. */
const HEARTBEAT: NotifyWire = { request: () => ({ body: new Uint8Array(), headers: {} }) }

/** `tokenOf`: what the button of a notification sends; empty: it has none. */
export function notifyDestination(
  table: NotifierTable,
  clock: Pick<Clock, 'setTimeout' | 'clear' | 'wallMs'>,
  tokenOf: (notification: Notification) => string = () => '',
): NotifyDestination {
  const { url, origin } = table
  const { protocol, href } = url
  const way = { read: origin?.read, address: origin && (() => origin.addressFor(url.shown)) }
  if (protocol === 'smtp') return emailDestination({ ...table, ...way })
  if (protocol === 'ntfy') {
    const wire = ntfyWire(href, table, tokenOf)
    return overHttp(wire, openReceiver({ ...table, ...way, href: wire.href }, clock), clock)
  }
  const receiver = openReceiver({ ...table, ...way, href }, clock)
  if (protocol === 'heartbeat') return overHttp(HEARTBEAT, receiver, clock)
  if (protocol === 'json') return overHttp(bodyWire(table), receiver, clock)
  if (protocol === 'alertmanager') return overHttp(alertmanagerWire(table), receiver, clock)
  return overHttp(webhookWire(table), signing(receiver, table.secretFile, clock, origin?.read), clock)
}

function overHttp(wire: NotifyWire, receiver: Receiver, clock: Pick<Clock, 'wallMs'>): NotifyDestination {
  return {
    async send(notification) {
      let request: ReturnType<NotifyWire['request']>
      try {
        request = wire.request(notification, clock.wallMs())
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error
        return { verdict: 'refused', detail: `the template gives no body: ${error.message}`, waitMs: 0 }
      }
      const { status, retryAfter, body } = await receiver.post(request.body, request.headers)
      const text = answerText(body)
      const detail = `${status}${text === '' ? '' : `: ${text}`}`
      const waitMs = retryAfterMs(retryAfter, clock.wallMs())
      if (status >= 200 && status < 300) return { verdict: 'taken', detail, waitMs }
      return { verdict: REFUSALS.includes(status) ? 'refused' : 'failed', detail, waitMs }
    },
    close: () => receiver.close(),
  }
}
