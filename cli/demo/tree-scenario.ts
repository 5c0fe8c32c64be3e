/**
 * The scenario of the demonstration with servers above servers. One server of each level is killed. Only the source of a rack
 * pauses for that, until the rack has stored what was fed: smon has no responses that would tell it. From there on each server
 * commits below what it has stored, so that the others are killed at any moment, while values come.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Consumer } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { ChannelLedger } from '../ledger.ts'
import type { ResolvedLogin } from '../login.ts'
import { type DemoOutput, formatThousands } from './output.ts'
import { waitWhileMoving } from './progress.ts'
import { type ScenarioContext, SequenceCheck } from './scenario.ts'
import { DEMO_SOURCE, type DemoServer, METRIC, NumberSource } from './server.ts'
import { CHANNEL, type DemoTree, describeFaults, type Passage, passageTo, TreeLevel } from './tree.ts'

const INTRODUCTION = [
  '1, 2, 3 …  ──►  rack1  ──┐',
  '                         ├──►  east  ──►  main  ──►  a consumer',
  '1, 2, 3 …  ──►  rack2  ──┘',
  '',
  'Two sources count. A consumer at main has to handle each number of each source exactly once',
  'and in order. One server of each level is killed with kill -9. What is stored may not be',
  'lost: a server commits below only what it has stored itself. A source cannot see what is',
  'stored: before its rack is killed it pauses until all is.',
  '',
] as const
const KILLS = 3
/** Numbers per second and source. */
const RATE = 5_000
/** What the source of a rack feeds at once before that is killed. */
const BURST = 20_000
/** The interval between two bursts of the sources. */
const TICK_MS = 50
const ROW_MS = 1_000
/** A killed server is away for this share of the time between two kills. */
const AWAY = 0.4
/** The consumer does its work in batches, so that a kill hits it in the middle of one. */
const BATCH = 100
const BATCH_MS = 1

interface TreeScenarioOptions extends ScenarioContext {
  readonly tree: DemoTree
  readonly login: (server: DemoServer) => Promise<ResolvedLogin>
}

/** A rack with what feeds it, and with what the consumer has of it. */
interface Rack {
  readonly level: TreeLevel
  readonly source: NumberSource
  readonly check: SequenceCheck
}

export class TreeScenario {
  readonly #options: TreeScenarioOptions
  readonly #output: DemoOutput
  readonly #racks: readonly Rack[]
  readonly #site: TreeLevel
  readonly #main: TreeLevel
  #consumer: Consumer | undefined
  #rowMs = 0

  constructor(options: TreeScenarioOptions) {
    const { tree, login, connect, output } = options
    const levelOf = (server: DemoServer) => new TreeLevel({ server, login, connect })
    this.#options = options
    this.#output = output
    this.#racks = tree.racks.map((server) => ({
      level: levelOf(server),
      source: new NumberSource(() => server.smonPort),
      check: new SequenceCheck(),
    }))
    this.#site = levelOf(tree.site)
    this.#main = levelOf(tree.main)
  }

  /** From the lowest to the uppermost. */
  get #levels(): readonly TreeLevel[] {
    return [...this.#racks.map(({ level }) => level), this.#site, this.#main]
  }

  get #fed(): number {
    return sum(this.#racks, ({ source }) => source.fed)
  }

  get #handled(): number {
    return sum(this.#racks, ({ check }) => check.handled)
  }

  /** Rejects with Failure unless each number came exactly once and every ledger balanced. */
  async run(): Promise<void> {
    const { seconds } = this.#options
    const output = this.#output
    for (const line of INTRODUCTION) await output.printBelow(line)
    for (const level of this.#levels) {
      await level.start()
      const { name, server } = level
      await output.print(`${name} is up, process ${server.pid}, data in ${server.directory}`)
    }
    await this.#consume()
    for (const { source } of this.#racks) await source.open()
    await output.printHeadings(['fed', ...this.#levels.map(({ name }) => name), 'handled'])
    const roundMs = (seconds * 1_000) / (KILLS + 1)
    const [awayMs, allUpMs] = [AWAY * roundMs, (1 - AWAY) * roundMs]
    const [rack] = this.#racks as readonly [Rack, ...Rack[]]
    await this.#feedFor(roundMs)
    await this.#killRack(rack, awayMs)
    await this.#feedFor(allUpMs)
    await this.#killAbove(
      this.#site,
      this.#racks.map(({ level }) => level),
      2,
      awayMs,
    )
    await this.#feedFor(allUpMs)
    await this.#killAbove(this.#main, [this.#site], 3, awayMs)
    await this.#feedFor(allUpMs)
    await output.print('the sources stop; the consumer handles what is left')
    await this.#checkTotals()
    await output.print(
      output.colors.green(`everything balances: ${KILLS} kills, one at each level, each number handled exactly once`),
    )
  }

  async close(): Promise<void> {
    for (const { source } of this.#racks) source.close()
    await Promise.all([this.#consumer?.close(), ...this.#levels.map((level) => level.close())])
  }

  /** Subscribes at the uppermost server; resolves when the racks know of it. The library commits what was handled. */
  async #consume(): Promise<void> {
    const { connect, login, tree } = this.#options
    const { url, credentials } = await login(tree.main)
    const consumer = await connect(url, credentials, { name: CHANNEL })
    this.#consumer = consumer
    consumer.on('gap', (gap) => this.#output.reportGap(gap, this.#handled))
    const checks = new Map(this.#racks.map(({ level, check }) => [`${tree.site.name}/${level.name}`, check]))
    const args = { source: DEMO_SOURCE, producer: `${tree.site.name}/*` }
    await consumer.follow(METRIC, args, async ({ plain, labels }) => {
      const check = checks.get(labels['producer'] ?? '')
      if (check === undefined || typeof plain !== 'number') {
        throw new Failure(ExitCode.FAILED, `received a value that was never fed: ${plain} of ${labels['producer']}`)
      }
      check.take(plain)
      if (check.handled % BATCH === 0) await sleep(BATCH_MS)
    })
    consumer.run().catch((error: Error) => this.#options.failed(error))
    const isBound = async (level: TreeLevel) => ((await level.find())?.bound ?? 0) > 0
    const areBound = async () => (await Promise.all(this.#levels.map(isBound))).every(Boolean)
    if (!(await this.#wait(areBound)))
      throw new Failure(ExitCode.FAILED, 'the racks do not learn what is wanted at main')
    await this.#output.print(`a consumer at main follows ${METRIC} with producer=${args.producer} on a durable channel`)
  }

  /** Feeds the racks that are up for so long, and at least once. */
  async #feedFor(ms: number): Promise<void> {
    const startedMs = performance.now()
    let fromMs = startedMs
    do {
      await this.#sleep(TICK_MS)
      const nowMs = performance.now()
      const count = Math.ceil(((nowMs - fromMs) * RATE) / 1_000)
      fromMs = nowMs
      for (const { level, source } of this.#racks) if (level.isUp) await source.feed(count)
      if (nowMs - this.#rowMs >= ROW_MS) await this.#row()
    } while (performance.now() - startedMs < ms)
  }

  /** Its source pauses for that until everything is stored; the other goes on. */
  async #killRack({ level, source }: Rack, awayMs: number): Promise<void> {
    const output = this.#output
    // More than passes at once, so that values may still wait in the rack when it is killed.
    await source.feed(BURST)
    const stored = await this.#ledgerWhen(level, ({ accepted, unstored }) => accepted >= source.fed && unstored === 0)
    await this.#kill(level, 1)
    // Not before: the end of its stream would be a value, too.
    source.close()
    await output.printBelow(`the ${formatThousands(source.fed)} that its source has fed were on its disk`)
    await output.printLedger(stored, level.name)
    await this.#feedFor(awayMs)
    const ledger = await this.#restart(level)
    if (ledger.accepted !== source.fed) {
      throw new Failure(
        ExitCode.FAILED,
        `${source.fed} were fed to ${level.name} and stored, but it has ${ledger.accepted}`,
      )
    }
    await source.open()
  }

  /** Kills a server that consumes others; what comes meanwhile waits in those. */
  async #killAbove(level: TreeLevel, below: readonly TreeLevel[], kill: number, awayMs: number): Promise<void> {
    await this.#kill(level, kill)
    await this.#feedFor(awayMs)
    const ledgers = await Promise.all(below.map((one) => one.ledger()))
    const waiting = sum(ledgers, ({ inFlight, queued }) => inFlight + queued)
    const names = namesOf(below)
    await this.#output.print(`${formatThousands(waiting)} wait for it at ${names}`)
    const committed = sum(ledgers, (ledger) => ledger.committed)
    const { accepted } = await this.#restart(level)
    if (accepted >= committed) return
    throw new Failure(ExitCode.FAILED, `${committed} were committed at ${names}, but ${level.name} has ${accepted}`)
  }

  async #kill(level: TreeLevel, kill: number): Promise<void> {
    const { pid } = level.server
    await level.kill()
    const at = `${formatThousands(this.#handled)} were handled`
    await this.#output.print(
      `${this.#output.colors.red(`kill -9 ${pid}`)}  (${kill} of ${KILLS}), ${level.name}, when ${at}`,
    )
  }

  async #restart(level: TreeLevel): Promise<ChannelLedger> {
    await level.start()
    await this.#output.print(`${level.name} is up again, process ${level.server.pid}`)
    const ledger = await level.ledger()
    await this.#output.printLedger(ledger, level.name)
    return ledger
  }

  /** Waits until nothing is on its way, or nothing moves any more, and counts. Rejects with Failure unless it balances. */
  async #checkTotals(): Promise<void> {
    const isQuiet = async () => {
      for (const { level, source } of this.#racks) if ((await level.ledger()).accepted < source.fed) return false
      // From the lowest on, since what is committed there is at the next one.
      for (const level of this.#levels) {
        const { inFlight, queued } = await level.ledger()
        if (inFlight + queued > 0) return false
      }
      return true
    }
    const hasArrived = await this.#wait(isQuiet)
    await this.#row()
    const passages = await this.#passages()
    const output = this.#output
    await output.printHeadings(['to', 'sent', 'arrived', 'lost', 'repeated'])
    for (const { name, sent, arrived, lost, repeated } of passages) {
      await output.printCells([name, sent, arrived, lost, repeated])
    }
    const faults = describeFaults(passages)
    if (faults !== '') throw new Failure(ExitCode.FAILED, `the totals do not balance:\n${faults}`)
    if (!hasArrived) throw new Failure(ExitCode.FAILED, 'values are on their way, and nothing moves any more')
  }

  async #passages(): Promise<readonly Passage[]> {
    const site = await this.#site.ledger()
    const below = await Promise.all(
      this.#racks.map(async ({ level, source }) => {
        const ledger = await level.ledger()
        return { ledger, passage: passageTo(level.name, 'its source', source.fed, ledger) }
      }),
    )
    const committed = sum(below, ({ ledger }) => ledger.committed)
    return [
      ...below.map(({ passage }) => passage),
      passageTo(this.#site.name, namesOf(this.#racks.map(({ level }) => level)), committed, site),
      passageTo(this.#main.name, this.#site.name, site.committed, await this.#main.ledger()),
      {
        name: 'consumer',
        from: 'the sources',
        sent: this.#fed,
        arrived: this.#handled,
        lost: sum(this.#racks, ({ source, check }) => source.fed - (check.handled - check.repeated)),
        repeated: sum(this.#racks, ({ check }) => check.repeated),
      },
    ]
  }

  /** A server that is away has none. */
  async #row(): Promise<void> {
    this.#rowMs = performance.now()
    const stored = async (level: TreeLevel): Promise<number | string> => {
      if (!level.isUp) return 'down'
      const { accepted, unstored } = await level.ledger()
      return accepted - unstored
    }
    const cells = await Promise.all(this.#levels.map(stored))
    await this.#output.printRow([this.#fed, ...cells, this.#handled])
  }

  /** Rejects with Failure if nothing progresses. */
  async #ledgerWhen(level: TreeLevel, condition: (ledger: ChannelLedger) => boolean): Promise<ChannelLedger> {
    let ledger = await level.ledger()
    const holds = async () => {
      ledger = await level.ledger()
      return condition(ledger)
    }
    if (await this.#wait(holds)) return ledger
    throw new Failure(ExitCode.FAILED, `${level.name} does not store what is fed to it: it has ${ledger.accepted}`)
  }

  #wait(condition: () => Promise<boolean>): Promise<boolean> {
    return waitWhileMoving(condition, () => this.#handled, this.#options.signal)
  }

  #sleep(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#options.signal })
  }
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0)
}

function namesOf(levels: readonly TreeLevel[]): string {
  return levels.map(({ name }) => name).join(' and ')
}
