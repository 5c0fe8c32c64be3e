/**
 * Rig: SIGKILL around EXECUTEs that a rule has wait for approval. One user asks, with a key or without one, another one approves or refuses
 * what it is shown; the program that runs writes a line when it begins and one when it ends. Whatever was killed in between, what was
 * approved ran once, or its result says that this is not known; what was refused has not run, and nothing ran without an approval.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { verifyAudit } from '../../server/kernel/accounts/audit/verify.ts'
import { withAuditFile } from '../../storage/sqlite/audit-file.ts'
import { KilledServer } from '../rig/killed-server/killed-server.ts'
import { until } from '../rig/patience.ts'
import { type Rig, type RigOptions, runCourse, Tally, type Totals } from '../rig/rig.ts'
import { Link, type User } from '../rig/world/link.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Random } from '../support/random.ts'
import { decoded, type Json } from '../support/records.ts'
import { tallied } from './executes.ts'

const [INVALID_ARGUMENT, BUSY] = [6, 13]
/** Killed there, or at any moment. */
const APPROVAL_POINTS = [
  'approval-not-asked',
  'approval-asked',
  'approval-not-stored',
  'approval-stored',
  'result-not-stored',
] as const
const MOST_LIFE_MS = 300
/** A point that is not reached by then is not waited for. */
const PATIENCE_MS = 1200
const CALLS_PER_LIFE = 8
/** Thirty seconds. */
const ANSWER = { looks: 3_000, everyMs: 10 }
/** How long a program runs at most, beyond what writing takes. */
const MOST_SLEEP_MS = 40
const PASSWORD = 'correct horse battery staple'

export const approvals: Rig = async (options) => {
  // It warns that the program runs as its own user.
  const server = new KilledServer({ udpPort: await freePort(), logLevel: 'error' })
  const file = join(server.directory, 'ran')
  server.append(tableOf(file))
  return runCourse('approvals', options, new Run(server, file, options))
}

/** What the operator writes in the argument of `sh -c` is the operator's own; name and time stand in arguments after it. */
function tableOf(file: string): string {
  const script = `echo "begin $1" >> ${file}; sleep "$2"; echo "end $1" >> ${file}`
  const parameter = (name: string, pattern: string): string =>
    `[[exec.parameter]]\nname = "${name}"\npattern = "${pattern}"\n`
  return (
    `[[exec]]\nname = "exec.write"\nargv = ["/bin/sh", "-c", ${JSON.stringify(script)}, "sh", "{name}", "{sleep}"]\n` +
    `dry_run_argv = ["/bin/echo", "would write {name}"]\n` +
    `max_running = 64\n${parameter('name', 'c[0-9]+')}${parameter('sleep', '0[.][0-9]+')}`
  )
}

/** Something to run once. */
interface Call {
  readonly name: string
  readonly sleep: string
  /** Asked for again and again until it has an answer; others are asked for once. */
  readonly isKeyed: boolean
  /** Whether an EXECUTE of it was answered OK. */
  isAccepted: boolean
  /** Outcomes that came, of whichever EXECUTE. */
  readonly outcomes: Set<string>
}

type Argument = readonly [string, number, Uint8Array]
const text = (name: string, value: string): Argument => [name, type.string, str(value)]

class Run {
  readonly #server: KilledServer
  readonly #file: string
  readonly #options: RigOptions
  readonly #random: Random
  readonly #admin: User = { name: 'local', secret: '', keys: undefined }
  readonly #asker: User = { name: 'asker', secret: PASSWORD, keys: undefined }
  readonly #lead: User = { name: 'lead', secret: PASSWORD, keys: undefined }
  readonly #calls: Call[] = []
  /** By the id of a result on the channel of the asker, which outlives the server. */
  readonly #announced = new Map<number, Call>()
  readonly #fired = new Tally(APPROVAL_POINTS.map((point) => `at ${point}`))
  #kills = 0
  #asked = 0
  #decided = 0

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
    await this.#setUp()
    while (this.#kills < count) {
      // Each point in its turn, and after each of them any moment.
      const point = this.#kills % 2 === 0 ? APPROVAL_POINTS[(this.#kills / 2) % APPROVAL_POINTS.length] : undefined
      await this.#live(point)
      if (this.#kills % 50 === 0) say(`${this.#kills} kills, ${this.#calls.length} calls`)
    }
    await this.#endAll()
    return this.#judge()
  }

  async #start(): Promise<void> {
    if (!(await this.#server.start())) throw new Error('the server did not start')
  }

  async #open(user: User): Promise<Link> {
    const link = await Link.open(this.#server.listener, user)
    if (link === undefined) throw new Error('the server is gone')
    return link
  }

  /** Two users, and the rule. */
  async #setUp(): Promise<void> {
    await this.#start()
    this.#admin.secret = this.#server.secret
    const link = await this.#open(this.#admin)
    const results: Json[] = []
    link.onMessage = (message) => {
      if (message.kind === 'value') results.push(decoded(message))
    }
    const controls: readonly (readonly [string, ...Argument[]])[] = [
      [
        'role.allow',
        text('role', 'operator'),
        text('command', 'EXECUTE'),
        text('object', 'exec.write'),
        text('approval', 'lead'),
      ],
      ['user.add', text('user', 'asker'), text('role', 'operator'), text('password', PASSWORD)],
      ['user.add', text('user', 'lead'), text('role', 'lead'), text('password', PASSWORD)],
    ]
    for (const [name, ...list] of controls) await link.ok((seq) => command.execute(seq, name, args(...list)))
    await until('the users and the rule are there', () => results.length === controls.length, ANSWER)
    for (const { outcome, detail } of results) if (outcome !== 'ok') throw new Error(`it was not set up: ${detail}`)
    link.close()
    await this.#server.stop()
    this.#server.healthy()
  }

  /** One life: new calls and some of before are asked for, and decided about, until the server is killed. */
  async #live(point: string | undefined): Promise<void> {
    const times = 1 + this.#random.below(4)
    const listens = await this.#server.start(point === undefined ? undefined : { point, times, delay: 0 })
    this.#kills++
    if (!listens) return
    const asker = await this.#askerLink()
    const lead = await Link.open(this.#server.listener, this.#lead)
    if (asker !== undefined) void this.#askSome(asker)
    const deciding = lead && this.#decide(lead)
    const ms = point === undefined ? this.#random.below(MOST_LIFE_MS) : PATIENCE_MS
    await Promise.race([this.#server.exited, setTimeout(ms, undefined, { ref: false })])
    if (point !== undefined && this.#server.fired) this.#fired.add(`at ${point}`)
    await this.#server.kill()
    this.#server.healthy()
    await Promise.all([asker?.ended, lead?.ended, deciding])
  }

  /** On the channel of that name, which is there again in each life; undefined if the server is gone. */
  async #askerLink(): Promise<Link | undefined> {
    const link = await Link.open(this.#server.listener, this.#asker)
    if (link === undefined) return undefined
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      const call = this.#announced.get(message.metric)
      const { outcome }: Json = decoded(message)
      // The last one is the last of the set.
      call?.outcomes.delete(outcome)
      call?.outcomes.add(outcome)
      // Once it is committed, the id may be that of another result, whose announcement a kill has cut off.
      this.#announced.delete(message.metric)
      link.commit(message.transaction, false, () => {})
    }
    const channel = await link.ok((seq) => command.defChannel(seq, '', args(text('name', 'asks'))))
    if (channel === undefined) return undefined
    return (await link.ok((seq) => command.setChannel(seq, channel))) === undefined ? undefined : link
  }

  async #askSome(link: Link): Promise<void> {
    for (let i = 0; i < CALLS_PER_LIFE; i++) {
      const call = this.#newCall()
      this.#calls.push(call)
      void this.#ask(link, call)
    }
    const repeated = this.#calls.slice(-3 * CALLS_PER_LIFE).filter(({ isKeyed }) => isKeyed)
    for (let i = 0; i < CALLS_PER_LIFE; i++) void this.#ask(link, this.#random.pick(repeated))
  }

  #newCall(): Call {
    const sleep = `0.${String(this.#random.below(MOST_SLEEP_MS)).padStart(3, '0')}`
    const isKeyed = this.#random.below(4) > 0
    return { name: `c${this.#calls.length}`, sleep, isKeyed, isAccepted: false, outcomes: new Set() }
  }

  /** False if it was not answered OK. */
  async #ask(link: Link, call: Call): Promise<boolean> {
    const key = call.isKeyed ? [text('idempotency_key', call.name)] : []
    const list = args(text('name', call.name), text('sleep', call.sleep), ...key)
    this.#asked++
    const response = await link.ask(
      (seq) => command.execute(seq, 'exec.write', list),
      ({ status, result }) => {
        if (status !== 0) return
        call.isAccepted = true
        this.#announced.set(result, call)
      },
    )
    if (response === undefined || response.status === BUSY) return false
    if (response.status !== 0) throw new Error(`EXECUTE of ${call.name}: status ${response.status}: ${response.detail}`)
    return true
  }

  /** Approves what waits, but refuses every fifth call, as long as there is a connection. */
  async #decide(link: Link): Promise<void> {
    const shown: Json[] = []
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      const value: Json = decoded(message)
      if (value.state === 'waiting') shown.push(value)
      link.commit(message.transaction, false, () => {})
    }
    const id = await link.ok((seq) => command.collect(seq, 'control.pending'))
    if (id === undefined) return
    await link.ok((seq) => command.subscribe(seq, id))
    while (!link.closed) {
      const next = shown.shift()
      if (next === undefined) {
        await setTimeout(2)
        continue
      }
      const decision =
        Number(next.args.name.slice(1)) % 5 === 4
          ? (['control.refuse', text('reason', 'no')] as const)
          : (['control.approve'] as const)
      const [control, ...more] = decision
      const response = await link.ask((seq) => command.execute(seq, control, args(text('id', next.id), ...more)))
      if (response?.status === 0) this.#decided++
      // It was approved in the same moment in which the server was killed before.
      else if (response !== undefined && response.status !== INVALID_ARGUMENT) {
        throw new Error(`${control} of ${next.args.name}: status ${response.status}: ${response.detail}`)
      }
    }
  }

  /** The last life: everything is asked for that has no answer yet, and approved. */
  async #endAll(): Promise<void> {
    await this.#start()
    const asker = await this.#askerLink()
    if (asker === undefined) throw new Error('the server is gone')
    const lead = await this.#open(this.#lead)
    const deciding = this.#decide(lead)
    // Of some a kill has cut off the announcement: nothing comes of these.
    const before = new Set(this.#announced.keys())
    for (const call of this.#calls) {
      if (call.isKeyed) while (!(await this.#ask(asker, call))) await setTimeout(5)
    }
    const open = (): Call[] => this.#calls.filter(({ isAccepted, outcomes }) => isAccepted && outcomes.size === 0)
    const isAnswered = (): boolean => [...this.#announced.keys()].every((id) => before.has(id))
    await until('each call has an answer, each time', () => open().length === 0 && isAnswered(), ANSWER)
    await setTimeout(2 * MOST_SLEEP_MS)
    asker.close()
    lead.close()
    await deciding
    await this.#server.stop()
    this.#server.healthy()
  }

  #judge(): Totals {
    const lines = existsSync(this.#file) ? readFileSync(this.#file, 'utf8').trim().split('\n') : []
    const written = tallied(lines)
    const finding = verifyAudit(this.#server.database)
    if (!finding.whole) throw new Error(`the audit log is broken at ${finding.at}: ${finding.problem}`)
    const records = withAuditFile(this.#server.database, (file) => [...file.records].map(recordOf))
    const counted = (action: string): Tally =>
      tallied(records.filter((one) => one.action === action).map(({ name }) => name))
    const [asked, executed] = [counted('ask'), counted('execute')]
    const outcomes = { ok: 0, unknown: 0, refused: 0 }
    for (const { name, isKeyed, isAccepted, outcomes: came } of this.#calls) {
      const [begun, ended] = [written.of(`begin ${name}`), written.of(`end ${name}`)]
      const reported = `${name}: began ${begun} times, ended ${ended} times, answers ${[...came].join(', ')}`
      if (begun > 1 || ended > begun) throw new Error(`it ran more than once: ${reported}`)
      if (begun > executed.of(name)) throw new Error(`it ran without a record of its approval: ${reported}`)
      if (asked.of(name) > 1 || executed.of(name) > asked.of(name)) {
        throw new Error(`asked for ${asked.of(name)} times, started ${executed.of(name)} times: ${reported}`)
      }
      if (!isAccepted) continue
      const answers = [...came]
      const outcome = answers.at(-1)
      // Of a repetition that a kill has cut off nothing is known, though what it repeats is: the next one says that again.
      const isOne = answers.every((one) => one === outcome || (isKeyed && one === 'unknown'))
      if (!isOne || !(outcome === 'ok' || outcome === 'unknown' || outcome === 'refused')) {
        throw new Error(`not one answer: ${reported}`)
      }
      if (outcome === 'ok' && ended !== 1) throw new Error(`it did not run: ${reported}`)
      if (outcome === 'refused' && executed.of(name) > 0) throw new Error(`it was refused, and started: ${reported}`)
      outcomes[outcome]++
    }
    return {
      kills: this.#kills,
      lost: 0,
      unexpected: 0,
      reused: 0,
      ...this.#fired.totals(),
      calls: this.#calls.length,
      asked: this.#asked,
      decided: this.#decided,
      ran: lines.filter((line) => line.startsWith('begin')).length,
      ...outcomes,
      records: finding.records,
    }
  }
}

interface Recorded {
  readonly action: string
  readonly name: string
}

function recordOf(record: { readonly action: unknown; readonly args: unknown }): Recorded {
  const text = (of: unknown): string => (of instanceof Uint8Array ? Buffer.from(of).toString() : String(of))
  const given: Json = JSON.parse(text(record.args))
  return { action: text(record.action), name: given.name ?? '' }
}
