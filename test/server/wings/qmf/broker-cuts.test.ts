/** What a broker sends comes cut anywhere: bytes one by one, frames of a few bytes, two pieces with any border. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { isLong, times } from '../../../support/long.ts'
import { ScriptedBroker } from '../../../support/qmf/broker.ts'
import { broadcasts } from '../../../support/qmf/recording.ts'
import { transfer } from '../../../support/qmf/wire.ts'
import { Random } from '../../../support/random.ts'
import { decoded } from '../../../support/records.ts'
import { DEPTH, expected, PACKAGE, QmfServer, QUEUES } from './server.ts'

let broker: ScriptedBroker
let server: QmfServer

beforeEach(async () => {
  broker = await ScriptedBroker.listen()
})
afterEach(async () => {
  await server.stop()
  await broker.close()
})

/** The headers of a frame, of its segment and of a transfer lie within these. */
const HEADERS = 48

function pieces(bytes: Buffer, next: () => number): Buffer[] {
  const all: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + next()
    all.push(bytes.subarray(at, end))
    at = end
  }
  return all
}

function random(seed: number): (bytes: Buffer) => Buffer[] {
  const draw = new Random(seed)
  return (bytes) => pieces(bytes, () => 1 + draw.below(draw.pick([2, 20, 1_000])))
}

const whole = (bytes: Buffer): Buffer[] => [bytes]
const byteByByte = (bytes: Buffer): Buffer[] => pieces(bytes, () => 1)
/** The same for the headers of one write in five: each piece is a write of its own, and a turn of the event loop. */
function headersByteByByte(): (bytes: Buffer) => Buffer[] {
  let writes = 0
  return (bytes) => {
    const isCut = writes++ % 5 === 0
    return isCut ? [...byteByByte(bytes.subarray(0, HEADERS)), ...pieces(bytes.subarray(HEADERS), () => 61)] : [bytes]
  }
}

const smallest: [string, (bytes: Buffer) => Buffer[], number][] = isLong
  ? [
      ['byte by byte', byteByByte, 65_535],
      ['in pieces of three', (bytes) => pieces(bytes, () => 3), 65_535],
    ]
  : [['with headers byte by byte', headersByteByByte(), 65_535]]

describe('the whole recording', () => {
  it.each<[string, (bytes: Buffer) => Buffer[], number]>([
    ...smallest,
    ['in frames of one byte each', whole, 13],
    ['in frames of 27 bytes and pieces of 11', (bytes: Buffer) => pieces(bytes, () => 11), 39],
    ...[1, 2, 3, 4, 5]
      .slice(0, times({ short: 1, long: 5 }))
      .map((seed): [string, ReturnType<typeof random>, number] => [`randomly, seed ${seed}`, random(seed), 65_535]),
  ])('comes as if it had come at once: %s', async (_, cut, frameBytes) => {
    Object.assign(broker, { cut, frameBytes })
    server = await QmfServer.start({ b1: broker.port })
    await server.up()
    await server.subscribe(DEPTH, { object: '*' })
    await eventually(() => expect(broker.bound).toContain(QUEUES))
    await server.root.values(2)
    broker.play()
    const all = expected(['stats'], 'msgDepth')
    const came = (await server.root.values(all.length)).map((value) => ({ time: value.time, ...decoded(value) }))
    expect(came).toEqual(all.map((one) => ({ ...(one as object), broker: 'b1' })))
    const { counters } = server.status()
    expect(counters).toMatchObject({ malformed: 0, unknownClass: 0, unexpected: 0, unanswered: 0, connections: 1 })
  })
})

const STEP = times({ short: 13, long: 3 })

/** Two pieces: at any border within the headers, and after them at one in thirteen, or in the long form in three. */
function* borders(bytes: number): Generator<(bytes: Buffer) => Buffer[]> {
  for (let at = 1; at < bytes; at += at < HEADERS ? 1 : STEP) {
    yield (whole) => (at < whole.length ? [whole.subarray(0, at), whole.subarray(at)] : [whole])
  }
}

it.each([
  [`qmf.${PACKAGE}.queueDeclare`, 'queueDeclare'],
  ['qmf.broker.up', 'console.heartbeat.1.0'],
])('one transfer, cut in two: %s', async (metric, routingKey) => {
  server = await QmfServer.start({ b1: broker.port })
  await server.up()
  const id = await server.subscribe(metric, { broker: 'b1' })
  await eventually(() =>
    expect(broker.bound.some((key) => metric === 'qmf.broker.up' || key.endsWith(routingKey))).toBe(true),
  )
  if (metric === 'qmf.broker.up') await server.root.value()
  const reported = broadcasts.find((one) => one.routingKey.endsWith(routingKey))!
  const cuts = [...borders(transfer('tdest', reported.routingKey, reported.body).length)]
  for (const cut of cuts) {
    broker.cut = cut
    broker.publish(reported.routingKey, reported.body)
  }
  const values = await server.root.values(cuts.length)
  expect(new Set(values.map(({ value }) => value.toString('hex'))).size).toBe(1)
  expect(new Set(values.map((value) => value.metric))).toEqual(new Set([id]))
})

it('every message of the login, cut in two', async () => {
  // Nothing to learn: then it is ready at once.
  broker.answers = (bodies) => bodies.slice(-1)
  server = await QmfServer.start({ b1: broker.port })
  await server.up()
  let connections = 1
  for (const cut of borders(200)) {
    broker.cut = cut
    // What was good for a while is tried again soon.
    server.producer.clock.advance(10_000)
    broker.kick()
    await server.down('b1', '')
    await server.pass(1)
    await eventually(() => expect(broker.connections).toBe(++connections))
    await server.up()
  }
  expect(server.status().counters).toMatchObject({ connections, unanswered: 0 })
})
