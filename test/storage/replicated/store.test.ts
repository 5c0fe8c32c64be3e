/** Several nodes over one log on a real nats-server: who leads, who follows, and which database belongs to the log. */
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { LogOptions } from '../../../storage/replicated/options.ts'
import type { LogPlace } from '../../../storage/replicated/place.ts'
import { ReplicatedStore } from '../../../storage/replicated/store.ts'
import type { ServiceOptions } from '../../../storage/sqlite/service.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { BLOCK_WIDTH, CHANNEL_WIDTH, type Recovered } from '../../../storage/store.ts'
import { inThisThread } from '../../contracts/replicated-stores.ts'
import { batch, EventLog, frames, numbersOf, type TestBatch } from '../../contracts/store-batch.ts'
import { eventually } from '../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../support/nats.ts'

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const WALL = 1_700_000_000_000
/** A leader begins with two records of its epoch. The first are that of the founding, and those of the first leader. */
const LEAD = 2
const BEGUN = 1 + LEAD

function storeOf(store: ServiceOptions, log: LogOptions, hasThreads = false): ReplicatedStore {
  const options = { store, log, wallMs: () => WALL }
  return hasThreads ? new ReplicatedStore(options) : new ReplicatedStore(options, inThisThread)
}

// Skipped only where nats-server is missing; the name says how to install it.
describe.skipIf(natsMissing !== undefined)(`a log that nodes share${howTo}`, () => {
  let servers: NatsServers
  beforeAll(async () => {
    servers = await NatsServers.start(1)
  })
  afterAll(() => servers.stop())

  let root = ''
  let cluster = ''
  let nodes: Node[] = []
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodes-'))
    cluster = `t-${randomUUID().slice(0, 8)}`
    nodes = []
  })
  afterEach(async () => {
    for (const node of nodes) await node.end()
    rmSync(root, { recursive: true, force: true })
  })

  /** A node with a data directory of its own. */
  class Node {
    readonly directory: string
    readonly store: ReplicatedStore
    events = new EventLog()
    place: LogPlace | undefined
    obstacle: string | undefined
    #following: Promise<void> | undefined
    #stopping = new AbortController()
    #number = 0
    recovered: Recovered | undefined

    constructor(name: string, options: { restored?: boolean; maxPages?: number } = {}, hasThreads = false) {
      this.directory = join(root, name)
      const log = { cluster, node: name, servers: servers.urls, replicas: 1, maxBytes: 2 ** 26 }
      this.store = storeOf({ directory: this.directory, ...options }, log, hasThreads)
      nodes.push(this)
    }

    async lead(): Promise<this> {
      this.events = new EventLog()
      this.recovered = await this.store.open(this.events)
      this.#number = 0
      return this
    }

    async write(parts: TestBatch): Promise<void> {
      this.send(parts)
      await this.events.durable(this.#number)
    }

    send(parts: TestBatch): number {
      this.#number++
      this.store.write(batch(this.#number, { wall: WALL + this.#number, ...parts }))
      return this.#number
    }

    follow(): this {
      this.#stopping = new AbortController()
      this.place = undefined
      const events = {
        onPlace: (place: LogPlace) => {
          this.place = place
        },
        onObstacle: (obstacle: string | undefined) => {
          this.obstacle = obstacle
        },
      }
      this.#following = this.store.follow(events, this.#stopping.signal)
      // Whoever waits for it sees why it ended.
      this.#following.catch(() => {})
      return this
    }

    /** How following ended, without being told to. */
    get ended(): Promise<void> {
      return this.#following ?? Promise.resolve()
    }

    async leave(): Promise<void> {
      this.#stopping.abort()
      await this.#following
    }

    async reached(sequence: number): Promise<void> {
      await eventually(() => expect(this.place?.sequence).toBe(sequence))
    }

    async end(): Promise<void> {
      this.#stopping.abort()
      await this.#following?.catch(() => {})
      await this.store.close()
      await this.store.disconnect()
    }
  }

  const blocks = (...ids: number[]): TestBatch => ({ blocks: ids.map((id) => ({ id, frames: frames(id) })) })
  const idsOf = ({ blocks: rows }: Recovered): number[] =>
    Array.from({ length: rows.length / BLOCK_WIDTH }, (_, row) => rows[row * BLOCK_WIDTH]!)

  async function removeLog(number: number): Promise<void> {
    const connection = await connect({ servers: servers.urls })
    await (await jetstreamManager(connection)).streams.delete(`CIN_${cluster}_${number}`)
    await connection.close()
  }

  async function founded(name = 'n1', hasThreads = false): Promise<Node> {
    const node = new Node(name, {}, hasThreads)
    await node.store.found()
    return node.lead()
  }

  test('a follower has what the leader wrote, and goes on as leader with the same ids and secret, each role in a thread', async () => {
    const first = await founded('n1', true)
    const second = new Node('n2', {}, true).follow()
    await first.write({ ...blocks(1, 2), channels: [numbersOf(1)], reserves: true })
    await first.write({ removed: [1] })
    await second.reached(BEGUN + 2)
    await first.store.close()
    await second.leave()
    await second.lead()
    const { secret, generation } = first.recovered!
    expect(second.recovered).toMatchObject({ secret, generation, restored: false, nextBlockId: 3 })
    expect(idsOf(second.recovered!)).toEqual([2])
    expect(second.recovered!.numbers.length / CHANNEL_WIDTH).toBe(1)
    expect((await second.store.read([2]))[0]!.bytes).toEqual(frames(2))
    expect([first.store.epoch, second.store.epoch]).toEqual([0, 3])
  })

  test('a leader that another one has followed stores nothing more, here or in the log', async () => {
    const first = await founded()
    await first.write(blocks(1))
    const second = await new Node('n2').lead()
    const number = first.send(blocks(2))
    await first.events.until(() => first.events.failures.length > 0)
    expect(first.events.failures[0]).toMatchObject({ code: 'DEPOSED' })
    expect(first.events.numbers).not.toContain(number)
    await second.write(blocks(3))
    await first.store.close()
    await first.follow().reached(BEGUN + 1 + LEAD + 1)
    await first.leave()
    await second.store.close()
    expect(idsOf((await first.lead()).recovered!)).toEqual([1, 3])
  })

  test('of two that want to lead at once, one leads', async () => {
    await (await founded()).store.close()
    const both = [new Node('n2'), new Node('n3')]
    const outcomes = await Promise.allSettled(both.map((node) => node.lead()))
    const leading = outcomes.filter(({ status }) => status === 'fulfilled')
    // If they did not meet, the later one has deposed the other.
    expect(leading.length).toBeGreaterThan(0)
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'DEPOSED' })
    }
    const [last] = both.toSorted((a, b) => b.store.epoch - a.store.epoch)
    await last!.write(blocks(1))
    expect(last!.events.numbers).toEqual([1])
  })

  test('an attempt to lead that is given up begins no epoch, and the next one may succeed', async () => {
    await (await founded()).store.close()
    const second = new Node('n2')
    const before = await second.store.end(10_000)
    const opening = second.lead()
    second.store.giveUp()
    const refused = { reason: { code: 'DEPOSED' } }
    expect(await Promise.allSettled([opening, second.lead()])).toMatchObject([refused, refused])
    expect(await second.store.end(10_000)).toEqual(before)
    await second.store.close()
    await (await second.lead()).write(blocks(1))
    second.store.giveUp()
    await second.write(blocks(2))
  })

  test('a log is founded with the database of one server, and an empty one does not fit it', async () => {
    const single = new SqliteStore({ directory: join(root, 'n1') })
    const events = new EventLog()
    const { secret } = await single.open(events)
    single.write(batch(1, { ...blocks(7), wall: WALL }))
    await events.durable(1)
    await single.close()
    const first = await founded()
    expect(first.recovered).toMatchObject({ secret, restored: false })
    expect(idsOf(first.recovered!)).toEqual([7])
    await expect(new Node('n2').follow().ended).rejects.toMatchObject({ code: 'FOREIGN' })
    await expect(new Node('n3').lead()).rejects.toMatchObject({ code: 'FOREIGN' })
  })

  test('a node without a fitting database gets a copy of the leader, with what the log no longer has', async () => {
    const single = new SqliteStore({ directory: join(root, 'n1') })
    const events = new EventLog()
    await single.open(events)
    single.write(batch(1, { ...blocks(1), wall: WALL }))
    await events.durable(1)
    await single.close()
    const first = await founded()
    for (let id = 10; id < 40; id++) await first.write({ blocks: [{ id, frames: frames(id, 100_000) }] })
    const second = new Node('n2')
    const received: number[] = []
    const { place, aside } = await second.store.copy(
      'n1',
      ({ receivedBytes }) => received.push(receivedBytes),
      AbortSignal.timeout(60_000),
    )
    expect(place).toMatchObject({ log: 1, epoch: 2, sequence: BEGUN + 30 })
    expect(aside).toBeUndefined()
    expect(received.at(-1)).toBeGreaterThan(3_000_000)
    expect(readdirSync(join(first.directory, 'copies'))).toEqual([])
    second.follow()
    await first.write(blocks(3))
    await eventually(() => expect(second.place?.sequence).toBe(place.sequence + 1))
    await second.leave()
    await first.store.close()
    expect(idsOf((await second.lead()).recovered!)).toEqual([
      1,
      3,
      ...Array.from({ length: 30 }, (_, index) => 10 + index),
    ])
    expect(second.recovered!.restored).toBe(false)
  })

  test('a copy takes the place of a database that never stored anything, made by the attempt to follow', async () => {
    const single = new SqliteStore({ directory: join(root, 'n1') })
    const events = new EventLog()
    await single.open(events)
    single.write(batch(1, { ...blocks(1), wall: WALL }))
    await events.durable(1)
    await single.close()
    const first = await founded()
    const second = new Node('n2')
    await expect(second.follow().ended).rejects.toMatchObject({ code: 'FOREIGN' })
    expect(existsSync(join(root, 'n2', 'cinnabar.db'))).toBe(true)
    const { place } = await second.store.copy('n1', () => {}, AbortSignal.timeout(60_000))
    expect(place).toEqual(first.store.stored)
    await second.follow().reached(place.sequence)
    await second.leave()
  })

  test('a database that is there is set aside when the copy is whole, and not before', async () => {
    const first = await founded()
    const second = new Node('n2').follow()
    await second.reached(BEGUN)
    await second.leave()
    await first.write(blocks(1))
    const signal = AbortSignal.timeout(30_000)
    const ofSecond = () => readdirSync(second.directory).filter((name) => name !== 'lock.db' && name !== 'reserve')
    const before = ofSecond()
    // Nobody leads there.
    await expect(second.store.copy('n3', () => {}, signal)).rejects.toMatchObject({ code: 'IO' })
    expect(ofSecond()).toEqual(before)
    const { place, aside } = await second.store.copy('n1', () => {}, signal)
    expect(ofSecond().sort()).toEqual(['cinnabar.db', basename(aside as string)])
    expect(existsSync(join(aside as string, 'cinnabar.db'))).toBe(true)
    second.follow()
    await second.reached(place.sequence)
    await second.leave()
  })

  test('a copy goes to an inbox, and nowhere else', async () => {
    const first = await founded()
    const connection = await connect({ servers: servers.urls })
    try {
      for (const to of ['', `cin.${cluster}.alive`, '_INBOX.>', '_INBOX.a b', `_INBOX.${'a'.repeat(300)}`]) {
        const answer = await connection.request(`cin.${cluster}.copy.n1`, to, { timeout: 10_000 })
        expect(answer.json()).toEqual({ refused: 'the request does not say where the copy is to go' })
      }
      expect(existsSync(join(first.directory, 'copies'))).toBe(false)
    } finally {
      await connection.close()
    }
  })

  test('the database of another cluster, and one that was served without its cluster meanwhile, do not fit', async () => {
    const first = await founded()
    await first.write(blocks(1))
    await first.store.close()
    const alone = new SqliteStore({ directory: first.directory })
    const events = new EventLog()
    await alone.open(events)
    alone.write(batch(1, { ...blocks(9), wall: WALL + 100 }))
    await events.durable(1)
    await alone.close()
    await expect(first.lead()).rejects.toMatchObject({ code: 'FOREIGN' })
    const other = new SqliteStore({ directory: join(root, 'n2') })
    const others = new EventLog()
    await other.open(others)
    other.write(batch(1, { ...blocks(5), wall: WALL }))
    await others.durable(1)
    await other.close()
    await expect(new Node('n2').follow().ended).rejects.toMatchObject({ code: 'FOREIGN' })
  })

  test('a copied data directory is as good as the original: the log says what it lacks', async () => {
    const first = await founded()
    await first.write({ ...blocks(1), reserves: true })
    await first.store.close()
    cpSync(first.directory, join(root, 'n2'), { recursive: true })
    const second = await new Node('n2').lead()
    expect(second.recovered).toMatchObject({ restored: false, generation: first.recovered!.generation })
    expect(second.recovered!.warnings).toBeUndefined()
    await second.write(blocks(2))
    expect(idsOf((await first.lead()).recovered!)).toEqual([1, 2])
  })

  test('a log that the nats-servers have lost is founded anew with the most advanced database; the others fit it', async () => {
    const first = await founded()
    const second = new Node('n2').follow()
    await first.write(blocks(1))
    await second.reached(BEGUN + 1)
    await second.leave()
    await first.store.close()
    await removeLog(1)
    expect(await first.store.end(10_000)).toMatchObject({ log: 0 })
    await expect(first.lead()).rejects.toMatchObject({ code: 'FOREIGN' })
    expect(await first.store.found()).toMatchObject({ log: 1, sequence: BEGUN + 1 })
    expect(await first.store.end(10_000)).toMatchObject({ log: 2 })
    await first.lead()
    expect(first.recovered!.restored).toBe(false)
    await first.write(blocks(2))
    second.follow()
    await eventually(() => expect(second.place).toMatchObject({ log: 2, epoch: 4, sequence: BEGUN + 1 }))
  })

  test('a log that ends before the database does is not led, also if that is found out last', async () => {
    const first = await founded()
    await first.write(blocks(1))
    await first.store.close()
    await removeLog(1)
    // As long as the database knows nothing of it, this is the same log, with less in it.
    await new Node('n2').store.found()
    await expect(first.lead()).rejects.toMatchObject({ code: 'FOREIGN' })
    expect(await first.store.end(10_000)).toMatchObject({ log: 1, last: 1 })
  })

  test.each(['a restored database', 'a database that may lack records'])(
    'a log that is founded with %s skips the same ids on every node',
    async (what) => {
      const isRestored = what === 'a restored database'
      const first = await founded()
      const second = new Node('n2').follow()
      const numbers = numbersOf(1)
      await first.write({ changes: [{ put: 'channel', row: channel }], channels: [numbers] })
      await second.reached(BEGUN + 1)
      await second.leave()
      await first.store.close()
      await new Node('n1', { restored: isRestored }).store.found(!isRestored)
      // It follows its log before it leads it.
      const founder = new Node('n1').follow()
      await founder.reached(1)
      await founder.leave()
      const again = await new Node('n1').lead()
      expect(again.recovered!.generation).not.toBe(first.recovered!.generation)
      expect(again.recovered!.restored).toBe(true)
      await second.follow().reached(BEGUN)
      await second.leave()
      await again.store.close()
      const { generation, restored: reported, numbers: rows } = (await second.lead()).recovered!
      expect([generation, reported]).toEqual([again.recovered!.generation, true])
      expect(rows).toEqual(again.recovered!.numbers)
      expect(rows[3]).toBeGreaterThan(2 ** 36)
    },
  )

  test('while no nats-server answers nothing is durable; then it is', async () => {
    const own = await NatsServers.start(1)
    try {
      const directory = join(root, 'own')
      const log = { cluster, node: 'n1', servers: own.urls, replicas: 1, maxBytes: 2 ** 26 }
      const store = storeOf({ directory }, log)
      await store.found()
      const events = new EventLog()
      await store.open(events)
      await own.kill(0)
      store.write(batch(1, { ...blocks(1), wall: WALL }))
      // Reads go on meanwhile, and see nothing that is not durable from outside.
      expect(await store.audit(0, 10)).toEqual([])
      expect(events.numbers).toEqual([])
      await own.restart(0)
      await events.durable(1)
      await own.kill(0)
      store.write(batch(2, { ...blocks(2), wall: WALL }))
      await store.close()
      await store.disconnect()
      expect(events.numbers).toEqual([1])
      const look = await new SqliteStore({ directory }).open(new EventLog())
      expect(idsOf(look)).toEqual([1])
    } finally {
      await own.stop()
    }
  })

  test('a backup that begins while a batch waits for the log is complete, and has what is durable', async () => {
    const own = await NatsServers.start(1)
    try {
      const directory = join(root, 'own')
      const log = { cluster, node: 'n1', servers: own.urls, replicas: 1, maxBytes: 2 ** 26 }
      const store = storeOf({ directory }, log)
      await store.found()
      const events = new EventLog()
      await store.open(events)
      store.write(batch(1, { ...blocks(1), wall: WALL }))
      await events.durable(1)
      await own.kill(0)
      store.write(batch(2, { ...blocks(2), wall: WALL }))
      const copy = join(root, 'copy', 'cinnabar.db')
      const backup = store.backup(copy, () => {})
      // The thread has begun it by then: it answers in order.
      await store.audit(0, 1)
      await own.restart(0)
      expect(await backup).toBeGreaterThan(0)
      await events.durable(2)
      await store.close()
      await store.disconnect()
      const copied = new SqliteStore({ directory: join(root, 'copy') })
      expect(idsOf(await copied.open(new EventLog()))).toContain(1)
      await copied.close()
    } finally {
      await own.stop()
    }
  })

  test('a follower without room says so, and can be ended', async () => {
    const first = await founded()
    const second = new Node('n2', { maxPages: 60 }).follow()
    await second.reached(BEGUN)
    for (let id = 10; id < 30; id++) await first.write({ blocks: [{ id, frames: frames(id, 100_000) }] })
    await eventually(() => expect(second.obstacle).toMatch(/disk .* is full/))
    await second.leave()
    const { sequence } = await second.store.place()
    expect(sequence).toBeLessThan(first.store.stored!.sequence)
  })

  test('a node whose database is moved away follows from the beginning of the log', async () => {
    const first = await founded()
    const second = new Node('n2').follow()
    await first.write(blocks(1))
    await second.reached(BEGUN + 1)
    await second.leave()
    renameSync(second.directory, `${second.directory}.old`)
    expect(await second.store.place()).toMatchObject({ log: 0, sequence: 0 })
    await second.follow().reached(BEGUN + 1)
    await second.leave()
    expect(await second.store.place()).toMatchObject({
      log: 1,
      sequence: BEGUN + 1,
      hash: Buffer.from(second.place!.hash),
    })
  })
})

const channel = {
  id: 1,
  user: 1,
  name: '',
  url: '',
  defined: true,
  configured: false,
  durable: true,
  window: 1,
  windowBytes: 1,
  maxBytes: 1,
  maxAgeMs: 1,
  expireMs: 1,
  overflow: 'drop-oldest',
  origin: 100,
  lastUsed: 0,
  paused: false,
} as const
