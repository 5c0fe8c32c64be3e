/**
 * The demonstration itself. It proves what Cinnabar promises, and no more: what is stored is not lost. smon has no answers
 * that would tell its sender what is stored, so the feeding rests before each kill until the ledger says that everything
 * is. The consumer does not rest then: the server is killed in the midst of its COMMITs.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Connect, type Consumer, type Gap, GapReason } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { isBalanced, type Ledger, toLedger } from '../ledger.ts'
import type { Login } from '../login.ts'
import { queryAll } from '../records.ts'
import { Count } from './count.ts'
import { Feeder } from './feeder.ts'
import { Gate } from './gate.ts'
import { METRIC } from './numbers.ts'
import { type DemoServer, SOURCE } from './server.ts'
import { formatNumber, formatSum, type Story } from './story.ts'

const INTRODUCTION = [
  'A source counts 1, 2, 3 … A consumer has to handle each number exactly once and in order.',
  'The server between them is killed three times, by kill -9. It promises that what is stored',
  'is not lost. The source cannot learn what is stored: before a kill it rests until all is.',
  '',
] as const
const KILLS = 3
/** Numbers in a second. */
const RATE = 10_000
/** Between two bursts of the feeder. */
const TICK_MS = 50
const ROW_MS = 1_000
const POLL_MS = 20
/** Without any progress for so long, something is wrong. */
const PATIENCE_MS = 30_000
/** Of the time between two kills: then the consumer rests, and values pile up. */
const REST = 0.6
/** The consumer does its work in batches, so that a kill finds it in the midst of one. */
const BATCH = 100
const BATCH_MS = 1

export interface PlayOptions {
  readonly server: DemoServer
  readonly login: () => Promise<Login>
  readonly connect: Connect
  readonly story: Story
  readonly seconds: number
  /** It is over, before its end. */
  readonly signal: AbortSignal
  /** The consumer cannot go on. */
  readonly failed: (error: Error) => void
}

export class Play {
  readonly #options: PlayOptions
  readonly #story: Story
  readonly #count = new Count()
  readonly #gate = new Gate()
  readonly #feeder: Feeder
  readonly #startedMs = performance.now()
  #consumer: Consumer | undefined
  /** Looks at the ledger, from a connection of its own for each life of the server. */
  #watcher: Consumer | undefined
  #rowMs = 0

  constructor(options: PlayOptions) {
    this.#options = options
    this.#story = options.story
    this.#feeder = new Feeder(options.server.smonPort)
  }

  /** Rejects with Failure unless everything came exactly once and every ledger balanced. */
  async run(): Promise<void> {
    const { server, seconds } = this.#options
    const colors = this.#story.colors
    for (const line of INTRODUCTION) await this.#story.add(line)
    await server.start()
    await this.#story.tell(`the server is up, process ${server.pid}, data in ${server.directory}`)
    await this.#consume()
    await this.#feeder.open()
    await this.#story.heads()
    const turnMs = (seconds * 1_000) / (KILLS + 1)
    for (let kill = 1; kill <= KILLS; kill++) {
      await this.#pass((kill - 1 + REST) * turnMs)
      await this.#pileUp(kill * turnMs)
      await this.#killInTheMidst(kill)
      await this.#rise()
    }
    await this.#pass(seconds * 1_000)
    await this.#story.tell('the feeding ends; the consumer takes what is left')
    const { fed } = this.#feeder
    const ledger = await this.#ledgerWhen(
      ({ accepted, inFlight, queued }) => accepted >= fed && inFlight + queued === 0,
    )
    await this.#row(ledger)
    await this.#conclude(ledger)
    await this.#story.tell(colors.green(`everything balances: ${KILLS} kills, each number handled exactly once`))
  }

  async close(): Promise<void> {
    this.#feeder.close()
    this.#gate.open()
    await Promise.all([this.#consumer?.close(), this.#watcher?.close()])
  }

  /** A durable channel, and a handler that checks the numbers. What it handled is committed by the library. */
  async #consume(): Promise<void> {
    const { connect, login } = this.#options
    const { url, credentials } = await login()
    const consumer = await connect(url, credentials)
    this.#consumer = consumer
    consumer.on('gap', (gap) => this.#told(gap))
    await consumer.follow(METRIC, { source: SOURCE }, async ({ plain }) => {
      await this.#gate.passed
      if (typeof plain !== 'number') throw new Failure(ExitCode.FAILED, `a value that was never fed: ${plain}`)
      this.#count.take(plain)
      if (this.#count.handled % BATCH === 0) await sleep(BATCH_MS)
    })
    consumer.run().catch((error: Error) => this.#options.failed(error))
    await this.#watch()
    await this.#story.tell(`a consumer follows ${METRIC} on the durable channel ${consumer.channel}`)
  }

  async #watch(): Promise<void> {
    const { connect, login } = this.#options
    const { url, credentials } = await login()
    this.#watcher = await connect(url, credentials, { reconnect: false })
  }

  /** Feeds until so long after the beginning, and a little in any case. */
  async #pass(untilMs: number): Promise<void> {
    let fromMs = performance.now()
    do {
      await this.#pause(TICK_MS)
      const nowMs = performance.now()
      await this.#feeder.feed(Math.ceil(((nowMs - fromMs) * RATE) / 1_000))
      fromMs = nowMs
      if (nowMs - this.#rowMs >= ROW_MS) await this.#row(await this.#ledger())
    } while (performance.now() - this.#startedMs < untilMs)
  }

  /** So that values wait, the last one among them: nothing that comes later can settle what is stored then. */
  async #pileUp(untilMs: number): Promise<void> {
    await this.#story.tell('the consumer rests; values wait for it')
    this.#gate.close()
    await this.#pass(untilMs)
    const { fed } = this.#feeder
    const ledger = await this.#ledgerWhen(({ accepted, unstored }) => accepted >= fed && unstored === 0)
    await this.#row(ledger)
    await this.#story.tell(`the feeding rests until all ${formatNumber(fed)} are on the disk; the consumer goes on`)
    await this.#story.ledger(ledger)
  }

  async #killInTheMidst(kill: number): Promise<void> {
    const { server, story } = this.#options
    const { pid } = server
    const middle = this.#count.handled + (this.#feeder.fed - this.#count.handled) / 3
    this.#gate.open()
    await this.#until(() => this.#count.handled >= middle)
    await server.kill()
    this.#gate.close()
    this.#feeder.close()
    const at = `${formatNumber(this.#count.handled)} were handled`
    await story.tell(`${story.colors.red(`kill -9 ${pid}`)}  (${kill} of ${KILLS}), when ${at}`)
  }

  async #rise(): Promise<void> {
    const { server, story } = this.#options
    await server.start()
    await story.tell(`the server is up again, process ${server.pid}`)
    await this.#watch()
    const { handled } = this.#count
    const ledger = await this.#ledger()
    await story.ledger(ledger)
    if (ledger.accepted !== this.#feeder.fed) {
      throw new Failure(ExitCode.FAILED, `${this.#feeder.fed} were fed and stored, but ${ledger.accepted} are there`)
    }
    const between = handled - ledger.committed
    if (between > 0) {
      await story.add(
        `${formatNumber(between)} were handled, but their COMMITs were not stored: they come again, and the`,
      )
      await story.add('library knows them by their transaction ids and does not hand them out twice')
    }
    await this.#feeder.open()
    this.#gate.open()
  }

  /** In its place between the values. */
  #told({ count, reason }: Gap): void {
    const last = formatNumber(this.#count.handled)
    const text =
      reason === GapReason.restart && count === 0
        ? `behind ${last} a GAP: the server cannot know what it had taken and not stored when it died`
        : `behind ${last} a GAP: ${count} values were lost (reason ${reason})`
    // Whoever does not read any more is told by the next line.
    this.#story.tell(text).catch(() => {})
  }

  async #conclude(ledger: Ledger): Promise<void> {
    const { handled, lost, repeated } = this.#count
    const { fed } = this.#feeder
    const story = this.#story
    const counts = `${formatNumber(lost)} lost, ${formatNumber(repeated)} repeated`
    await story.tell(`${formatNumber(fed)} fed, ${formatNumber(handled)} handled: ${counts}`)
    await story.ledger(ledger)
    const isExact = handled === fed && lost === 0 && repeated === 0
    if (isExact && ledger.accepted === fed && ledger.committed === fed) return
    throw new Failure(ExitCode.FAILED, 'this does not balance: each number has to be handled and committed once')
  }

  async #row(ledger: Ledger): Promise<void> {
    this.#rowMs = performance.now()
    await this.#story.row(this.#feeder.fed, this.#count, ledger)
  }

  /** Rejects with Failure where it does not balance. */
  async #ledger(): Promise<Ledger> {
    const channel = String(this.#consumer?.channel)
    const [record] = await queryAll(this.#watcher!, 'producer.channels', { channel }, () => ({}))
    if (record === undefined) throw new Failure(ExitCode.FAILED, `channel ${channel} is gone`)
    const ledger = toLedger(record)
    if (isBalanced(ledger)) return ledger
    throw new Failure(ExitCode.FAILED, `the ledger does not balance: ${formatSum(ledger)}`)
  }

  async #ledgerWhen(condition: (ledger: Ledger) => boolean): Promise<Ledger> {
    let ledger = await this.#ledger()
    await this.#until(async () => {
      ledger = await this.#ledger()
      return condition(ledger)
    })
    return ledger
  }

  /** Rejects where nobody comes any further. */
  async #until(condition: () => boolean | Promise<boolean>): Promise<void> {
    let { handled } = this.#count
    let movedMs = performance.now()
    while (!(await condition())) {
      await this.#pause(POLL_MS)
      if (this.#count.handled !== handled) movedMs = performance.now()
      handled = this.#count.handled
      if (performance.now() - movedMs < PATIENCE_MS) continue
      throw new Failure(ExitCode.FAILED, `nothing has moved for ${PATIENCE_MS / 1_000} s: ${handled} were handled`)
    }
  }

  #pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#options.signal })
  }
}
