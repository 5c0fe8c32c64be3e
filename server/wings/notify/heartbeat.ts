/**
 * A heartbeat: a service outside is asked again and again while rules are evaluated, and raises an alarm when it hears nothing. So it
 * is not sent when a rule fails, or when a group of rules is late: then nobody would hear of alerts.
 */
import type { Kit } from '../../kit/kit.ts'
import type { Owner, SensorStatus } from '../../kit/metrics.ts'
import type { Timer } from '../../kit/running.ts'
import type { NotifierTable } from './bodies.ts'
import { type NotifierCounts, noneTold } from './counts.ts'
import { notifyDestination } from './destination.ts'
import type { InForce } from './in-force.ts'
import { type NotifyDestination, testNotification } from './notification.ts'

/** What has failed is tried again after so long, and what is withheld looked at. */
const AGAIN_MS = 10_000
const MAX_DETAIL = 300

type HeartbeatKit = Pick<Kit, 'clock' | 'log'> & { readonly expressions: Pick<Kit['expressions'], 'watch'> }

export class Heartbeat implements InForce {
  readonly owner: Owner
  readonly table: NotifierTable
  readonly counts: NotifierCounts = noneTold()
  readonly groups = undefined
  readonly isStopped = false
  readonly isToStart = false
  failingSinceMs: number | undefined
  readonly #kit: HeartbeatKit
  #destination: NotifyDestination | undefined
  #problem = ''
  #timer: Timer | undefined
  #isOver = false

  constructor(table: NotifierTable, kit: HeartbeatKit) {
    this.table = table
    this.#kit = kit
    this.owner = { tenant: table.tenant }
  }

  async start(): Promise<void> {
    if (this.#isOver) return
    this.#destination = notifyDestination(this.table, this.#kit.clock)
    void this.#beat()
  }

  lookAgain(): void {}

  /** It knows no alerts. */
  observe(): void {}
  failures(): readonly [] {
    return []
  }
  escalate(): void {}
  sweep(): void {}

  stop(): void {
    this.#isOver = true
    this.#kit.clock.clear(this.#timer)
    this.#destination?.close()
  }

  get problem(): string {
    return this.#problem
  }

  status(): SensorStatus {
    const { name, url } = this.table
    const detail = this.#problem === '' ? url.shown : `${url.shown}: ${this.#problem}`
    const state = this.#problem === '' ? 'telling' : 'failed'
    return { name: `notify/${name}`, state, detail, counters: { ...this.counts } }
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    const { clock } = this.#kit
    const { intervalMs } = this.table
    this.#changed(await this.#sent())
    if (this.#isOver) return
    const waitMs = this.#problem === '' ? intervalMs : Math.min(intervalMs, AGAIN_MS)
    this.#timer = clock.setTimeout(() => void this.#beat(), waitMs)
  }

  /** Why it did not arrive, or was not sent; empty if it has arrived. */
  async #sent(): Promise<string> {
    const { clock, expressions } = this.#kit
    const problem = expressions.watch.problemOf(this.table.tenant)
    if (problem !== undefined) return `nothing is sent: ${problem}`
    try {
      this.counts.requests++
      // What it says is not sent.
      const { verdict, detail } = await (this.#destination as NotifyDestination).send(testNotification(clock.wallMs()))
      if (verdict !== 'taken') return `the receiver answered ${detail}`
      this.counts.delivered++
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }

  #changed(problem: string): void {
    if (this.#isOver) return
    const { name, tenant, url } = this.table
    const where = { notifier: name, tenant, url: url.shown }
    const shown = problem.slice(0, MAX_DETAIL)
    if (shown !== '' && this.#problem === '') this.#kit.log.warn({ ...where, detail: shown }, 'no heartbeat goes out')
    if (shown === '' && this.#problem !== '') this.#kit.log.info(where, 'heartbeats go out again')
    if (shown === '') this.failingSinceMs = undefined
    else this.failingSinceMs ??= this.#kit.clock.wallMs()
    this.#problem = shown
  }
}
