/** Many connections of a source, and few file descriptors: consumers and admins still get in, and the server says what is wrong. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { connect as connectClient, valueToJson } from '../../client/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM, untilReady } from '../support/program.ts'

const PASSWORD = 'a good password'
const sockets: Socket[] = []
let child: ChildProcess
let directory = ''
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  child.kill('SIGKILL')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  rmSync(directory, { recursive: true, force: true })
})

it('connections of sources leave descriptors for consumers', async () => {
  directory = mkdtempSync(join(tmpdir(), 'files-'))
  const [port, statsd] = [await freePort(2), await freePort()]
  const config = join(directory, 'c.toml')
  writeFileSync(
    config,
    `[producer]\ndata_dir = "data"\n[listen]\ntcp = "127.0.0.1:${port}"\nhttp = "127.0.0.1:${port + 1}"\n` +
      `[auth]\nscram_iterations = 4096\n[gmetric]\nlisten = ""\n` +
      `[[statsd]]\nudp = ""\ntcp = "127.0.0.1:${statsd}"\n`,
  )
  child = spawn('sh', ['-c', `ulimit -n 300; exec ${process.execPath} ${PROGRAM} serve --config ${config}`], {
    env: { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    log += chunk.toString()
  })
  await untilReady(child.stdout!)
  let ended = 0
  for (let n = 0; n < 400; n++) {
    const socket = connect(statsd, '127.0.0.1')
    socket.on('error', () => {}).on('close', () => ended++)
    sockets.push(socket)
  }
  await eventually(() => expect(ended).toBeGreaterThan(200))
  const admin = await connectClient(`tcp://127.0.0.1:${port}`, { identity: 'admin', password: PASSWORD })
  // Others may still be refused meanwhile.
  await eventually(async () => {
    const { value } = await admin.query('producer.stats')
    expect(valueToJson(value)).toMatchObject({ max_open_files: 300, refused_source_connections: ended })
  })
  await eventually(() => expect(log).toContain('of 300 file descriptors are in use'))
  const health = await fetch(`http://127.0.0.1:${port + 1}/readyz`)
  expect([health.status, await health.text()]).toEqual([503, expect.stringContaining('raise `ulimit -n`')])
  for (const socket of sockets) socket.destroy()
  await eventually(async () => expect((await fetch(`http://127.0.0.1:${port + 1}/readyz`)).status).toBe(200))
  await admin.close()
})
