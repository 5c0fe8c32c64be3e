/** Channels with a URL of Prometheus's remote write or of OTLP: their values are delivered as those of a drain are. */

import { openReceiver } from '../../kit/io/post.ts'
import type { Kit } from '../../kit/kit.ts'
import type { PushDestination, PushRequest } from '../../kit/push.ts'
import { noCounts } from './counts.ts'
import { Drain } from './drain.ts'
import { isNamedOn, sensorLabels, wireOf } from './metrics.ts'

/** Values of one request at most, how long one waits for others, and how long the destination may take. */
const DRAIN = { batchSize: 2_000, batchAgeMs: 1_000 }
const TIMEOUT_MS = 30_000
/** One notice of refused values in this time is enough. */
const NOTICE_MS = 60_000

export function httpDestination(kit: Kit): PushDestination {
  return {
    schemes: ['prometheus+http', 'prometheus+https', 'otlp+http', 'otlp+https'],
    open: async (request) => openDrain(kit, request),
  }
}

/** Delivers the values of a channel that a consumer has defined. The answers of the destination are for the log alone. */
function openDrain({ clock, log, poll, peer }: Kit, request: PushRequest): Drain {
  const { channel, name, url, address, bearer, ca, left } = request
  const [protocol = '', href = ''] = url.split(/\+(.*)/)
  const counts = noCounts()
  const receiver = { href, address, bearer, ca, timeoutMs: TIMEOUT_MS }
  let noticedMs = Number.NEGATIVE_INFINITY
  const drain = new Drain({
    table: { name, ...DRAIN },
    channel,
    wire: wireOf(protocol as 'prometheus' | 'otlp', peer.view, channel.owner.tenant, clock),
    destination: openReceiver(receiver, clock),
    clock,
    work: poll.work,
    random: Math.random,
    isWanted: isNamedOn(channel),
    ownLabels: sensorLabels(peer.view),
    counts,
    refused({ detail }, { name: metric }) {
      if (clock.monotonicMs() - noticedMs < NOTICE_MS) return
      noticedMs = clock.monotonicMs()
      log.warn({ channel: channel.id, url, metric, detail }, 'a destination has refused values')
      const text = `channel ${channel.label}: its destination has refused values, the last of ${metric}; they are committed`
      peer.notice({ severity: 'warning', subject: 'channel', detail: text }, channel.owner.userId)
    },
    state(problem) {
      if (problem !== '') log.info({ channel: channel.id, url, detail: problem }, 'values cannot be delivered')
    },
    ended(ended) {
      log.info({ channel: channel.id, url, ...counts }, 'values were delivered')
      left(ended)
    },
  })
  drain.start()
  return drain
}
