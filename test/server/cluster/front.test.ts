import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Front, FrontOptions } from '../../../server/cluster/front.ts'
import type { Leader } from '../../../server/cluster/leadership.ts'
import type { NodeCertificates } from '../../../server/cluster/node-certificates.ts'
import type { NodeListener } from '../../../server/cluster/node-listener.ts'
import type { Address } from '../../../server/kernel/core/address.ts'
import { ListenError } from '../../../server/kernel/core/listen.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { connected, frontBefore, LOOPBACK, NodeFiles, nodeListener, SaidLeadership } from './passing.ts'

const MIB = 1 << 20
const MUCH_MIB = 64

/** What the node that leads does with a stream. */
type Serve = (socket: Socket) => void
const echo: Serve = (socket) => void socket.pipe(socket)

let files: NodeFiles
let own: NodeCertificates
let other: NodeCertificates
let leadership: SaidLeadership
const fronts: Front[] = []
const nodes: NodeListener[] = []
const consumers: Socket[] = []
const servers: Server[] = []

beforeAll(async () => {
  files = await NodeFiles.make()
  own = await files.of('n1')
  other = await files.of('n2')
})
afterAll(() => files.remove())
beforeEach(() => {
  leadership = new SaidLeadership()
})
afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  for (const socket of consumers.splice(0)) socket.destroy()
  for (const front of fronts.splice(0)) await front.close()
  for (const node of nodes.splice(0)) await node.close()
})

async function node(serve: Serve, certificates: NodeCertificates | undefined = own, address: Address = LOOPBACK) {
  const made = await nodeListener({
    certificates,
    address,
    takerOf: () => (socket) => serve(socket.on('error', () => {})),
  })
  nodes.push(made.part)
  return made
}

async function front(options: Partial<FrontOptions> = {}) {
  const made = await frontBefore(leadership, { certificates: other, ...options })
  fronts.push(made.part)
  return made
}

async function consumer(of: { readonly listening: FrontOptions['listen'] }): Promise<Socket> {
  const socket = await connected(of.listening.tcp)
  consumers.push(socket)
  return socket
}

/** Something that is no node, at an address that is said to be that of one which leads. */
async function nobody(serve: Serve, more: Partial<Leader> = {}): Promise<void> {
  const server = createServer((socket) => serve(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  servers.push(server)
  const { port } = server.address() as AddressInfo
  leadership.say({ name: 'n1', address: { host: '127.0.0.1', port }, ...more })
}

async function textOf(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += chunk
  return text
}

/** It reaches something that echoes. */
async function expectEcho(socket: Socket): Promise<void> {
  socket.end('hello')
  expect(await textOf(socket)).toBe('hello')
}

/** Waits until a number has not changed for a while. On a slow machine it may change again. */
async function standsStill(read: () => number): Promise<void> {
  let [last, same] = [Number.NaN, 0]
  await eventually(() => {
    const now = read()
    same = now === last ? same + 1 : 0
    last = now
    expect(same).toBeGreaterThan(30)
  })
}

/** A front before a node that leads. */
async function passing(serve: Serve) {
  const leader = await node(serve)
  leadership.say({ name: 'n1', address: leader.address })
  return { leader, ...(await front()) }
}

describe('a connection', () => {
  it('is passed on, both ways and to both ends', async () => {
    const { part, clock, ...made } = await passing(echo)
    const socket = await consumer(made)
    await expectEcho(socket)
    await eventually(() => expect(part.passing).toBe(0))
    expect(part.counters).toEqual({ passed: 1, expired: 0, refused: 0, failed: 0 })
    expect(clock.timers).toBe(0)
  })

  it('whose consumer has ended its side is answered still', async () => {
    const made = await passing((socket) => {
      socket.resume().on('end', () => setImmediate(() => socket.end('an answer')))
    })
    const socket = await consumer(made)
    socket.end('a question')
    expect(await textOf(socket)).toBe('an answer')
  })

  it('that the node ends ends, and what it has sent arrives before', async () => {
    const made = await passing((socket) => {
      socket.end(Buffer.alloc(MIB, 'x'))
    })
    const socket = await consumer(made)
    expect(await textOf(socket)).toHaveLength(MIB)
  })

  it.each([false, true])('that one side resets is closed at the other, the consumer: %s', async (isConsumer) => {
    let atNode: Socket | undefined
    const made = await passing((socket) => {
      atNode = socket.resume()
    })
    const socket = (await consumer(made)).resume()
    await eventually(() => expect(atNode).toBeDefined())
    if (isConsumer) socket.resetAndDestroy()
    else atNode?.destroy()
    const left = (isConsumer ? atNode : socket) as Socket
    await eventually(() => expect(left.destroyed || left.readableEnded).toBe(true))
    socket.destroy()
    await eventually(() => expect(made.part.passing).toBe(0))
  })

  it('whose consumer goes on after the node has ended it is closed after a while', async () => {
    const made = await passing((socket) => socket.end('no more'))
    const socket = await consumer(made)
    expect(await new Promise((resolve) => socket.once('data', resolve)).then(String)).toBe('no more')
    await once(socket.resume(), 'end')
    await eventually(() => expect(made.clock.timers).toBe(1))
    made.clock.advance(30_000)
    await eventually(() => expect(made.part.passing).toBe(0))
    expect(made.clock.timers).toBe(0)
  })

  it('carries much in both directions, at the pace of the slower end', async () => {
    const made = await passing(echo)
    const socket = await consumer(made)
    const sent = randomBytes(MIB)
    for (let i = 0; i < MUCH_MIB; i++) socket.write(sent)
    socket.end()
    await standsStill(() => socket.writableLength)
    // Nobody reads what comes back. The kernel keeps some MiB for each of four ways; the rest stays with the sender.
    expect(socket.writableLength).toBeGreaterThan((MUCH_MIB / 4) * MIB)
    const [received, expected] = [createHash('sha256'), createHash('sha256')]
    for (let i = 0; i < MUCH_MIB; i++) expected.update(sent)
    for await (const chunk of socket) received.update(chunk)
    expect(received.digest('hex')).toBe(expected.digest('hex'))
  })

  it('has no place beyond the bound', async () => {
    const leader = await node(echo)
    leadership.say({ name: 'n1', address: leader.address })
    const made = await front({ limits: { connections: 2, held: 2 } })
    const two = [await consumer(made), await consumer(made)]
    await eventually(() => expect(made.part.passing).toBe(2))
    await once((await consumer(made)).resume(), 'end')
    expect(made.part.counters.refused).toBe(1)
    for (const socket of two) socket.destroy()
    await eventually(() => expect(made.part.passing).toBe(0))
    const socket = await consumer(made)
    socket.end('again')
    expect(await textOf(socket)).toBe('again')
  })
})

it('many connections at once are all passed on', async () => {
  const made = await passing(echo)
  const more = await front({ limits: { connections: 1_000, held: 1_000 } })
  expect(made.part.held).toBe(0)
  const texts = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const socket = await consumer(more)
      socket.end(`consumer ${index}`)
      return textOf(socket)
    }),
  )
  expect(texts).toEqual(texts.map((_, index) => `consumer ${index}`))
  expect(more.part.counters).toEqual({ passed: 100, expired: 0, refused: 0, failed: 0 })
})

describe('without a node that leads', () => {
  it('a connection waits, unread, and is passed on when there is one', async () => {
    const made = await front()
    const socket = await consumer(made)
    socket.end('hello')
    await eventually(() => expect(made.part.held).toBe(1))
    made.clock.advance(9_999)
    const leader = await node(echo)
    leadership.say({ name: 'n1', address: leader.address })
    expect(await textOf(socket)).toBe('hello')
    expect(made.part.held).toBe(0)
  })

  it('a connection is closed after 10 seconds', async () => {
    const made = await front()
    const socket = await consumer(made)
    await eventually(() => expect(made.part.held).toBe(1))
    made.clock.advance(9_999)
    expect(made.part.counters.expired).toBe(0)
    made.clock.advance(1)
    expect(await textOf(socket)).toBe('')
    expect(made.part).toMatchObject({ held: 0, counters: { passed: 0, expired: 1, refused: 0, failed: 0 } })
    expect(made.clock.timers).toBe(0)
  })

  it('as many connections wait as may', async () => {
    const made = await front({ limits: { connections: 10, held: 1 } })
    await consumer(made)
    await eventually(() => expect(made.part.held).toBe(1))
    expect(await textOf(await consumer(made))).toBe('')
    expect(made.part.counters.refused).toBe(1)
  })

  it('connections that were passed on stay where they are', async () => {
    const { part, ...made } = await passing(echo)
    const socket = await consumer(made)
    await eventually(() => expect(part.passing).toBe(1))
    leadership.say(undefined)
    socket.end('still there')
    expect(await textOf(socket)).toBe('still there')
  })
})

describe('a node that cannot be reached', () => {
  it('is tried again: it takes the connection when it is back', async () => {
    const address = { host: '127.0.0.1', port: await freePort() }
    leadership.say({ name: 'n1', address })
    const made = await front()
    const socket = await consumer(made)
    socket.end('hello')
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    await node(echo, own, address)
    made.clock.advance(250)
    expect(await textOf(socket)).toBe('hello')
    expect(made.logged).toMatchObject([{ reason: expect.stringContaining('ECONNREFUSED'), node: 'n1' }])
  })

  it('and that does not answer costs an attempt, until the time is over', async () => {
    await nobody(() => {})
    const made = await front()
    const socket = await consumer(made)
    const waited = textOf(socket)
    for (let failed = 1; failed <= 3; failed++) {
      await eventually(() => expect(made.part).toMatchObject({ held: 1, counters: { failed: failed - 1 } }))
      made.clock.advance(3_000)
      await eventually(() => expect(made.part.counters.failed).toBe(failed))
      made.clock.advance(250)
    }
    made.clock.advance(250)
    expect(await waited).toBe('')
    expect(made.part.counters.expired).toBe(1)
  })

  it('and that takes no connection, and says nothing, costs an attempt too', async () => {
    await nobody((socket) => void socket.resume())
    const made = await front({ certificates: undefined })
    const socket = await consumer(made)
    socket.end('hello')
    await eventually(() => expect(made.clock.timers).toBe(2))
    made.clock.advance(3_000)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    expect(made.logged).toMatchObject([{ reason: 'it did not take the connection within 3 s' }])
    const plain = await nodeListener({ certificates: undefined, takerOf: () => echo })
    nodes.push(plain.part)
    leadership.say({ name: 'n2', address: plain.address })
    expect(await textOf(socket)).toBe('hello')
  })

  it.each([
    ['closes connections', (socket: Socket) => void socket.end(), 'it did not take the connection: it may not lead'],
    ['answers as something else', (socket: Socket) => void socket.end('220 mail'), 'it does not answer as a node does'],
  ])('and that %s costs an attempt', async (_what, serve, reason) => {
    await nobody((socket) => serve(socket.resume()))
    const made = await front({ certificates: undefined })
    await consumer(made)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    expect(made.logged).toMatchObject([{ reason: expect.stringContaining(reason) }])
    expect([made.part.held, made.part.passing]).toEqual([1, 0])
  })

  it('for it does not lead any more takes a connection later, of which nothing is lost', async () => {
    let leads = false
    const leader = await nodeListener({ certificates: own, takerOf: () => (leads ? echo : undefined) })
    nodes.push(leader.part)
    leadership.say({ name: 'n1', address: leader.address })
    const made = await front()
    const socket = await consumer(made)
    socket.end('hello')
    await eventually(() => expect([leader.part.counters.untaken, made.part.counters.failed]).toEqual([1, 1]))
    leads = true
    made.clock.advance(250)
    expect(await textOf(socket)).toBe('hello')
    expect(made.part.counters.passed).toBe(1)
  })

  it('is believed if it is of an earlier version, which does not answer', async () => {
    await nobody((socket) => void socket.resume().end('as ever'), { isSilent: true })
    const made = await front({ certificates: undefined })
    expect(await textOf(await consumer(made))).toBe('as ever')
    expect(made.part.counters).toMatchObject({ passed: 1, failed: 0 })
  })

  it('for it does not accept the certificate is reported here too', async () => {
    const stranger = await files.of('n3', ['n3'])
    const leader = await node(echo)
    leadership.say({ name: 'n1', address: leader.address })
    const made = await front({ certificates: stranger })
    await consumer(made)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    expect(made.logged).toMatchObject([{ reason: expect.stringContaining('not accept this node') }])
  })

  it('is left for the next one at once, if that leads before', async () => {
    leadership.say({ name: 'n1', address: { host: '127.0.0.1', port: await freePort() } })
    const made = await front()
    const socket = await consumer(made)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    const next = await node(echo)
    leadership.say({ name: 'n1', address: next.address })
    await expectEcho(socket)
  })

  it.each([
    ['shows the certificate of no node', async () => files.of('n9', ['elsewhere.example']), 'elsewhere.example'],
    ['does not speak TLS', async () => undefined, ''],
  ])('is one that %s', async (_what, certificates, reason) => {
    const made = await front()
    const leader = await nodeListener({ certificates: await certificates(), takerOf: () => echo })
    nodes.push(leader.part)
    leadership.say({ name: 'n1', address: leader.address })
    await consumer(made)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    expect(made.logged).toMatchObject([{ reason: expect.stringContaining(reason) }])
    expect([leader.part.counters.taken, made.part.held]).toEqual([0, 1])
  })

  it('is one on another machine, without certificates', async () => {
    leadership.say({ name: 'n1', address: { host: '192.0.2.1', port: 7652 } })
    const made = await front({ certificates: undefined })
    await consumer(made)
    await eventually(() => expect(made.part.counters.failed).toBe(1))
    expect(made.logged).toMatchObject([{ reason: expect.stringContaining('cluster.tls_ca') }])
  })
})

it('without certificates, nodes of one machine pass on as well', async () => {
  const leader = await node(echo, undefined)
  const plain = await nodeListener({ certificates: undefined, takerOf: () => echo })
  nodes.push(plain.part)
  leadership.say({ name: 'n1', address: plain.address })
  const made = await front({ certificates: undefined })
  const socket = await consumer(made)
  await expectEcho(socket)
  expect([plain.part.counters.taken, leader.part.counters.taken]).toEqual([1, 0])
})

it('connects from the address that the others know this node by', async () => {
  const fromN2 = [{ name: 'n2', host: '127.0.0.2', port: 7654 }]
  const leader = await nodeListener({ certificates: own, nodes: fromN2, takerOf: () => echo })
  nodes.push(leader.part)
  leadership.say({ name: 'n1', address: leader.address })
  const made = await front({ from: '127.0.0.2' })
  const socket = await consumer(made)
  await expectEcho(socket)
})

it('a certificate for the host of a node will do', async () => {
  const leader = await node(echo, await files.of('by-host', ['localhost']))
  leadership.say({ name: 'n1', address: { host: 'localhost', port: leader.address.port } })
  const made = await front()
  const socket = await consumer(made)
  await expectEcho(socket)
})

describe('when another node leads', () => {
  it('connections to the last one end, and new ones go to it', async () => {
    const { part, ...made } = await passing(echo)
    const socket = await consumer(made)
    await eventually(() => expect(part.passing).toBe(1))
    const next = await node((at) => at.end('n3'))
    leadership.say({ name: 'n3', address: next.address })
    expect(await textOf(socket)).toBe('')
    await eventually(() => expect(part.passing).toBe(0))
    leadership.say({ name: 'n1', address: next.address })
    expect(await textOf(await consumer(made))).toBe('n3')
  })

  it('the same one again changes nothing', async () => {
    const { part, leader, ...made } = await passing(echo)
    const socket = await consumer(made)
    await eventually(() => expect(part.passing).toBe(1))
    leadership.say(undefined)
    leadership.say({ name: 'n1', address: { ...leader.address } })
    socket.end('still there')
    expect(await textOf(socket)).toBe('still there')
  })
})

describe('a front that retires', () => {
  it('frees its addresses, and passes those that waited on when its own node leads', async () => {
    const made = await front()
    const held = await consumer(made)
    held.end('hello')
    await eventually(() => expect(made.part.held).toBe(1))
    made.part.retire()
    const server = createServer((socket) => void socket.end('of the server'))
    await once(server.listen(made.listening.tcp?.port, '127.0.0.1'), 'listening')
    expect(await textOf(await consumer(made))).toBe('of the server')
    const own = await node(echo)
    // Whoever is said to lead does not matter to it.
    leadership.say({ name: 'n1', address: { host: '127.0.0.1', port: await freePort() } })
    made.part.passTo({ name: 'n1', address: own.address })
    expect(await textOf(held)).toBe('hello')
    await eventually(() => expect([made.part.held, made.part.passing]).toEqual([0, 0]))
    server.close()
    await made.part.close()
    expect(made.clock.timers).toBe(0)
  })

  it('ends those that waited when their time is over, or when it closes', async () => {
    const made = await front()
    const [first, second] = [await consumer(made), await consumer(made)]
    await eventually(() => expect(made.part.held).toBe(2))
    made.part.retire()
    made.clock.advance(10_000)
    expect([await textOf(first), await textOf(second)]).toEqual(['', ''])
    expect(made.part.counters.expired).toBe(2)
    const other = await front()
    const third = await consumer(other)
    await eventually(() => expect(other.part.held).toBe(1))
    other.part.retire()
    await other.part.close()
    expect(await textOf(third)).toBe('')
  })
})

describe('a front that closes', () => {
  it('ends what waits and what is passed on, and frees its addresses', async () => {
    const { part, clock, leader, ...made } = await passing(echo)
    const passed = await consumer(made)
    await eventually(() => expect(part.passing).toBe(1))
    leadership.say(undefined)
    const held = await consumer(made)
    await eventually(() => expect(part.held).toBe(1))
    const ended = Promise.all([textOf(passed), textOf(held)])
    await part.close()
    expect(await ended).toEqual(['', ''])
    expect([clock.timers, leadership.listeners]).toEqual([0, 0])
    const next = await front({ listen: made.listening })
    leadership.say({ name: 'n1', address: leader.address })
    const socket = await consumer(next)
    await expectEcho(socket)
  })

  it('ends an attempt', async () => {
    await nobody(() => {})
    const { part, clock, ...made } = await front()
    const socket = await consumer(made)
    await eventually(() => expect(part.held).toBe(1))
    await part.close()
    expect(await textOf(socket)).toBe('')
    await eventually(() => expect(clock.timers).toBe(0))
    expect(part.counters.failed).toBe(0)
  })

  it('because an address is taken leaves nothing open', async () => {
    const made = await front()
    const { tcp } = made.listening
    const taken = front({ listen: { tcp: LOOPBACK, tls: tcp, http: undefined, https: undefined } })
    await expect(taken).rejects.toThrow(ListenError)
    await expect(taken).rejects.toThrow('listen.tls')
    expect(leadership.listeners).toBe(1)
  })
})
