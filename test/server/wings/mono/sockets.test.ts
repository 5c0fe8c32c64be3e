/** Agents over real sockets, and consumers through the whole server: who wants a counter gets it, and keeps its id. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseNetwork } from '../../../../server/kernel/core/address.ts'
import { args, command, hex, join, str, type } from '../../../support/bytes.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { ADD, ADDED, COLLECTIONS, HELLO, LIST, LOAD, le32, SAMPLED, sampling } from './fixture.ts'
import { ScriptedAgent } from './scripted-agent.ts'

const loopback = { host: '127.0.0.1', port: 0 }
const at = (agent: string) => args(['agent', type.string, str(agent)])
const HALF = sampling([2, hex('000000000000e03f')])
const REMOVED = hex('0300')

let producer: TestProducer
let root: Seat

async function start(mono: object = {}): Promise<void> {
  const listeners = [
    { key: 'mono.listen', listen: loopback, dialect: 'gist' as const, agent: undefined },
    { key: 'mono.listener', listen: loopback, dialect: 'mono-2014' as const, agent: 'old' },
  ]
  producer = await TestProducer.start({ config: { mono: { listeners, ...mono } } })
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
}

const agent = (listener = 0, from?: string) => ScriptedAgent.connect(boundTo(producer.server, 'mono.', listener), from)

async function subscribed(metric = LOAD, name = '127.0.0.1'): Promise<number> {
  const id = await root.collect(metric, at(name))
  await root.ok((seq) => command.subscribe(seq, id))
  return id
}

/** The counters of `producer.sensors`, as soon as they are as wanted. */
async function until(is: (counters: Readonly<Record<string, number>>) => boolean, name = 'mono'): Promise<void> {
  for (;;) {
    const status = producer.server.parts.hub.sensors
      .map((sensor) => sensor.status?.())
      .find((one) => one?.name === name)
    if (status && is(status.counters)) return
    await new Promise((resolve) => setImmediate(resolve))
  }
}

afterEach(() => producer.stop())

describe('a consumer', () => {
  beforeEach(() => start())

  it('makes the agent send a counter that it offers, and no longer with the last STOP', async () => {
    const first = await subscribed()
    const one = await agent()
    one.say(HELLO)
    await one.asked('01')
    one.say(LIST)
    await one.asked(ADD)
    one.say(join(ADDED, HALF))
    const value = await root.value()
    expect([value.metric, decoded(value)]).toEqual([first, 0.5])
    const second = await subscribed()
    await root.ok((seq) => command.stop(seq, first))
    one.say(HALF)
    expect((await root.value()).metric).toBe(second)
    expect(one.rest).toBe('')
    await root.ok((seq) => command.stop(seq, second))
    await one.asked('030200')
    one.say(REMOVED)
    await until(({ removed }) => removed === 1)
    await one.end()
  })

  it('has it asked for by COLLECT alone, so that GET gives a value, and no longer with STOP', async () => {
    const id = await root.collect(LOAD, at('127.0.0.1'))
    const one = await agent()
    one.say(join(HELLO, LIST))
    await one.asked(`01${ADD}`)
    one.say(join(ADDED, HALF))
    await until(({ values }) => values === 1)
    await root.ok((seq) => command.get(seq, id))
    expect(decoded(await root.value())).toBe(0.5)
    await root.ok((seq) => command.stop(seq, id))
    await one.asked('030200')
    await one.end()
  })

  it('keeps its id when the agent goes and comes back, and when the server does', async () => {
    await root.setChannel(await root.defChannel())
    const id = await subscribed()
    for (const round of [1, 2]) {
      const one = await agent()
      one.say(HELLO)
      await one.asked('01')
      one.say(LIST)
      await one.asked(ADD)
      one.say(join(ADDED, HALF))
      const value = await root.value()
      expect([round, value.metric, decoded(value)]).toEqual([round, id, 0.5])
      await one.end()
      expect((await root.value()).type).toBe(type.void)
    }
    producer = await producer.restart()
    const back = await agent()
    back.say(join(HELLO, LIST))
    await back.asked(`01${ADD}`)
    await back.end()
  })

  it('of a pattern has everything of all agents, each in its dialect', async () => {
    const id = await root.collect('mono.*')
    await root.ok((seq) => command.subscribe(seq, id))
    const [young, old] = [await agent(0), await agent(1)]
    old.say(join(HELLO, hex('01 02000000 6d79 04000000 6c6f6164 ffffffff')))
    await old.asked('0001020000006d79040000006c6f6164')
    old.say(join(ADDED, HALF))
    expect(decoded(await root.value())).toEqual({ name: LOAD, agent: 'old', value: 0.5 })
    young.say(join(HELLO, LIST, SAMPLED))
    expect(decoded(await root.value())).toEqual({ name: COLLECTIONS, agent: '127.0.0.1', value: 5 })
    await young.asked(`01${ADD}`)
    await young.end()
    await old.end()
  })

  it('gets every value, wherever the stream is cut', async () => {
    const id = await subscribed()
    const stream = join(HELLO, LIST, ADDED, HALF)
    for (let cut = 1; cut < stream.length; cut++) {
      const one = await agent()
      one.say(stream.subarray(0, cut))
      await new Promise((resolve) => setImmediate(resolve))
      one.say(stream.subarray(cut))
      const value = await root.value()
      expect([cut, value.metric, decoded(value)]).toEqual([cut, id, 0.5])
      await one.end()
      expect((await root.value()).type).toBe(type.void)
    }
  })

  it('sees in the catalogue what a counter is', async () => {
    const one = await agent()
    one.say(HELLO)
    await until(({ metrics }) => metrics === 1)
    const [metric] = decoded(await root.query('producer.metrics', args(['match', type.string, str('mono.*')])))
    expect(metric).toMatchObject({
      name: COLLECTIONS,
      unit: '1',
      details: { category: 'Mono GC', counter: 'Major GC collections', variance: 'monotonic', monotonic: true },
    })
    await one.end()
  })

  it('asks a fenced sensor for nothing', async () => {
    await subscribed()
    const one = await agent()
    one.say(join(HELLO, LIST))
    await one.asked(`01${ADD}`)
    one.say(ADDED)
    await root.execute('sensor.fence', ['sensor', type.string, str('mono')])
    await one.asked('030200')
    one.say(REMOVED)
    await root.execute('sensor.resume', ['sensor', type.string, str('mono')])
    await one.asked(ADD)
    await one.end()
  })
})

describe('an agent that makes no sense', () => {
  it('is cut off, and harms no other', async () => {
    await start()
    const [bad, good] = [await agent(), await agent(0, '127.0.0.9')]
    good.say(HELLO)
    await good.asked('01')
    bad.say(hex('474554202f20485454502f312e310d0a'))
    await bad.closed()
    const id = await subscribed(COLLECTIONS, '127.0.0.9')
    good.say(join(LIST, SAMPLED))
    expect((await root.value()).metric).toBe(id)
    await good.end()
  })

  it('belongs to the tenant of its address', async () => {
    await start({ feeds: [{ tenant: 'acme', allow: [parseNetwork('127.0.0.2')!] }] })
    const one = await agent(0, '127.0.0.2')
    one.say(HELLO)
    await until(({ metrics }) => metrics === 1, 'mono/acme')
    await producer.addUser('bob', { tenant: 'acme' })
    await producer.addUser('ann', { tenant: 'default' })
    const names = async (user: string, tenant: string): Promise<string[]> => {
      const seat = await producer.seat(user, tenant)
      const list = decoded(await seat.query('producer.metrics', args(['match', type.string, str('mono.*')])))
      return list.map(({ name }: Json) => name)
    }
    expect(await names('bob', 'acme')).toEqual([COLLECTIONS])
    expect(await names('ann', 'default')).toEqual([])
    await one.end()
  })
})

describe('a file of an agent', () => {
  it('is read, and followed; one that begins anew is another one', async () => {
    const directory = mkdtempSync(joinPath(tmpdir(), 'cinnabar-'))
    const path = joinPath(directory, 'shop.counters')
    writeFileSync(path, join(HELLO, SAMPLED))
    await start({ files: [{ path, agent: 'shop', follow: true }] })
    await until(({ values }) => values === 1)
    const id = await subscribed(COLLECTIONS, 'shop')
    // What came before the subscription is sent at once, since a file holds only changes.
    const value = await root.value()
    expect([value.metric, decoded(value)]).toEqual([id, 5])
    await appendFile(path, sampling([0, le32(6)]))
    const looking = setInterval(() => producer.clock.advance(500), 1)
    expect(decoded(await root.value())).toBe(6)
    writeFileSync(path, HELLO)
    expect((await root.value()).type).toBe(type.void)
    await appendFile(path, sampling([0, le32(7)]))
    expect(decoded(await root.value())).toBe(7)
    clearInterval(looking)
    rmSync(directory, { recursive: true })
  })
})
