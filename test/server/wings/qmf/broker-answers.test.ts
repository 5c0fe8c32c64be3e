/**
 * Brokers that tell what cannot be true, or too much: it is counted, it costs nobody else anything, and what they tell
 * afterwards counts again.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { broadcasts, message, type Request } from '../../../support/qmf/recording.ts'
import { str8, u8, u32 } from '../../../support/qmf/wire.ts'
import { Neighbours } from './neighbours.ts'

let both: Neighbours

beforeEach(async () => {
  both = await Neighbours.listen()
})
afterEach(async () => {
  await both.stop()
})

const heartbeat = broadcasts.find(({ routingKey }) => routingKey.startsWith('console.heartbeat'))!.body

describe('unasked', () => {
  it.each<[string, Buffer, string]>([
    ['another magic', Buffer.from('414d310000000000', 'hex'), 'unknownMagic'],
    ['an unknown message', message('!', 0), 'unknownOp'],
    [
      'an object of an unknown class',
      message('c', 0, str8('p'), str8('nothing'), Buffer.alloc(16 + 24 + 16)),
      'unknownClass',
    ],
    [
      'half an object',
      broadcasts.find(({ routingKey }) => routingKey.endsWith('.queue'))!.body.subarray(0, 100),
      'malformed',
    ],
    ['an answer that nobody asked for', message('z', 77_777, u32(0), str8('OK')), 'unexpected'],
    ['half a header', Buffer.from('AM2'), 'malformed'],
  ])('tells %s: it is counted, and the connection stays', async (_, body, counter) => {
    await both.startBoth()
    const before = both.server.status().counters[counter]!
    both.peer.deliver('tdest', 'console.obj.1.0.p.c', body)
    await eventually(() => expect(both.server.status().counters[counter]).toBe(before + 1))
    await both.othersGoOn()
    await both.server.up(2)
    expect(both.bad.connections).toBe(1)
  })

  it('floods: everything else has its turn in between', async () => {
    await both.startBoth()
    let isOver = false
    const flood = (async () => {
      while (!isOver) {
        const [one] = both.bad.peers
        for (let n = 0; n < 50; n++) one?.deliver('tdest', 'console.heartbeat.1.0', heartbeat)
        if (one?.socket.writableNeedDrain) await new Promise((resolve) => one.socket.once('drain', resolve))
        else await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    const { transfers } = both.server.status().counters
    await eventually(() => expect(both.server.status().counters['transfers']).toBeGreaterThan(transfers! + 5_000))
    await both.othersGoOn()
    isOver = true
    await flood
    await both.othersGoOn()
  })
})

describe('asked for what there is', () => {
  const wrong = (op: string, change: (bodies: readonly Buffer[]) => readonly Buffer[]) => {
    return (bodies: readonly Buffer[], { text }: Request) => (text.startsWith(op) ? change(bodies) : bodies)
  }
  const renumber = (bodies: readonly Buffer[]): Buffer[] => {
    return bodies.map((body) => {
      const copy = Buffer.from(body)
      copy.writeUInt32BE(copy.readUInt32BE(4) + 100_000, 4)
      return copy
    })
  }
  const halve = (bodies: readonly Buffer[]): Buffer[] => bodies.map((body) => body.subarray(0, body.length - 3))

  it.each<[string, (bodies: readonly Buffer[], request: Request) => readonly Buffer[], string]>([
    ['says nothing', () => [], 'unanswered'],
    ['answers with another sequence', wrong('', renumber), 'unexpected'],
    ['gives no packages', wrong('P', () => []), 'unanswered'],
    ['gives half of each schema', wrong('S', halve), 'malformed'],
    ['gives half of each class', wrong('Q', halve), 'malformed'],
    ['gives half of each object', wrong('G', halve), 'malformed'],
    ['gives no objects', wrong('G', () => []), 'unanswered'],
    ['gives other schemas than it was asked for', wrong('S', (bodies) => bodies.map(otherClass)), 'unexpected'],
  ])('%s', async (_, answers, counter) => {
    both.bad.answers = answers
    await both.start()
    await both.server.pass(12)
    await eventually(() => expect(both.server.status().counters[counter]).toBeGreaterThan(0))
    await both.othersGoOn()
    both.bad.kick()
    await both.server.down('bad', '')
    await both.behave()
    await both.othersGoOn()
  })

  /** The class is called a little otherwise. */
  function otherClass(body: Buffer): Buffer {
    const copy = Buffer.from(body)
    const name = 10 + copy[9]! + 1
    copy[name]! ^= 1
    return copy
  }

  it('has objects without end: so many are remembered as are configured', async () => {
    both.bad.answers = (bodies, { text }) => {
      const [first] = bodies
      if (text !== 'G queue' || first === undefined) return bodies
      return [...Array.from({ length: 500 }, (_, n) => renamed(first, n)), ...bodies.slice(1)]
    }
    await both.start('max_objects = 200')
    await both.server.up(2)
    const { objects, objectsFull } = both.server.status().counters
    expect(objects).toBe(200 + 22)
    expect(objectsFull).toBeGreaterThan(500)
    await both.othersGoOn()
  })

  /** The last four bytes of the object id, of each object of a body: after three times. */
  function renamed(body: Buffer, by: number): Buffer {
    const copy = Buffer.from(body)
    for (let at = copy.indexOf('AM2g'); at >= 0; at = copy.indexOf('AM2g', at + 1)) {
      const name = at + 9 + copy[at + 8]!
      const id = name + 1 + copy[name]! + 16 + 24 + 12
      copy.writeUInt32BE(copy.readUInt32BE(id) + by * 1_000, id)
    }
    return copy
  }

  it('has packages and classes without end: a few hundred are learned', async () => {
    both.bad.answers = (bodies, { text, sequence }) => {
      const list = (make: (n: number) => Buffer): Buffer[] => {
        return [...Array.from({ length: 250 }, (_, n) => make(n)), message('z', sequence, u32(0), str8('OK'))]
      }
      if (text === 'P') return list((n) => message('p', sequence, str8(`p${n}`)))
      if (!text.startsWith('Q')) return bodies
      // Ten packages have more classes than are learned; the others have none.
      if (text.length > 'Q p9'.length) return list(() => Buffer.alloc(0)).slice(-1)
      return list((n) => message('q', sequence, u8(1), str8('p'), str8(`c${n}`), Buffer.alloc(16, text)))
    }
    await both.start()
    const { counters } = both.server.status()
    await both.server.up(2)
    await eventually(() => expect(both.server.status().counters['packagesFull']).toBeGreaterThan(0))
    await eventually(() => expect(both.server.status().counters['schemasFull']).toBeGreaterThan(0))
    expect(counters['brokersUp']).toBeGreaterThan(0)
    await both.othersGoOn()
  })
})
