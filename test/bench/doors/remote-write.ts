/**
 * The row `remote-write`: a sender with a thousand series hands over six samples of each in a request, at a steady rate, to Cinnabar,
 * where nobody has bound them or a consumer reads them from a durable channel, and to Prometheus.
 */
import { encodeWriteRequest } from '../../../protocol/prometheus/write-request.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { StackProgram, WRITE, WRITE_HEADERS } from '../../rig/prometheus-stack.ts'
import type { Row } from './row.ts'
import { cinnabar, costsOf, type Sending, type Taker } from './taker.ts'

const SERIES = 1_000
const SAMPLES = 6
/** So many samples a second are sent. */
const RATE = 60_000
const LABELS = ['instance', 'job', 'cluster', 'namespace', 'pod', 'container'] as const

const SENDING: Sending = {
  path: WRITE,
  headers: WRITE_HEADERS,
  values: SERIES * SAMPLES,
  rate: RATE,
  body: (nowMs) => Uint8Array.from(finish(encodeWriteRequest(seriesAt(nowMs)))),
}

export const remoteWriteRow: Row = (sizes, withPeers) => {
  const takers: Record<string, () => Promise<Taker>> = {
    cinnabar: () => cinnabar('prometheus.*', true),
    cinnabarUnbound: () => cinnabar('prometheus.*', false),
    ...(withPeers && { prometheus }),
  }
  return costsOf(takers, SENDING, sizes)
}

function seriesAt(endMs: number) {
  return Array.from({ length: SERIES }, (_, series) => ({
    name: `bench_requests_${series % 50}_total`,
    labels: LABELS.map((label) => [label, `${label}-${Math.floor(series / 50)}`] as const),
    samples: Array.from({ length: SAMPLES }, (_, at) => ({ value: endMs % 1e6, timeMs: endMs - SAMPLES + 1 + at })),
  }))
}

async function prometheus(): Promise<Taker> {
  const program = await StackProgram.prometheus()
  await program.start()
  return program
}
