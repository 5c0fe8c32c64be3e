/**
 * The real thing: a server over a store that can be held and killed, consumers at the level of bytes, and an observer, an
 * admin who is asked what there is after every step. `onWrite` sees each batch as it is handed to the store.
 */

import type { Batch } from '../../../storage/store.ts'
import { command } from '../../support/bytes.ts'
import type { MemoryStore } from '../../support/memory-store/store.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'
import { decoded, type Json } from '../../support/records.ts'
import { SqliteBacked } from './sqlite-backed.ts'

export const users = ['ada', 'bob'] as const
const OBSERVER = 'observer'

/** Over the wire only so often. */
const ASK_EVERY = 40

/** A store with the users in it: made once, since keys cost more than a sequence. Gives it back, closed. */
export async function prepareGround(store: MemoryStore): Promise<MemoryStore> {
  const producer = await TestProducer.start({ store })
  for (const name of users) await producer.addUser(name)
  await producer.addUser(OBSERVER, { role: 'admin' })
  await producer.stop()
  return store
}

export class Stage {
  #producer: TestProducer
  #observer: RawPeer | undefined
  #asked = 0
  /** Above those of AUTH. */
  #seq = 9
  #overheard: MemoryStore | undefined
  onWrite: (batch: Batch) => void = () => {}
  readonly peers: RawPeer[] = []
  /** The batch that was last handed to the store. */
  written = 0

  private constructor(producer: TestProducer) {
    this.#producer = producer
  }

  static async start(ground: MemoryStore): Promise<Stage> {
    const stage = new Stage(await TestProducer.start({ store: ground.crash() }))
    await stage.#watch()
    return stage
  }

  /** A new process is there. */
  async #watch(): Promise<void> {
    const { store } = this.#producer
    await this.settle()
    this.written = this.durable
    if (store !== this.#overheard) {
      const write = store.write.bind(store)
      store.write = (batch) => {
        // The clock that is left to a process that died still ticks.
        if (store !== this.#producer.store) return
        this.written = batch.number
        this.onWrite(batch)
        write(batch)
      }
      this.#overheard = store
    }
    this.#observer = undefined
  }

  get producer(): TestProducer {
    return this.#producer
  }

  /** The last batch that is durable. */
  get durable(): number {
    return this.#producer.server.parts.producer.journal.durable
  }

  /** Something is not stored yet. */
  get busy(): boolean {
    return this.#producer.server.parts.producer.journal.busy
  }

  get manual(): boolean {
    return this.#producer.store.manual
  }

  set manual(manual: boolean) {
    this.#producer.store.manual = manual
  }

  /** The batch in flight becomes durable. */
  complete(): void {
    this.#producer.store.complete()
  }

  /** A new consumer; gives its channel. */
  async connect(user: number): Promise<number> {
    const { peer, channel } = await this.#login(users[user] as string)
    this.peers.push(peer)
    return channel
  }

  async #login(name: string): Promise<{ peer: RawPeer; channel: number }> {
    const { accounts, authenticator } = this.#producer.server.parts.producer
    const account = accounts.find('default', name)
    if (account === undefined) throw new Error(`there is no user ${name}`)
    // Whoever comes is believed: proofs are tested elsewhere, and took a third of the time.
    authenticator.begin = () => ({ step: async () => ({ outcome: 'ok', account, credential: { method: 'believed' } }) })
    const peer = this.#producer.connect()
    await peer.until('caps')
    peer.send(command.auth(1, 'believed', new Uint8Array(0)))
    const { status, result } = await peer.response(1)
    if (status !== 0) throw new Error(`AUTH was answered with status ${status}`)
    await peer.until('caps')
    return { peer, channel: result }
  }

  /** Everything that is under way runs to its end; a held batch stays held. */
  async settle(): Promise<void> {
    const { store } = this.#producer
    for (;;) {
      const answers = store instanceof SqliteBacked ? store.answers : 0
      await this.#producer.settle()
      if (store instanceof SqliteBacked && (store.isReading || store.answers !== answers)) continue
      if (this.manual || !this.busy) return
    }
  }

  /** Whether batches can be held. */
  get canHold(): boolean {
    return !(this.#producer.store instanceof SqliteBacked)
  }

  /**
   * `producer.channels`, of both users. Asking for it costs more than all else in a sequence, so mostly what it would say is
   * read where it reads it.
   */
  async channels(): Promise<Json[]> {
    this.#asked++
    return this.#asked % ASK_EVERY === 0 ? this.#ask() : this.#look()
  }

  async #ask(): Promise<Json[]> {
    this.#observer ??= (await this.#login(OBSERVER)).peer
    const observer = this.#observer
    observer.send(command.query(++this.#seq, 'producer.channels'))
    const { result } = await observer.response(this.#seq)
    for (;;) {
      const message = await observer.until('value')
      if (message.metric !== result) continue
      return decoded(message).filter(({ identity }: Json) => identity !== OBSERVER)
    }
  }

  #look(): Json[] {
    const list: Json[] = []
    for (const { id, owner, state, row, queue, bindings } of this.#producer.server.parts.producer.registry.all()) {
      if (owner.name === OBSERVER) continue
      const { inFlight, ...status } = queue.status()
      const bound = [...bindings].map(([metric, { mode }]) => ({ metric, mode }))
      const { durable } = row
      list.push({ channel: id, identity: owner.name, state, durable, ...status, in_flight: inFlight, bindings: bound })
    }
    return list
  }

  async crash(): Promise<void> {
    this.#producer = await this.#producer.crash()
    await this.#watch()
  }

  async restart(): Promise<void> {
    this.#producer = await this.#producer.restart()
    await this.#watch()
  }

  async end(): Promise<void> {
    for (const peer of this.peers) peer.destroy()
    this.#observer?.destroy()
    await this.#producer.stop()
  }
}
