/**
 * Rig: SIGKILL of a server that records its history, at any moment and at named points, above all while it merges; where a small disk
 * can be mounted, that becomes full now and then. Remote write and OTLP hand numbers over that come now, a day late, and in no order,
 * while gmetric, StatsD and smon send theirs. After the last kill the files are read by a judge of its own, as they were left and
 * again when everything is merged.
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { KilledServer } from '../rig/killed-server/killed-server.ts'
import { until } from '../rig/patience.ts'
import { tokenOfPublisher } from '../rig/prometheus-stack.ts'
import { PromisedFeed, SERIES } from '../rig/promised-feed.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import { canMount, SmallDisk } from '../rig/small-disk.ts'
import { done } from '../support/administration.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { Seat } from '../support/seat.ts'
import { loggedIn } from '../support/server-process.ts'
import { Doors, ShownServer } from './history/doors.ts'
import { HistoryJudge, type JudgedFeed, keptIn, type Verdict } from './history/judge.ts'

const PRELOAD = new URL('./history/failpoints.cjs', import.meta.url).pathname

/** Where the thread of the history is killed: before the transaction that has written this is committed, and after it. */
export const HISTORY_POINTS: readonly string[] = [
  ...['columns', 'pages', 'run', 'file', 'removal'].flatMap((what) => [`${what}-not-committed`, `${what}-committed`]),
  'page-of-a-file',
]
/** At one of the first so many times. */
const WITHIN = 3
/** How long a point is waited for, and how long others live at most. */
const PATIENCE_MS = 4_000
const MOST_LIFE_MS = 1_500
/** Pages are made of so few samples that they are made every second. */
const HEAD_SAMPLES = 500
/** Between two requests of a feed. */
const PAUSE_MS = 20
/** The disk is that large; the last 64 MiB of it are not the history's. */
const DISK_MIB = 256
/** One life of so many has a full disk. */
const FULL_EVERY = 8
const MOST_FULL_MS = 600
/** A server that was killed is gone by then. */
const GONE_MS = 5_000
/** Acknowledged in each life before it may end, so that there is something to be lost. */
const LEAST_PROMISED = SERIES

const DAY_MS = 86_400_000
/** Times of a feed in no order: so many steps over almost three days, each of which comes once. */
const [STEPS, STRIDE, STEP_MS] = [10_007, 7_919, 25_000]

export const history: Rig = async (options) => {
  const ports = { tcp: await freePort(), http: await freePort(), gmetric: await freePort() }
  const doors = { gmetric: ports.gmetric, statsd: await freePort(), smon: await freePort() }
  const preload = { path: PRELOAD, env: { CHAOS_HEAD_SAMPLES: String(HEAD_SAMPLES) } }
  const server = new KilledServer({
    udpPort: ports.gmetric,
    tcpPort: ports.tcp,
    httpPort: ports.http,
    logLevel: 'error',
    preload,
  })
  server.append(`[quota]
queued_bytes = 0
[[statsd]]
udp = "127.0.0.1:${doors.statsd}"
flush = "1s"
[smon]
tcp = "127.0.0.1:${doors.smon}"
[[smon.source]]
name = "here"
address = "127.0.0.1"
[history]
keep = "30d"
resolution = "0"
metrics = ["gmetric.*", "smon.*", "statsd.*", "otlp.*", "prometheus.*"]
`)
  return runCourse('history', options, new Run(server, new Doors(doors), `http://127.0.0.1:${ports.http}`, options))
}

class Run {
  readonly #server: KilledServer
  readonly #doors: Doors
  readonly #url: string
  readonly #options: RigOptions
  readonly #random: Random
  readonly #fired = new Tally()
  readonly #disk: SmallDisk | undefined
  #feeds: JudgedFeed[] = []
  #feeding: Promise<unknown> = Promise.resolve()
  /** When the server was killed after it had promised something. */
  readonly #killsMs: number[] = []
  #kills = 0
  #missed = 0
  #full = 0
  #fullKills = 0

  constructor(server: KilledServer, doors: Doors, url: string, options: RigOptions) {
    this.#server = server
    this.#doors = doors
    this.#url = url
    this.#options = options
    this.#random = new Random(options.seed)
    const data = join(server.directory, 'data')
    if (canMount()) this.#disk = SmallDisk.mount(data, DISK_MIB)
    else mkdirSync(data, { mode: 0o700 })
  }

  get moment(): string {
    return `kill ${this.#kills + 1}`
  }

  async remove(): Promise<void> {
    for (const { feed } of this.#feeds) feed.isOver = true
    await this.#server.kill()
    await this.#feeding
    this.#doors.close()
    this.#disk?.unmount()
    await this.#server.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    await this.#begin()
    const plan = this.#points()
    while (this.#kills < count) {
      const isFull = this.#disk !== undefined && this.#kills % FULL_EVERY === FULL_EVERY - 1
      const point = isFull ? undefined : plan.length > 0 ? plan.shift() : this.#any()
      const isReached = await this.#live(point, isFull)
      if (!isReached && this.#missed < HISTORY_POINTS.length) plan.push(point)
      if (this.#kills % 20 === 0) say(`${this.#kills} kills, ${this.#promised} values acknowledged`)
    }
    await this.#end()
    const asLeft = this.#judged(false)
    const files = readdirSync(this.#directory).filter((name) => /^\d{4}-\d\d/.test(name)).length
    const merged = this.#judged(true)
    return this.#totals(asLeft, merged, files)
  }

  get #directory(): string {
    return join(this.#server.directory, 'data', 'history')
  }

  get #promised(): number {
    const values = this.#feeds.reduce((sum, { feed }) => sum + feed.promised.size, 0)
    return this.#doors.all.reduce((sum, { acknowledgedMs }) => sum + acknowledgedMs.size, values)
  }

  /** Every point, shuffled, after one life that ends at any moment. */
  #points(): (string | undefined)[] {
    const points = HISTORY_POINTS.map((name) => ({ name, at: this.#random.next() }))
    return [undefined, ...points.sort((a, b) => a.at - b.at).map(({ name }) => name)]
  }

  #any(): string | undefined {
    return this.#random.below(2) === 0 ? undefined : this.#random.pick(HISTORY_POINTS)
  }

  /** The first start, in which nothing is killed. */
  async #begin(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
    const seat = await this.#seat()
    await done(seat, 'role.allow', { role: 'operator', command: 'PUBLISH', object: 'otlp.*' })
    const token = await tokenOfPublisher(seat, 'prometheus.*', ';PUBLISH otlp.*')
    seat.peer.destroy()
    const nowMs = Date.now()
    const times: number[] = []
    const now = (request: number): number => {
      times[request] ??= Math.max(Date.now(), 1 + (times[request - 1] ?? 0))
      return times[request]
    }
    const anyOrder = (request: number): number => {
      const step = (request * STRIDE) % STEPS
      return nowMs - 3 * DAY_MS + step * STEP_MS + Math.floor(request / STEPS)
    }
    const to = { url: this.#url, token }
    this.#feeds = [
      { shown: 'live', feed: new PromisedFeed({ ...to, name: 'live', timeOf: now }) },
      { shown: 'late', feed: new PromisedFeed({ ...to, name: 'late' }, nowMs - DAY_MS) },
      { shown: 'otlp_mixed', feed: new PromisedFeed({ ...to, protocol: 'otlp', name: 'mixed', timeOf: anyOrder }) },
    ]
    this.#feeding = Promise.all(this.#feeds.map(({ feed }) => feed.run(PAUSE_MS)))
    await this.#morePromised()
    await this.#kill()
  }

  /** Starts the server and lets it work until it is killed: at this point, or at any moment. Whether that was reached. */
  async #live(point: string | undefined, isFull: boolean): Promise<boolean> {
    const armed = point === undefined ? undefined : { point, times: 1 + this.#random.below(WITHIN), delay: 0 }
    this.#server.expected = isFull ? 'the disk is full' : undefined
    if (await this.#server.start(armed)) {
      const before = this.#promised
      const shown = await this.#shown()
      const work = this.#work(shown)
      // What went wrong there is thrown when it is awaited.
      work.catch(() => {})
      if (isFull) await this.#fill()
      else if (point === undefined) await this.#unlessKilled(this.#random.below(MOST_LIFE_MS))
      else await this.#unlessKilled(PATIENCE_MS)
      if (point === undefined && !isFull) await this.#promisedSince(before)
      const hasPromised = this.#promised > before
      await this.#kill(hasPromised)
      await work
    }
    this.#kills++
    const isReached = point === undefined || this.#server.fired
    if (isReached) this.#fired.add(point ?? 'any moment')
    else this.#missed++
    this.#server.healthy()
    this.#disk?.free()
    return isReached
  }

  /** Whoever asks it; undefined if it was killed meanwhile. */
  async #shown(): Promise<ShownServer | undefined> {
    try {
      const shown = new ShownServer(await this.#seat())
      await this.#doors.connect()
      return shown
    } catch (error) {
      // A connection may end before the end of the server is known.
      await this.#unlessKilled(GONE_MS)
      if (this.#server.running) throw error
      return undefined
    }
  }

  /** Those who have no answer send, until the server is gone or `isOver`. */
  async #work(shown: ShownServer | undefined, isOver = () => false): Promise<void> {
    if (shown === undefined) return
    let isGone = false
    void this.#server.exited.then(() => {
      isGone = true
    })
    try {
      await Promise.all(this.#doors.all.map((door) => door.run(shown, () => isGone || isOver())))
    } catch (error) {
      await this.#unlessKilled(GONE_MS)
      if (!isGone) throw error
    } finally {
      shown.close()
    }
  }

  async #fill(): Promise<void> {
    await this.#unlessKilled(this.#random.below(MOST_LIFE_MS))
    this.#disk?.fill()
    this.#full++
    await this.#unlessKilled(this.#random.below(MOST_FULL_MS))
    if (this.#random.below(2) === 0) {
      this.#fullKills++
      return
    }
    this.#disk?.free()
    await this.#morePromised()
  }

  async #unlessKilled(ms: number): Promise<void> {
    await Promise.race([setTimeout(ms, undefined, { ref: false }), this.#server.exited])
  }

  #morePromised(): Promise<void> {
    return this.#promisedSince(this.#promised)
  }

  #promisedSince(before: number): Promise<void> {
    return until('values are acknowledged', () => this.#promised >= before + LEAST_PROMISED || !this.#server.running, {
      looks: 9_000,
      everyMs: 10,
    })
  }

  async #kill(hasPromised = true): Promise<void> {
    if (hasPromised) this.#killsMs.push(Date.now())
    await this.#server.kill()
  }

  /** The last start: everything is recorded, and then the server ends by itself. */
  async #end(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
    await this.#morePromised()
    const before = this.#doors.all.map(({ acknowledgedMs }) => acknowledgedMs.size)
    const haveMore = (): boolean => this.#doors.all.every((door, at) => door.acknowledgedMs.size > before[at]!)
    await this.#work(await this.#shown(), haveMore)
    for (const { feed } of this.#feeds) feed.isOver = true
    await this.#feeding
    const shown = new ShownServer(await this.#seat())
    await until('everything is recorded', async () => {
      const { queued, in_flight } = await shown.ledger()
      return queued + in_flight === 0
    })
    shown.close()
    await this.#server.stop()
    this.#server.healthy()
  }

  #judged(isMerged: boolean): Verdict {
    const verdict = new HistoryJudge(keptIn(this.#directory, { isMerged })).judge(
      this.#feeds,
      this.#doors.all,
      this.#killsMs,
    )
    const { missing, twice, wrong, killsWithoutLoss, examples } = verdict
    if (missing !== 0 || twice !== 0 || wrong !== 0 || killsWithoutLoss !== 0) {
      const counts = `${missing} missing, ${twice} twice, ${wrong} wrong, ${killsWithoutLoss} kills in no range of loss`
      throw new Error(`${isMerged ? 'merged' : 'as left'}: ${counts}: ${examples.join('; ')}`)
    }
    return verdict
  }

  async #seat(): Promise<Seat> {
    const { peer, channel } = await loggedIn(this.#server.port)
    return new Seat(peer, channel)
  }

  #totals({ acknowledged, missing, wrong, kept }: Verdict, { twice }: Verdict, files: number): Totals {
    return {
      kills: this.#kills,
      lost: missing,
      unexpected: wrong,
      reused: twice,
      acknowledged,
      kept,
      files,
      full: this.#full,
      'killed while full': this.#fullKills,
      ...this.#fired.sorted('at '),
      missed: this.#missed,
      ...Object.fromEntries(this.#doors.all.map(({ metric, acknowledgedMs }) => [metric, acknowledgedMs.size])),
    }
  }
}
