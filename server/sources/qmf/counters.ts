/** What the consoles of one sensor count, for `producer.sensors`: what was dropped is seen nowhere else. */
import type { Stopped } from '../../../protocol/qmf/types.ts'

export interface QmfCounters {
  /** Transfers of brokers, and the QMF messages in them. */
  transfers: number
  messages: number
  /** Transfers of QMFv2, which is another protocol. */
  qmf2: number
  /** Bodies whose rest was dropped, by reason. */
  malformed: number
  unknownMagic: number
  unknownOp: number
  unknownClass: number
  unknownMethod: number
  unsupportedType: number
  /** Answers to what was not asked, or is given up; messages that no console gets. */
  unexpected: number
  /** Requests that nobody answered in time. */
  unanswered: number
  /** No room for more of them. */
  objectsFull: number
  schemasFull: number
  packagesFull: number
  agentsFull: number
  requestsFull: number
  /** Statistics of objects whose properties never came. */
  unknownObjects: number
}

export function newCounters(): QmfCounters {
  return {
    transfers: 0,
    messages: 0,
    qmf2: 0,
    malformed: 0,
    unknownMagic: 0,
    unknownOp: 0,
    unknownClass: 0,
    unknownMethod: 0,
    unsupportedType: 0,
    unexpected: 0,
    unanswered: 0,
    objectsFull: 0,
    schemasFull: 0,
    packagesFull: 0,
    agentsFull: 0,
    requestsFull: 0,
    unknownObjects: 0,
  }
}

const counterOf = {
  malformed: 'malformed',
  'unknown-magic': 'unknownMagic',
  'unknown-op': 'unknownOp',
  'unknown-class': 'unknownClass',
  'unknown-method': 'unknownMethod',
  'unsupported-type': 'unsupportedType',
} as const satisfies Record<Stopped['reason'], keyof QmfCounters>

export function countStopped(counters: QmfCounters, { reason }: Stopped): void {
  counters[counterOf[reason]]++
}
