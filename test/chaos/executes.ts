/**
 * Rig: SIGKILL around EXECUTEs with idempotency keys. The program that runs writes a line when it begins and one when it
 * ends. Each key is asked for again and again, in this life of the server and the next ones, until it has a final answer:
 * it ran at most once, its audit record was there before it ran, and every answer fits what it wrote.
 */

import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { KilledServer } from '../rig/killed-server/killed-server.ts'
import { until } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, type Totals } from '../rig/rig.ts'
import { Link, type User } from '../rig/world/link.ts'
import { text } from '../rig/world/link-controls.ts'
import { args, command } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { decoded, type Json } from '../support/records.ts'
import {
  auditOf,
  MOST_SLEEP_MS,
  randomSleep,
  recordedNames,
  WRITE,
  writingTables,
  writtenIn,
} from './approvals/writing.ts'

const BUSY = 13
/** Killed there, or at any moment. */
const POINTS = ['execute-announced', 'result-not-stored', 'inserted-not-committed', undefined, undefined, undefined]
const MOST_LIFE_MS = 250
/** A point that is not reached by then is not waited for. */
const PATIENCE_MS = 1200
const KEYS_PER_LIFE = 12
/** Twenty seconds. */
const ANSWER = { looks: 2_000, everyMs: 10 }

export const executes: Rig = async (options) => {
  // It warns that the program runs as its own user.
  const server = new KilledServer({ udpPort: await freePort(), logLevel: 'error' })
  const file = join(server.directory, 'ran')
  server.append(writingTables(file))
  return runCourse('executes', options, new Run(server, file, options))
}

interface Key {
  readonly name: string
  readonly sleep: string
  /** Outcomes that came, of whichever EXECUTE. */
  readonly outcomes: Set<string>
}

class Run {
  readonly #server: KilledServer
  readonly #file: string
  readonly #options: RigOptions
  readonly #random: Random
  readonly #user: User = { name: 'local', secret: '', keys: undefined }
  readonly #keys: Key[] = []
  #kills = 0
  #fired = 0
  #asked = 0

  constructor(server: KilledServer, file: string, options: RigOptions) {
    this.#server = server
    this.#file = file
    this.#options = options
    this.#random = new Random(options.seed)
  }

  get moment(): string {
    return `kill ${this.#kills}`
  }

  remove(): Promise<void> {
    return this.#server.remove()
  }

  async all(): Promise<Totals> {
    const { count, say } = this.#options
    while (this.#kills < count) {
      await this.#live(this.#kills === 0 ? undefined : this.#random.pick(POINTS))
      if (this.#kills % 50 === 0) say(`${this.#kills} kills, ${this.#keys.length} keys`)
    }
    await this.#askAll()
    return this.#judge()
  }

  /** One life: some keys of before and some new ones, until it is killed. */
  async #live(point: string | undefined): Promise<void> {
    const times = 1 + this.#random.below(6)
    const listens = await this.#server.start(point === undefined ? undefined : { point, times, delay: 0 })
    this.#kills++
    if (!listens) return
    this.#user.secret = this.#server.secret
    const link = await Link.open(this.#server.listener, this.#user)
    if (link !== undefined) this.#send(link)
    const ms = point === undefined ? this.#random.below(MOST_LIFE_MS) : PATIENCE_MS
    await Promise.race([this.#server.exited, setTimeout(ms, undefined, { ref: false })])
    if (this.#server.fired) this.#fired++
    await this.#server.kill()
    this.#server.healthy()
    await link?.ended
  }

  #send(link: Link): void {
    const asked = this.#listen(link)
    for (let i = 0; i < KEYS_PER_LIFE; i++) this.#keys.push(this.#newKey())
    const recent = this.#keys.slice(-3 * KEYS_PER_LIFE)
    for (let i = 0; i < 2 * KEYS_PER_LIFE; i++) void this.#execute(link, this.#random.pick(recent), asked)
  }

  #newKey(): Key {
    return { name: `c${this.#keys.length}`, sleep: randomSleep(this.#random), outcomes: new Set() }
  }

  /** By result id. */
  #listen(link: Link): Map<number, Key> {
    const asked = new Map<number, Key>()
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      const { outcome }: Json = decoded(message)
      asked.get(message.metric)?.outcomes.add(outcome)
      link.commit(message.transaction, false, () => {})
    }
    return asked
  }

  /** The result id; undefined if the server is gone or has too much to do. */
  async #execute(link: Link, key: Key, asked: Map<number, Key>): Promise<number | undefined> {
    const list = args(text('name', key.name), text('sleep', key.sleep), text('idempotency_key', key.name))
    this.#asked++
    const response = await link.ask(
      (seq) => command.execute(seq, WRITE, list),
      ({ status, result }) => {
        if (status === 0) asked.set(result, key)
      },
    )
    if (response === undefined || response.status === BUSY) return undefined
    if (response.status !== 0) throw new Error(`EXECUTE of ${key.name}: status ${response.status}: ${response.detail}`)
    return response.result
  }

  /** The last life: every key gives its final answer. */
  async #askAll(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
    const link = await Link.open(this.#server.listener, this.#user)
    if (link === undefined) throw new Error('the server is gone')
    const asked = this.#listen(link)
    for (const key of this.#keys) {
      // A key that nobody took before runs now; no more at once than the control takes.
      const before = asked.size
      while ((await this.#execute(link, key, asked)) === undefined) await setTimeout(5)
      if (asked.size === before) throw new Error(`no result id for ${key.name}`)
    }
    await until('every key has an answer', () => this.#keys.every(({ outcomes }) => outcomes.size > 0), ANSWER)
    await setTimeout(2 * MOST_SLEEP_MS)
    link.close()
    await this.#server.stop()
    this.#server.healthy()
  }

  #judge(): Totals {
    const written = writtenIn(this.#file)
    const records = auditOf(this.#server.database)
    const executed = recordedNames(records, 'execute')
    let ran = 0
    const outcomes = { ok: 0, unknown: 0 }
    for (const { name, outcomes: came } of this.#keys) {
      const [begun, ended] = [written.of(`begin ${name}`), written.of(`end ${name}`)]
      const reported = `${name}: began ${begun} times, ended ${ended} times, answers ${[...came].join(', ')}`
      ran += begun
      const [outcome] = came
      if (came.size !== 1 || (outcome !== 'ok' && outcome !== 'unknown')) throw new Error(`not one answer: ${reported}`)
      if (begun > 1 || ended > begun) throw new Error(`it ran more than once: ${reported}`)
      if (outcome === 'ok' && ended !== 1) throw new Error(`it did not run: ${reported}`)
      if (executed.of(name) !== 1) throw new Error(`${executed.of(name)} audit records of a start: ${reported}`)
      outcomes[outcome]++
    }
    const open = records.filter(({ action }) => action === 'execute').length
    const closed = records.filter(({ action }) => action === 'outcome').length
    if (open !== closed) throw new Error(`${open} starts and ${closed} outcomes in the audit log`)
    return {
      kills: this.#kills,
      lost: 0,
      unexpected: 0,
      reused: 0,
      'at named points': this.#fired,
      keys: this.#keys.length,
      asked: this.#asked,
      ran,
      ...outcomes,
      records: records.length,
    }
  }
}
