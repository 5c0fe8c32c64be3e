import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../../server/kernel/core/clock.ts'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import { ListenError } from '../../../../server/kernel/core/listen.ts'
import { DatagramThread } from '../../../../server/kit/io/datagrams/thread.ts'
import { FeedTurns } from '../../../../server/kit/io/pacer.ts'
import { dropsIn, listenUdp, type UdpListening, type UdpOptions } from '../../../../server/kit/io/udp.ts'
import { eventually } from '../../../support/eventually.ts'

const open: { close(): unknown }[] = []

afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

/** What receives many datagrams at once; undefined in the tests of one by one. */
let thread: DatagramThread | undefined

async function listen(host: string, options: Partial<UdpOptions> = {}) {
  const received: { text: string; source: string }[] = []
  const listening = await listenUdp({
    address: { host, port: 0 },
    key: 'gmetric.listen',
    rival: 'gmond or another server',
    turns: new FeedTurns(systemClock()),
    thread,
    packet: (bytes, source) => void received.push({ text: Buffer.from(bytes).toString(), source }),
    packetFailed: (error) => expect.unreachable(String(error)),
    failed: (error) => expect.unreachable(String(error)),
    ...options,
  })
  open.push(listening)
  return { listening, received }
}

async function send({ address }: UdpListening, text: string, host = address.host): Promise<void> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  await new Promise((resolve, reject) => {
    socket.send(text, address.port, host, (error) => (error ? reject(error) : resolve(undefined)))
  })
  socket.close()
}

/** A program that sends `count` datagrams of `bytes` bytes to a port of loopback, and ends. */
function flood(port: number, count: number, bytes: number): void {
  const program = `
    const socket = require('node:dgram').createSocket('udp4')
    const datagram = Buffer.alloc(${bytes})
    const next = (left) =>
      left === 0 ? socket.close() : socket.send(datagram, ${port}, '127.0.0.1', () => next(left - 1))
    next(${count})`
  expect(spawnSync(process.execPath, ['-e', program]).status).toBe(0)
}

const ipv6 = Object.values(networkInterfaces()).some((each) => each?.some(({ address }) => address === '::1'))

function* failing(): Steps<void> {
  yield
  throw new Error('broken later')
}

/** Where one of them is not possible, the other is used. */
const WAYS = [
  ['one by one', async () => undefined],
  ['many at once', openThread],
] as const

async function openThread(): Promise<DatagramThread> {
  const opened = await DatagramThread.open()
  if ('unavailable' in opened) throw new Error(opened.unavailable)
  return opened
}

const ways = process.platform === 'linux' ? WAYS : WAYS.slice(0, 1)

describe.each(ways)('datagrams that are received %s', (_, open) => {
  beforeAll(async () => {
    thread = await open()
  })
  afterAll(() => thread?.close())

  describe('a UDP listener', () => {
    test('drops a datagram that cannot be handled, and takes the next one', async () => {
      const taken: string[] = []
      const failures: string[] = []
      const { listening } = await listen('127.0.0.1', {
        packet: (bytes) => {
          const text = Buffer.from(bytes).toString()
          if (text === 'bad') throw new Error('broken')
          taken.push(text)
          return text === 'one' ? failing() : undefined
        },
        packetFailed: (error, source) => failures.push(`${(error as Error).message} ${source}`),
      })
      for (const text of ['one', 'bad', 'two']) await send(listening, text)
      await eventually(() => expect(taken).toHaveLength(2))
      expect([taken, failures]).toEqual([
        ['one', 'two'],
        ['broken later 127.0.0.1', 'broken 127.0.0.1'],
      ])
    })

    test('hands on each datagram with the address it came from', async () => {
      const { listening, received } = await listen('127.0.0.1')
      expect(listening.address).toEqual({ host: '127.0.0.1', port: expect.any(Number) })
      expect(listening.address.port).toBeGreaterThan(0)
      await send(listening, 'one')
      await send(listening, '')
      await send(listening, 'x'.repeat(60_000))
      await eventually(() => expect(received).toHaveLength(3))
      expect(received.map(({ text }) => text.length)).toEqual([3, 0, 60_000])
      expect(new Set(received.map(({ source }) => source))).toEqual(new Set(['127.0.0.1']))
    })

    test('takes a name for an address', async () => {
      const { listening, received } = await listen('localhost')
      expect(['127.0.0.1', '::1']).toContain(listening.address.host)
      await send(listening, 'one')
      await eventually(() => expect(received).toHaveLength(1))
    })

    // There are machines without IPv6.
    test.skipIf(!ipv6)('listens on IPv6, and on both with ::', async () => {
      const { listening, received } = await listen('::1')
      await send(listening, 'six')
      await eventually(() => expect(received).toEqual([{ text: 'six', source: '::1' }]))
      const both = await listen('::')
      await send(both.listening, 'four', '127.0.0.1')
      await send(both.listening, 'six', '::1')
      await eventually(() => expect(both.received).toHaveLength(2))
      expect(both.received).toContainEqual({ text: 'four', source: '::ffff:127.0.0.1' })
    })

    test('never shares its port, and says who may have it and what to change', async () => {
      const { listening } = await listen('127.0.0.1')
      const second = listen('127.0.0.1', { address: listening.address })
      await expect(second).rejects.toThrow(ListenError)
      await expect(second).rejects.toThrow(
        `cannot listen on 127.0.0.1:${listening.address.port}: it is in use, probably by gmond or another server: ` +
          'stop that program or choose another port (the key is `gmetric.listen`)',
      )
    })

    test('says what is wrong with an address or name', async () => {
      await expect(listen('192.0.2.1')).rejects.toThrow(
        'cannot listen on 192.0.2.1:0: this machine has no such address (the key is `gmetric.listen`)',
      )
      await expect(listen('no-such-host.invalid')).rejects.toThrow(ListenError)
    })

    test('that is closed hands on nothing, frees its port and may be closed again', async () => {
      const { listening, received } = await listen('127.0.0.1')
      await listening.close()
      await listening.close()
      const again = await listen('127.0.0.1', { address: listening.address })
      await send(again.listening, 'one')
      await eventually(() => expect(again.received).toHaveLength(1))
      expect(received).toEqual([])
      expect(listening.kernelDrops()).toBeUndefined()
    })
  })

  describe('a UDP listener on all addresses', () => {
    const everywhere = ipv6 ? ['0.0.0.0', '::'] : ['0.0.0.0']

    test.each(everywhere)('of %s takes what a group gets too, and answers over IPv4', async (host) => {
      const { listening, received } = await listen(host)
      listening.join('239.2.11.71', '127.0.0.1', 'gmetric.multicast')
      const peer = await listen('127.0.0.1')
      const { port } = listening.address
      listening.send(Buffer.from('to the group'), '239.2.11.71', port)
      listening.send(Buffer.from('to one'), '127.0.0.1', peer.listening.address.port)
      await eventually(() => expect([received.length, peer.received.length]).toEqual([1, 1]))
      expect(received[0]).toEqual({ text: 'to the group', source: host === '::' ? '::ffff:127.0.0.1' : '127.0.0.1' })
    })

    test('says where it could not join a group', async () => {
      const { listening } = await listen('0.0.0.0')
      expect(() => listening.join('239.2.11.71', '192.0.2.77', 'gmetric.multicast')).toThrow(
        `cannot listen on 239.2.11.71:${listening.address.port}: no network interface can join that group ` +
          '(the key is `gmetric.multicast`)',
      )
    })
  })

  describe('datagrams that the kernel threw away', () => {
    // Only Linux tells.
    test.skipIf(!existsSync('/proc/net/udp'))('and those that arrived are together what was sent', async () => {
      let received = 0
      const { listening } = await listen('127.0.0.1', { packet: () => void received++ })
      expect(listening.kernelDrops()).toBe(0)
      // Nothing is read while the program runs, and 80 MB are more than any usual buffer.
      const sent = 2000
      flood(listening.address.port, sent, 40_000)
      expect(listening.kernelDrops()).toBeGreaterThan(0)
      await eventually(() => expect(received + (listening.kernelDrops() ?? 0)).toBe(sent))
      expect(received).toBeGreaterThan(0)
    })
  })
})

describe('the table of the kernel', () => {
  test('has what was thrown away by address and port', () => {
    // As Linux 6.18 shows it on a little-endian machine; only the columns that matter differ.
    const between = ':0000 07 00000000:00000000 00:00000000 00000000     0        0 103099 2 00000000de5be9c0 '
    const row = (local: string, remote: string, drops: number) => `  720: ${local} ${remote}${between}${drops}`
    const udp = [
      '   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ... drops',
      row('0200007F:48D9', '00000000', 0).padEnd(127),
      row('0100007F:48D9', '00000000', 22).padEnd(127),
      row('00000000:1F90', '00000000', 5).padEnd(127),
      '',
    ].join('\n')
    expect(dropsIn(udp, '127.0.0.1', 0x48d9)).toBe(22)
    expect(dropsIn(udp, '127.0.0.2', 0x48d9)).toBe(0)
    expect(dropsIn(udp, '0.0.0.0', 8080)).toBe(5)
    expect(dropsIn(udp, '127.0.0.3', 0x48d9)).toBeUndefined()
    expect(dropsIn(udp, '127.0.0.1', 8080)).toBeUndefined()
    const udp6 = row('00000000000000000000000001000000:48D9', '0'.repeat(32), 3)
    expect(dropsIn(udp6, '::1', 0x48d9)).toBe(3)
    expect(dropsIn('', '::1', 0x48d9)).toBeUndefined()
  })
})
