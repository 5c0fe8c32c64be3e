/** S-14: whatever happens in whatever order, what a tenant is said to have is what it has. Counted anew after every step. */
import { describe, expect, it } from 'vitest'
import { ALL, args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { Random } from '../../support/random.ts'
import { atH1, type Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'

const STEPS = 200
const EXPIRE_MS = 60_000
const NAMES = ['test.a', 'test.b', 'test.c'] as const
const USERS = ['ann', 'bob'] as const

interface Sitting {
  readonly seat: Seat
  readonly user: string
}

interface Had {
  readonly connections: number
  readonly channels: number
  readonly instances: number
  readonly bytes: number
}

class Walk {
  readonly #producer: TestProducer
  readonly #acme: PushSensor
  readonly #boss: Seat
  readonly #random: Random
  readonly #sitting: Sitting[] = []
  readonly #rules: number[] = []

  private constructor(producer: TestProducer, acme: PushSensor, boss: Seat, random: Random) {
    this.#producer = producer
    this.#acme = acme
    this.#boss = boss
    this.#random = random
  }

  static async begin(seed: number): Promise<Walk> {
    const producer = await TestProducer.start({ config: { channels: { expireMs: EXPIRE_MS } } })
    const acme = new PushSensor(producer.server.parts.hub, 'test.', { tenant: 'acme' })
    await producer.addUser('boss', { role: 'admin' })
    for (const name of USERS) await producer.addUser(name, { tenant: 'acme', role: 'operator' })
    return new Walk(producer, acme, await producer.seat('boss'), new Random(seed))
  }

  stop(): Promise<void> {
    return this.#producer.stop()
  }

  /** What the producer says, and what there is. */
  count(): { readonly said: Had; readonly found: Had } {
    const { quotas, registry } = this.#producer.server.parts.producer
    const use = quotas.of('acme')
    const said = {
      connections: use.connections.used,
      channels: use.channels.used,
      instances: use.instances.used,
      bytes: use.queued.bytes,
    }
    const channels = [...registry.all()].filter(({ owner }) => owner.tenant === 'acme')
    let bytes = 0
    for (const { queue } of channels) {
      for (const lane of queue.lanes())
        for (const entry of lane) if (entry.kind === 'block') bytes += entry.unsettledBytes
    }
    // A binding counts once even if it is subscribed to nothing.
    const bound = channels.reduce((sum, { bindings }) => sum + bindings.size, 0)
    const subscriptions = [...this.#acme.series()].flatMap((series) => series.subscriptions)
    const found = {
      connections: this.#sitting.filter(({ seat }) => !seat.peer.closed).length,
      channels: channels.filter(({ stored, isDisposable }) => stored || !isDisposable).length,
      instances: subscriptions.length + bound - new Set(subscriptions.map(({ sink }) => sink)).size,
      bytes,
    }
    return { said, found }
  }

  limit(of: 'connections' | 'channels' | 'instances'): number {
    return this.#producer.server.parts.producer.quotas.of('acme')[of].limit
  }

  async step(): Promise<string> {
    const steps = [
      ...[this.#connect, this.#connect, this.#bind, this.#bind, this.#bind, this.#bind, this.#channel, this.#channel],
      ...[this.#emit, this.#emit, this.#emit, this.#emit, this.#commit, this.#configure, this.#unbind, this.#kill],
      this.#random.pick([this.#limit, this.#rule, this.#rule, this.#fence, this.#fence, this.#time, this.#user]),
    ]
    const what = await this.#random.pick(steps).call(this)
    await this.#producer.settle()
    return what
  }

  /** Everybody goes, and everything they had. */
  async end(): Promise<void> {
    for (const user of USERS) {
      await this.#boss.execute('user.remove', ['user', type.string, str(user)], ['tenant', type.string, str('acme')])
    }
    await this.#producer.settle()
    this.#leave()
  }

  #leave(): void {
    for (const [index, { seat }] of [...this.#sitting.entries()].reverse()) {
      if (seat.peer.closed) this.#sitting.splice(index, 1)
    }
  }

  async #connect(): Promise<string> {
    const user = this.#random.pick(USERS)
    const seat = await this.#producer.seat(user, 'acme').catch(() => undefined)
    if (seat !== undefined) this.#sitting.push({ seat, user })
    return `${user} connects`
  }

  async #kill(): Promise<string> {
    const one = this.#anyone
    one?.seat.peer.destroy()
    await this.#producer.settle()
    this.#leave()
    return 'kill'
  }

  get #anyone(): Sitting | undefined {
    this.#leave()
    return this.#sitting.length === 0 ? undefined : this.#random.pick(this.#sitting)
  }

  async #ask(one: Sitting, make: (seq: number) => Uint8Array): Promise<number> {
    // Another connection of the same user may take its channel, or delete it.
    const { status, result } = await one.seat.ask(make).catch(() => ({ status: -1, result: 0 }))
    return status === 0 ? result : 0
  }

  #channelOf(one: Sitting): number {
    const { registry, accounts } = this.#producer.server.parts.producer
    const account = accounts.find('acme', one.user)
    const mine = account === undefined ? [] : [...registry.of(account.id)].map(({ id }) => id)
    return this.#random.pick([0, 0, ...mine])
  }

  #metricOf(one: Sitting): number {
    const { instances, accounts } = this.#producer.server.parts.producer
    const account = accounts.find('acme', one.user)
    const mine = account === undefined ? [] : instances.of(account.id).map(({ id }) => id)
    return this.#random.pick([1, ...mine])
  }

  async #bind(): Promise<string> {
    const one = this.#anyone
    if (one === undefined) return 'nobody'
    const name = this.#random.pick([...NAMES, 'test.*', 'test.a*'])
    const id =
      this.#random.below(3) === 0
        ? this.#metricOf(one)
        : await this.#ask(one, (seq) => command.collect(seq, name, this.#random.below(2) === 0 ? atH1 : undefined))
    const make = this.#random.pick([command.subscribe, command.buffer, command.get])
    const channel = this.#channelOf(one)
    await this.#ask(one, (seq) => make(seq, id, channel))
    return `${one.user} binds ${name} ${id} on ${channel}`
  }

  async #unbind(): Promise<string> {
    const one = this.#anyone
    if (one === undefined) return 'nobody'
    const [id, channel] = [this.#metricOf(one), this.#random.pick([ALL, this.#channelOf(one)])]
    await this.#ask(one, (seq) => command.stop(seq, id, channel))
    return `stop ${id} on ${channel}`
  }

  async #channel(): Promise<string> {
    const one = this.#anyone
    if (one === undefined) return 'nobody'
    const channel = this.#channelOf(one)
    const durable = ['durable', type.boolean, u32(this.#random.below(2))] as const
    const [what, make] = this.#random.pick([
      ['def', (seq: number) => command.defChannel(seq, '', args(durable))],
      ['set', (seq: number) => command.setChannel(seq, channel)],
      ['del', (seq: number) => command.delChannel(seq, this.#random.below(8) === 0 ? ALL : channel)],
    ] as const)
    await this.#ask(one, make)
    return `${what} ${channel}`
  }

  async #emit(): Promise<string> {
    const name = this.#random.pick(NAMES)
    const from = this.#random.pick(['h1', 'h2'])
    if (this.#random.below(6) === 0) this.#acme.die(name, from)
    else this.#acme.push(name, { type: 2, value: 1 }, EPOCH, from)
    return `emit ${name} ${from}`
  }

  async #commit(): Promise<string> {
    const one = this.#anyone
    const values = one?.seat.rest().filter((message) => message.kind === 'value') ?? []
    if (one === undefined || values.length === 0) return 'nothing to commit'
    const { transaction } = this.#random.pick(values)
    await this.#ask(one, (seq) => this.#random.pick([command.commit, command.commitThrough])(seq, transaction))
    return 'commit'
  }

  async #limit(): Promise<string> {
    const name = this.#random.pick(['connections', 'channels', 'instances', 'queued_bytes'])
    const limit = this.#random.pick(name === 'queued_bytes' ? [0, 300, 2_000] : [0, 0, 3, 6])
    await this.#boss.execute('tenant.set', ['tenant', type.string, str('acme')], [name, type.uint64, u64(limit)])
    return `${name} = ${limit}`
  }

  async #rule(): Promise<string> {
    const old = this.#rules.pop()
    if (old !== undefined) {
      await this.#boss.execute('role.forget', ['rule', type.uint32, u32(old)])
      return `rule ${old} is forgotten`
    }
    const object = this.#random.pick([...NAMES, 'test.*'])
    const effect = this.#random.pick(['allow', 'deny'])
    const { value } = await this.#boss.execute(
      `role.${effect}`,
      ['role', type.string, str('operator')],
      ['command', type.string, str('COLLECT')],
      ['object', type.string, str(object)],
      ...(this.#random.below(2) === 0 ? [] : [['where', type.string, str('host=h2')] as const]),
    )
    this.#rules.push(value)
    return `${effect} ${object}`
  }

  async #configure(): Promise<string> {
    const one = this.#anyone
    if (one === undefined) return 'nobody'
    const channel = ['channel', type.uint32, u32(this.#channelOf(one))] as const
    const [name, list] = this.#random.pick([
      ['channel.configure', args(channel, ['durable', type.boolean, u32(this.#random.below(2))])],
      ['channel.configure', args(channel, ['overflow', type.string, str('keep-latest')])],
      ['channel.purge', args(channel)],
    ] as const)
    await this.#ask(one, (seq) => command.execute(seq, name, list))
    return name
  }

  async #fence(): Promise<string> {
    const { hub } = this.#producer.server.parts
    if (hub.fences.has(this.#acme)) await hub.resume(this.#acme)
    else await hub.fence(this.#acme)
    return 'fence'
  }

  async #time(): Promise<string> {
    const ms = this.#random.pick([1_000, 1_000, EXPIRE_MS + 1_001])
    this.#producer.clock.advance(ms)
    return `${ms} ms`
  }

  async #user(): Promise<string> {
    const user = this.#random.pick(USERS)
    await this.#boss.execute('user.remove', ['user', type.string, str(user)], ['tenant', type.string, str('acme')])
    await this.#producer.addUser(user, { tenant: 'acme', role: 'operator' })
    return `${user} is another`
  }
}

describe('what a tenant has', () => {
  it.each([1, 3, 5])(
    'is what is counted and within its limits, after any sequence, and nothing in the end (%i)',
    async (seed) => {
      const walk = await Walk.begin(seed)
      try {
        const steps: string[] = []
        for (let step = 0; step < STEPS; step++) {
          const before = walk.count().found
          steps.push(await walk.step())
          const { said, found } = walk.count()
          expect({ ...said, after: steps.slice(-5) }).toEqual({ ...found, after: steps.slice(-5) })
          for (const what of ['connections', 'channels', 'instances'] as const) {
            const most = Math.max(before[what], walk.limit(what))
            expect([what, found[what] > most, ...steps.slice(-5)]).toEqual([what, false, ...steps.slice(-5)])
          }
        }
        await walk.end()
        const none: Had = { connections: 0, channels: 0, instances: 0, bytes: 0 }
        expect(walk.count()).toEqual({ said: none, found: none })
      } finally {
        await walk.stop()
      }
    },
  )
})
