/**
 * Rig: SIGKILL while requests publish values. Whatever the server has said yes to is there after the restart: it arrives at the
 * consumer that commits, unless that one has committed it, and at the one for whom it waits; a channel that drops at its own
 * limit has counted it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout } from 'node:timers/promises'
import { until } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { command, type, u32, u64 } from '../support/bytes.ts'
import { Child } from '../support/child.ts'
import { compiled } from '../support/compiled.ts'
import { Random } from '../support/random.ts'
import type { RawPeer } from '../support/raw-peer.ts'
import { decoded } from '../support/records.ts'
import { Seat, type ValueMessage } from '../support/seat.ts'
import { loggedIn, PASSWORD } from '../support/server-process.ts'

/** The numbers of a life: far more than it publishes. */
const LIFE = 1_000_000
const LEAST_LIFE_MS = 10
const MOST_LIFE_MS = 300
/** Half a minute. */
const PATIENCE = { looks: 3_000, everyMs: 10 }
const UNDER_WAY = { looks: 30_000, everyMs: 1 }

export const marks: Rig = (options) => runCourse('marks', options, new Run(options))

/** One life of the server. */
class Life {
  readonly #child: Child
  readonly #read: Promise<void>
  #port = 0
  /** The ranges of the requests that were begun, and of those that it said yes to. */
  readonly begun: (readonly [number, number])[] = []
  readonly promised: (readonly [number, number])[] = []

  constructor(script: string, directory: string, first: number, seed: number) {
    const args = [script, directory, String(first), String(seed), PASSWORD]
    this.#child = new Child(process.execPath, args, { stdin: 'pipe' })
    this.#read = this.#readAll()
  }

  async #readAll(): Promise<void> {
    for await (const line of createInterface({ input: this.#child.process.stdout as NodeJS.ReadableStream })) {
      const [what, from = 0, to = 0] = line.split(' ').map((word, at) => (at === 0 ? word : Number(word)))
      const range = [Number(from), Number(to)] as const
      if (what === 'ready') this.#port = range[0]
      else if (what === 'begun') this.begun.push(range)
      else this.promised.push(range)
    }
  }

  /** A consumer, as soon as it listens. */
  async login(): Promise<Seat> {
    await until(
      'the server listens',
      async () => {
        if (!this.#child.isRunning) throw new Error(`the server has ended: ${this.#child.errors}`)
        return this.#port > 0
      },
      PATIENCE,
    )
    const { peer, channel } = await loggedIn(this.#port)
    return new Seat(peer, channel)
  }

  go(): void {
    this.#child.process.stdin?.write('go\n')
  }

  /** Resolves when the server has not said yes yet to a request, so that a kill cuts that off. */
  async underWay(): Promise<void> {
    await until('a request is under way', async () => this.begun.length > this.promised.length, UNDER_WAY)
  }

  async kill(): Promise<void> {
    await this.#child.end('SIGKILL')
    await this.#read
    if (this.#child.errors !== '') throw new Error(`the server complained: ${this.#child.errors}`)
  }
}

/** A connection that takes the values of a channel, by transaction id. */
class Reader {
  readonly numbers = new Map<number, number>()
  readonly #peer: RawPeer
  readonly ended: Promise<void>
  #last = 0
  #seq = 0x20000000

  constructor({ peer }: Seat) {
    this.#peer = peer
    this.ended = this.#read()
  }

  async #read(): Promise<void> {
    for (;;) {
      const message = await this.#peer.next()
      if (message.kind === 'closed') return
      if (message.kind !== 'value' || message.transaction === 0) continue
      this.numbers.set(message.transaction, numberIn(message))
      this.#last = message.transaction
    }
  }

  /** COMMITs everything that has come. */
  commit(): void {
    if (this.#last > 0) this.#peer.send(command.commitThrough(++this.#seq, this.#last))
  }

  async close(): Promise<void> {
    this.#peer.destroy()
    await this.ended
  }
}

function numberIn(message: ValueMessage): number {
  return Number(decoded(message).value)
}

class Run {
  readonly #options: RigOptions
  readonly #random: Random
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-marks-'))
  readonly #script = compiled('test/chaos/marks/publishing-server.ts')
  #life: Life | undefined
  #kills = 0
  /** By what they are for. */
  readonly #channels = { read: 0, held: 0, small: 0 }
  #metric = 0
  /** The numbers that the server has said yes to, and those of them that the consumer may have committed. */
  readonly #promised = new Set<number>()
  readonly #committed = new Set<number>()
  readonly #totals = { requests: 0, yes: 0, cut: 0, again: 0, commits: 0 }

  constructor(options: RigOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
  }

  get moment(): string {
    return `kill ${this.#kills}`
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    while (this.#kills < count) {
      await this.#live()
      if (this.#kills % 10 === 0) say(`${this.#kills} kills, ${this.#promised.size} values promised`)
    }
    await this.#judgeHeld()
    return { kills: this.#kills, lost: 0, unexpected: 0, reused: 0, ...this.#totals, promised: this.#promised.size }
  }

  async remove(): Promise<void> {
    await this.#life?.kill().catch(() => {})
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #start(): Life {
    this.#life = new Life(this.#script, this.#directory, (this.#kills + 1) * LIFE, this.#options.seed + this.#kills)
    return this.#life
  }

  /** What was promised is judged first; then there are new promises, until it is killed. */
  async #live(): Promise<void> {
    const life = this.#start()
    const watcher = await life.login()
    if (this.#kills === 0) await this.#define(watcher)
    const { read, small } = this.#channels
    const reader = await this.#take(life, watcher, read)
    this.#judge('read', reader, this.#committed)
    const { accepted } = await watcher.ledger(small)
    if (accepted < this.#promised.size) throw new Error(`the small channel has counted ${accepted} values only`)
    life.go()
    const endMs = performance.now() + LEAST_LIFE_MS + this.#random.below(MOST_LIFE_MS)
    while (performance.now() < endMs) {
      await setTimeout(this.#random.below(15))
      if (this.#random.below(3) === 0) this.#commit(reader)
    }
    await life.underWay()
    await life.kill()
    await reader.close()
    this.#kills++
    this.#note(life)
  }

  async #define(seat: Seat): Promise<void> {
    const wide = ['window', type.uint32, u32(65_536)] as const
    this.#channels.read = await seat.defChannel(wide)
    this.#channels.held = await seat.defChannel(wide)
    this.#channels.small = await seat.defChannel(['max_bytes', type.uint64, u64(12_288)])
    this.#metric = await seat.collect('pub.*')
    await seat.ok((seq) => command.subscribe(seq, this.#metric, this.#channels.read))
    await seat.ok((seq) => command.subscribe(seq, this.#metric, this.#channels.small))
    await seat.ok((seq) => command.buffer(seq, this.#metric, this.#channels.held))
  }

  /** Takes a channel, and everything that waits there has come. */
  async #take(life: Life, watcher: Seat, channel: number, isHeld = false): Promise<Reader> {
    const seat = await life.login()
    await seat.setChannel(channel)
    if (isHeld) seat.peer.send(command.get(0x10000000, this.#metric))
    const reader = new Reader(seat)
    await until(
      'everything has come',
      async () => {
        const { queued, in_flight } = await watcher.ledger(channel)
        if (isHeld) reader.commit()
        return queued === 0 && in_flight === (isHeld ? 0 : reader.numbers.size)
      },
      PATIENCE,
    )
    this.#totals.again += reader.numbers.size
    return reader
  }

  #judge(name: string, { numbers }: Reader, gone: ReadonlySet<number>): void {
    const there = new Set(numbers.values())
    const lost = [...this.#promised].filter((number) => !there.has(number) && !gone.has(number))
    if (lost.length > 0) throw new Error(`${lost.length} promised values are lost on ${name}, the first is ${lost[0]}`)
  }

  #commit(reader: Reader): void {
    for (const number of reader.numbers.values()) this.#committed.add(number)
    reader.commit()
    this.#totals.commits++
  }

  #note({ begun, promised }: Life): void {
    for (const [from, to] of promised) for (let number = from; number <= to; number++) this.#promised.add(number)
    this.#totals.requests += begun.length
    this.#totals.yes += promised.length
    this.#totals.cut += begun.length - promised.length
  }

  /** What waited for GET through all lives. */
  async #judgeHeld(): Promise<void> {
    const life = this.#start()
    const watcher = await life.login()
    const { read, held } = this.#channels
    this.#judge('read', await this.#take(life, watcher, read), this.#committed)
    this.#judge('held', await this.#take(life, watcher, held, true), new Set())
    await life.kill()
  }
}
