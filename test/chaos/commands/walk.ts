/**
 * The model and the server side by side. A command is done in the model first, then sent; when everything has come to rest,
 * what the consumers were sent and what the ledger says has to be what the model says.
 */

import type { Batch } from '../../../storage/store.ts'
import type { MemoryStore } from '../../support/memory-store/store.ts'
import { checkLedger, learnAnswers, learnGaps } from './ledger.ts'
import { type ConnectionModel, type Expected, Model, type State } from './model.ts'
import { checkIdle, observe } from './observe.ts'
import { Stage } from './stage.ts'
import type { Outcome } from './verbs.ts'

export interface Counts {
  commands: number
  values: number
  delivered: number
  /** The same value again, with the same transaction id. */
  duplicates: number
  crashes: number
}

export function newCounts(): Counts {
  return { commands: 0, values: 0, delivered: 0, duplicates: 0, crashes: 0 }
}

export class Walk {
  readonly model = new Model()
  readonly stage: Stage
  readonly counts: Counts
  /** What a crash would leave. Undefined: all there is, since every step is stored when it ends. */
  #stored: State | undefined
  #inFlight: { readonly batch: number; readonly state: State } | undefined
  emitted = 0

  private constructor(stage: Stage, counts: Counts) {
    this.stage = stage
    this.counts = counts
  }

  static async start(ground: MemoryStore, counts: Counts): Promise<Walk> {
    const stage = await Stage.start(ground)
    const walk = new Walk(stage, counts)
    stage.onWrite = (batch) => walk.#onWrite(batch)
    return walk
  }

  /** A batch is handed to the store: it holds what the model has now, and the one before is durable. */
  #onWrite(batch: Batch): void {
    if (!this.stage.manual) return
    this.#landed()
    const { model } = this
    const state = structuredClone(model.state)
    for (const change of batch.changes) {
      if (!('put' in change) || change.put !== 'result' || change.row.transaction === 0) continue
      const at = model.arrivals.findIndex(({ channel }) => model.channelIds.get(channel) === change.row.channel)
      if (at >= 0) model.arrivals.splice(at, 1)
    }
    for (const { token, channel } of model.arrivals) takeBack(state, token, channel)
    this.#inFlight = { batch: batch.number, state }
  }

  #landed(): void {
    if (this.#inFlight === undefined) return
    this.#stored = this.#inFlight.state
    this.#inFlight = undefined
  }

  async connect(user: number): Promise<number> {
    return this.model.connect(user, await this.stage.connect(user))
  }

  /** Sends a command of a connection; `judge` does it in the model. */
  async command(index: number, make: (seq: number) => Uint8Array, judge: () => Outcome): Promise<void> {
    const { model, stage } = this
    const connection = model.connections[index] as ConnectionModel
    const places = new Map([...model.state.channels.values()].map((channel) => [channel, channel.queue.next]))
    model.group++
    this.counts.commands++
    const seq = ++connection.seq
    const outcome = judge()
    const certain = outcome.changed === true && stage.manual
    const maybe = outcome.changed === 'maybe' && stage.manual
    const { after, run } = outcome
    const held = (certain || maybe) && (after !== undefined || run !== undefined)
    const expected: Expected = {
      connection: index,
      seq,
      status: outcome.status,
      earliest: certain ? stage.written + 1 : 0,
      latest: certain || maybe ? stage.written + 1 : 0,
      learn: outcome.learn ?? (() => {}),
      after: held ? after : undefined,
      run: held ? run : undefined,
    }
    model.expected.push(expected)
    for (const channel of outcome.hold ?? []) {
      if (channel.connection === index) channel.holds.set(`${index} ${seq}`, places.get(channel) ?? 0)
    }
    if (!held) {
      after?.()
      run?.()
    }
    stage.peers[index]?.send(make(seq))
    await stage.settle()
    // Which batch lets it go is not known, so all do.
    if (held && (maybe || outcome.alone)) {
      await this.#completeAll()
      expected.after?.()
      expected.run?.()
      expected.after = expected.run = undefined
      this.#storeAll()
    }
    await this.check()
  }

  /** The batch in flight becomes durable, and what waited for it happens. */
  async complete(): Promise<void> {
    await this.#complete()
    await this.check()
  }

  async #complete(): Promise<void> {
    const { model, stage } = this
    const due = model.expected.filter(({ latest }) => latest <= stage.written)
    model.group++
    for (const one of due) one.after?.()
    for (const one of due) one.run?.()
    for (const one of due) one.after = one.run = undefined
    stage.complete()
    await stage.settle()
    if (this.#inFlight !== undefined && stage.durable >= this.#inFlight.batch) this.#landed()
  }

  async #completeAll(): Promise<void> {
    while (this.stage.busy) await this.#complete()
  }

  /** Everything becomes durable. */
  async quiesce(): Promise<void> {
    await this.#completeAll()
    await this.check()
  }

  /** From here on batches are held, or not. */
  async hold(manual: boolean): Promise<void> {
    await this.quiesce()
    if (manual && !this.stage.canHold) return
    this.#storeAll()
    if (!manual) this.#stored = undefined
    this.stage.manual = manual
  }

  /** Nothing is under way: what there is is stored. */
  #storeAll(): void {
    this.#stored = structuredClone(this.model.state)
    this.#inFlight = undefined
    this.model.arrivals = []
  }

  async disconnect(index: number): Promise<void> {
    this.model.disconnect(index)
    this.stage.peers[index]?.destroy()
    await this.stage.settle()
    await this.check()
  }

  async crash(): Promise<void> {
    const { model, stage } = this
    const stored = this.#stored ?? model.state
    this.counts.crashes++
    await stage.crash()
    await this.#begin(stored, false)
  }

  /** A clean end and a new start: nothing may be missing. */
  async restart(): Promise<void> {
    await this.quiesce()
    const { model, stage } = this
    for (const index of model.connections.keys()) model.disconnect(index)
    await stage.restart()
    await this.#begin(model.state, true)
  }

  async #begin(stored: State, clean: boolean): Promise<void> {
    this.#stored = this.#inFlight = undefined
    this.model.restart(stored)
    learnGaps(this.model, await this.stage.channels(), clean)
    this.model.unknowns()
    this.model.arrivals = []
    await this.check()
  }

  /** What came, and what the ledger says. */
  async check(): Promise<void> {
    const list = await this.stage.channels()
    learnAnswers(this.model, list)
    observe(this.model, this.stage, this.counts)
    checkLedger(this.model, list, !this.stage.busy)
    if (!this.stage.busy) checkIdle(this.model)
  }
}

/** A result that came in the turn of a batch, but after it: the batch says only that it is to come. */
function takeBack({ channels, results }: State, token: number, key: number): void {
  const queue = channels.get(key)?.queue
  const result = results.get(token)
  if (queue === undefined || result === undefined) return
  results.set(token, { ...result, arrived: false })
  queue.sending = queue.sending.filter((one) => one.token !== token)
  queue.accepted--
  queue.next--
}
