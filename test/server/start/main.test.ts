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
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { args, command, type, u32 } from '../../support/bytes.ts'
import { freePort } from '../../support/free-port.ts'
import { PROGRAM } from '../../support/program.ts'
import { ServerProcess } from '../../support/server-process.ts'

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
    env: { ...process.env, CINNABAR_ADMIN_PASSWORD: 'a password for tests', ...env },
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
    const other: Server = createServer().listen(0, '127.0.0.1')
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

  test('a database of a newer version: it is left as it is', async () => {
    const server = new ServerProcess()
    try {
      await server.start()
      expect(await server.end('SIGTERM')).toBe(0)
      const path = join(server.directory, 'data', 'cinnabar.db')
      const database = new Database(path)
      database.pragma('user_version = 999')
      database.close()
      const before = readFileSync(path)
      const ended = await serve(working({ data: join(server.directory, 'data') }))
      expect(ended.code).toBe(1)
      expectSentence(ended)
      expect(ended.errors).toContain('newer')
      expect(readFileSync(path).equals(before)).toBe(true)
    } finally {
      await server.remove()
    }
  })

  test('a data directory that another server uses; that one goes on', async () => {
    const server = new ServerProcess()
    try {
      await server.start()
      const ended = await serve(working({ data: join(server.directory, 'data') }))
      expect(ended.code).toBe(1)
      expectSentence(ended)
      expect(ended.errors).toContain(join(server.directory, 'data'))
      const { peer } = await server.login()
      peer.send(command.nop(1))
      expect((await peer.response(1)).status).toBe(0)
    } finally {
      await server.remove()
    }
  })
})

describe('exit code 2: the configuration is not right', () => {
  test.each([
    ['an unknown key', '[storage]\nsynchronus = "full"\n', ['synchronus', /:\d+/]],
    ['an unknown section', '[stroage]\n', ['stroage', /:\d+/]],
    ['a wrong type', '[limits]\nconnections = "many"\n', ['limits.connections', /:\d+/]],
    ['no TOML', 'this is = = not\n', [/:\d+/]],
  ])('%s: file, line and key', async (_, more, said) => {
    const ended = await serve(working({ more }))
    expect(ended.code).toBe(2)
    expectSentence(ended)
    expect(ended.errors).toContain(config)
    for (const part of said) expect(ended.errors).toMatch(part)
    expect(existsSync(join(directory, 'data'))).toBe(false)
  })

  test('the environment: the name of the variable', async () => {
    const ended = await serve('', { CINNABAR_STORAGE_SYNCHRONOUS: 'sometimes' })
    expect(ended.code).toBe(2)
    expect(ended.errors).toContain('CINNABAR_STORAGE_SYNCHRONOUS')
  })

  test('an admin password that cannot be used: why, and not the password', async () => {
    const password = `geheim${'x'.repeat(80)}`
    const ended = await serve(working(), { CINNABAR_ADMIN_PASSWORD: password })
    expect(ended.code).toBe(2)
    expectSentence(ended)
    expect(ended.errors).toContain('CINNABAR_ADMIN_PASSWORD')
    expect(ended.errors).not.toContain('geheim')
  })

  test('an admin password that is too short', async () => {
    const ended = await serve(working(), { CINNABAR_ADMIN_PASSWORD: 'geheim' })
    expect(ended.code).toBe(2)
    expectSentence(ended)
    expect(ended.errors).toContain('at least 8')
    expect(ended.errors).not.toContain('geheim')
  })
})

test('options come before the configuration, and what is printed is all that a command needs to find the server', async () => {
  writeFileSync(config, working())
  const env = { ...process.env, CINNABAR_ADMIN_PASSWORD: 'a password for tests', npm_lifecycle_event: undefined }
  const data = join(directory, "some one's data")
  const port = await freePort()
  const options = ['--config', 'cinnabar.toml', '--data', data, '--listen', 'localhost', '--port', String(port)]
  const child = spawn(process.execPath, [PROGRAM, 'serve', ...options], {
    cwd: directory,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    let shown = ''
    for await (const chunk of child.stdout) {
      shown += String(chunk)
      if (shown.includes(' channels')) break
    }
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

test.each([
  ['--port', '65535', 'a port from 0'],
  ['--listen', '127.0.0.1:7650', 'see --port'],
])('%s %s is refused', (option, value, said) => {
  const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'serve', option, value], { cwd: directory })
  expect(status).toBe(2)
  expect(`${stderr}`).toContain(said)
  expect(readdirSync(directory)).toEqual([])
})

describe('a server that runs', () => {
  let server: ServerProcess
  beforeEach(async () => {
    server = new ServerProcess('[gmetric]\nlisten = ""\n')
    await server.start()
  })
  afterEach(() => server.remove())

  test('ends with exit code 0 within 5 s of SIGTERM, and tells its consumers', async () => {
    const { peer, channel } = await server.login()
    const begun = performance.now()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(server.errors.trimEnd().split('\n').at(-1)).toContain('"msg":"stopped cleanly"')
    expect(performance.now() - begun).toBeLessThan(5000)
    expect(await peer.until('notice')).toMatchObject({ code: 3, channel })
    expect((await peer.next()).kind).toBe('closed')
  })

  test('does so although a consumer neither reads nor closes', async () => {
    const { peer } = await server.login()
    peer.stream.pause()
    const begun = performance.now()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(performance.now() - begun).toBeLessThan(6000)
    peer.destroy()
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
})

describe('SIGHUP', () => {
  test('reloads the configuration, and a bad one changes nothing', async () => {
    const server = new ServerProcess('[gmetric]\nlisten = ""\n')
    try {
      await server.start()
      const good = readFileSync(server.config, 'utf8')
      writeFileSync(server.config, `${good}[log]\nlevel = "debug"\n[limits]\nconnections = 77\n`)
      server.signal('SIGHUP')
      await expect
        .poll(() => server.errors, { timeout: 20_000 })
        .toContain('now in force: log.level; only after a restart: limits.connections')
      writeFileSync(server.config, `${good}[log`)
      server.signal('SIGHUP')
      await expect.poll(() => server.errors, { timeout: 20_000 }).toContain('cannot be used: nothing changes')
      const { peer } = await server.login()
      peer.send(command.nop(1))
      expect((await peer.response(1)).status).toBe(0)
      expect(await server.end('SIGTERM')).toBe(0)
    } finally {
      await server.remove()
    }
  })

  // A terminal is made by `script`.
  test.skipIf(!hasScript)('ends the server cleanly when the terminal it was started from has hung up', async () => {
    writeFileSync(config, working())
    const exit = join(directory, 'exit')
    // Only the leader of the session gets the signal. This shell passes it on, as shells do, and sees how the server ends.
    const serve = `${process.execPath} ${PROGRAM} serve --config ${config}`
    const line = `trap 'kill -HUP $!' HUP; ${serve} & wait $!; wait $!; echo $? > ${exit}`
    const env = { ...process.env, CINNABAR_ADMIN_PASSWORD: 'a password for tests' }
    const terminal = spawn('script', ['-qec', line, '/dev/null'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
    let shown = ''
    for await (const chunk of terminal.stdout) {
      shown += String(chunk)
      if (shown.includes(' channels')) break
    }
    terminal.kill('SIGKILL')
    await expect.poll(() => existsSync(exit) && readFileSync(exit, 'utf8'), { timeout: 20_000 }).toBe('0\n')
    expect(shown).not.toContain('unexpected error')
  })
})

// Node itself keeps the first few from its children.
const OPENED = 40
// Descriptors are looked at in /proc.
test.skipIf(process.platform !== 'linux').each([
  ['inherits from who started it is closed', 'exec "$@"', false],
  ['is handed by systemd stays open', 'LISTEN_PID=$$ LISTEN_FDS=38 exec "$@"', true],
])('a descriptor that the server %s', async (_, script, isOpen) => {
  writeFileSync(config, working())
  const file = join(directory, 'inherited')
  writeFileSync(file, '')
  const descriptor = openSync(file, 'r')
  const stdio = Array.from({ length: OPENED + 1 }, (_, index) => (index === OPENED ? descriptor : ('ignore' as const)))
  stdio[1] = 'pipe' as 'ignore'
  const child = spawn('sh', ['-c', script, 'sh', process.execPath, PROGRAM, 'serve', '--config', config], { stdio })
  try {
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const folder = `/proc/${child.pid}/fd`
    const open = readdirSync(folder).map((name) => {
      try {
        return readlinkSync(join(folder, name))
      } catch {
        return undefined
      }
    })
    expect(open.includes(file)).toBe(isOpen)
  } finally {
    child.kill('SIGKILL')
    await once(child, 'exit')
    closeSync(descriptor)
  }
})

describe('an error that belongs to nobody', () => {
  /** The error comes from outside of everything that the server guards: from a signal, or when a file appears. */
  const preload = () => `
    import { existsSync } from 'node:fs'
    import { isMainThread, workerData } from 'node:worker_threads'
    const name = workerData === 'cinnabar-bcrypt' ? 'bcrypt' : 'storage'
    const fail = () => { if (existsSync(${JSON.stringify(`${directory}/`)} + name)) throw new Error('broken thread') }
    if (isMainThread) process.on('SIGUSR2', () => { throw new TypeError('nobody expected this') })
    else fail(setInterval(fail, 20).unref())`

  let server: ServerProcess
  beforeEach(async () => {
    server = new ServerProcess('[gmetric]\nlisten = ""\n', { preload: preload() })
    await server.start()
  })
  afterEach(() => server.remove())

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
    writeFileSync(join(directory, 'storage'), '')
    expect(await server.end()).toBe(1)
    expect(server.errors).toContain('the storage thread ended with an error: broken thread')
    rmSync(join(directory, 'storage'))
    await server.start()
    await server.login()
  })

  test('in the thread that checks passwords costs the sessions that wait for it', async () => {
    const { peer } = await server.login()
    writeFileSync(join(directory, 'bcrypt'), '')
    const attempt = () => server.login().then(() => 'admitted', String)
    await vi.waitUntil(async () => (await attempt()).includes('status 15'), { timeout: 30_000 })
    rmSync(join(directory, 'bcrypt'))
    await server.login()
    peer.send(command.nop(9))
    expect((await peer.response(9)).status).toBe(0)
    expect(server.errors).toContain('the thread that checks passwords ended')
  })
})
