/**
 * One tenant fills the disk, and then deletes what fills it: everybody else is served meanwhile, and it comes back by itself, also
 * after a `kill -9` in the middle. Needs root on Linux: the disk is a tmpfs.
 */

import { execFileSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, statfsSync, writeSync } from 'node:fs'
import { join as path } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canMount } from '../rig/small-disk.ts'
import { ALL, args, command, gmetricPacket, status, str, type, u32, u64 } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, type Json } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

const DISK_MIB = 24
const CHANNELS = 40
/** Two tenants that fill it together: each may hold half of it. */
const GREEDY = ['acme', 'globex'] as const
/** About a page of the database with three values. */
const PADDING = 'x'.repeat(1_300)
const LOOK_MS = 10
const atLoopback = args(['host', type.string, str('127.0.0.1')])
/** More than the disk holds, in small batches: a large one may not find room on so small a disk. */
const ROUNDS = 160

describe('a disk that a tenant has filled', () => {
  let server: ServerProcess
  let data = ''
  let port = 0
  let channels: number[] = []
  const udp = createSocket('udp4')
  beforeEach(async (context) => {
    if (!canMount()) context.skip('a small disk is mounted by root on Linux only: run the tests with sudo')
    port = await freePort()
    const feeds = GREEDY.map(
      (tenant, at) => `[[gmetric.feed]]\ntenant = "${tenant}"\nallow = ["127.0.0.${at + 2}/32"]\n`,
    )
    // The channel of a history would keep values of what fills the disk as well.
    const sections = `[history]\nkeep = "0"\n[log]\nlevel = "error"\n`
    server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\n${feeds.join('')}${sections}`)
    data = path(server.directory, 'data')
    mkdirSync(data, { mode: 0o700 })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m,mode=0700`, 'tmpfs', data], { stdio: 'pipe' })
    await server.start()
  })
  afterEach(async () => {
    if (!canMount()) return
    await server.end('SIGKILL')
    execFileSync('umount', [data])
    await server.remove()
  })

  /** Sends values of a gmetric to the server. */
  function send(from: Socket, name: string, count: number): void {
    const packet = gmetricPacket('string', name, PADDING)
    for (let sent = 0; sent < count; sent++) from.send(packet, port, '127.0.0.1')
  }

  const login = (user?: string): Promise<Seat> => server.seat(user)

  async function storage(seat: Seat): Promise<string> {
    return decoded(await seat.query('producer.stats'))['storage']
  }

  async function until(holds: () => Promise<boolean>): Promise<void> {
    while (!(await holds())) await setTimeout(LOOK_MS)
  }

  /** Forty channels take the same values. */
  async function followOnAll(seat: Seat): Promise<number> {
    const metric = await seat.collect('gmetric.full')
    channels = []
    for (let count = 0; count < CHANNELS; count++) {
      const channel = await seat.defChannel()
      channels.push(channel)
      await seat.ok((seq) => command.subscribe(seq, metric, channel))
    }
    return metric
  }

  /** They take them until the disk is full, and a file takes what was left. */
  async function fill(seat: Seat): Promise<void> {
    const metric = await followOnAll(seat)
    await until(async () => {
      send(udp, 'full', 4)
      return (await storage(seat)) === 'full'
    })
    await seat.ok((seq) => command.stop(seq, metric, ALL))
    const file = openSync(path(data, 'ballast'), 'w')
    try {
      for (;;) writeSync(file, Buffer.alloc(1 << 14, 1))
    } catch {
      // It is full to the last page.
    } finally {
      closeSync(file)
    }
    expect(await storage(seat)).toBe('full')
  }

  /** What a consumer needs to go on: a value in flight that it can commit, a metric that it can stop. */
  async function consumer(): Promise<{ seat: Seat; transaction: number; metric: number }> {
    const seat = await login()
    await seat.execute('user.add', ['user', type.string, str('eve')], ['password', type.string, str(PASSWORD)])
    // The tenant may fill all of it: the quota is not what is tested.
    await seat.execute('tenant.set', ['tenant', type.string, str('default')], ['queued_bytes', type.uint64, u64(0)])
    const metric = await seat.collect('host.load.one')
    await seat.ok((seq) => command.subscribe(seq, metric))
    const { transaction } = await seat.value()
    return { seat, transaction, metric }
  }

  async function expectServed({ seat, transaction, metric }: Awaited<ReturnType<typeof consumer>>): Promise<void> {
    await seat.ok((seq) => command.commit(seq, transaction))
    await seat.ok((seq) => command.stop(seq, metric))
  }

  /** The values are gone, and their space is given back to the disk. The ballast stays. */
  async function expectFreed(seat: Seat): Promise<void> {
    // It may be full once more, before everything is removed.
    await until(async () => {
      await seat.ok((seq) => command.nop(seq))
      const { bavail, blocks } = statfsSync(data)
      return bavail > blocks / 2 && existsSync(path(data, 'reserve')) && (await storage(seat)) === 'ok'
    })
    expect((await seat.query('producer.channels')).value.includes('eve')).toBe(false)
    await seat.defChannel()
  }

  test('is freed by DEL_CHANNEL of all its channels; COMMIT and STOP of others are answered meanwhile', async () => {
    const good = await consumer()
    const greedy = await login('eve')
    await fill(greedy)
    const deleted = greedy.send((seq) => command.delChannel(seq, ALL))
    await expectServed(good)
    expect((await greedy.response(deleted)).status).toBe(status.OK)
    await expectFreed(good.seat)
  }, 120_000)

  test('is freed after a `kill -9` in the middle of that, on a disk that is still full', async () => {
    await consumer()
    const greedy = await login('eve')
    await fill(greedy)
    await greedy.ok((seq) => command.delChannel(seq, ALL))
    await server.end('SIGKILL')
    await server.start()
    await expectFreed(await login())
  }, 120_000)

  test('is served after a restart as it was; an admin frees it: nobody has to wait for the one who filled it', async () => {
    await consumer()
    await fill(await login('eve'))
    await server.end('SIGKILL')
    await server.start()
    const seat = await login()
    const [doomed] = channels as [number]
    await seat.execute('channel.delete', ['channel', type.uint32, u32(doomed)])
    await seat.execute('user.remove', ['user', type.string, str('eve')])
    await expectFreed(seat)
  }, 120_000)

  test('is never full for the others: the tenants that fill it meet their quotas', async () => {
    const admin = await login()
    const name = ['user', type.string, str('eve')] as const
    const senders: Socket[] = []
    const ledgers: (() => Promise<Json>)[] = []
    for (const [at, tenant] of GREEDY.entries()) {
      await admin.execute(
        'user.add',
        name,
        ['tenant', type.string, str(tenant)],
        ['password', type.string, str(PASSWORD)],
      )
      const seat = await login(`${tenant}/eve`)
      await followOnAll(seat)
      const [channel] = channels as [number]
      ledgers.push(() => seat.ledger(channel))
      const sender = createSocket('udp4')
      sender.bind(0, `127.0.0.${at + 2}`)
      await once(sender, 'listening')
      senders.push(sender)
    }
    const channel = await admin.defChannel()
    const own = await admin.collect('gmetric.own', atLoopback)
    await admin.ok((seq) => command.buffer(seq, own, channel))
    let least = 1
    for (let round = 1; round <= ROUNDS; round++) {
      for (const sender of senders) send(sender, 'full', 2)
      send(udp, 'own', 1)
      await until(async () => {
        const { accepted, unstored } = await admin.ledger(channel)
        return accepted === round && unstored === 0
      })
      const { bavail, blocks } = statfsSync(data)
      least = Math.min(least, bavail / blocks)
      expect(await storage(admin)).toBe('ok')
    }
    for (const sender of senders) sender.close()
    expect(least).toBeLessThan(0.1)
    expect(await admin.ledger(channel)).toMatchObject({ queued: ROUNDS, dropped: { full: 0, overflow: 0 } })
    await admin.defChannel()
    for (const ledger of ledgers) {
      const { dropped } = await ledger()
      expect(dropped.full).toBe(0)
      expect(dropped.overflow).toBeGreaterThan(0)
    }
  }, 120_000)
})
