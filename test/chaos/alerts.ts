/**
 * Rig: SIGKILL of a server that evaluates rules, of the receiver of its notifications, and of both, at random moments. The data are
 * handed over long before their time, and every evaluation records its own time; so a model knows every transition. Each has to be a
 * value of the metric `alert`, once and in order; a sample of ALERTS; and a notification, in order, of which only the one under way is
 * sent again, with the same key. Half of the rules and of the notifiers are those of the configuration, the others are put by a user, and
 * put again while somebody is killed (alerts/puts.ts). In a cluster the node that leads is killed, or hands over; in a tree the server
 * that evaluates, the one above, which consumes its alerts and tells of them itself, or both.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { until } from '../rig/patience.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import type { Listener, User } from '../rig/world/link.ts'
import { freePort } from '../support/free-port.ts'
import { natsMissing } from '../support/nats.ts'
import { tokenFor } from '../support/publisher.ts'
import { Random } from '../support/random.ts'
import type { Json } from '../support/records.ts'
import { Seat } from '../support/seat.ts'
import { loggedIn, PASSWORD } from '../support/server-process.ts'
import { AlertConsumer } from './alerts/alert-consumer.ts'
import { AlertsJudge, type Journal, withoutRepeats } from './alerts/judge.ts'
import { Levels } from './alerts/levels.ts'
import {
  CONFIGURED_GROUP,
  ENDED_MS,
  type Evaluated,
  INTERVAL_MS,
  type ModelGroup,
  modelOf,
  PUT_GROUP,
  ruleFile,
} from './alerts/model.ts'
import { Puts } from './alerts/puts.ts'
import { type Received, Receiver } from './alerts/receiver.ts'
import { type AlertScene, OneServer, ServerBelow, ThreeNodes } from './alerts/scenes.ts'

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
/** A kill that is to come while something is put comes that soon after its request. */
const MOST_PUTTING_MS = 150
/** The notifiers, by what each tells at once: every transition, or those of a group; and by whose they are. */
const [EACH, GROUPED] = ['each', 'grouped']
const [PUT_EACH, PUT_GROUPED] = ['put-each', 'put-grouped']
/** The one of the server above. */
const ABOVE = 'above'
const AT_ONCE = 'group_by = ["..."]\ngroup_wait = "0s"\ngroup_interval = "0s"\n'
const IN_GROUPS = 'group_wait = "1s"\ngroup_interval = "2s"\n'
const GROUPS = [CONFIGURED_GROUP, PUT_GROUP]
/** No measure of speed: what is caught up, told and committed at the end. */
const PATIENCE = { looks: 400, everyMs: 500 }
const VICTIMS = ['server', 'receiver', 'both'] as const

export const alerts: Rig = (options) =>
  run('alerts', options, ({ random, toml }) => OneServer.start(random, toml), VICTIMS)

export const treeAlerts: Rig = (options) => {
  const start = ({ random, toml, above }: Setting): Promise<AlertScene> => ServerBelow.start(random, toml, above)
  return run('tree-alerts', options, start, ['server', 'server', 'both'])
}

export const clusterAlerts: Rig = (options) => {
  if (natsMissing !== undefined) throw new Error(natsMissing)
  const start = ({ random, toml }: Setting): Promise<AlertScene> => ThreeNodes.start(random, USER, toml)
  return run('cluster-alerts', options, start, ['server', 'server', 'both'])
}

interface Setting {
  readonly random: Random
  readonly toml: string
  /** The notifiers of a server above. */
  readonly above: string
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
    writeFileSync(join(rules, 'chaos.yml'), ruleFile(CONFIGURED_GROUP))
    const receiver = new Receiver(join(directory, 'journal'), port)
    const random = new Random(options.seed)
    const origin = `webhook+http://127.0.0.1:${port}`
    const urlOf = (name: string): string => `${origin}/${name}`
    const tableOf = (name: string, keys: string): string =>
      `[[notify]]\nname = "${name}"\nurl = "${urlOf(name)}"\n${keys}`
    const toml = `[quota]
queued_bytes = 0
controls_per_minute = 0
[history]
resolution = "0"
metrics = ["prometheus.*", "rules.*"]
[dial]
allow = ["${origin}"]
[alerts]
builtin = false
rules = [${JSON.stringify(join(rules, '*.yml'))}]
${tableOf(EACH, AT_ONCE)}${tableOf(GROUPED, IN_GROUPS)}`
    const puts = new Puts([
      { name: PUT_EACH, url: urlOf(PUT_EACH), keys: AT_ONCE },
      { name: PUT_GROUPED, url: urlOf(PUT_GROUPED), keys: IN_GROUPS },
    ])
    await receiver.start()
    try {
      const scene = await start({ random: new Random(options.seed + 1), toml, above: tableOf(ABOVE, AT_ONCE) })
      return await runCourse(name, options, new Run({ scene, receiver, puts, random, victims, options }))
    } finally {
      await receiver.kill()
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

interface Parts {
  readonly scene: AlertScene
  readonly receiver: Receiver
  readonly puts: Puts
  readonly random: Random
  readonly victims: readonly Victim[]
  readonly options: RigOptions
}

class Run {
  readonly #scene: AlertScene
  readonly #receiver: Receiver
  readonly #puts: Puts
  readonly #random: Random
  readonly #victims: readonly Victim[]
  readonly #options: RigOptions
  readonly #consumer: AlertConsumer
  readonly #kills = new Tally(VICTIMS)
  #levels!: Levels
  #consuming: Promise<unknown> = Promise.resolve()
  #feeding: Promise<unknown> = Promise.resolve()
  #putting: Promise<unknown> = Promise.resolve()
  #isFed = false
  #failed: Error | undefined
  #done = 0
  #token = ''
  /** At the server above. */
  #tokenAbove = ''

  constructor({ scene, receiver, puts, random, victims, options }: Parts) {
    this.#scene = scene
    this.#receiver = receiver
    this.#puts = puts
    this.#random = random
    this.#victims = victims
    this.#options = options
    this.#consumer = new AlertConsumer(USER, new Random(options.seed + 2))
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
      // At a random moment, while something is put, or while a notification is under way.
      const isPutting = this.#random.below(2) === 0
      await this.#live()
      if (!isPutting) await this.#untilNotified()
      await this.#strike(this.#random.pick(this.#victims), isPutting)
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
    const { listener, above } = this.#scene
    const { seat, token } = await this.#admin(listener)
    this.#token = token
    const publisher = await tokenOfPublisher(seat, 'prometheus.*')
    seat.peer.destroy()
    await this.#puts.begin(listener, USER)
    await this.#consumer.begin((above ?? this.#scene).listener, above?.producer)
    if (above !== undefined) {
      await above.untilBound()
      const admin = await this.#admin(above.listener)
      this.#tokenAbove = admin.token
      admin.seat.peer.destroy()
    }
    this.#consuming = this.#consumer.run(() => (above ?? this.#scene).listener)
    const startMs = Math.ceil((Date.now() + BEGIN_MS) / 500) * 500
    const aheadMs = this.#options.count < FEW_KILLS ? AHEAD_OF_FEW_MS : AHEAD_MS
    this.#levels = new Levels(new Random(this.#options.seed + 3), SERIES, startMs, aheadMs)
    this.#feeding = this.#feed(publisher).catch((error: Error) => {
      this.#failed = error
    })
    const first = above === undefined ? EACH : ABOVE
    await until('something has fired', () => this.#told(first).length > 0)
  }

  async #admin({ port }: Listener): Promise<{ readonly seat: Seat; readonly token: string }> {
    const { peer, channel } = await loggedIn(port)
    const seat = new Seat(peer, channel)
    return { seat, token: await tokenFor(seat, 'admin', '') }
  }

  async #feed(token: string): Promise<void> {
    while (!this.#isFed) {
      await this.#levels.give(this.#scene.url, token)
      await setTimeout(FEED_MS)
    }
  }

  /** A life takes data before it ends. */
  async #live(): Promise<void> {
    const { given } = this.#levels
    await until('data are handed over', () => this.#levels.given > given || this.#failed !== undefined)
    await setTimeout(this.#random.below(MOST_LIFE_MS))
  }

  async #untilNotified(): Promise<void> {
    const { journalBytes } = this.#receiver
    for (let look = 0; look < UNDER_WAY_LOOKS && this.#receiver.journalBytes === journalBytes; look++)
      await setTimeout(2)
    await setTimeout(this.#random.below(MOST_UNDER_WAY_MS))
  }

  async #strike(victim: Victim, isPutting = false): Promise<void> {
    this.#kills.add(victim)
    const before = isPutting ? (): Promise<void> => this.#beginToPut() : undefined
    const receiverDies = async (): Promise<void> => {
      if (victim === 'receiver') await before?.()
      await this.#receiver.kill()
      await setTimeout(this.#random.below(MOST_AWAY_MS))
      await this.#receiver.start()
    }
    if (victim === 'server') await this.#scene.strike(before)
    else if (victim === 'receiver') await receiverDies()
    else await Promise.all([this.#scene.strike(before), receiverDies()])
    if (victim !== 'receiver') this.#puts.leave()
    await this.#putting
    await this.#puts.check(() => this.#scene.listener)
  }

  async #beginToPut(): Promise<void> {
    this.#putting = this.#puts.next(this.#scene.listener)
    // It is awaited later.
    this.#putting.catch(() => {})
    await setTimeout(this.#random.below(MOST_PUTTING_MS))
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
      async () => (await this.#evaluated()).every(({ ticksMs }) => (ticksMs.at(-1) ?? 0) > endMs + ENDED_MS),
      PATIENCE,
    )
    const { above } = this.#scene
    if (above !== undefined)
      await until(
        'everything is known above',
        async () => {
          const text = `${PUT_GROUP.tick}{producer="${above.producer}"}`
          const [series] = await this.#ask(() => above.url, this.#tokenAbove, text)
          return Number(series?.value[1]) * 1_000 > endMs + ENDED_MS
        },
        PATIENCE,
      )
    // Once more, so that what was not committed, or is told twice, comes again.
    await this.#strike('both')
    await until('everything is told', async () => this.#isTold(await this.#evaluated()), PATIENCE)
    this.#check()
  }

  #isTold(evaluated: readonly Evaluated[]): boolean {
    const { transitions } = modelOf(this.#levels, evaluated)
    const all = [...transitions.values()].flat()
    const told = all.filter(({ firedMs }) => firedMs > 0).length
    return (
      this.#consumer.reported.length >= all.length &&
      [EACH, PUT_EACH].every((name) => withoutRepeats(this.#told(name)).journal.length >= told) &&
      [GROUPED, PUT_GROUPED, ABOVE].every((name) => this.#haveAllEnded(name))
    )
  }

  /** Whether everything that was told to fire has ended, as far as the receiver knows. */
  #haveAllEnded(name: string): boolean {
    const last = new Map<string, string>()
    for (const { body } of this.#told(name))
      for (const { fingerprint, status } of (JSON.parse(body) as Json).alerts) last.set(fingerprint, status)
    return [...last.values()].every((status) => status === 'resolved')
  }

  #told(name: string): Received[] {
    return this.#receiver.received().filter(({ path }) => path === `/${name}`)
  }

  async #judged(begunMs: number): Promise<Totals> {
    const evaluated = await this.#evaluated()
    for (const { ticksMs, group } of evaluated)
      for (const [at, tickMs] of ticksMs.entries())
        if (at > 0 && tickMs - (ticksMs[at - 1] ?? 0) !== INTERVAL_MS)
          throw new Error(`no evaluation of ${group.name} is between ${ticksMs[at - 1]} and ${tickMs}`)
    const modelled = modelOf(this.#levels, evaluated)
    const judge = new AlertsJudge(modelled)
    judge.values(this.#consumer.reported)
    const once = (name: string): Journal => withoutRepeats(this.#told(name))
    const [each, grouped, putEach, putGrouped] = [once(EACH), once(GROUPED), once(PUT_EACH), once(PUT_GROUPED)]
    const above = once(ABOVE)
    for (const { journal } of [each, putEach]) judge.each(journal)
    for (const { journal } of [grouped, putGrouped]) judge.grouped(journal)
    judge.signed([...this.#told(PUT_EACH), ...this.#told(PUT_GROUPED)], this.#puts.secrets)
    judge.history('the history', await this.#alertsOfHistory(() => this.#scene.url, this.#token))
    const { above: server } = this.#scene
    if (server !== undefined) {
      judge.above(above.journal)
      const kept = await this.#alertsOfHistory(() => server.url, this.#tokenAbove, server.producer)
      judge.history('the history above', kept)
    }
    const { lost, twice, unexpected, examples } = judge.faults
    if (lost + twice + unexpected > 0)
      throw new Error(`${lost} lost, ${twice} twice, ${unexpected} unexpected: ${examples.join('; ')}`)
    const all = [...modelled.transitions.values()].flat()
    return {
      ...this.#kills.sorted('kills: '),
      lost,
      unexpected,
      reused: twice,
      evaluations: evaluated.reduce((sum, { ticksMs }) => sum + ticksMs.length, 0),
      transitions: all.length,
      'values sent again': this.#consumer.again,
      notifications: each.journal.length + putEach.journal.length,
      'notifications of groups': grouped.journal.length + putGrouped.journal.length,
      ...(this.#scene.above !== undefined && { 'notifications above': above.journal.length }),
      'notifications sent again': [each, grouped, putEach, putGrouped, above].reduce(
        (sum, one) => sum + one.repeats,
        0,
      ),
      ...this.#puts.totals,
      seconds: Math.round((Date.now() - begunMs) / 1_000),
    }
  }

  /** The times of all evaluations of each group. */
  #evaluated(): Promise<readonly Evaluated[]> {
    return Promise.all(GROUPS.map(async (group) => ({ group, ticksMs: await this.#ticks(group) })))
  }

  /** Which each evaluation has recorded itself. */
  async #ticks({ tick }: ModelGroup): Promise<readonly number[]> {
    const [series] = await this.#query(`${tick}[1d]`)
    return (series?.values ?? []).map(([seconds, value]: [number, string]) => {
      const timeMs = Math.round(seconds * 1_000)
      if (Math.round(Number(value) * 1_000) !== timeMs) throw new Error(`the evaluation at ${timeMs} says ${value}`)
      return timeMs
    })
  }

  /**
   * The times of the samples of ALERTS, by rule, series and state. `producer`: of that server below, without the alerts that there are of
   * them above.
   */
  async #alertsOfHistory(
    url: () => string,
    token: string,
    producer = '',
  ): Promise<ReadonlyMap<string, readonly number[]>> {
    const found = await this.#ask(url, token, `ALERTS{producer="${producer}", alertname!="Below"}[1d]`)
    return new Map(
      found.map(({ metric: { alertname, n, alertstate }, values }: Json) => [
        `${alertname} ${n} ${alertstate}`,
        values.map(([seconds]: [number]) => Math.round(seconds * 1_000)),
      ]),
    )
  }

  #query(text: string): Promise<Json[]> {
    return this.#ask(() => this.#scene.url, this.#token, text)
  }

  async #ask(url: () => string, token: string, text: string): Promise<Json[]> {
    const headers = { authorization: `Bearer ${token}` }
    let found: Json
    await until(
      'the history answers',
      async () => {
        // A node that has just been started does not listen yet.
        const answer = await fetch(`${url()}/api/v1/query?query=${encodeURIComponent(text)}`, {
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
