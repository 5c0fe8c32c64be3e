/**
 * Plays a demonstration, which is a table of what there is and of what happens to it. It proves what Cinnabar promises and no
 * more: what is stored is not lost. So a source pauses before the place that it feeds is killed, until the ledger shows that
 * everything is stored.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Connect, Consumer } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { ChannelLedger } from '../ledger.ts'
import { type DemoOutput, formatThousands } from './output.ts'
import { describeFaults, type Passage, passagesOf } from './passage.ts'
import { METRIC, type NumberSource } from './server.ts'
import { CHANNEL, namesOf, type Stage, sum } from './stage.ts'

/** Numbers per second, of all sources together. */
const RATE = 10_000
/** The interval between two bursts of the sources. */
const TICK_MS = 50
/** The share of its time for which a step feeds in any case, however long servers have taken to start. */
const LEAST = 0.5
const ROW_MS = 1_000
/** The consumer does its work in batches, so that a kill hits it in the middle of one. */
const BATCH = 100
const BATCH_MS = 1
const POLL_MS = 20
/** If nothing progresses for this long, something is wrong. */
const PATIENCE_MS = 30_000

export interface Demonstration {
  readonly introduction: readonly string[]
  /** From the lowest, which have sources, to the uppermost, which has the consumer. */
  readonly stages: readonly Stage[]
  /** What the consumer follows, as arguments of the metric. */
  readonly follow: Readonly<Record<string, string>>
  /** Says that it does. */
  readonly following: (channel: string) => string
  readonly steps: readonly Step[]
  /** What there is to be said at the end. Rejects with Failure if something is not as promised. */
  readonly conclude?: () => Promise<readonly string[]>
  readonly verdict: string
}

export type Step =
  /** The sources whose places are up feed for this share of a round, of which the whole duration has one more than kills. */
  | { readonly feed: number }
  | { readonly say: string }
  /** The consumer pauses. */
  | { readonly pause: string }
  /** Waits until everything that was fed to the stage is stored. */
  | { readonly store: Stage; readonly say: (fed: string) => string }
  | KillStep
  /** Starts a killed stage again, which must have everything that was stored; a consumer that pauses goes on. */
  | { readonly restart: Stage }

/** Kills a stage. */
interface KillStep {
  readonly kill: Stage
  /** Its source feeds so many at once before, and they are stored. */
  readonly burst?: number
  /** The consumer, which pauses, goes on before, until it has handled this share of what waits; from the kill on it pauses again. */
  readonly handled?: number
}

interface ScenarioOptions {
  readonly demonstration: Demonstration
  readonly connect: Connect
  readonly output: DemoOutput
  readonly seconds: number
  /** Aborts the scenario early. */
  readonly signal: AbortSignal
  /** Called when the consumer cannot continue. */
  readonly onFailure: (error: Error) => void
}

export class Scenario {
  readonly #options: ScenarioOptions
  readonly #output: DemoOutput
  readonly #stages: readonly Stage[]
  readonly #sources: readonly NumberSource[]
  readonly #kills: number
  readonly #pause = new Pause()
  /** Rejects with Failure if any of the processes ends by itself. */
  readonly failed: Promise<never>
  #consumer: Consumer | undefined
  #killed = 0
  /** When the feeding that was played should have ended: what servers take to start again is taken from the feeding after it. */
  #plannedMs = 0
  #rowMs = 0

  constructor(options: ScenarioOptions) {
    const { stages, steps } = options.demonstration
    this.#options = options
    this.#output = options.output
    this.#stages = stages
    this.#sources = stages.flatMap(({ source }) => source ?? [])
    this.#kills = steps.filter((step) => 'kill' in step).length
    this.failed = Promise.race(stages.map(({ place }) => place.failed))
    this.failed.catch(() => {})
  }

  get #fed(): number {
    return sum(this.#stages, ({ fed }) => fed)
  }

  get #handled(): number {
    return sum(this.#stages, ({ check }) => check.handled)
  }

  /** Whether there are stages that have to be told apart. */
  get #hasLevels(): boolean {
    return this.#stages.length > 1
  }

  /** Rejects with Failure unless each number came exactly once and every ledger balanced. */
  async run(): Promise<void> {
    const { introduction, steps, conclude, verdict } = this.#options.demonstration
    const output = this.#output
    this.#plannedMs = performance.now()
    for (const line of introduction) await output.printBelow(line)
    const started = await Promise.all(this.#stages.map(({ place }) => place.start()))
    for (const lines of started) await this.#tell(lines)
    await Promise.all(this.#stages.map((stage) => stage.open()))
    await this.#consume()
    for (const source of this.#sources) await source.open()
    const names = this.#stages.map(({ name }) => name)
    await output.printHeadings(
      this.#hasLevels ? ['fed', ...names, 'handled'] : ['fed', 'stored', 'handled', 'committed', 'waiting'],
    )
    for (const step of steps) await this.#play(step)
    await this.#checkTotals()
    await this.#tell((await conclude?.()) ?? [])
    await output.print(output.colors.green(`everything balances: ${verdict}`))
  }

  /** Kills all processes and deletes everything they have written. */
  async close(): Promise<void> {
    await Promise.all(this.#stages.map(({ place }) => place.remove()))
    this.#pause.end()
    await Promise.all([this.#consumer?.close(), ...this.#stages.map((stage) => stage.close())])
  }

  async #play(step: Step): Promise<void> {
    if ('feed' in step) return this.#feed(step.feed)
    if ('store' in step) return this.#store(step.store, step.say)
    if ('kill' in step) return this.#kill(step)
    if ('restart' in step) return this.#restart(step.restart)
    if ('pause' in step) this.#pause.begin()
    return this.#output.print('pause' in step ? step.pause : step.say)
  }

  async #tell(lines: readonly string[]): Promise<void> {
    for (const line of lines) await this.#output.print(line)
  }

  /**
   * Subscribes at the uppermost stage on a durable channel, with a handler that checks the numbers; resolves when all stages know
   * of it. The library commits what was handled.
   */
  async #consume(): Promise<void> {
    const { connect, demonstration } = this.#options
    const { url, credentials } = await (this.#stages.at(-1) as Stage).place.login()
    const consumer = await connect(url, credentials, { name: CHANNEL })
    this.#consumer = consumer
    consumer.on('gap', (gap) => this.#output.reportGap(gap, this.#handled))
    const fedStages = this.#stages.filter(({ source }) => source !== undefined)
    const checks = new Map(fedStages.map(({ producer, check }) => [producer, check]))
    await consumer.follow(METRIC, demonstration.follow, async ({ plain, labels: { producer = '' } }) => {
      await this.#pause.over
      const check = checks.get(producer)
      if (check === undefined || typeof plain !== 'number') {
        throw new Failure(
          ExitCode.FAILED,
          `received a value that was never fed: ${plain}${producer && ` of ${producer}`}`,
        )
      }
      check.take(plain)
      if (check.handled % BATCH === 0) await sleep(BATCH_MS)
    })
    consumer.run().catch((error: Error) => this.#options.onFailure(error))
    const isBound = async (stage: Stage) => ((await stage.find())?.bound ?? 0) > 0
    await this.#until('not every server learns what the consumer wants', async () =>
      (await Promise.all(this.#stages.map(isBound))).every(Boolean),
    )
    await this.#output.print(demonstration.following(String(consumer.channel)))
  }

  async #feed(share: number): Promise<void> {
    const { seconds, signal } = this.#options
    const lengthMs = (share * seconds * 1_000) / (this.#kills + 1)
    let fromMs = performance.now()
    this.#plannedMs += lengthMs
    const endMs = Math.max(this.#plannedMs, fromMs + LEAST * lengthMs)
    do {
      await sleep(TICK_MS, undefined, { signal })
      const nowMs = performance.now()
      const count = Math.ceil(((nowMs - fromMs) * RATE) / 1_000 / this.#sources.length)
      fromMs = nowMs
      for (const source of this.#sources) await source.feed(count)
      if (nowMs - this.#rowMs >= ROW_MS) await this.#row()
    } while (performance.now() < endMs)
  }

  async #store(stage: Stage, say: (fed: string) => string): Promise<void> {
    const ledger = await this.#stored(stage)
    await this.#row()
    await this.#output.print(say(formatThousands(this.#fed)))
    await this.#printLedger(stage, ledger)
  }

  async #stored(stage: Stage): Promise<ChannelLedger> {
    let ledger = await stage.ledger()
    await this.#until(`${stage.name} does not store what is fed to it`, async () => {
      ledger = await stage.ledger()
      return ledger.accepted >= stage.fed && ledger.unstored === 0
    })
    return ledger
  }

  async #kill({ kill: stage, burst = 0, handled }: KillStep): Promise<void> {
    const output = this.#output
    await stage.source?.feed(burst)
    const stored = burst > 0 ? await this.#stored(stage) : undefined
    if (handled !== undefined) await this.#handle(handled)
    const which = `kill -9 ${await stage.kill()}`
    if (handled !== undefined) this.#pause.begin()
    const where = this.#hasLevels ? `, ${stage.name}` : ''
    const when = `when ${formatThousands(this.#handled)} were handled`
    await output.print(`${output.colors.red(which)}  (${++this.#killed} of ${this.#kills})${where}, ${when}`)
    if (stored === undefined) return
    await output.printBelow(`the ${formatThousands(stage.fed)} that its source has fed were on its disk`)
    await this.#printLedger(stage, stored)
  }

  /** Has the consumer go on, and resolves when it has handled this share of what waits for it. */
  async #handle(share: number): Promise<void> {
    const end = this.#handled + (this.#fed - this.#handled) * share
    this.#pause.end()
    await this.#until('the consumer does not handle what waits for it', () => this.#handled >= end)
  }

  async #restart(stage: Stage): Promise<void> {
    const { source, below } = stage
    // What comes while it is away waits in those below.
    const ledgers = await Promise.all(below.map((one) => one.ledger()))
    const waiting = formatThousands(sum(ledgers, ({ inFlight, queued }) => inFlight + queued))
    if (below.length > 0) await this.#output.print(`${waiting} wait for it at ${namesOf(below)}`)
    await this.#tell(await stage.place.recover())
    await stage.open()
    const ledger = await stage.ledger()
    await this.#printLedger(stage, ledger)
    checkKept(stage, ledger, ledgers)
    if (source === undefined) return
    if (this.#pause.isOn) await this.#explainResent(this.#handled - ledger.committed)
    await source.open()
    this.#pause.end()
  }

  async #explainResent(count: number): Promise<void> {
    if (count <= 0) return
    await this.#output.printBelow(
      `${formatThousands(count)} were handled, but their COMMITs were not stored: they are sent again, and the`,
    )
    await this.#output.printBelow('library recognises them by their transaction ids and does not deliver them twice')
  }

  /** Waits until nothing is on its way, or nothing moves any more, and counts. Rejects with Failure unless it balances. */
  async #checkTotals(): Promise<void> {
    const isQuiet = async () => {
      // From the lowest on, since what is committed there is at the next one.
      for (const stage of this.#stages) {
        const { accepted, inFlight, queued } = await stage.ledger()
        if (accepted < stage.fed || inFlight + queued > 0) return false
      }
      return true
    }
    const hasArrived = await this.#wait(isQuiet)
    await this.#row()
    const passages = await passagesOf(this.#stages)
    await this.#printTotals(passages)
    const faults = describeFaults(passages)
    if (faults !== '') throw new Failure(ExitCode.FAILED, `the totals do not balance:\n${faults}`)
    if (!hasArrived) throw new Failure(ExitCode.FAILED, 'values are on their way, and nothing moves any more')
  }

  async #printTotals(passages: readonly Passage[]): Promise<void> {
    const output = this.#output
    if (!this.#hasLevels) {
      const { sent, arrived, lost, repeated } = passages.at(-1) as Passage
      const [fed, handled, ...counts] = [sent, arrived, lost, repeated].map(formatThousands)
      await output.print(`${fed} fed, ${handled} handled: ${counts[0]} lost, ${counts[1]} repeated`)
      const [stage] = this.#stages as readonly [Stage]
      return this.#printLedger(stage, await stage.ledger())
    }
    await output.printHeadings(['to', 'sent', 'arrived', 'lost', 'repeated'])
    for (const { name, sent, arrived, lost, repeated } of passages) {
      await output.printCells([name, sent, arrived, lost, repeated])
    }
  }

  #printLedger({ name }: Stage, ledger: ChannelLedger): Promise<void> {
    return this.#output.printLedger(ledger, this.#hasLevels ? name : undefined)
  }

  async #row(): Promise<void> {
    this.#rowMs = performance.now()
    const ledgers = await Promise.all(this.#stages.map((stage) => (stage.isUp ? stage.ledger() : undefined)))
    const stored = ledgers.map((ledger) => (ledger ? ledger.accepted - ledger.unstored : 'down'))
    const [only] = this.#hasLevels ? [] : ledgers
    const others = only ? [only.committed, only.inFlight + only.queued] : []
    await this.#output.printRow([this.#fed, ...stored, this.#handled, ...others])
  }

  /** Rejects with Failure, which tells the problem, if nothing progresses. */
  async #until(problem: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    if (await this.#wait(condition)) return
    const handled = `${this.#handled} were handled`
    throw new Failure(ExitCode.FAILED, `no progress for ${PATIENCE_MS / 1_000} s, ${problem}: ${handled}`)
  }

  /**
   * Waits as long as something moves, since no machine is too slow to show what is promised. Resolves with true when the condition
   * holds, with false if the consumer has stood still for too long.
   */
  async #wait(condition: () => boolean | Promise<boolean>): Promise<boolean> {
    let before = this.#handled
    let movedMs = performance.now()
    while (!(await condition())) {
      await sleep(POLL_MS, undefined, { signal: this.#options.signal })
      if (this.#handled !== before) movedMs = performance.now()
      before = this.#handled
      if (performance.now() - movedMs >= PATIENCE_MS) return false
    }
    return true
  }
}

/** Throws Failure if a killed stage does not have what it had stored: what its source has fed, or what is committed below. */
function checkKept(
  { name, source, below }: Stage,
  { accepted }: ChannelLedger,
  ledgersBelow: readonly ChannelLedger[],
): void {
  if (source !== undefined) {
    if (accepted === source.fed) return
    throw new Failure(ExitCode.FAILED, `${source.fed} were fed and stored, but ${name} has ${accepted}`)
  }
  const committed = sum(ledgersBelow, (ledger) => ledger.committed)
  if (accepted >= committed) return
  throw new Failure(ExitCode.FAILED, `${committed} were committed at ${namesOf(below)}, but ${name} has ${accepted}`)
}

/** Holds the consumer while it pauses. */
class Pause {
  #over: Promise<void> = Promise.resolve()
  #resume: (() => void) | undefined

  /** Resolves when no pause is active. */
  get over(): Promise<void> {
    return this.#over
  }

  get isOn(): boolean {
    return this.#resume !== undefined
  }

  begin(): void {
    if (this.isOn) return
    this.#over = new Promise((resolve) => {
      this.#resume = resolve
    })
  }

  end(): void {
    this.#resume?.()
    this.#resume = undefined
  }
}
