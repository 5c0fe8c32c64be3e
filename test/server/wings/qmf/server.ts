/** A whole server with Qpid brokers of tests behind real sockets, and a consumer. */
import { expect } from 'vitest'
import type { SensorStatus } from '../../../../server/kernel/metrics/metric.ts'
import { type Config, loadConfig } from '../../../../server/start/config.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { TestProducer } from '../../../support/producer.ts'
import { capturedConclusions } from '../../../support/qmf/capture.ts'
import type { Seat } from '../../../support/seat.ts'

export const PACKAGE = 'org.apache.qpid.broker'
export const DEPTH = `qmf.${PACKAGE}.queue.msgDepth`
export const QUEUES = `console.obj.*.*.${PACKAGE}.queue`

export class QmfServer {
  readonly producer: TestProducer
  readonly root: Seat

  private constructor(producer: TestProducer, root: Seat) {
    this.producer = producer
    this.root = root
  }

  /** `brokers`: name -> port, or URL. `more`: keys for each; without a version, QMF v1 is spoken. */
  static async start(brokers: Readonly<Record<string, number | string>>, more = ''): Promise<QmfServer> {
    const keys = more.includes('version =') ? more : `version = 1\n${more}`
    const tables = Object.entries(brokers).map(([name, at]) => {
      const url = typeof at === 'string' ? at : `amqp://127.0.0.1:${at}`
      return `[[qmf]]\nname = "${name}"\nurl = "${url}"\n${keys}\n`
    })
    const readFile = () => new TextEncoder().encode(tables.join(''))
    const { qmf }: Config = loadConfig({ file: 'c.toml', env: {}, readFile })
    const producer = await TestProducer.start({ config: { qmf } })
    return QmfServer.#of(producer)
  }

  static async #of(producer: TestProducer): Promise<QmfServer> {
    await producer.addUser('root', { role: 'admin' })
    return new QmfServer(producer, await producer.seat('root'))
  }

  status(): SensorStatus {
    const all = this.producer.server.parts.hub.sensors.map((sensor) => sensor.status?.())
    return all.find((one) => one?.name === 'qmf') as SensorStatus
  }

  /** So many brokers have reported everything that there is. */
  async up(brokers = 1): Promise<void> {
    await eventually(() => expect(this.status()).toMatchObject({ counters: { brokersUp: brokers } }))
  }

  /** It is not connected, and this is said of why. */
  async down(broker: string, why: string): Promise<void> {
    await eventually(() => expect(this.status().detail).toContain(`${broker}: waiting, ${why}`))
  }

  async subscribe(metric: string, list: Readonly<Record<string, string>> = {}): Promise<number> {
    const { root } = this
    const given = Object.entries(list).map(([name, value]) => [name, type.string, str(value)] as const)
    const id = await root.collect(metric, args(...given))
    await root.ok((seq) => command.subscribe(seq, id))
    return id
  }

  /** Time goes on, second by second, with everything that is under way in between. */
  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      this.producer.clock.advance(1_000)
      await this.producer.settle()
    }
  }

  stop(): Promise<void> {
    return this.producer.stop()
  }
}

/** The values of a statistic or property as the consumer gets them: of each object, each sample once. */
export function expected(kinds: readonly Concluded['kind'][], field: string): unknown[] {
  const sampled = new Map<string, bigint>()
  return concluded('queue')
    .filter(({ kind }) => kinds.includes(kind))
    .filter(({ timestamps: [sample, , deleted], objectId }) => {
      const isNew = BigInt(deleted) === 0n && sampled.get(objectId) !== BigInt(sample)
      if (isNew) sampled.set(objectId, BigInt(sample))
      return isNew
    })
    .map(({ objectId, timestamps: [sample], statistics }) => {
      return { object: nameOf(objectId), time: Number(BigInt(sample) / 1000n), value: Number(statistics[field]) }
    })
}

function nameOf(id: string): string {
  return concluded('queue').find(({ objectId, properties }) => objectId === id && properties?.name)?.['properties'].name
}

/** What the independent console made of the recording, of one class; in order. */
export interface Concluded {
  readonly kind: 'get' | 'props' | 'stats' | 'event' | 'schema'
  readonly objectId: string
  // biome-ignore lint/suspicious/noExplicitAny: as it stands in the file
  readonly [key: string]: any
}

export function concluded(className: string): Concluded[] {
  const all = capturedConclusions() as unknown as (Concluded & { readonly cls?: string })[]
  return all.filter(({ cls, kind }) => kind !== 'schema' && cls?.startsWith(`${PACKAGE}:${className}:`))
}
