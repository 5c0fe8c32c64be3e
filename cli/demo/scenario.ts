/**
 * The scenario of the demonstration. It proves what Cinnabar promises and no more: what is stored is not lost. smon has no
 * responses that would tell the sender what is stored, so the source pauses before each kill until the ledger shows that
 * everything is. The consumer does not pause then: the server is killed in the middle of its COMMITs.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connect, Consumer, Credentials } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { type ChannelLedger, isBalanced, toLedger } from '../ledger.ts'
import { queryAll } from '../records.ts'
import { type DemoOutput, formatSum, formatThousands } from './output.ts'
import { PATIENCE_MS, waitWhileMoving } from './progress.ts'
import { DEMO_SOURCE, METRIC, NumberSource } from './server.ts'

const KILLS = 3
/** Numbers per second. */
const RATE = 10_000
/** The interval between two bursts of the source. */
const TICK_MS = 50
const ROW_MS = 1_000
/** The consumer pauses after this share of the time between two kills, so that values queue up. */
const PAUSE_AFTER = 0.6
/** The consumer does its work in batches, so that a kill hits it in the middle of one. */
const BATCH = 100
const BATCH_MS = 1

const HEADINGS = ['fed', 'stored', 'handled', 'committed', 'waiting'] as const

/** What the scenarios have in common. */
export interface ScenarioContext {
  readonly connect: Connect
  readonly output: DemoOutput
  readonly seconds: number
  /** Aborts the scenario early. */
  readonly signal: AbortSignal
  /** Called when the consumer cannot continue. */
  readonly failed: (error: Error) => void
}

/** What is between the source and the consumer: a server, or a cluster. */
export interface DemoSubject {
  readonly introduction: readonly string[]
  /** Where the source connects. */
  readonly smonPort: number
  login(): Promise<DemoLogin>
  /** Starts it; what has happened, line by line. Rejects with Failure. */
  start(): Promise<readonly string[]>
  /** Kills the process that serves; which one it was. */
  kill(): Promise<string>
  /** Resolves when it serves again; what has happened. Rejects with Failure. */
  recover(): Promise<readonly string[]>
  /** What there is to be said of it at the end. Rejects with Failure if it is not as promised. */
  conclude(): Promise<readonly string[]>
}

export interface DemoLogin {
  readonly url: string | readonly string[]
  readonly credentials: Credentials
}

interface ScenarioOptions extends ScenarioContext {
  readonly subject: DemoSubject
}

export class Scenario {
  readonly #options: ScenarioOptions
  readonly #output: DemoOutput
  readonly #check = new SequenceCheck()
  readonly #pause = new Pause()
  readonly #source: NumberSource
  readonly #startedMs = performance.now()
  #consumer: Consumer | undefined
  /** Reads the ledger over a connection of its own for each run of the server. */
  #ledgerReader: Consumer | undefined
  #rowMs = 0

  constructor(options: ScenarioOptions) {
    this.#options = options
    this.#output = options.output
    this.#source = new NumberSource(() => options.subject.smonPort)
  }

  /** Rejects with Failure unless each number came exactly once and every ledger balanced. */
  async run(): Promise<void> {
    const { subject, seconds } = this.#options
    const colors = this.#output.colors
    for (const line of subject.introduction) await this.#output.printBelow(line)
    await this.#tell(await subject.start())
    await this.#consume()
    await this.#source.open()
    await this.#output.printHeadings(HEADINGS)
    const roundMs = (seconds * 1_000) / (KILLS + 1)
    for (let kill = 1; kill <= KILLS; kill++) {
      await this.#feedUntil((kill - 1 + PAUSE_AFTER) * roundMs)
      await this.#pauseConsumer(kill * roundMs)
      await this.#killMidway(kill)
      await this.#restart()
    }
    await this.#feedUntil(seconds * 1_000)
    await this.#output.print('the source stops; the consumer handles what is left')
    const { fed } = this.#source
    const ledger = await this.#ledgerWhen(
      ({ accepted, inFlight, queued }) => accepted >= fed && inFlight + queued === 0,
    )
    await this.#row(ledger)
    await this.#checkTotals(ledger)
    await this.#tell(await subject.conclude())
    await this.#output.print(colors.green(`everything balances: ${KILLS} kills, each number handled exactly once`))
  }

  async close(): Promise<void> {
    this.#source.close()
    this.#pause.end()
    await Promise.all([this.#consumer?.close(), this.#ledgerReader?.close()])
  }

  async #tell(lines: readonly string[]): Promise<void> {
    for (const line of lines) await this.#output.print(line)
  }

  /** Subscribes on a durable channel with a handler that checks the numbers. The library commits what was handled. */
  async #consume(): Promise<void> {
    const { connect, subject } = this.#options
    const { url, credentials } = await subject.login()
    const consumer = await connect(url, credentials)
    this.#consumer = consumer
    consumer.on('gap', (gap) => this.#output.reportGap(gap, this.#check.handled))
    await consumer.follow(METRIC, { source: DEMO_SOURCE }, async ({ plain }) => {
      await this.#pause.over
      if (typeof plain !== 'number') throw new Failure(ExitCode.FAILED, `received a value that was never fed: ${plain}`)
      this.#check.take(plain)
      if (this.#check.handled % BATCH === 0) await sleep(BATCH_MS)
    })
    consumer.run().catch((error: Error) => this.#options.failed(error))
    await this.#connectLedgerReader()
    await this.#output.print(`a consumer follows ${METRIC} on the durable channel ${consumer.channel}`)
  }

  async #connectLedgerReader(): Promise<void> {
    const { connect, subject } = this.#options
    const { url, credentials } = await subject.login()
    this.#ledgerReader = await connect(url, credentials, { reconnect: false })
  }

  /** Feeds until this time after the start, and at least once. */
  async #feedUntil(untilMs: number): Promise<void> {
    let fromMs = performance.now()
    do {
      await this.#sleep(TICK_MS)
      const nowMs = performance.now()
      await this.#source.feed(Math.ceil(((nowMs - fromMs) * RATE) / 1_000))
      fromMs = nowMs
      if (nowMs - this.#rowMs >= ROW_MS) await this.#row(await this.#ledger())
    } while (performance.now() - this.#startedMs < untilMs)
  }

  /** Pauses the consumer so that values wait, including the last one, and waits until all of them are stored. */
  async #pauseConsumer(untilMs: number): Promise<void> {
    await this.#output.print('the consumer pauses; values wait for it')
    this.#pause.begin()
    await this.#feedUntil(untilMs)
    const { fed } = this.#source
    const ledger = await this.#ledgerWhen(({ accepted, unstored }) => accepted >= fed && unstored === 0)
    await this.#row(ledger)
    await this.#output.print(`the source pauses until all ${formatThousands(fed)} are on disk; the consumer continues`)
    await this.#output.printLedger(ledger)
  }

  async #killMidway(kill: number): Promise<void> {
    const { subject, output } = this.#options
    const middle = this.#check.handled + (this.#source.fed - this.#check.handled) / 3
    this.#pause.end()
    await this.#until(() => this.#check.handled >= middle)
    const killed = await subject.kill()
    this.#pause.begin()
    this.#source.close()
    const at = `${formatThousands(this.#check.handled)} were handled`
    await output.print(`${output.colors.red(`kill -9 ${killed}`)}  (${kill} of ${KILLS}), when ${at}`)
  }

  async #restart(): Promise<void> {
    const { subject, output } = this.#options
    await this.#tell(await subject.recover())
    await this.#connectLedgerReader()
    const { handled } = this.#check
    const ledger = await this.#ledger()
    await output.printLedger(ledger)
    if (ledger.accepted !== this.#source.fed) {
      throw new Failure(
        ExitCode.FAILED,
        `${this.#source.fed} were fed and stored, but the server has ${ledger.accepted}`,
      )
    }
    const between = handled - ledger.committed
    if (between > 0) {
      await output.printBelow(
        `${formatThousands(between)} were handled, but their COMMITs were not stored: they are sent again, and the`,
      )
      await output.printBelow('library recognises them by their transaction ids and does not deliver them twice')
    }
    await this.#source.open()
    this.#pause.end()
  }

  async #checkTotals(ledger: ChannelLedger): Promise<void> {
    const { handled, lost, repeated } = this.#check
    const { fed } = this.#source
    const output = this.#output
    const counts = `${formatThousands(lost)} lost, ${formatThousands(repeated)} repeated`
    await output.print(`${formatThousands(fed)} fed, ${formatThousands(handled)} handled: ${counts}`)
    await output.printLedger(ledger)
    const isExact = handled === fed && lost === 0 && repeated === 0
    if (isExact && ledger.accepted === fed && ledger.committed === fed) return
    throw new Failure(ExitCode.FAILED, 'the totals do not balance: each number must be handled and committed once')
  }

  async #row(ledger: ChannelLedger): Promise<void> {
    this.#rowMs = performance.now()
    const { accepted, unstored, committed, inFlight, queued } = ledger
    const { handled } = this.#check
    await this.#output.printRow([this.#source.fed, accepted - unstored, handled, committed, inFlight + queued])
  }

  /** Rejects with Failure if the ledger does not balance. */
  async #ledger(): Promise<ChannelLedger> {
    const channel = String(this.#consumer?.channel)
    const [record] = await queryAll(this.#ledgerReader!, 'producer.channels', { channel }, () => ({}))
    if (record === undefined) throw new Failure(ExitCode.FAILED, `channel ${channel} does not exist any more`)
    const ledger = toLedger(record)
    if (isBalanced(ledger)) return ledger
    throw new Failure(ExitCode.FAILED, `the ledger does not balance: ${formatSum(ledger)}`)
  }

  async #ledgerWhen(condition: (ledger: ChannelLedger) => boolean): Promise<ChannelLedger> {
    let ledger = await this.#ledger()
    await this.#until(async () => {
      ledger = await this.#ledger()
      return condition(ledger)
    })
    return ledger
  }

  /** Rejects with Failure if nothing progresses. */
  async #until(condition: () => boolean | Promise<boolean>): Promise<void> {
    const progress = () => this.#check.handled
    if (await waitWhileMoving(condition, progress, this.#options.signal)) return
    throw new Failure(ExitCode.FAILED, `no progress for ${PATIENCE_MS / 1_000} s: ${progress()} were handled`)
  }

  #sleep(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#options.signal })
  }
}

/** Checks at the consumer that each of the numbers 1, 2, 3 … comes exactly once and in order. */
export class SequenceCheck {
  handled = 0
  /** Numbers that were skipped. One that arrives later also counts as repeated: wrong order is an error, too. */
  lost = 0
  /** Numbers that are not greater than the one before. */
  repeated = 0
  #last = 0

  take(number: number): void {
    this.handled++
    if (number <= this.#last) {
      this.repeated++
      return
    }
    this.lost += number - this.#last - 1
    this.#last = number
  }
}

/** Holds the consumer while it pauses. */
class Pause {
  #over: Promise<void> = Promise.resolve()
  #resume: (() => void) | undefined

  /** Resolves when no pause is active. */
  get over(): Promise<void> {
    return this.#over
  }

  begin(): void {
    if (this.#resume !== undefined) return
    this.#over = new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  end(): void {
    this.#resume?.()
    this.#resume = undefined
  }
}
