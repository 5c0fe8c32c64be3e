/** The recorder of the history over a store in memory, and frames as a channel sends them. */
import { XdrWriter } from '../../../../protocol/bytes/writer.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { writeValueMessage } from '../../../../protocol/monitor/message.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import type { FromThread, RecordedMetric, TenantFigures, ToThread } from '../../../../server/wings/history/messages.ts'
import { HistoryRecorder } from '../../../../server/wings/history/recorder.ts'
import { FakeHistoryStore } from './fake-store.ts'

export const NOW = 1_700_000_000_000

export class TestRecorder {
  store = new FakeHistoryStore()
  nowMs = NOW
  posted: FromThread[] = []
  laters: (() => void)[] = []
  #recorder!: HistoryRecorder

  constructor() {
    this.start()
  }

  start(): void {
    this.posted = []
    this.laters = []
    this.#recorder = new HistoryRecorder(this.store as never, {
      post: (message) => this.posted.push(message),
      answer: (message) => this.posted.push(message),
      monotonicMs: () => this.nowMs,
      wallMs: () => this.nowMs,
      later: (act) => this.laters.push(act),
      ended: () => {},
    })
  }

  /** The process dies, and starts again with what is on the disk. */
  crash(): void {
    this.store = this.store.crash()
    this.start()
  }

  handle(message: ToThread): void {
    this.#recorder.handle(message)
  }

  begin(more: Partial<Extract<ToThread, { kind: 'begin' }>> = {}): void {
    const limits = { window: 65_536, windowBytes: 8 << 20 }
    this.handle({
      kind: 'begin',
      connection: 1,
      channel: 5,
      tenant: 'default',
      generation: 'g',
      owner: 3,
      committed: 0,
      unsettled: 0,
      ...limits,
      ...more,
    })
  }

  bind(...metrics: readonly Partial<RecordedMetric>[]): void {
    const bound = metrics.map((metric, at) => {
      return { id: at + 1, name: 'test.*', args: [], carriesLabels: true, tenant: 'default', own: [], ...metric }
    })
    this.handle({ kind: 'bind', connection: 1, metrics: bound })
  }

  take(bytes: Uint8Array, connection = 1): void {
    this.handle({ kind: 'values', connection, bytes: Uint8Array.from(bytes) })
  }

  /** The transactions up to which everything was reported as stored. */
  stored(): number[] {
    return this.posted.flatMap((one) => (one.kind === 'stored' ? [one.transaction] : []))
  }

  counts(): TenantFigures | undefined {
    this.handle({ kind: 'figures' })
    const last = this.posted.at(-1)
    return last?.kind === 'figures' ? last.figures.tenants.get('default') : undefined
  }
}

export const text = (name: string, value: string): Field => ({ name, type: BasicType.STRING, value })
export const double = (value: number): Value => ({ type: BasicType.DOUBLE, value })

/** A value as a pattern sends it. */
export function labelled(value: Value, labels: Readonly<Record<string, string>>): Value {
  const fields = Object.entries(labels).map(([name, label]) => text(name, label))
  return { type: BasicType.REC, value: [...fields, { name: 'value', ...value } as Field] }
}

export function frames(
  ...values: readonly [transaction: number, ms: number, value: Value, metric?: number][]
): Uint8Array {
  const writer = new XdrWriter()
  for (const [transaction, ms, value, metric = 1] of values) {
    writeValueMessage(writer, { metric, transaction, time: (NOW + ms) * 1_000 + 999, value })
  }
  return writer.copy()
}

export const histogramOf = (bounds: number[], counts: bigint[]): Value => ({
  type: BasicType.REC,
  value: [
    { name: 'count', type: BasicType.UINT64, value: counts.reduce((sum, count) => sum + count, 0n) },
    { name: 'sum', ...double(4) } as Field,
    { name: 'bounds', type: BasicType.ARRAY, value: { element: BasicType.DOUBLE, items: bounds } },
    { name: 'counts', type: BasicType.ARRAY, value: { element: BasicType.UINT64, items: counts } },
  ],
})

export const load = (value: number, host = 'h'): Value => labelled(double(value), { name: 'test.load', host })
