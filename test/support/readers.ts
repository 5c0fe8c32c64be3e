/**
 * Everything that reads the values of a sensor, around a real hub and a real queue: a binding whose frames a channel sends, QUERY
 * and `producer.recent`, GET /metrics in both formats, both drains, and `producer.sensors`. `read` throws for a value that one of
 * them cannot write, or writes otherwise than its format demands.
 */
import { isDeepStrictEqual } from 'node:util'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readTyped, type Value, writeTyped } from '../../protocol/monitor/value.ts'
import { decodeMetrics } from '../../protocol/otlp/protobuf.ts'
import { Exposition } from '../../protocol/prometheus/exposition.ts'
import { decodeWriteRequest, decompress } from '../../protocol/prometheus/remote-write.ts'
import type { ExpositionFormat } from '../../protocol/prometheus/samples.ts'
import { SampleWriter } from '../../server/edge/http/metrics/samples.ts'
import { type Quota, Quotas } from '../../server/kernel/accounts/quotas.ts'
import type { Channel } from '../../server/kernel/channels/channel.ts'
import { Queue } from '../../server/kernel/channels/queue.ts'
import { FairWork, finish, isSteps } from '../../server/kernel/core/fair-work.ts'
import { Hub } from '../../server/kernel/metrics/hub.ts'
import { MetricInstance } from '../../server/kernel/metrics/instance.ts'
import { ownLabels } from '../../server/kernel/metrics/labels.ts'
import { measure } from '../../server/kernel/metrics/measure.ts'
import type { Measurement } from '../../server/kernel/metrics/metric.ts'
import { type Reading, readAll } from '../../server/kernel/metrics/readings.ts'
import { RecentValues } from '../../server/kernel/metrics/recent.ts'
import { Selection } from '../../server/kernel/metrics/selection.ts'
import { recentView } from '../../server/kernel/producer/recent.ts'
import { type StatusEntry, sensorsView } from '../../server/kernel/producer/status.ts'
import { otlpWire } from '../../server/wings/drains/otlp.ts'
import { type OutgoingValue, readFrames } from '../../server/wings/drains/outgoing.ts'
import { remoteWrite } from '../../server/wings/drains/prometheus.ts'
import { rights, tester } from '../server/kernel/metrics/fixture.ts'
import { FakeClock } from './fake-clock.ts'
import { HandHost } from './hand-host.ts'
import type { Json } from './records.ts'

const NO_LIMIT: Quota = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  valuesPerSecond: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  historyBytes: 0,
  historySeries: 0,
  rules: 0,
  notifiers: 0,
  ruleSecondsPerHour: 0,
  series: 0,
}
const LIMITS = { bytes: 1 << 24, elements: 1_000_000 }
const ID = 7
const SETTINGS = {
  durable: false,
  window: 1 << 30,
  windowBytes: 1 << 30,
  maxBytes: 1 << 30,
  maxAgeMs: 1 << 30,
  overflow: 'drop-oldest',
} as const

/** A sample of the text formats (prometheus.io, "Exposition formats"; OpenMetrics 1.0, "ABNF"). */
const SAMPLE =
  /^(?<series>[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*\})?) (?<value>\S+)(?: -?\d+(?:\.\d+)?)?$/
const NUMBER = /^(?:NaN|[+-]Inf|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/

export class Readers {
  readonly clock = new FakeClock()
  readonly hub: Hub
  readonly quotas = new Quotas(() => NO_LIMIT, this.clock)
  readonly work = new FairWork(this.clock)
  readonly #host = new HandHost()
  readonly inlets = this.#host.inlets
  readonly #recent = new RecentValues(this.clock, { maxBytes: 1 << 20, maxAgeMs: 60_000 })
  readonly #queue: Queue
  #instance: MetricInstance | undefined

  constructor() {
    this.hub = new Hub(this.clock, { work: this.work, recent: this.#recent })
    const listener = { changed() {}, ready() {}, awaited() {}, resultGone() {} }
    this.#queue = new Queue(1, 0, SETTINGS, this.#host, listener)
    this.#queue.attach()
  }

  #select(pattern: string, args: ArgumentList): Selection {
    return finish(Selection.of(this.hub.sensors, tester, pattern, args, { intervalMs: 1_000, rights }))
  }

  /** Has all values that a pattern selects sent from now on; its sensors are there already. `args`: as of COLLECT. */
  bind(pattern: string, args: ArgumentList = []): void {
    this.#instance = new MetricInstance(ID, this.#select(pattern, args))
    finish(this.hub.demand.match(this.#instance))
    const append = (head: Uint8Array, tail: Uint8Array, time: number) => this.#queue.append(0, head, tail, time)
    this.hub.bind(this.#instance, { append })
  }

  /** Reads everything there is; gives the values that were sent since the last time. `statuses`: those of what is no sensor. */
  async read(statuses: readonly StatusEntry[] = []): Promise<readonly OutgoingValue[]> {
    const sent = this.#sent()
    checkRemoteWrite(sent)
    checkOtlp(sent, (name) => this.#metric(name))
    const readings = await this.#readings()
    checkReadings(readings, sent)
    for (const format of ['prometheus', 'openmetrics'] as const) checkText(readings, format, this.clock.microseconds())
    await this.#checkAnswers()
    this.#checkStatuses(statuses)
    return sent
  }

  #metric(name: string) {
    return this.hub.sensors.find(({ family }) => name.startsWith(family))?.metric(name)
  }

  /** As a drain has them, who reads the frames of a channel. */
  #sent(): OutgoingValue[] {
    const instance = this.#instance as MetricInstance
    const channel = { bindings: new Map([[ID, { instance }]]) } as unknown as Channel
    const sent: OutgoingValue[] = []
    for (;;) {
      const next = this.#queue.next(1 << 20)
      if (next.kind === 'nothing') return sent
      if (!('bytes' in next)) throw new Error(`the queue gives ${next.kind}`)
      const take = (outgoing: object): void => void sent.push(outgoing as OutgoingValue)
      finish(readFrames(next.bytes, channel, () => [], take))
      this.#queue.commit(sent.at(-1)?.transaction ?? 0, true)
      next.chunk?.unhold()
    }
  }

  async #readings(): Promise<readonly Reading[]> {
    const readings: Reading[] = []
    const { hub, clock, work } = this
    const isOver = (): boolean => false
    const { name, args } = (this.#instance as MetricInstance).selection
    const selection = this.#select(name, args)
    await readAll(selection, { hub, clock, work, deadlineMs: 1_000, isOver }, (reading) => readings.push(reading))
    return readings
  }

  async #checkAnswers(): Promise<void> {
    const { clock, hub } = this
    const { name, args } = (this.#instance as MetricInstance).selection
    const now = () => clock.microseconds()
    const measured = await finish(measure(this.#select(name, args), now, hub))
    const answer = isSteps<Measurement>(measured) ? finish(measured) : measured
    checkWritten(answer.value)
    const view = recentView({ hub, rights, clock })
    const recent = view.show(tester, new Map([['metric', name]]))
    checkWritten(isSteps<Value>(recent) ? finish(recent) : (recent as Value))
  }

  #checkStatuses(statuses: readonly StatusEntry[]): void {
    const all = [...this.hub.sensors, ...statuses].filter((sensor) => 'status' in sensor && sensor.status !== undefined)
    const shown = sensorsView(() => all, this.hub).show(tester, new Map()) as Value
    const records: Json = valueToJson(checkWritten(shown))
    if (records.length !== all.length) throw new Error(`${records.length} of ${all.length} sensors are shown`)
    for (const { name, counters } of records) {
      if (counters.faults !== undefined) throw new Error(`${name} has ${counters.faults} faults`)
    }
  }
}

/** That a value can be written and read, on the wire and as JSON; gives it as it is read. */
function checkWritten(value: Value): Value {
  const bytes = written(value)
  const reader = new XdrReader(bytes)
  const read = readTyped(reader)
  if (reader.remaining > 0 || !isDeepStrictEqual(written(read), bytes))
    throw new Error(`cannot be read: ${shown(read)}`)
  const json = valueToJson(read)
  same(JSON.parse(JSON.stringify(json)), json, 'JSON does not have the value')
  return read
}

function written(value: Value): Uint8Array {
  const writer = new XdrWriter()
  writeTyped(writer, value)
  return writer.copy()
}

function same(one: unknown, other: unknown, problem: string): void {
  if (!isDeepStrictEqual(normal(one), normal(other))) throw new Error(`${problem}: ${shown(one)}, ${shown(other)}`)
}

/** JSON has no -0, and the two are one number. */
function normal(value: unknown): unknown {
  if (typeof value === 'number') return value === 0 ? 0 : value
  if (Array.isArray(value)) return value.map(normal)
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, normal(one)]))
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' || typeof one === 'number' ? String(one) : one))
}

const keyOf = (name: string, labels: Iterable<readonly [name: string, text: string]>): string =>
  JSON.stringify([name, ...[...labels].filter(([, text]) => text !== '').sort(([one], [two]) => (one < two ? -1 : 1))])

/** That the last value of a series is the same for those who ask as for those who are sent it. */
function checkReadings(readings: readonly Reading[], sent: readonly OutgoingValue[]): void {
  const newest = new Map<string, OutgoingValue>()
  for (const outgoing of sent) {
    const key = keyOf(outgoing.name, outgoing.labels)
    if (outgoing.time >= (newest.get(key)?.time ?? 0)) newest.set(key, outgoing)
  }
  for (const { metric, labels, measured } of readings) {
    const last = newest.get(keyOf(metric.name, ownLabels(labels)))
    if (measured === undefined || last === undefined || last.time !== measured.time) continue
    same(measured.value, last.value, `${metric.name} is another one for those who ask`)
  }
}

function checkText(readings: readonly Reading[], format: ExpositionFormat, now: number): void {
  const exposition = new Exposition(format)
  const writer = new SampleWriter({ exposition, hasTimes: true, isPrefixed: false, now })
  for (const reading of readings) writer.add(reading)
  const seen = new Set<string>()
  /** The bounds of the buckets of each series of a histogram so far. */
  const bounds = new Map<string, number>()
  for (const line of [...exposition.text()].join('').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const { series = '', value = '' } = SAMPLE.exec(line)?.groups ?? {}
    if (!NUMBER.test(value)) throw new Error(`not a sample in ${format}: ${line}`)
    if (seen.has(series)) throw new Error(`a second sample in ${format}: ${line}`)
    seen.add(series)
    checkBound(series, bounds)
  }
}

/** That the bounds of buckets ascend, and that quantiles are between 0 and 1. */
function checkBound(series: string, bounds: Map<string, number>): void {
  const [, label, text = ''] = /[{,](le|quantile)="([^"]*)"\}?$/.exec(series) ?? []
  if (label === undefined) return
  const bound = boundOf(label, text)
  const key = series.slice(0, series.lastIndexOf(label))
  const before = bounds.get(key)
  if (label === 'le' && before !== undefined && !(bound > before)) throw new Error(`a bound after ${before}: ${series}`)
  bounds.set(key, bound)
}

function boundOf(label: string, text: string): number {
  const bound = numberOf(text)
  if (!NUMBER.test(text) || Number.isNaN(bound)) throw new Error(`no bound: ${label}="${text}"`)
  if (label === 'quantile' && !(bound >= 0 && bound <= 1)) throw new Error(`no quantile: ${text}`)
  return bound
}

function numberOf(text: string): number {
  return text.endsWith('Inf') ? Number(text.replace('Inf', 'Infinity')) : Number(text)
}

function checkRemoteWrite(sent: readonly OutgoingValue[]): void {
  const { request } = finish(
    remoteWrite(
      () => undefined,
      () => 0,
    ).encode(sent),
  )
  if (request === undefined) return
  const { series } = finish(decodeWriteRequest(decompress(request.body, LIMITS), LIMITS))
  for (const { name, labels, samples } of series) {
    for (const [label, text] of labels) if (label === 'le' || label === 'quantile') boundOf(label, text)
    for (const [at, { time }] of samples.entries()) {
      if (at > 0 && time <= (samples[at - 1]?.time ?? 0)) throw new Error(`${name}: times do not ascend`)
    }
  }
}

function checkOtlp(sent: readonly OutgoingValue[], metricOf: Parameters<typeof otlpWire>[0]): void {
  const { request } = finish(otlpWire(metricOf).encode(sent))
  if (request === undefined) return
  const [resource] = finish(decodeMetrics(request.body, LIMITS))
  for (const { name, data } of resource?.scopes.flatMap(({ metrics }) => metrics) ?? []) {
    for (const point of data?.points ?? []) {
      if (!Number.isSafeInteger(point.time)) throw new Error(`${name}: a time of ${point.time} µs`)
      if (data?.kind !== 'histogram') continue
      const { bounds } = point as { readonly bounds: readonly number[] }
      // "The values in the explicit_bounds array must be strictly increasing" (opentelemetry-proto).
      if (!bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] as number))) {
        throw new Error(`${name}: bounds do not ascend: ${bounds}`)
      }
    }
  }
}

/** The last number or list of numbers of a metric that was sent; undefined if none was. */
export function lastOf(sent: readonly OutgoingValue[], name: string): Value['value'] | undefined {
  const { value } = sent.findLast((one) => one.name === name) ?? {}
  return value?.type === BasicType.VOID ? undefined : value?.value
}
