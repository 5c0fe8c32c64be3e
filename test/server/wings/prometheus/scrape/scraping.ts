/** A server with a false clock, a target that it scrapes over a real socket, and an admin who asks it. */
import type { ScrapeJob } from '../../../../../server/wings/prometheus/scrape/job.ts'
import { args, command, str, type } from '../../../../support/bytes.ts'
import { TestProducer } from '../../../../support/producer.ts'
import { decoded } from '../../../../support/records.ts'
import type { Seat } from '../../../../support/seat.ts'
import { ScriptedTarget, scrapeTables } from './scripted-target.ts'

export const INTERVAL_MS = 15_000

type Row = Record<string, unknown>

export class Scraping {
  readonly target: ScriptedTarget
  #server: { readonly producer: TestProducer; readonly seat: Seat } | undefined

  private constructor(target: ScriptedTarget) {
    this.target = target
  }

  /** The server is still to be started. */
  static async begin(): Promise<Scraping> {
    const target = await ScriptedTarget.start()
    target.text = 'a 1\n'
    return new Scraping(target)
  }

  /** `tables`: keys of tables besides name and URL of the target. */
  async start(...tables: readonly object[]): Promise<void> {
    const { url } = this.target
    const all = (tables.length > 0 ? tables : [{}]).map((keys) => ({ name: 'node', url, ...keys }))
    await this.startJobs(...scrapeTables(...all))
  }

  async startJobs(...scrape: readonly ScrapeJob[]): Promise<void> {
    const producer = await TestProducer.start({ config: { scrape } })
    await producer.addUser('root', { role: 'admin' })
    this.#server = { producer, seat: await producer.seat('root') }
  }

  /** From now on it is this user who asks. */
  async signIn(user: string): Promise<void> {
    const { producer } = this
    this.#server = { producer, seat: await producer.seat(user) }
  }

  get producer(): TestProducer {
    return this.#started.producer
  }

  get seat(): Seat {
    return this.#started.seat
  }

  get #started() {
    if (this.#server === undefined) throw new Error('the server is not started')
    return this.#server
  }

  /** Rows without their times. */
  async query(name: string, labels: Readonly<Record<string, string>> = {}): Promise<Row[]> {
    return decoded(await this.seat.query(name, argumentsOf(labels))).map(({ time: _, ...row }: Row) => row)
  }

  /** The rows without the labels of the target, too. */
  async bare(name: string): Promise<Row[]> {
    return (await this.query(name)).map(({ job: _, instance: __, ...row }) => row)
  }

  /** The same after a second, so that whoever asks is answered anew. */
  async fresh(name: string): Promise<Row[]> {
    this.producer.clock.advance(1_000)
    return this.bare(name)
  }

  async status(name = 'scrape/node') {
    const sensors = decoded(await this.seat.query('producer.sensors'))
    return sensors.find((sensor: { name: string }) => sensor.name === name)
  }

  async subscribe(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const id = await this.seat.collect(name, argumentsOf(labels))
    await this.seat.ok((seq) => command.subscribe(seq, id))
    this.producer.clock.advance(100)
    return id
  }

  async end(): Promise<void> {
    await this.#server?.producer.stop()
    await this.target.stop()
  }
}

/** Labels as arguments of a metric. */
export function argumentsOf(labels: Readonly<Record<string, string>>) {
  return args(...Object.entries(labels).map(([label, text]) => [label, type.string, str(text)] as const))
}
