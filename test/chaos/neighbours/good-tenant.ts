/**
 * The tenant that has to be served, whatever its neighbour does. It sends a NOP every 10 ms, whether the last one was
 * answered or not, so that a stop counts for as long as it lasts; it QUERYs a metric, one QUERY at a time; it logs in again
 * and again; and it follows its own feed, in which old metrics get values and new ones appear, and commits each value.
 */
import { createSocket, type Socket } from 'node:dgram'
import { setInterval, setTimeout } from 'node:timers/promises'
import { Link, type Message } from '../../rig/world/link.ts'
import { command, gmetricPacket } from '../../support/bytes.ts'
import type { Json } from '../../support/records.ts'
import { Seat } from '../../support/seat.ts'
import { connectAs, type LoginMethod, type Reach, type TenantUser, within } from './wire.ts'

/** The address that its feed sends from: by that the server knows whose it is. */
export const GOOD_FEED = '127.0.1.1'

const NOP_EVERY_MS = 10
const QUERY_EVERY_MS = 10
const VALUE_EVERY_MS = 20
const LOGIN_EVERY_MS = 250
/** Every fifth value is the first of a new metric. */
const NEW_METRIC_EVERY = 5
/** What takes longer has failed [MON 11]. */
const LOGIN_MS = 10_000
/** Nothing that was asked for may be missing for longer. */
const PATIENCE_MS = 30_000
const LOOK_MS = 10
/** Values that are left uncommitted when the server is killed. */
const HELD = 5

/** How long answers took. */
export interface Delays {
  readonly p99Ms: number
  readonly worstMs: number
}

/** What the tenant saw in one stretch of time. */
export interface Stretch {
  readonly nop: Delays
  /** Until the answer, not the response. */
  readonly query: Delays
  readonly logins: number
  /** Why logins failed. */
  readonly loginsFailed: readonly string[]
}

export class GoodTenant {
  readonly #login: TenantUser
  readonly #udpPort: number
  readonly #udp: Socket
  #reach: Reach
  /** Three connections, so that nothing of its own is before a NOP: for values and COMMITs, NOPs, and QUERYs. */
  #values: Link
  #probe: Link
  #desk: Seat
  #channel = 0
  /** The last number that was sent. */
  sent = 0
  /** Numbers that came, by transaction id; a GAP is the negative of its count. */
  readonly #came = new Map<number, number>()
  readonly #numbers = new Set<number>()
  readonly #committed = new Set<number>()
  #isCommitting = true
  /** Transaction ids whose COMMIT is not answered: after a kill they may come again, or not. */
  readonly #asked = new Set<number>()
  commitWorstMs = 0
  /** Values that GAPs reported as dropped. */
  dropped = 0
  /** Transaction ids under which two values came. */
  reused = 0
  /** What must not be, in words. */
  readonly wrong: string[] = []

  private constructor(reach: Reach, login: TenantUser, udpPort: number, udp: Socket, connections: Connections) {
    this.#reach = reach
    this.#login = login
    this.#udpPort = udpPort
    this.#udp = udp
    this.#values = connections.values
    this.#probe = connections.probe
    this.#desk = connections.desk
  }

  static async open(reach: Reach, login: TenantUser, udpPort: number): Promise<GoodTenant> {
    const udp = createSocket('udp4')
    await new Promise<void>((bound) => udp.bind(0, GOOD_FEED, bound))
    const tenant = new GoodTenant(reach, login, udpPort, udp, await connections(reach, login))
    // A name keeps its place in a network from which it succeeded before.
    await tenant.#logIn('password')
    tenant.#values.onMessage = (message) => tenant.#take(message)
    tenant.#channel = await tenant.#ok((seq) => command.defChannel(seq))
    await tenant.#ok((seq) => command.setChannel(seq, tenant.#channel))
    const id = await tenant.#ok((seq) => command.collect(seq, 'gmetric.*'))
    await tenant.#ok((seq) => command.subscribe(seq, id))
    return tenant
  }

  close(): void {
    this.#udp.close()
    this.#disconnect()
  }

  get channel(): number {
    return this.#channel
  }

  /** Numbers that were sent and neither came nor were reported as dropped. */
  get lost(): number {
    return this.sent - this.#numbers.size - this.dropped
  }

  get unanswered(): number {
    return this.#asked.size
  }

  get committed(): number {
    return this.#committed.size
  }

  /** Does everything at once until `end`; then waits until all is answered that was asked. */
  async measure(end: Promise<unknown>): Promise<Stretch> {
    const over = new AbortController()
    void end.finally(() => over.abort())
    const failed: string[] = []
    const [nops, queries, , ...logins] = await Promise.all([
      this.#probed(over.signal),
      this.#queried(over.signal),
      this.#feed(over.signal),
      this.#loginsUntil(over.signal, 'password', failed),
      this.#loginsUntil(over.signal, 'scram-sha-256', failed),
    ])
    await this.#settled()
    return {
      nop: delaysOf(nops),
      query: delaysOf(queries),
      logins: logins.reduce((sum, count) => sum + count, 0),
      loginsFailed: failed,
    }
  }

  /** Sends NOPs alone until `end`; gives how long each took. */
  async nops(end: Promise<unknown>): Promise<number[]> {
    const over = new AbortController()
    void end.finally(() => over.abort())
    return this.#probed(over.signal)
  }

  /** Sends values that are stored and not committed. After a kill and `comeBack` they, and only they, have to come again. */
  async hold(): Promise<void> {
    this.#isCommitting = false
    for (let n = 0; n < HELD; n++) this.#sendNext()
    await looked(async () => {
      const last = Math.max(...this.#came.keys())
      return this.lost <= 0 && (await this.#ledger()).stored >= last
    })
  }

  /** Takes its channel up at the server that was started again. */
  async comeBack(reach: Reach): Promise<void> {
    const held = new Set([...this.#came.keys()].filter((id) => !this.#committed.has(id) && !this.#asked.has(id)))
    this.#disconnect()
    this.#reach = reach
    const { values, probe, desk } = await connections(reach, this.#login)
    this.#values = values
    this.#probe = probe
    this.#desk = desk
    this.#isCommitting = true
    values.onMessage = (message) => this.#take(message, held)
    await within(
      PATIENCE_MS,
      'the channel was not taken up',
      this.#ok((seq) => command.setChannel(seq, this.#channel)),
    )
    this.#sendNext()
    await this.#settled()
    if (held.size > 0) this.wrong.push(`${held.size} stored values did not come again after a kill`)
    const { accepted, committed, dropped } = await this.#ledger()
    if (accepted !== committed + dropped.full) this.wrong.push(`${accepted} accepted, but ${committed} committed`)
  }

  #disconnect(): void {
    this.#values.onMessage = () => {}
    this.#values.close()
    this.#probe.close()
    this.#desk.peer.destroy()
  }

  async #ok(make: (seq: number) => Uint8Array): Promise<number> {
    const result = await this.#values.ok(make)
    if (result === undefined) throw new Error('the connection of the good tenant was ended')
    return result
  }

  #ledger(): Promise<Json> {
    return within(PATIENCE_MS, 'no ledger', this.#desk.ledger(this.#channel))
  }

  #sendNext(): void {
    const number = ++this.sent
    const name = number % NEW_METRIC_EVERY === 0 ? `new${number}` : 'tick'
    const packet = gmetricPacket('string', name, `#${number}#`)
    this.#udp.send(packet, this.#udpPort, '127.0.0.1')
  }

  async #feed(signal: AbortSignal): Promise<void> {
    await every(VALUE_EVERY_MS, signal, () => this.#sendNext())
  }

  /** NOPs without end; gives how long each took. One that is not answered took until now. */
  async #probed(signal: AbortSignal): Promise<number[]> {
    const delays: number[] = []
    const probe = this.#probe
    const waiting = new Set<number>()
    await every(NOP_EVERY_MS, signal, () => {
      const at = performance.now()
      waiting.add(at)
      void probe.ask(command.nop, () => {
        waiting.delete(at)
        delays.push(performance.now() - at)
      })
    })
    await looked(async () => waiting.size === 0 || probe.closed)
    if (probe.closed) this.wrong.push('its connection was ended')
    else if (waiting.size > 0) this.wrong.push(`${waiting.size} NOPs were not answered`)
    return [...delays, ...[...waiting].map((at) => performance.now() - at)]
  }

  /** QUERYs, one at a time; gives how long each took. One that is not answered took until now, and is the last. */
  async #queried(signal: AbortSignal): Promise<number[]> {
    const delays: number[] = []
    while (!signal.aborted) {
      const at = performance.now()
      try {
        await within(PATIENCE_MS, 'no answer to a QUERY', this.#desk.query('gmetric.tick'))
      } catch (error) {
        this.wrong.push(error instanceof Error ? error.message : String(error))
        return [...delays, performance.now() - at]
      }
      delays.push(performance.now() - at)
      await setTimeout(QUERY_EVERY_MS)
    }
    return delays
  }

  /** Gives the number of logins that succeeded. */
  async #loginsUntil(signal: AbortSignal, method: LoginMethod, failed: string[]): Promise<number> {
    let count = 0
    while (!signal.aborted) {
      try {
        await this.#logIn(method)
        count++
      } catch (error) {
        failed.push(`${method}: ${error instanceof Error ? error.message : error}`)
      }
      await setTimeout(LOGIN_EVERY_MS)
    }
    return count
  }

  async #logIn(method: LoginMethod): Promise<void> {
    const { peer } = await connectAs(this.#reach, this.#login, { method, withinMs: LOGIN_MS })
    peer.destroy()
  }

  /** `held`: ids that have to come again. */
  #take(message: Message, held?: Set<number>): void {
    if (message.kind === 'notice' || message.transaction === 0) return
    const { transaction } = message
    const number = message.kind === 'value' ? numberIn(message.value) : -message.count
    if (message.kind === 'gap' && !this.#came.has(transaction)) this.dropped += message.count
    if (this.#committed.has(transaction)) this.wrong.push(`${number} came again after its COMMIT was answered`)
    else if ((this.#came.get(transaction) ?? number) !== number) this.reused++
    else if (this.#came.has(transaction) && !this.#asked.has(transaction) && !held?.delete(transaction))
      this.wrong.push(`${transaction} came twice`)
    else if (!this.#came.has(transaction) && this.#numbers.has(number)) this.wrong.push(`${number} came under two ids`)
    this.#came.set(transaction, number)
    if (number > 0) this.#numbers.add(number)
    if (this.#isCommitting) this.#commit(transaction)
  }

  #commit(transaction: number): void {
    const at = performance.now()
    this.#asked.add(transaction)
    this.#values.commit(transaction, false, ({ status }) => {
      this.#asked.delete(transaction)
      this.commitWorstMs = Math.max(this.commitWorstMs, performance.now() - at)
      if (status === 0) this.#committed.add(transaction)
      else this.wrong.push(`a COMMIT was answered with status ${status}`)
    })
  }

  /** Waits until all values have come and all COMMITs are answered. What is missing after that stays missing. */
  async #settled(): Promise<void> {
    await looked(async () => (this.lost <= 0 && this.unanswered === 0) || this.#values.closed)
    if (this.#values.closed) this.wrong.push('the connection of its channel was ended')
  }
}

interface Connections {
  readonly values: Link
  readonly probe: Link
  readonly desk: Seat
}

async function connections(reach: Reach, login: TenantUser): Promise<Connections> {
  const open = () => connectAs(reach, login)
  const desk = await open()
  return {
    values: Link.over((await open()).peer),
    probe: Link.over((await open()).peer),
    desk: new Seat(desk.peer, desk.channel),
  }
}

function delaysOf(delays: number[]): Delays {
  delays.sort((a, b) => a - b)
  return { p99Ms: delays[Math.floor(delays.length * 0.99)] ?? 0, worstMs: delays.at(-1) ?? 0 }
}

function numberIn(value: Buffer): number {
  return Number(/#(\d+)#/.exec(value.toString('latin1'))?.[1] ?? 0)
}

async function looked(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS
  while (!(await holds()) && performance.now() < end) await setTimeout(LOOK_MS)
}

async function every(ms: number, signal: AbortSignal, act: () => void): Promise<void> {
  try {
    for await (const _ of setInterval(ms, undefined, { signal })) act()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
