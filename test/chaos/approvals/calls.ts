/** Calls of a program that a rule has wait for approval: how they are asked for and decided about, and whether all of it fits. */
import { setTimeout } from 'node:timers/promises'
import { until } from '../../rig/patience.ts'
import type { Tally, Totals } from '../../rig/rig.ts'
import { Link, type Listener, type User } from '../../rig/world/link.ts'
import { type Argument, administer, text } from '../../rig/world/link-controls.ts'
import { args, command } from '../../support/bytes.ts'
import { decoded, type Json } from '../../support/records.ts'
import { auditOf, recordedNames, WRITE, writtenIn } from './writing.ts'

const [INVALID_ARGUMENT, NO_SUCH_CONTROL, BUSY] = [6, 10, 13]
const PASSWORD = 'correct horse battery staple'
/** Thirty seconds. */
const ANSWER = { looks: 3_000, everyMs: 10 }
const PAUSE_MS = 5
/** What is said of an id under which nothing waits any more. */
const ENDED = 'it may have ended'

/** Something to run once. */
export interface Call {
  readonly name: string
  readonly sleep: string
  /** Asked for again and again until it has an answer; others are asked for once. */
  readonly isKeyed: boolean
  readonly isRefused: boolean
  /** Whether an EXECUTE of it was answered OK. */
  isAccepted: boolean
  /** Outcomes that came, of whichever EXECUTE; the last one is the last of the set. */
  readonly outcomes: Set<string>
}

/** What waits, as whoever decides is shown it. */
export interface Shown {
  readonly id: string
  readonly name: string
}

/** One user asks, another one decides. */
export class Calls {
  readonly all: Call[] = []
  readonly #asker: User = { name: 'asker', secret: PASSWORD, keys: undefined }
  readonly #lead: User = { name: 'lead', secret: PASSWORD, keys: undefined }
  /** Arguments of each, beside those of the program. */
  readonly #more: readonly Argument[]
  /** By the id of a result on the channel of the asker, which outlives the server. */
  readonly #announced = new Map<number, Call>()
  /** By the ids of their results, on the channel of the connection of whoever decides. */
  readonly #decisions = new Map<number, { again(link: Link): void }>()
  asked = 0
  decided = 0

  constructor(more: readonly Argument[] = []) {
    this.#more = more
  }

  /** Makes both users, and the rule. */
  async setUp(listener: Listener, admin: User): Promise<void> {
    await administer(listener, admin, [
      [
        'role.allow',
        text('role', 'operator'),
        text('command', 'EXECUTE'),
        text('object', WRITE),
        text('approval', 'lead'),
      ],
      ['user.add', text('user', 'asker'), text('role', 'operator'), text('password', PASSWORD)],
      ['user.add', text('user', 'lead'), text('role', 'lead'), text('password', PASSWORD)],
    ])
  }

  add(call: Pick<Call, 'sleep' | 'isKeyed' | 'isRefused'>): Call {
    const made = { ...call, name: `c${this.all.length}`, isAccepted: false, outcomes: new Set<string>() }
    this.all.push(made)
    return made
  }

  /** On the channel of that name, which is there again in each life; undefined if the server is gone. */
  async askerLink(listener: Listener): Promise<Link | undefined> {
    const link = await Link.open(listener, this.#asker)
    if (link === undefined) return undefined
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      const call = this.#announced.get(message.metric)
      const { outcome }: Json = decoded(message)
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

  /** False if it was not answered OK. */
  async ask(link: Link, call: Call): Promise<boolean> {
    const key = call.isKeyed ? [text('idempotency_key', call.name)] : []
    const list = args(text('name', call.name), text('sleep', call.sleep), ...this.#more, ...key)
    this.asked++
    const response = await link.ask(
      (seq) => command.execute(seq, WRITE, list),
      ({ status, result }) => {
        if (status !== 0) return
        call.isAccepted = true
        this.#announced.set(result, call)
      },
    )
    // The producer that is to run it may not be known yet.
    if (response === undefined || response.status === BUSY) return false
    if (response.status === NO_SUCH_CONTROL && this.#more.length > 0) return false
    if (response.status !== 0) throw new Error(`EXECUTE of ${call.name}: status ${response.status}: ${response.detail}`)
    return true
  }

  /** Calls `shown` with each that waits, as long as there is a connection; undefined if there is none. */
  async leadLink(listener: Listener, shown: (one: Shown, link: Link) => void): Promise<Link | undefined> {
    const link = await Link.open(listener, this.#lead)
    if (link === undefined) return undefined
    link.onMessage = (message) => {
      if (message.kind !== 'value') return
      const value: Json = decoded(message)
      if (value.state === 'waiting') shown({ id: value.id, name: value.args.name }, link)
      // It waits on where what is to run it is not connected, for example.
      const decided = this.#decisions.get(message.metric)
      if (this.#decisions.delete(message.metric) && value.outcome === 'failed' && !value.detail.includes(ENDED)) {
        void setTimeout(PAUSE_MS).then(() => decided?.again(link))
      }
      link.commit(message.transaction, false, () => {})
    }
    this.#decisions.clear()
    const id = await link.ok((seq) => command.collect(seq, 'control.pending'))
    if (id === undefined) return undefined
    return (await link.ok((seq) => command.subscribe(seq, id))) === undefined ? undefined : link
  }

  /** Approves what waits, or refuses it if it is to be refused. */
  async decide(link: Link, { id, name }: Shown): Promise<void> {
    const isRefused = this.all.find((call) => call.name === name)?.isRefused === true
    const [control, more] = isRefused
      ? (['control.refuse', [text('reason', 'no')]] as const)
      : (['control.approve', []] as const)
    for (;;) {
      const again = (link: Link): void => void this.decide(link, { id, name })
      const response = await link.ask(
        (seq) => command.execute(seq, control, args(text('id', id), ...more)),
        ({ status, result }) => status === 0 && this.#decisions.set(result, { again }),
      )
      if (response === undefined) return
      if (response.status === 0) this.decided++
      if (response.status === BUSY) {
        await setTimeout(PAUSE_MS)
        continue
      }
      // It was approved in the same moment in which the server was killed before.
      if (response.status === 0 || response.status === INVALID_ARGUMENT) return
      throw new Error(`${control} of ${name}: status ${response.status}: ${response.detail}`)
    }
  }

  /** Asks for every call with a key again, and waits until each has an answer. What waits has to be decided meanwhile. */
  async answered(asker: Link): Promise<void> {
    // Of some a kill has cut off the announcement: nothing comes of these.
    const before = new Set(this.#announced.keys())
    for (const call of this.all) if (call.isKeyed) await this.askUntilTaken(asker, call)
    const open = (): string[] => [
      ...this.all.filter(({ isAccepted, outcomes }) => isAccepted && outcomes.size === 0).map(({ name }) => name),
      ...[...this.#announced].filter(([id]) => !before.has(id)).map(([id, { name }]) => `${name} (${id})`),
    ]
    await until('each call has an answer, each time', () => open().length === 0, ANSWER).catch((error: Error) => {
      throw new Error(`${error.message}: none of ${open().join(', ')}`)
    })
  }

  async askUntilTaken(link: Link, call: Call): Promise<void> {
    await until(`${call.name} is taken`, async () => link.closed || (await this.ask(link, call)), {
      ...ANSWER,
      everyMs: PAUSE_MS,
    })
  }

  /**
   * Throws unless everything fits: the lines of the programs, the audit log of the server where they were asked for, and of the one that
   * has run them, and the answers.
   */
  judge(file: string, above: string, below = above): Totals {
    const written = writtenIn(file)
    const records = auditOf(above)
    const [asked, executed] = [recordedNames(records, 'ask'), recordedNames(records, 'execute')]
    const ran = below === above ? executed : recordedNames(auditOf(below), 'execute')
    const outcomes = { ok: 0, unknown: 0, refused: 0 }
    for (const { name, isKeyed, isAccepted, outcomes: came } of this.all) {
      const [begun, ended] = [written.of(`begin ${name}`), written.of(`end ${name}`)]
      const reported = `${name}: began ${begun} times, ended ${ended} times, answers ${[...came].join(', ')}`
      if (begun > 1 || ended > begun) throw new Error(`it ran more than once: ${reported}`)
      if (begun > executed.of(name) || begun > ran.of(name)) {
        throw new Error(`it ran without a record of its approval: ${reported}`)
      }
      if (asked.of(name) > 1 || executed.of(name) > asked.of(name) || ran.of(name) > executed.of(name)) {
        throw new Error(`asked for ${asked.of(name)} times, started ${executed.of(name)} times: ${reported}`)
      }
      if (!isAccepted) continue
      const answers = [...came]
      const outcome = answers.at(-1)
      // What is unknown above may be known below, and then a repetition learns it.
      const isOne = answers.every((one) => one === outcome || (below !== above && isKeyed && one === 'unknown'))
      if (!isOne || !(outcome === 'ok' || outcome === 'unknown' || outcome === 'refused')) {
        throw new Error(`not one answer: ${reported}`)
      }
      if (outcome === 'ok' && ended !== 1) throw new Error(`it did not run: ${reported}`)
      if (outcome === 'refused' && executed.of(name) > 0) throw new Error(`it was refused, and started: ${reported}`)
      outcomes[outcome]++
    }
    return {
      calls: this.all.length,
      asked: this.asked,
      decided: this.decided,
      ran: begunIn(written, this.all),
      ...outcomes,
      records: records.length,
    }
  }
}

function begunIn(written: Tally, calls: readonly Call[]): number {
  return calls.filter(({ name }) => written.of(`begin ${name}`) > 0).length
}
