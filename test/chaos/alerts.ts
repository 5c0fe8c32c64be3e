/**
 * Rig: SIGKILL of a server that evaluates rules, of the receiver of its notifications, and of both, at random moments. The data are
 * handed over long before their time, and every evaluation records its own time; so a model knows every transition. Each has to be a
 * value of the metric `alert`, once and in order; a sample of ALERTS; and a notification, in order, of which only the one under way is
 * sent again, with the same key. In a cluster the node that leads is killed, or hands over.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { until } from '../rig/patience.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import type { User } from '../rig/world/link.ts'
import { freePort } from '../support/free-port.ts'
import { natsMissing } from '../support/nats.ts'
import { tokenFor } from '../support/publisher.ts'
import { Random } from '../support/random.ts'
import type { Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { loggedIn, PASSWORD } from '../support/server-process.ts'
import { AlertConsumer } from './alerts/alert-consumer.ts'
import { AlertsJudge, withoutRepeats } from './alerts/judge.ts'
import { Levels } from './alerts/levels.ts'
import { ENDED_MS, INTERVAL_MS, modelOf, ruleFile, TICK } from './alerts/model.ts'
import { type Received, Receiver } from './alerts/receiver.ts'
import { type AlertScene, OneServer, ThreeNodes } from './alerts/scenes.ts'

const USER: User = { name: 'admin', secret: PASSWORD, keys: undefined }
const SERIES = 4
/** The first samples are that far ahead. */
const BEGIN_MS = 6_000
/** Everybody lives for so long, at most, before somebody is killed. */
const MOST_LIFE_MS = 2_500
/** The receiver stays away for so long, at most. */
const MOST_AWAY_MS = 1_500
const FEED_MS = 200
/**
 * How far ahead of their time data are handed over, so that nobody evaluates without them while nobody takes them. A run of a few kills
 * waits for their end longer than for anything else.
 */
const AHEAD_MS = 40_000
const [FEW_KILLS, AHEAD_OF_FEW_MS] = [10, 20_000]
/** A kill that is to come while a notification is under way comes that soon after its request, and waits for so long for one. */
const [MOST_UNDER_WAY_MS, UNDER_WAY_LOOKS] = [40, 1_500]
/** The paths of the two notifiers. */
const [EACH, GROUPED] = ['/each', '/grouped']
/** No measure of speed: what is caught up, told and committed at the end. */
const PATIENCE = { looks: 400, everyMs: 500 }
const VICTIMS = ['server', 'receiver', 'both'] as const

export const alerts: Rig = (options) =>
  run('alerts', options, ({ random, toml }) => OneServer.start(random, toml), VICTIMS)

export const clusterAlerts: Rig = (options) => {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  const start = ({ random, toml }: Setting): Promise<AlertScene> => ThreeNodes.start(random, USER, toml)
  return run('cluster-alerts', options, start, ['server', 'server', 'both'])
}

interface Setting {
  readonly random: Random
  readonly toml: string
}

type Victim = (typeof VICTIMS)[number]

async function run(
  name: string,
  options: RigOptions,
  start: (setting: Setting) => Promise<AlertScene>,
  victims: readonly Victim[],
): Promise<Totals> {
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-alerts-'))
  try {
    const port = await freePort()
    const rules = join(directory, 'rules')
    mkdirSync(rules)
    writeFileSync(join(rules, 'chaos.yml'), ruleFile())
    const receiver = new Receiver(join(directory, 'journal'), port)
    const random = new Random(options.seed)
    const toml = `[quota]
queued_bytes = 0
[history]
resolution = "0"
metrics = ["prometheus.*", "rules.*"]
[alerts]
builtin = false
rules = [${JSON.stringify(join(rules, '*.yml'))}]
[[notify]]
name = "each"
url = "webhook+http://127.0.0.1:${port}${EACH}"
group_by = ["..."]
group_wait = "0s"
group_interval = "0s"
[[notify]]
name = "grouped"
url = "webhook+http://127.0.0.1:${port}${GROUPED}"
group_wait = "1s"
group_interval = "2s"
`
    await receiver.start()
    try {
      const scene = await start({ random: new Random(options.seed + 1), toml })
      return await runCourse(name, options, new Run(scene, receiver, random, victims, options))
    } finally {
      await receiver.kill()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

class Run {
  readonly #scene: AlertScene
  readonly #receiver: Receiver
  readonly #random: Random
  readonly #victims: readonly Victim[]
  readonly #options: RigOptions
  readonly #consumer: AlertConsumer
  readonly #levels: Levels
  readonly #kills = new Tally(VICTIMS)
  #consuming: Promise<unknown> = Promise.resolve()
  #feeding: Promise<unknown> = Promise.resolve()
  #isFed = false
  #failed: Error | undefined
  #done = 0
  #token = ''

  constructor(scene: AlertScene, receiver: Receiver, random: Random, victims: readonly Victim[], options: RigOptions) {
    this.#scene = scene
    this.#receiver = receiver
    this.#random = random
    this.#victims = victims
    this.#options = options
    this.#consumer = new AlertConsumer(USER, new Random(options.seed + 2))
    const startMs = Math.ceil((Date.now() + BEGIN_MS) / 500) * 500
    const aheadMs = options.count < FEW_KILLS ? AHEAD_OF_FEW_MS : AHEAD_MS
    this.#levels = new Levels(new Random(options.seed + 3), SERIES, startMs, aheadMs)
  }

  get moment(): string {
    return `kill ${this.#done + 1}`
  }

  async remove(): Promise<void> {
    this.#isFed = true
    this.#consumer.isOver = true
    await this.#feeding
    await this.#scene.remove()
    await this.#consuming
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    const begunMs = Date.now()
    await this.#begin()
    for (; this.#done < count; this.#done++) {
      await this.#live()
      await this.#strike(this.#random.pick(this.#victims))
      this.#check()
      if (this.#done % 20 === 19)
        say(
          `${this.#done + 1} kills, ${this.#consumer.reported.length} transitions, ${this.#told(EACH).length} notifications`,
        )
    }
    await this.#end()
    return this.#judged(begunMs)
  }

  async #begin(): Promise<void> {
    const { peer, channel } = await loggedIn(this.#scene.listener.port)
    const seat = new Seat(peer, channel)
    const publisher = await tokenOfPublisher(seat, 'prometheus.*')
    this.#token = await tokenFor(seat, 'admin', '')
    peer.destroy()
    await this.#consumer.begin(this.#scene.listener)
    this.#consuming = this.#consumer.run(() => this.#scene.listener)
    this.#feeding = this.#feed(publisher).catch((error: Error) => {
      this.#failed = error
    })
    await until('something has fired', () => this.#told(EACH).length > 0)
  }

  async #feed(token: string): Promise<void> {
    while (!this.#isFed) {
      await this.#levels.give(this.#scene.url, token)
      await setTimeout(FEED_MS)
    }
  }

  /** A life takes data before it ends, at a random moment, or while a notification is under way. */
  async #live(): Promise<void> {
    const { given } = this.#levels
    await until('data are handed over', () => this.#levels.given > given || this.#failed !== undefined)
    await setTimeout(this.#random.below(MOST_LIFE_MS))
    if (this.#random.below(2) === 0) return
    const { journalBytes } = this.#receiver
    for (let look = 0; look < UNDER_WAY_LOOKS && this.#receiver.journalBytes === journalBytes; look++)
      await setTimeout(2)
    await setTimeout(this.#random.below(MOST_UNDER_WAY_MS))
  }

  async #strike(victim: Victim): Promise<void> {
    this.#kills.add(victim)
    const receiverDies = async (): Promise<void> => {
      await this.#receiver.kill()
      await setTimeout(this.#random.below(MOST_AWAY_MS))
      await this.#receiver.start()
    }
    if (victim === 'server') await this.#scene.strike()
    else if (victim === 'receiver') await receiverDies()
    else await Promise.all([this.#scene.strike(), receiverDies()])
  }

  #check(): void {
    if (this.#failed !== undefined) throw this.#failed
    if (this.#consumer.problem !== undefined) throw new Error(this.#consumer.problem)
    this.#scene.healthy()
  }

  /** Nothing is above anything any more; everything is evaluated, told and committed. */
  async #end(): Promise<void> {
    const endMs = this.#levels.end()
    await until(
      'all data were handed over',
      async () => {
        this.#check()
        return Date.now() > endMs
      },
      PATIENCE,
    )
    this.#isFed = true
    await this.#feeding
    this.#consumer.isCommitting = true
    await until(
      'everything was evaluated',
      async () => ((await this.#ticks()).at(-1) ?? 0) > endMs + ENDED_MS,
      PATIENCE,
    )
    // Once more, so that what was not committed, or is told twice, comes again.
    await this.#strike('both')
    await until('everything is told', async () => this.#isTold(await this.#ticks()), PATIENCE)
    this.#check()
  }

  #isTold(ticksMs: readonly number[]): boolean {
    const { transitions } = modelOf(this.#levels, ticksMs)
    const all = [...transitions.values()].flat()
    const journal = this.#told(GROUPED)
    const last = new Map<string, string>()
    for (const { body } of journal)
      for (const { labels, status } of (JSON.parse(body) as Json).alerts)
        last.set(`${labels.alertname} ${labels.n}`, status)
    return (
      this.#consumer.reported.length >= all.length &&
      withoutRepeats(this.#told(EACH)).journal.length >= all.filter(({ firedMs }) => firedMs > 0).length &&
      [...last.values()].every((status) => status === 'resolved')
    )
  }

  #told(path: string): Received[] {
    return this.#receiver.received().filter((received) => received.path === path)
  }

  async #judged(begunMs: number): Promise<Totals> {
    const ticksMs = await this.#ticks()
    for (const [at, tickMs] of ticksMs.entries())
      if (at > 0 && tickMs - (ticksMs[at - 1] ?? 0) !== INTERVAL_MS)
        throw new Error(`no evaluation is between ${ticksMs[at - 1]} and ${tickMs}`)
    const modelled = modelOf(this.#levels, ticksMs)
    const judge = new AlertsJudge(modelled)
    judge.values(this.#consumer.reported)
    const [each, grouped] = [withoutRepeats(this.#told(EACH)), withoutRepeats(this.#told(GROUPED))]
    judge.each(each.journal)
    judge.grouped(grouped.journal)
    judge.history(await this.#alertsOfHistory())
    const { lost, twice, unexpected, examples } = judge.faults
    if (lost + twice + unexpected > 0)
      throw new Error(`${lost} lost, ${twice} twice, ${unexpected} unexpected: ${examples.join('; ')}`)
    const all = [...modelled.transitions.values()].flat()
    return {
      ...this.#kills.sorted('kills: '),
      lost,
      unexpected,
      reused: twice,
      evaluations: ticksMs.length,
      transitions: all.length,
      'values sent again': this.#consumer.again,
      notifications: each.journal.length,
      'notifications of groups': grouped.journal.length,
      'notifications sent again': each.repeats + grouped.repeats,
      seconds: Math.round((Date.now() - begunMs) / 1_000),
    }
  }

  /** The times of all evaluations, which each has recorded itself. */
  async #ticks(): Promise<readonly number[]> {
    const [series] = await this.#query(`${TICK}[1d]`)
    return (series?.values ?? []).map(([seconds, value]: [number, string]) => {
      const timeMs = Math.round(seconds * 1_000)
      if (Math.round(Number(value) * 1_000) !== timeMs) throw new Error(`the evaluation at ${timeMs} says ${value}`)
      return timeMs
    })
  }

  async #alertsOfHistory(): Promise<ReadonlyMap<string, readonly number[]>> {
    const found = await this.#query('ALERTS[1d]')
    return new Map(
      found.map(({ metric: { alertname, n, alertstate }, values }: Json) => [
        `${alertname} ${n} ${alertstate}`,
        values.map(([seconds]: [number]) => Math.round(seconds * 1_000)),
      ]),
    )
  }

  async #query(text: string): Promise<Json[]> {
    const headers = { authorization: `Bearer ${this.#token}` }
    let found: Json
    await until(
      'the history answers',
      async () => {
        // A node that has just been started does not listen yet.
        const answer = await fetch(`${this.#scene.url}/api/v1/query?query=${encodeURIComponent(text)}`, {
          headers,
        }).catch(() => undefined)
        found = answer?.ok === true ? await answer.json() : undefined
        return found !== undefined
      },
      PATIENCE,
    )
    if (found.status !== 'success') throw new Error(`the history does not answer: ${found.error}`)
    return found.data.result
  }
}
