/** One connection after the other to a broker that is a bare socket, for a speaker of the test. */
import dns from 'node:dns'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SensorFaults } from '../../../../server/kernel/metrics/sensor-faults.ts'
import {
  type BrokerConnection,
  type BrokerHandler,
  type BrokerHandlerFactory,
  BrokerLink,
} from '../../../../server/wings/qmf/broker-link.ts'
import type { QmfTable } from '../../../../server/wings/qmf/config.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const NAMES = { ready: 'it is there', lost: 'it is not there' }

let clock: FakeClock
let server: Server
let peers: Socket[]
let logged: string[]
let link: BrokerLink
beforeEach(async () => {
  clock = new FakeClock()
  peers = []
  logged = []
  server = createServer({ allowHalfOpen: true }, (socket) => {
    peers.push(socket.on('error', () => {}))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterEach(async () => {
  await link.close()
  for (const peer of peers) peer.destroy()
  server.close()
})

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve))
}

/** Notes what happens to it. */
class Listener implements BrokerHandler {
  readonly calls: string[] = []
  readonly wire: BrokerConnection

  constructor(wire: BrokerConnection) {
    this.wire = wire
  }

  push(bytes: Uint8Array): void {
    this.calls.push(`push ${Buffer.from(bytes).toString()}`)
  }

  tick(): void {
    this.calls.push('tick')
  }

  end(): void {
    this.wire.down('ended')
  }
}

interface Made {
  readonly listeners: Listener[]
  readonly down: string[]
}

function connect(given: Partial<QmfTable> = {}, feed?: BrokerHandlerFactory['feed']): Made {
  const made: Made = { listeners: [], down: [] }
  const port = given.port ?? (server.address() as { port: number }).port
  const at = { name: 'b1', host: '127.0.0.1', port, isTls: false, user: undefined, password: undefined }
  const party: BrokerHandlerFactory = {
    messages: NAMES,
    session: 'me',
    ...(feed && { feed }),
    open(wire) {
      const listener = new Listener(wire)
      made.listeners.push(listener)
      return listener
    },
    down: (reason) => void made.down.push(reason),
  }
  const note = (_: object, text: string): void => void logged.push(text)
  const log = { info: note, warn: note, debug: () => {} } as never
  link = new BrokerLink({ ...at, virtualHost: '', ...given } as QmfTable, party, {
    clock,
    log,
    faults: new SensorFaults(clock),
    software: 'cinnabar/1',
    random: () => 0,
  })
  void link.connect()
  return made
}

/** The newest connection. */
async function opened({ listeners }: Made, count: number): Promise<Listener> {
  await until(() => listeners.length === count && peers.length === count)
  return listeners.at(-1) as Listener
}

describe('a connection that is lost', () => {
  /** Lost `afterMs` after it was ready; gives when the next one is due, which is made then. */
  async function lose(made: Made, afterMs: number): Promise<number> {
    const count = made.listeners.length
    const { wire } = await opened(made, count)
    wire.ready()
    clock.advance(afterMs)
    const waiting = vi.spyOn(clock, 'setTimeout')
    peers.at(-1)?.destroy()
    await until(() => made.down.length === count)
    const waitMs = waiting.mock.lastCall?.[1] as number
    waiting.mockRestore()
    clock.advance(waitMs)
    await opened(made, count + 1)
    return waitMs
  }

  it('is made again soon where it was good for a while, and ever later where it was not', async () => {
    const made = connect()
    await opened(made, 1)
    const waited: number[] = []
    for (const afterMs of [0, 0, 9_999, 10_000, 0]) waited.push(await lose(made, afterMs))
    expect(waited).toEqual([1_000, 2_000, 4_000, 1_000, 2_000])
    expect(logged.filter((text) => text === NAMES.lost)).toHaveLength(2)
  })

  it('has another session after it, whose name begins alike', async () => {
    const made = connect()
    const first = await opened(made, 1)
    peers[0]?.destroy()
    await until(() => made.down.length === 1)
    clock.advance(1_000)
    const second = await opened(made, 2)
    expect([first.wire.session, second.wire.session]).toEqual(['me-1', 'me-2'])
  })
})

describe('what arrived and has to wait', () => {
  /** Takes nothing. */
  const stuck: BrokerHandlerFactory['feed'] = () => ({ push: () => {}, end: () => {} })

  it('is a sign of life', async () => {
    let take = (): void => {}
    const made = connect({}, ({ push }) => ({
      push: (bytes) => {
        take = () => push(bytes)
      },
      end: () => {},
    }))
    const listener = await opened(made, 1)
    link.tick(clock.monotonicMs())
    const untouched = take
    peers[0]?.write('abc')
    await until(() => take !== untouched)
    link.tick(clock.monotonicMs())
    take()
    link.tick(clock.monotonicMs())
    expect(listener.calls).toEqual(['tick', 'push ', 'tick', 'push abc', 'tick'])
  })

  it('keeps nobody from stopping, though the connection is gone', async () => {
    const made = connect({}, () => ({ push: () => {}, end: () => {} }))
    await opened(made, 1)
    peers[0]?.resume().end('abc')
    await until(() => peers[0]?.closed === true)
    for (let n = 0; n < 10; n++) await new Promise((resolve) => setImmediate(resolve))
    expect(made.down).toEqual([])
    await link.close()
    expect(made.down).toEqual(['the server ends'])
    expect(clock.timers).toBe(0)
  })

  it('is given up with the connection', async () => {
    const made = connect({}, stuck)
    const listener = await opened(made, 1)
    peers[0]?.write('abc')
    listener.wire.down('enough')
    link.tick(clock.monotonicMs())
    expect(listener.calls).toEqual([])
  })
})

describe('the end of the server', () => {
  it.each([
    ['while it connects', {}],
    ['while its password is read', { user: 'u', passwordFile: '/dev/null' }],
    ['while TLS is negotiated', { isTls: true }],
  ])('%s leaves nothing behind', async (_, table) => {
    const made = connect(table)
    if ('isTls' in table) await until(() => peers.length === 1)
    await link.close()
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(100_000)
    expect([made.listeners.length, clock.timers]).toEqual([0, 0])
  })
})

describe('TLS that never gets anywhere', () => {
  it('is given up after ten seconds, and tried again', async () => {
    const made = connect({ isTls: true })
    await until(() => peers.length === 1)
    clock.advance(10_000)
    await until(() => made.down.length === 1)
    expect(made.down).toEqual(['no connection within 10 s'])
    clock.advance(1_000)
    await until(() => peers.length === 2)
  })
})

describe('a name with several addresses, and nobody at any of them', () => {
  it('says what happened at each', async () => {
    const all = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(((_: unknown, __: unknown, done: unknown) => {
      ;(done as (error: null, found: typeof all) => void)(null, all)
    }) as never)
    const { port } = server.address() as { port: number }
    server.close()
    const made = connect({ host: 'b1.example', port })
    await until(() => made.down.length === 1)
    expect(made.down).toEqual([`connect ECONNREFUSED 127.0.0.1:${port}, connect ECONNREFUSED 127.0.0.2:${port}`])
    lookup.mockRestore()
  })
})
