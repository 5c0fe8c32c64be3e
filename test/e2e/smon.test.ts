/** smon end to end: the server as a process of its own, sources over TCP and UDP, and `cinnabar feed`. */

import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DEFINE_A, RESYNC, stream } from '../server/wings/smon/fixture.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { decoded } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'

/** More than the server takes in one turn, so that reading is paused meanwhile. */
const MANY = 200_000

let server: ServerProcess
let port = 0

beforeAll(async () => {
  port = await freePort()
  server = new ServerProcess(
    `[smon]\ntcp = "127.0.0.1:${port}"\nudp = "127.0.0.1:${port}"\n[[smon.source]]\nname = "here"\naddress = "127.0.0.1"\n`,
  )
  await server.start()
})
afterAll(() => server.remove())

/** A consumer of `smon.aaaa` of the named source on a durable channel. */
async function subscribed(metric = 'smon.aaaa'): Promise<Seat> {
  const consumer = await server.seat()
  await consumer.setChannel(await consumer.defChannel())
  const id = await consumer.collect(metric, args(['source', type.string, str('here')]))
  await consumer.ok((seq) => command.subscribe(seq, id))
  return consumer
}

const number = (value: Awaited<ReturnType<Seat['value']>>): unknown => decoded(value)

/** Runs `cinnabar feed smon`. */
async function feed(
  file: string,
  input?: Uint8Array,
  to = `127.0.0.1:${port}`,
): Promise<{ code: number; err: string }> {
  const child = spawn(process.execPath, [SERVER_PROGRAM, 'feed', 'smon', file, '--to', to])
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  return { code, err }
}

describe('smon', () => {
  it('over TCP comes value by value, and VOID when its source is gone', async () => {
    const consumer = await subscribed()
    const socket = connect({ host: '127.0.0.1', port })
    socket.write(DEFINE_A)
    expect(number(await consumer.value())).toBe(100)
    socket.write(stream('00 01 fe'))
    expect(number(await consumer.value())).toBe(101)
    socket.write(RESYNC)
    socket.write(DEFINE_A)
    expect(number(await consumer.value())).toBe(100)
    socket.end()
    expect((await consumer.value()).type).toBe(type.void)
    consumer.peer.destroy()
  })

  it('over UDP comes as streams of their own', async () => {
    const consumer = await subscribed('smon.bbbb')
    const socket = createSocket('udp4')
    const datagram = stream('00 05', "'ubbbb'", '01 07 00 01')
    socket.send(datagram, port, '127.0.0.1')
    expect((await consumer.values(2)).map(number)).toEqual([7, 8])
    socket.send(datagram, port, '127.0.0.1', () => socket.close())
    expect((await consumer.values(2)).map(number)).toEqual([7, 8])
    consumer.peer.destroy()
  })

  it('from a file is taken whole, whoever watches or not, and from a pipe', async () => {
    const file = join(server.directory, 'recorded.smon')
    const pairs = new Uint8Array(2 * MANY)
    for (let index = 1; index < pairs.length; index += 2) pairs[index] = 1
    writeFileSync(file, Buffer.concat([DEFINE_A, pairs]))
    const counted = async (): Promise<number> => {
      const watcher = await server.seat()
      const sensors: { name: string; counters: { values: number } }[] = decoded(await watcher.query('producer.sensors'))
      watcher.peer.destroy()
      return sensors.find(({ name }) => name === 'smon')?.counters.values ?? 0
    }
    const before = await counted()
    const { code, err } = await feed(file)
    expect({ code, err }).toEqual({
      code: 0,
      err: `127.0.0.1:${port} has read ${DEFINE_A.length + pairs.length} bytes\n`,
    })
    expect((await counted()) - before).toBe(MANY + 1)

    const consumer = await subscribed()
    expect(await feed('-', DEFINE_A)).toMatchObject({ code: 0 })
    expect(number(await consumer.value())).toBe(100)
    consumer.peer.destroy()
  })

  it('that cannot be fed is reported in a sentence', async () => {
    expect(await feed('no such file')).toEqual({
      code: 1,
      err: expect.stringMatching(/^cinnabar: cannot read no such file: ENOENT/),
    })
    expect(await feed('-', DEFINE_A, '127.0.0.1:1')).toEqual({
      code: 1,
      err: expect.stringMatching(/^cinnabar: cannot connect to 127\.0\.0\.1:1 .*is the server running/),
    })
    expect((await feed('-', DEFINE_A, 'nowhere')).code).toBe(2)
  })

  it('from an address that is not allowed is refused, which the sender learns', async () => {
    const strict = new ServerProcess(`[smon]\ntcp = "127.0.0.1:${await freePort()}"\nallow = ["192.0.2.0/24"]\n`)
    await strict.start()
    const listens = /smon tcp:\/\/(\S+)/.exec(strict.greeting)?.[1]
    const { code, err } = await feed('-', DEFINE_A, listens)
    await strict.remove()
    expect(err).toMatch(/closed the connection before it had read everything .*`allow`/)
    expect(code).toBe(1)
  })
})
