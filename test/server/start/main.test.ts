/** `cinnabar serve` as a process: exit codes, what is said to people, signals, two servers on one data directory. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { args, command, type, u32 } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { PROGRAM, untilReady } from '../../support/program.ts'
import { loggedIn, PASSWORD, ServerProcess } from '../../support/server-process.ts'

const hasScript = spawnSync('script', ['--version']).status === 0
if (!hasScript) console.warn('a terminal that hangs up is not tested: there is no `script`. apt-get install bsdutils')

let directory: string
let config: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  config = join(directory, 'cinnabar.toml')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly errors: string
}

/** Runs `serve` until it ends by itself. */
async function serve(toml: string, env: Record<string, string> = {}): Promise<Ended> {
  writeFileSync(config, toml)
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', config], {
    env: { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString()
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, errors }
}

/** A configuration that would work. */
function working({ data = join(directory, 'data'), tcp = '127.0.0.1:0', more = '' } = {}): string {
  return (
    `[producer]\ndata_dir = ${JSON.stringify(data)}\n[listen]\ntcp = "${tcp}"\nhttp = "127.0.0.1:0"\n` +
    `[auth]\nscram_iterations = 4096\n[gmetric]\nlisten = ""\n${more}`
  )
}

/** What is meant for people: no stack, no class names. */
function expectSentence({ errors, out }: Ended): void {
  expect(errors).toMatch(/^cinnabar: /)
  expect(errors).not.toMatch(/\bat .+:\d+:\d+|unexpected error|Error:/)
  expect(out).toBe('')
}

describe('exit code 1: it cannot run', () => {
  test('a port that something else listens on: the address and the key', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const ended = await serve(working({ tcp: `127.0.0.1:${port}` }))
    other.close()
    expect(ended.code).toBe(1)
    expectSentence(ended)
    expect(ended.errors).toContain(`127.0.0.1:${port}`)
    expect(ended.errors).toContain('listen.tcp')
  })

  test('a data directory that cannot be: its path', async () => {
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const ended = await serve(working({ data: join(file, 'data') }))
    expect(ended.code).toBe(1)
    expectSentence(ended)
    expect(ended.errors).toContain(join(file, 'data'))
  })
})

test('too few file descriptors at the start: what to raise, and no stack', async () => {
  writeFileSync(config, working())
  const line = `ulimit -n 100; exec ${process.execPath} ${PROGRAM} serve --config ${config}`
  const { status, stderr } = spawnSync('sh', ['-c', line])
  expect(`${stderr}`).toMatch(/^cinnabar: too few files may be open: raise `ulimit -n`/)
  expect(`${stderr}`).not.toMatch(/\bat .+:\d+:\d+|Error:/)
  expect(status).toBe(1)
})

describe('exit code 2: the configuration is not right', () => {
  test('file, line and key of each mistake, and the variable; nothing is made', async () => {
    const more = '[storage]\nsynchronus = "full"\n[stroage]\n[limits]\nconnections = "many"\n'
    const ended = await serve(working({ more }), { CINNABAR_STORAGE_SYNCHRONOUS: 'sometimes' })
    expect(ended.code).toBe(2)
    expectSentence(ended)
    for (const said of [':11: unknown key `storage.synchronus`', ':12: unknown section', ':14: `limits.connections`']) {
      expect(ended.errors).toContain(config + said)
    }
    expect(ended.errors).toContain('\nCINNABAR_STORAGE_SYNCHRONOUS: ')
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })

  test('an admin password that cannot be used: why, and not the password', async () => {
    const password = `geheim${'x'.repeat(80)}`
    const ended = await serve(working(), { CINNABAR_ADMIN_PASSWORD: password })
    expect(ended.code).toBe(2)
    expectSentence(ended)
    expect(ended.errors).toContain('CINNABAR_ADMIN_PASSWORD')
    expect(ended.errors).not.toContain('geheim')
  })
})

test('options come before the configuration, and what is printed is all that a command needs to find the server', async () => {
  writeFileSync(config, working())
  const env = { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD, npm_lifecycle_event: undefined }
  const data = join(directory, "some one's data")
  const port = await freePort(2)
  const options = ['--config', 'cinnabar.toml', '--data', data, '--listen', 'localhost', '--port', String(port)]
  const child = spawn(process.execPath, [PROGRAM, 'serve', ...options], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const shown = await untilReady(child.stdout)
    expect(shown).toMatch(new RegExp(`tcp://127[.]0[.]0[.]1:${port}  ws://127[.]0[.]0[.]1:${port + 1}/monitor`))
    expect(existsSync(join(data, 'cinnabar.db'))).toBe(true)
    const [, variables = ''] = /^first: +(export .+)$/m.exec(shown) ?? []
    const [, example = ''] = /^ +(.+) watch .* channels$/m.exec(shown) ?? []
    const line = `${variables}; ${example} get host.load.one`
    const { status, stderr } = spawnSync('sh', ['-c', line], { cwd: tmpdir(), env })
    expect(`${stderr}`).toBe('')
    expect(status).toBe(0)
  } finally {
    child.kill()
    await once(child, 'close')
  }
})

test('a relative `data_dir` is beside the file, and commands elsewhere find it by what is printed', async () => {
  writeFileSync(config, `[producer]\ndata_dir = "mine"\n[listen]\ntcp = "127.0.0.1:${await freePort()}"\nhttp = ""\n`)
  const elsewhere = mkdtempSync(join(tmpdir(), 'cinnabar-elsewhere-'))
  const child = spawn(process.execPath, [PROGRAM, 'serve'], {
    cwd: tmpdir(),
    env: { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD, CINNABAR_CONFIG: relative(tmpdir(), config) },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const shown = await untilReady(child.stdout)
    expect(existsSync(join(directory, 'mine', 'cinnabar.db'))).toBe(true)
    const [, variables = ''] = /^first: +(export .+)$/m.exec(shown) ?? []
    const line = `${variables}; ${process.execPath} ${PROGRAM} get host.load.one`
    const { status, stderr } = spawnSync('sh', ['-c', line], { cwd: elsewhere })
    expect(`${stderr}`).toBe('')
    expect(status).toBe(0)
  } finally {
    child.kill()
    await once(child, 'close')
    rmSync(elsewhere, { recursive: true })
  }
})

test('an empty --data is refused, and nothing is made in the current directory', () => {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'serve', '--data', ''], { cwd: directory })
  expect(`${stderr}`).toContain('Expected a path, not empty')
  expect(status).toBe(2)
  expect(readdirSync(directory)).toEqual([])
})

test('V8 knows the option by which the heap of a server grows, and nothing is said about it', async () => {
  const { stdout } = spawnSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
  expect(stdout).toContain('--heap-growing-percent')
  // V8 writes to standard error what it does not know.
  const { errors } = await serve('[producer]\nnothing = 1\n')
  expect(errors).not.toContain('heap-growing-percent')
})

describe('a server that runs', () => {
  let server: ServerProcess
  beforeAll(async () => {
    server = new ServerProcess('[gmetric]\nlisten = ""\n')
    await server.start()
  })
  afterAll(() => server.remove())

  const expectAlive = async () => {
    const { peer } = await server.login()
    peer.send(command.nop(1))
    expect((await peer.response(1)).status).toBe(0)
    peer.destroy()
  }

  test('goes on when another one is started on its data directory, which ends with exit code 1', async () => {
    const ended = await serve(working({ data: join(server.directory, 'data') }))
    expect(ended.code).toBe(1)
    expectSentence(ended)
    expect(ended.errors).toContain(join(server.directory, 'data'))
    await expectAlive()
  })

  test('reloads the configuration at SIGHUP, and a bad one changes nothing', async () => {
    const good = readFileSync(server.config, 'utf8')
    writeFileSync(server.config, `${good}[log]\nlevel = "debug"\n[limits]\nconnections = 77\n`)
    server.signal('SIGHUP')
    await eventually(() =>
      expect(server.errors).toContain('now in force: log.level; only after a restart: limits.connections'),
    )
    writeFileSync(server.config, `${good}[log`)
    server.signal('SIGHUP')
    await eventually(() => expect(server.errors).toContain('cannot be used: nothing changes'))
    await expectAlive()
    writeFileSync(server.config, good)
  })

  test('starts again right after SIGKILL, with its users and channels', async () => {
    const { peer } = await server.login()
    peer.send(command.defChannel(1))
    const { status, result: channel } = await peer.response(1)
    expect(status).toBe(0)
    await server.end('SIGKILL')
    await server.start()
    const again = await server.login()
    again.peer.send(command.setChannel(2, channel))
    expect((await again.peer.response(2)).status).toBe(0)
  })

  test('ends with exit code 0 after SIGTERM and tells its consumers, although one neither reads nor closes', async () => {
    const deaf = await server.login()
    deaf.peer.stream.pause()
    const { peer, channel } = await server.login()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(server.errors.trimEnd().split('\n').at(-1)).toContain('"msg":"stopped cleanly"')
    expect(await peer.until('notice')).toMatchObject({ code: 3, channel })
    expect((await peer.next()).kind).toBe('closed')
    deaf.peer.destroy()
  })

  test('leaves a database that an older version does not start with, nor change', async () => {
    const path = join(server.directory, 'data', 'cinnabar.db')
    const database = openSqlite(path)
    database.pragma('user_version = 999')
    database.close()
    const before = readFileSync(path)
    const ended = await serve(working({ data: join(server.directory, 'data') }))
    expect(ended.code).toBe(1)
    expectSentence(ended)
    expect(ended.errors).toContain('newer')
    expect(readFileSync(path).equals(before)).toBe(true)
  })
})

// A terminal is made by `script`.
test.skipIf(!hasScript)('a server ends cleanly when the terminal it was started from has hung up', async () => {
  writeFileSync(config, working())
  const exit = join(directory, 'exit')
  // Only the leader of the session gets the signal. This shell passes it on, as shells do, and sees how the server ends.
  const serve = `${process.execPath} ${PROGRAM} serve --config ${config}`
  const line = `trap 'kill -HUP $!' HUP; ${serve} & wait $!; wait $!; echo $? > ${exit}`
  const env = { ...process.env, CINNABAR_ADMIN_PASSWORD: PASSWORD }
  const terminal = spawn('script', ['-qec', line, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
  const shown = await untilReady(terminal.stdout)
  terminal.kill('SIGKILL')
  await eventually(() => expect(readFileSync(exit, 'utf8')).toBe('0\n'))
  expect(shown).not.toContain('unexpected error')
})

// Node itself keeps the first few from its children.
const OPENED = 40
// Descriptors are looked at in /proc.
test.skipIf(process.platform !== 'linux')(
  'descriptors that systemd hands over stay open, others are closed',
  async () => {
    writeFileSync(config, working())
    const files = ['handed-over', 'inherited'].map((name) => join(directory, name))
    const descriptors = files.map((file) => openSync(file, 'w'))
    const stdio = [...Array.from({ length: OPENED }, () => 'ignore' as 'ignore' | 'pipe'), ...descriptors]
    stdio[1] = 'pipe'
    // The first is 3, and the last the first of the two files.
    const script = `LISTEN_PID=$$ LISTEN_FDS=${OPENED + 1 - 3} exec "$@"`
    const child = spawn('sh', ['-c', script, 'sh', process.execPath, PROGRAM, 'serve', '--config', config], { stdio })
    try {
      await untilReady(child.stdout as NodeJS.ReadableStream)
      const folder = `/proc/${child.pid}/fd`
      const open = readdirSync(folder).map((name) => {
        try {
          return readlinkSync(join(folder, name))
        } catch {
          return undefined
        }
      })
      expect(files.map((file) => open.includes(file))).toEqual([true, false])
    } finally {
      child.kill('SIGKILL')
      await once(child, 'exit')
      for (const descriptor of descriptors) closeSync(descriptor)
    }
  },
)

describe('an error that belongs to nobody', () => {
  const signs = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  /** The error comes from outside of everything that the server guards: from a signal, or when a file appears. */
  const preload = `
    import { existsSync } from 'node:fs'
    import { isMainThread, workerData } from 'node:worker_threads'
    const name = workerData === 'cinnabar-bcrypt' ? 'bcrypt' : 'storage'
    const fail = () => { if (existsSync(${JSON.stringify(`${signs}/`)} + name)) throw new Error('broken thread') }
    if (isMainThread) process.on('SIGUSR2', () => { throw new TypeError('nobody expected this') })
    else fail(setInterval(fail, 20).unref())`

  let server: ServerProcess
  beforeAll(async () => {
    server = new ServerProcess('[gmetric]\nlisten = ""\n', { preload })
    await server.start()
  })
  afterAll(async () => {
    await server.remove()
    rmSync(signs, { recursive: true })
  })

  test('in the thread that checks passwords costs the sessions that wait for it', async () => {
    const { peer } = await server.login()
    writeFileSync(join(signs, 'bcrypt'), '')
    // By the password: SCRAM does without the thread.
    const attempt = () => loggedIn(server.tcpPort).then(() => 'admitted', String)
    await eventually(async () => expect(await attempt()).toContain('status 15'))
    rmSync(join(signs, 'bcrypt'))
    await loggedIn(server.tcpPort)
    peer.send(command.nop(9))
    expect((await peer.response(9)).status).toBe(0)
    expect(server.errors).toContain('the thread that checks passwords ended')
  })

  test('ends the server with exit code 1 and the stack; the restart reports a GAP, and what was acknowledged holds', async () => {
    const { peer, channel } = await server.login()
    peer.send(command.collect(1, 'host.load.one', args(['interval_ms', type.uint32, u32(10)])))
    const { result: metric } = await peer.response(1)
    peer.send(command.subscribe(2, metric))
    const ids: number[] = []
    while (ids.length < 5) ids.push((await peer.until('value')).transaction)
    peer.send(command.commitThrough(3, ids[2] as number))
    expect((await peer.response(3)).status).toBe(0)
    expect(await server.end('SIGUSR2')).toBe(1)
    const fatal = server.errors.split('\n').filter((line) => line.includes('"level":"fatal"'))
    expect(fatal).toHaveLength(1)
    expect(JSON.parse(fatal[0] as string).err).toMatchObject({
      message: 'nobody expected this',
      stack: expect.stringMatching(/TypeError: nobody expected this\n +at /),
    })

    await server.start()
    const again = await server.login()
    again.peer.send(command.setChannel(1, channel))
    expect((await again.peer.response(1)).status).toBe(0)
    expect(await again.peer.until('gap')).toMatchObject({ reason: 5, count: 0 })
    const back = again.peer.log.flatMap((message) => (message.kind === 'value' ? [message.transaction] : []))
    expect(back.slice(0, 2)).toEqual(ids.slice(3))
    expect(back.filter((id) => ids.slice(0, 3).includes(id))).toEqual([])
  })

  test('does so in the storage thread too', async () => {
    writeFileSync(join(signs, 'storage'), '')
    expect(await server.end()).toBe(1)
    expect(server.errors).toContain('the storage thread ended with an error: broken thread')
    rmSync(join(signs, 'storage'))
    await server.start()
    await server.login()
  })
})
