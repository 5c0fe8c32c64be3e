/**
 * Two brokers of one server, and a metric that no broker has: one broker misbehaves, and the test looks whether everything
 * else goes on, and whether it is taken back when it behaves again.
 */
import { expect } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { type BrokerPeer, ScriptedBroker } from '../../../support/qmf/broker.ts'
import { broadcasts, sampledLater } from '../../../support/qmf/recording.ts'
import { decoded } from '../../../support/records.ts'
import { DEPTH, QmfServer, QUEUES } from './server.ts'

const queues = broadcasts.find(({ routingKey, body }) => routingKey.endsWith('.queue') && body.length > 1_000)!

export class Neighbours {
  readonly good: ScriptedBroker
  readonly bad: ScriptedBroker
  #server: QmfServer | undefined
  #followed: readonly number[] = []
  #emitted = 0
  #samples = 0

  private constructor(good: ScriptedBroker, bad: ScriptedBroker) {
    this.good = good
    this.bad = bad
  }

  static async listen(): Promise<Neighbours> {
    return new Neighbours(await ScriptedBroker.listen(), await ScriptedBroker.listen())
  }

  get server(): QmfServer {
    return this.#server as QmfServer
  }

  /** The connection of the bad one. */
  get peer(): BrokerPeer {
    return [...this.bad.peers][0] as BrokerPeer
  }

  /** Both are configured; the good one is there, and a consumer has its queues and the other metric. */
  async start(more = ''): Promise<void> {
    this.#server = await QmfServer.start({ bad: this.bad.port, good: this.good.port }, more)
    await eventually(() => expect(this.server.status().detail).toMatch(/good: connected to [^ ,]* by QMF v1$/))
    const depth = await this.server.subscribe(DEPTH, { broker: 'good', object: '*' })
    this.#followed = [depth, await this.server.root.follow('test.a')]
    await eventually(() => expect(this.good.bound).toContain(QUEUES))
  }

  /** Both are there, and a consumer has the queues of both. */
  async startBoth(more = ''): Promise<void> {
    await this.start(more)
    await this.server.up(2)
    await this.server.subscribe(DEPTH, { broker: 'bad', object: '*' })
    await eventually(() => expect(this.bad.bound).toContain(QUEUES))
  }

  /** Time goes on until the bad one is given up, but for no longer than that. */
  async downWithin(seconds: number, why: string): Promise<void> {
    const { server } = this
    for (let second = 0; second < seconds && !server.status().detail.includes('bad: waiting'); second++) {
      await server.pass(1)
    }
    await server.down('bad', why)
  }

  async othersGoOn(): Promise<void> {
    const { server, good } = this
    server.root.rest()
    good.publish(queues.routingKey, sampledLater(queues.body, ++this.#samples))
    server.producer.emit(++this.#emitted)
    const expected = [this.#emitted, ...['reply', 'topic'].map((name) => ({ object: `${name}-vm.26710.1`, value: 0 }))]
    const came: unknown[] = []
    while (came.length < expected.length) {
      const value = await server.root.value()
      if (this.#followed.includes(value.metric)) came.push(decoded(value))
    }
    expect(new Set(came)).toEqual(new Set(expected))
    expect(decoded(await server.root.query('host.load.one'))).toEqual(expect.anything())
    expect(good.connections).toBe(1)
  }

  /** It does as it should from now on. */
  async behave(): Promise<void> {
    const { server, bad } = this
    const { instead, answers } = new ScriptedBroker()
    Object.assign(bad, { instead, answers, heartbeatSeconds: 0 })
    for (let second = 0; server.status().counters['brokersUp'] !== 2 && second < 60; second++) await server.pass(1)
    await server.up(2)
    const id = await server.subscribe(DEPTH, { broker: 'bad', object: 'topic-vm.26710.1' })
    await eventually(() => expect(bad.bound).toContain(QUEUES))
    bad.publish(queues.routingKey, sampledLater(queues.body, ++this.#samples))
    for (let value = await server.root.value(); ; value = await server.root.value()) {
      if (value.metric !== id) continue
      expect(decoded(value)).toBe(0)
      return
    }
  }

  async stop(): Promise<void> {
    await this.#server?.stop()
    await this.good.close()
    await this.bad.close()
  }
}
