/**
 * A right that is withdrawn while values wait in channels, by raw bytes against a server of its own: what may not be read any more
 * goes, with a line in the log that says how many values, and nothing else does.
 */
import { createSocket, type Socket } from 'node:dgram'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { done } from '../support/administration.ts'
import { command, gmetricPacket } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { decoded, ledgerWhen } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { PASSWORD, ServerProcess } from '../support/server-process.ts'

/** Of each metric: enough for many blocks. */
const VALUES = 1_000
/** What the socket's buffer surely holds. */
const AT_ONCE = 50
const PURGED = 4
/** The code of a NOTICE. */
const WITHDRAWN = 4

let server: ServerProcess
let socket: Socket
let port: number
let admin: Seat
beforeEach(async () => {
  port = await freePort()
  socket = createSocket('udp4')
  server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\n`)
  await server.start()
  admin = await server.seat()
  for (const [user, role] of [
    ['reader', 'readers'],
    ['other', 'others'],
  ] as const) {
    // A role is there when it has a rule.
    await done(admin, 'role.allow', { role, command: 'COLLECT', object: 'gmetric.*' })
    await done(admin, 'user.add', { user, role, password: PASSWORD })
  }
})
afterEach(async () => {
  socket.close()
  await server.remove()
})

/** A channel of a user with these metrics, on which nobody listens. */
async function waitingChannel(user: string, metrics: readonly string[]): Promise<number> {
  const seat = await server.seat(user)
  const channel = await seat.defChannel()
  for (const metric of metrics) {
    const id = await seat.collect(metric)
    await seat.ok((seq) => command.subscribe(seq, id, channel))
  }
  seat.peer.destroy()
  return channel
}

/** Sends values of both metrics in turn; they are in both channels, and on the disk. */
async function feed(channels: readonly number[]): Promise<void> {
  for (let sent = 0; sent < VALUES; ) {
    for (const end = sent + AT_ONCE; sent < end; sent++) {
      for (const name of ['secret', 'open']) {
        socket.send(gmetricPacket('uint32', name, String(sent)), port, '127.0.0.1')
      }
    }
    for (const channel of channels) {
      await ledgerWhen(admin.peer, channel, ({ queued, unstored }) => queued === 2 * sent && unstored === 0)
    }
  }
}

const dropped = (): unknown[] =>
  server.errors
    .split('\n')
    .filter((line) => line.includes('values that waited in a channel were dropped'))
    .map((line) => JSON.parse(line))

it.each([
  ['role.deny', { role: 'readers', command: 'COLLECT', object: 'gmetric.secret' }],
  ['user.role', { user: 'reader', role: 'outsiders' }],
])('by %s: the admin is answered, and the values are gone', async (control, given) => {
  await done(admin, 'role.deny', { role: 'outsiders', command: 'COLLECT', object: 'gmetric.secret' })
  const metrics = ['gmetric.secret', 'gmetric.open']
  const [channel, others] = [await waitingChannel('reader', metrics), await waitingChannel('other', metrics)]
  await feed([channel, others])
  // From now on all of it is on the disk alone.
  await server.end('SIGTERM')
  await server.start()
  const reader = await server.seat('reader')
  admin = await server.seat()

  await done(admin, control, given)

  expect(dropped()).toMatchObject([
    { user: 'reader', channel, metric: 'gmetric.secret', values: VALUES, cause: 'right withdrawn' },
  ])
  expect(await reader.ledger(channel)).toMatchObject({
    queued: VALUES,
    dropped: { purged: VALUES },
    bindings: [{ name: 'gmetric.open' }],
  })
  const other = await server.seat('other')
  const { queued, dropped: lost, bindings } = await other.ledger(others)
  expect([queued, lost.purged]).toEqual([2 * VALUES, 0])
  expect(bindings.map(({ name }: { name: string }) => name).sort()).toEqual(['gmetric.open', 'gmetric.secret'])
  await reader.setChannel(channel)
  const values = (await reader.values(VALUES)).map((value) => decoded(value).value)
  expect(values).toEqual(Array.from({ length: VALUES }, (_, number) => number))
  expect(await reader.gap()).toMatchObject({ reason: PURGED, count: VALUES })
})

it('while its consumer receives them: a notice says so, and the last of them is followed by the GAP', async () => {
  const channel = await waitingChannel('reader', ['gmetric.secret', 'gmetric.open'])
  await feed([channel])
  const reader = await server.seat('reader')
  await reader.setChannel(channel)
  // A few arrive, and are not committed.
  const [first] = await reader.values(1)
  expect(first).toBeDefined()

  await done(admin, 'role.deny', { role: 'readers', command: 'COLLECT', object: 'gmetric.secret' })

  expect(await reader.notice()).toMatchObject({ code: WITHDRAWN, channel })
  const gap = await reader.gap()
  expect(gap.reason).toBe(PURGED)
  expect(dropped()).toMatchObject([{ channel, metric: 'gmetric.secret', values: gap.count, cause: 'right withdrawn' }])
})
