/**
 * A stage of the way from the sources to the consumer of a demonstration: a place, the ledger of the channel in which values wait
 * there for whoever is above it, and the source that feeds it if there is no stage below.
 */
import type { Connect, Consumer } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { type ChannelLedger, isBalanced, toLedger } from '../ledger.ts'
import { queryAll } from '../records.ts'
import { formatSum } from './output.ts'
import type { DemoPlace } from './place.ts'
import { NumberSource } from './server.ts'

/** The channel of the consumer at the uppermost stage. */
export const CHANNEL = 'count'

interface StageOptions {
  readonly place: DemoPlace
  readonly connect: Connect
  /** The stages whose values it takes. */
  readonly below?: readonly Stage[]
  /** The producer that the consumer sees at the numbers of its source; empty if it sees none. */
  readonly producer?: string
}

export class Stage {
  readonly place: DemoPlace
  readonly below: readonly Stage[]
  readonly producer: string
  readonly source: NumberSource | undefined
  /** Of the numbers of its source, at the consumer. */
  readonly check = new SequenceCheck()
  readonly #connect: Connect
  /** A connection of its own for each run of the place. */
  #reader: Consumer | undefined

  constructor({ place, connect, below = [], producer = '' }: StageOptions) {
    this.place = place
    this.below = below
    this.producer = producer
    this.source = below.length === 0 ? new NumberSource(() => place.smonPort) : undefined
    this.#connect = connect
  }

  get name(): string {
    return this.place.name
  }

  /** How many numbers its source has fed. */
  get fed(): number {
    return this.source?.fed ?? 0
  }

  get isUp(): boolean {
    return this.#reader !== undefined
  }

  /** Resolves when the ledger can be read. The place has to be up. */
  async open(): Promise<void> {
    const { url, credentials } = await this.place.login()
    this.#reader = await this.#connect(url, credentials, { durable: false, reconnect: false })
  }

  /** Kills the place, and ends its source; which process it was. */
  async kill(): Promise<string> {
    const killed = await this.place.kill()
    // Not before: the end of its stream would be a value, too.
    await this.close()
    return killed
  }

  async close(): Promise<void> {
    const reader = this.#reader
    this.#reader = undefined
    this.source?.close()
    await reader?.close()
  }

  /** Undefined as long as there is no such channel. Rejects with Failure if the ledger does not balance. */
  async find(): Promise<ChannelLedger | undefined> {
    const channels = (await queryAll(this.#reader!, 'producer.channels', {}, () => ({}))).map(toLedger)
    const ledger = channels.find(
      ({ name, isDurable }) => isDurable && (name === CHANNEL || name.startsWith('upstream:')),
    )
    if (ledger === undefined || isBalanced(ledger)) return ledger
    throw new Failure(ExitCode.FAILED, `the ledger of ${this.name} does not balance: ${formatSum(ledger)}`)
  }

  /** Rejects with Failure if there is no channel, or if its ledger does not balance. */
  async ledger(): Promise<ChannelLedger> {
    const ledger = await this.find()
    if (ledger !== undefined) return ledger
    throw new Failure(ExitCode.FAILED, `the channel of ${this.name} does not exist any more`)
  }
}

/** Checks at the consumer that each of the numbers 1, 2, 3 … comes exactly once and in order. */
export class SequenceCheck {
  handled = 0
  /** Numbers that are not greater than the one before. */
  repeated = 0
  #last = 0

  take(number: number): void {
    this.handled++
    if (number <= this.#last) this.repeated++
    else this.#last = number
  }

  /** Of the numbers up to this one. One that comes late is both lost and repeated: wrong order is an error, too. */
  lostOf(fed: number): number {
    return fed - (this.handled - this.repeated)
  }
}

export function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0)
}

export function namesOf(stages: readonly Stage[]): string {
  return stages.map(({ name }) => name).join(' and ')
}
