/** The program as a process: what only a process has, its streams, signals and exit code. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { relative } from 'node:path'
import { expect, test } from 'vitest'
import { StatusCode } from '../../protocol/monitor/status.ts'
import { caps, response, type Sent, value } from '../client/wire.ts'
import { PROGRAM } from '../support/program.ts'

function start(argv: readonly string[], url: string) {
  const credentials = { CINNABAR_URL: url, CINNABAR_USER: 'tc', CINNABAR_PASSWORD: 's3' }
  // The tests themselves may be a script of npm.
  const env = { ...process.env, npm_lifecycle_event: undefined, ...credentials }
  const child = spawn(process.execPath, [PROGRAM, ...argv], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let err = ''
  child.stderr.on('data', (text) => {
    err += text
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, err }))
  return { child, ended }
}

/** Logs everybody in, shows no catalogue, and subscribes them to a flood of values, a few at a time for as long as they listen. */
async function serve(onSubscribe: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.write(caps('password'))
    let pending = Buffer.alloc(0)
    socket.on('data', (data) => {
      pending = Buffer.concat([pending, data])
      while (pending.length >= 4 && pending.length >= 4 + pending.readUInt32BE(0)) {
        const end = 4 + pending.readUInt32BE(0)
        const sent: Sent = {
          command: pending.readUInt32BE(4),
          seq: pending.readUInt32BE(8),
          rest: pending.subarray(12, end),
        }
        pending = pending.subarray(end)
        const isOfUnits = Buffer.from(sent.rest).includes('producer.metrics')
        socket.write(isOfUnits ? response(sent.seq, StatusCode.NO_SUCH_METRIC, 0, '') : response(sent.seq, 0, 7))
        if (sent.command === 3) onSubscribe(socket)
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, url: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

test('a port where nothing listens is reported in plain words, with exit code 1', async () => {
  const { server, url } = await serve(() => {})
  await new Promise((resolve) => server.close(resolve))
  const { code, err } = await start(['get', 'host.load.one'], url).ended
  expect(code).toBe(1)
  expect(err).toContain(
    `nothing listens on ${new URL(url).host}: start the server with \`node ${relative('', PROGRAM)} serve\``,
  )
})

test('Ctrl-C ends a tail with exit code 0', async () => {
  const { server, url } = await serve((socket) => socket.write(value(7, 1, 42)))
  const { child, ended } = start(['tail', 'a'], url)
  const [line] = await once(child.stdout, 'data')
  expect(String(line)).toMatch(/^\S+ {2}a {2}42\n$/)
  child.kill('SIGINT')
  expect(await ended).toMatchObject({ code: 0, signal: null })
  server.close()
})

test('a closed pipe ends it quietly', async () => {
  const { server, url } = await serve((socket) => {
    let transaction = 1
    const flood = () => {
      if (!socket.destroyed) socket.write(value(7, transaction++, 42), () => setImmediate(flood))
    }
    flood()
  })
  const { child, ended } = start(['tail', 'a'], url)
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const { code, err } = await ended
  expect(code).toBe(0)
  expect(err).toBe(`channel 7; continue later with: node ${relative('', PROGRAM)} tail --channel 7\n`)
  server.close()
})
