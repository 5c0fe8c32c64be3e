/** `mono.*`: what an operator asks an agent by hand, over real sockets. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, hex, join, str, type } from '../../../support/bytes.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { ADD, ADDED, COLLECTIONS, HELLO, LIST, LOAD, SAMPLED } from './fixture.ts'
import { ScriptedAgent } from './scripted-agent.ts'

const NAME = '127.0.0.1'
const given = (...texts: readonly (readonly [string, string])[]) =>
  texts.map(([name, text]) => [name, type.string, str(text)] as const)
const AGENT = given(['agent', NAME])
const COUNTER = given(['agent', NAME], ['category', 'my'], ['counter', 'load'])

let producer: TestProducer
let root: Seat
let agent: ScriptedAgent

beforeEach(async () => {
  const listeners = [
    { key: 'mono.listen', listen: { host: NAME, port: 0 }, dialect: 'gist' as const, agent: undefined },
  ]
  producer = await TestProducer.start({ config: { mono: { listeners } } })
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
  agent = await ScriptedAgent.connect(boundTo(producer.server, 'mono.'))
  agent.say(HELLO)
  await agent.asked('01')
})
afterEach(async () => {
  await agent.end()
  await producer.stop()
})

/** Asks, lets the agent answer what it was asked for, and gives the result. */
async function act(control: string, list: Parameters<Seat['execute']>[1][], asked: string, answer: string) {
  const result = root.execute(control, ...list)
  await agent.asked(asked)
  agent.say(hex(answer))
  return result
}

async function refused(control: string, ...list: Parameters<Seat['execute']>[1][]): Promise<[number, string]> {
  const { status, detail } = await root.ask((seq) => command.execute(seq, control, args(...list)))
  return [status, detail]
}

describe('an operator', () => {
  it('lists what an agent offers, and which of it comes', async () => {
    agent.say(LIST)
    const result = act('mono.list', [...AGENT], '01', Buffer.from(LIST).toString('hex'))
    expect(await result).toEqual({
      outcome: 'ok',
      detail: '2 counters',
      value: [
        { category: 'Mono GC', counter: 'Major GC collections', metric: COLLECTIONS, sent: true },
        { category: 'my', counter: 'load', metric: LOAD, sent: false },
      ],
    })
  })

  it('adds a counter for good, listed or not, and removes it', async () => {
    agent.say(LIST)
    const added: Json = await act('mono.add', [...COUNTER], ADD, Buffer.from(ADDED).toString('hex'))
    expect(added).toMatchObject({ outcome: 'ok', value: LOAD })
    expect(await root.execute('mono.add', ...COUNTER)).toMatchObject({
      outcome: 'ok',
      detail: expect.stringContaining('already'),
    })
    const id = await root.collect(LOAD)
    expect(await root.execute('mono.remove', ...COUNTER)).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('chosen'),
    })
    await root.ok((seq) => command.stop(seq, id))
    expect(await act('mono.remove', [...COUNTER], '030200', '0301')).toMatchObject({ outcome: 'failed' })
    expect(await act('mono.remove', [...COUNTER], '030200', '0300')).toMatchObject({ outcome: 'ok' })
    expect(await root.execute('mono.remove', ...COUNTER)).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('does not send'),
    })
  })

  it('asks nothing twice: who adds what is being added is told so', async () => {
    agent.say(hex('01ffffffff'))
    const twice = [1, 2].map(() => root.send((seq) => command.execute(seq, 'mono.add', args(...COUNTER))))
    const results: number[] = []
    for (const seq of twice) results.push((await root.response(seq)).result)
    const refusal = await root.value()
    const detail = `a request to ${NAME} about my: load is in progress`
    expect([refusal.metric, decoded(refusal)]).toMatchObject([results[1], { outcome: 'failed', detail }])
    await agent.asked(ADD)
    agent.say(ADDED)
    const result = await root.value()
    expect([result.metric, decoded(result)]).toMatchObject([results[0], { outcome: 'ok', value: LOAD }])
    expect(agent.rest).toBe('')
  })

  it('is told what an agent sends without anybody knowing as what', async () => {
    agent.say(hex('01ffffffff'))
    expect(await act('mono.add', [...COUNTER], ADD, '0203')).toMatchObject({ outcome: 'failed' })
  })

  it('is told what an agent has not, does not answer in time, or does not live to answer', async () => {
    expect(await act('mono.add', [...COUNTER], ADD, '01ffffffff0202')).toMatchObject({
      outcome: 'failed',
      detail: `${NAME} has no my: load`,
    })
    const late = root.execute('mono.list', ...AGENT)
    await agent.asked('01')
    producer.clock.advance(10_000)
    expect(await late).toMatchObject({ outcome: 'timeout', detail: `${NAME} did not answer within 10 s` })
    const gone = root.execute('mono.list', ...AGENT)
    await agent.asked('01')
    await agent.end()
    expect(await gone).toMatchObject({ outcome: 'failed', detail: `${NAME} disconnected` })
  })

  it('tells an agent to go; one that stays is cut off', async () => {
    agent.say(join(LIST, SAMPLED))
    expect(await root.execute('mono.goodbye', ...AGENT)).toMatchObject({ outcome: 'ok' })
    await agent.asked('7f')
    producer.clock.advance(12_000)
    await agent.closed()
  })

  it('is refused for an agent that is not there, or is another tenant’s', async () => {
    const missing = given(['agent', 'nobody'])
    expect(await refused('mono.list', ...missing)).toEqual([6, `no Mono agent nobody: connected are ${NAME}`])
    await producer.addUser('eve', { tenant: 'other', role: 'operator' })
    const eve = await producer.seat('eve', 'other')
    const { status } = await eve.ask((seq) => command.execute(seq, 'mono.list', args(...AGENT)))
    expect(status).toBe(10)
  })
})

describe('a server without [mono]', () => {
  it('has no such controls', async () => {
    const bare = await TestProducer.start()
    await bare.addUser('root', { role: 'admin' })
    const seat = await bare.seat('root')
    const { status } = await seat.ask((seq) => command.execute(seq, 'mono.list', args(...AGENT)))
    expect(status).toBe(10)
    await bare.stop()
  })
})
