/** The agent inside a real Mono, and an inspector that a test plays. What the application did without it, it does with it. */

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { AGENT, Application, BUILD, buildAgent, compile, howTo, MONO, missing } from './application.ts'
import { type Agent, request, ScriptedInspector } from './scripted-inspector.ts'

const [OK, NOTFOUND, EXISTING] = [0, 2, 3]
/** 0001-01-01 to 1970-01-01, in ticks of 100 ns. */
const UNIX_EPOCH = 621_355_968_000_000_000n
const STRACE = '/usr/bin/strace'
const THROWN = 'Exceptions/Thrown'
const COLLECTIONS = 'Mono GC/Major GC collections'

let directory: string
let program: string
let inspector: ScriptedInspector
let applications: Application[]

beforeAll(() => {
  if (missing) return
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-mono-'))
  buildAgent()
  program = compile(directory)
})
afterAll(() => {
  if (!missing) rmSync(directory, { recursive: true })
})
beforeEach(async () => {
  inspector = await ScriptedInspector.listen()
  applications = []
})
afterEach(() => {
  for (const application of applications) application.kill()
  inspector.close()
})

function run(options: string | undefined, how: string, environment = {}): Application {
  const application = new Application(program, options, [how, '--flag'], environment)
  applications.push(application)
  return application
}

/** An application that obeys, and its agent, which sends these counters. */
async function connected(counters = `${THROWN};${COLLECTIONS}`): Promise<{ application: Application; agent: Agent }> {
  const application = run(`port=${inspector.port},interval=20,counters=${counters}`, 'obey')
  return { application, agent: await inspector.agent() }
}

/** Greeted, and with the first sampling taken: what comes now are changes. */
async function sampled(counters?: string) {
  const { application, agent } = await connected(counters)
  const { headers } = await agent.until('hello')
  const { samples } = await agent.until('sampling')
  return { application, agent, headers, samples }
}

// Mono is no package of npm, and not every machine has it.
describe.skipIf(missing)(`agents/mono/build${howTo}`, () => {
  const folder = dirname(BUILD)

  test('makes the one program of its folder, which git does not see', () => {
    expect(readdirSync(folder, { recursive: true }).filter((name) => `${name}`.endsWith('.exe'))).toEqual([
      'CinnabarAgent.exe',
    ])
    const seen = execFileSync('git', ['status', '--porcelain', '--untracked-files=all', '.'], { cwd: folder })
    expect(`${seen}`).not.toContain('.exe')
  })

  test('says what to install where there is no compiler', () => {
    const path = join(directory, 'bin')
    mkdirSync(path)
    symlinkSync('/usr/bin/dirname', join(path, 'dirname'))
    const { status, stderr } = spawnSync('/bin/bash', [BUILD], { env: { PATH: path } })
    expect({ status, stderr: `${stderr}` }).toEqual({ status: 1, stderr: 'mcs is missing: apt-get install mono-mcs\n' })
  })
})

// As above.
describe.skipIf(missing)(`an agent${howTo}`, () => {
  test('says hello with the counters of the runtime', async () => {
    run(`host=localhost,port=${inspector.port}`, 'obey')
    const { version, headers } = await (await inspector.agent()).until('hello')
    expect(version).toBe(1)
    expect(headers.map(({ index }) => index)).toEqual(headers.map((_, index) => index))
    const called = (name: string) => headers.find((header) => header.name === name)
    expect(called('Major GC collections')).toMatchObject({ category: 1, type: 0, unit: 0, variance: 2 })
    expect(called('Total time spent JITting')).toMatchObject({ category: 0, type: 1, unit: 2, variance: 2 })
    expect(called('Working Set')).toMatchObject({ category: 7, type: 1, unit: 1, variance: 3 })
    expect(called('Lock contentions')).toMatchObject({ category: 5, type: 1, unit: 3, variance: 2 })
    expect(called('Exceptions:Thrown')).toMatchObject({ category: 8, type: 1, unit: 3, variance: 2 })
  })

  test('says hello with the counters of its options, or with all', async () => {
    const few = await connected()
    const { headers } = await few.agent.until('hello')
    expect(headers.map(({ name }) => name).sort()).toEqual(['Exceptions:Thrown', 'Major GC collections'])
    const many = await connected('all')
    expect((await many.agent.until('hello')).headers.length).toBeGreaterThan(100)
    const first = await many.agent.until('sampling')
    for (const bytes of first.samples.values()) expect([4, 8]).toContain(bytes.length)
  })

  test('samples all at first, and then what changed', async () => {
    const { application, agent, headers, samples } = await sampled()
    expect([...samples.keys()]).toEqual([0, 1])
    const thrown = headers.find(({ name }) => name === 'Exceptions:Thrown')!.index
    // Mono throws an exception of its own while the application begins.
    await application.obey('throw 0')
    const begun = UNIX_EPOCH + BigInt(Date.now() + 1) * 10_000n
    let before = samples.get(thrown)!.readBigInt64LE()
    for (let now = 0n; now < begun; ) {
      const sampling = await agent.until('sampling')
      before = sampling.samples.get(thrown)?.readBigInt64LE() ?? before
      now = sampling.ticks
    }
    expect((await agent.sampling(({ size }) => size === 0)).size).toBe(0)
    await application.obey('throw 5')
    // The agent may look in the middle of it.
    for (let now = before; now < before + 5n; ) {
      const changed = await agent.sampling(({ size }) => size > 0)
      expect([...changed.keys()]).toEqual([thrown])
      now = changed.get(thrown)!.readBigInt64LE()
      expect(now).toBeLessThanOrEqual(before + 5n)
    }
    await application.obey('collect 3')
    const collections = 1 - thrown
    const all = samples.get(collections)!.readInt32LE() + 3
    await agent.sampling((changed) => changed.get(collections)?.readInt32LE() === all)
  })

  test('says when it sampled, in ticks of .NET', async () => {
    const from = BigInt(Date.now())
    const { agent } = await connected()
    await agent.until('hello')
    const first = await agent.until('sampling')
    const second = await agent.until('sampling')
    const milliseconds = (ticks: bigint) => (ticks - UNIX_EPOCH) / 10_000n
    expect(milliseconds(first.ticks)).toBeGreaterThanOrEqual(from)
    expect(milliseconds(second.ticks)).toBeGreaterThan(milliseconds(first.ticks))
    expect(milliseconds(second.ticks)).toBeLessThanOrEqual(BigInt(Date.now()))
  })

  test('lists, adds and removes', async () => {
    const { agent } = await sampled()
    agent.send(request.list)
    const { entries } = await agent.until('list')
    expect(entries.length).toBeGreaterThan(100)
    expect(entries).toContainEqual(['Thrown', 'Exceptions'])
    expect(entries).toContainEqual(['Working Set', 'Mono System'])
    const add = request.add('Working Set', 'Mono System')
    agent.send(add)
    const workingSet = { category: 7, name: 'Working Set', type: 1, unit: 1, variance: 3 }
    expect(await agent.until('add')).toEqual({ kind: 'add', status: OK, header: { ...workingSet, index: 2 } })
    const bytes = (await agent.sampling((samples) => samples.has(2))).get(2)!
    expect(Number(bytes.readBigInt64LE())).toBeGreaterThan(1_000_000)
    agent.send(add)
    expect(await agent.until('add')).toEqual({ kind: 'add', status: EXISTING })
    agent.send(request.remove(2))
    expect(await agent.until('remove')).toEqual({ kind: 'remove', status: OK })
    agent.send(request.remove(2))
    expect(await agent.until('remove')).toEqual({ kind: 'remove', status: NOTFOUND })
    agent.send(add)
    expect(await agent.until('add')).toMatchObject({ status: OK, header: { index: 3 } })
  })

  test('samples what was added at once, however long its interval is', async () => {
    run(`port=${inspector.port},interval=600000,counters=${THROWN}`, 'obey')
    const agent = await inspector.agent()
    await agent.until('hello')
    await agent.until('sampling')
    agent.send(request.add('Working Set', 'Mono System'))
    expect(await agent.until('add')).toMatchObject({ status: OK, header: { index: 1 } })
    expect([...(await agent.until('sampling')).samples.keys()]).toContain(1)
  })

  test('samples in between, however much it is asked', async () => {
    const { agent } = await sampled()
    agent.send(Buffer.alloc(4000, request.list))
    let lists = 0
    while ((await agent.message()).kind !== 'list');
    while ((await agent.message()).kind === 'list') lists++
    expect(lists).toBeLessThan(400)
  })

  test('knows what every entry of its list is, by the name that the list gives', async () => {
    const { agent } = await sampled()
    agent.send(request.remove(-1), request.list)
    expect(await agent.until('remove')).toMatchObject({ status: OK })
    const { entries } = await agent.until('list')
    agent.send(...entries.map(([name, category]) => request.add(name, category)))
    const indexes: number[] = []
    for (const _ of entries) {
      const { status, header } = await agent.until('add')
      expect(status).toBe(OK)
      indexes.push(header!.index)
    }
    expect(indexes).toEqual(entries.map((_, at) => at + 2))
  })

  test('refuses what it does not have', async () => {
    const { agent } = await sampled()
    const names = [
      ['Working Set', 'Mono GC'],
      ['Mono System', 'Working Set'],
      ['', ''],
      ['größe', 'x'.repeat(3000)],
    ]
    for (const [name, category] of names) {
      agent.send(request.add(name!, category!))
      expect(await agent.until('add')).toEqual({ kind: 'add', status: NOTFOUND })
    }
    agent.send(Buffer.from('02ffffffffffffffff', 'hex'))
    expect(await agent.until('add')).toEqual({ kind: 'add', status: NOTFOUND })
  })

  test('samples nothing any more when all are removed, and says so', async () => {
    const { application, agent } = await sampled()
    agent.send(request.remove(-1))
    expect(await agent.until('remove')).toMatchObject({ status: OK })
    await application.obey('throw 5')
    for (let left = 3; left > 0; left--) expect((await agent.until('sampling')).samples.size).toBe(0)
  })

  test('takes requests in pieces', async () => {
    const { agent } = await sampled()
    const bytes = Buffer.concat([request.add('Working Set', 'Mono System'), request.remove(2), request.list])
    const answers: string[] = []
    for (let at = 0; answers.length < 3; at++) {
      agent.send(bytes.subarray(at, at + 1))
      const { kind } = await agent.message()
      if (kind !== 'sampling') answers.push(kind)
    }
    expect(answers).toEqual(['add', 'remove', 'list'])
  })

  test.each([
    ['a request that is none', 'ff'],
    ['a name of two gigabytes', '02ffffff7f'],
    ['a name that is longer than any', `02ffff0000${'61'.repeat(5000)}`],
  ])('hangs up on %s, and comes again', async (_, bytes) => {
    const { application, agent } = await sampled()
    agent.send(Buffer.from(bytes, 'hex'), Buffer.alloc(5000))
    await agent.closed().catch(() => {})
    expect((await (await inspector.agent()).until('hello')).headers).toHaveLength(2)
    expect(await application.end()).toMatchObject({ code: 7 })
  })

  test('is gone after a good-bye, and the application stays', async () => {
    const { application, agent } = await sampled()
    expect(application.threads()).toContain('CinnabarAgent')
    agent.send(request.goodBye)
    await agent.closed()
    await eventually(() => expect(application.threads()).not.toContain('CinnabarAgent'))
    await application.obey('throw 1')
    expect(await application.end()).toMatchObject({ code: 7 })
  })

  test('comes again when the connection ends, and begins anew', async () => {
    const { application, agent, samples } = await sampled()
    agent.socket.destroy()
    const again = await inspector.agent()
    expect((await again.until('hello')).headers).toHaveLength(2)
    expect((await again.until('sampling')).samples).toEqual(samples)
    expect(await application.end()).toMatchObject({ code: 7 })
  })

  test('finds an inspector that comes after it', async () => {
    const port = await freePort()
    // In the locale C Mono throws one itself when a program first formats a number.
    const application = run(`port=${port},counters=${THROWN}`, 'obey', { LC_ALL: 'en_US.UTF-8' })
    await application.obey('throw 1')
    await eventually(() => expect(application.threads()).toContain('CinnabarAgent'))
    const late = await ScriptedInspector.listen(port)
    const agent = await late.agent()
    expect((await agent.until('hello')).headers).toHaveLength(1)
    // That nobody was there before is no exception of the application.
    expect((await agent.until('sampling')).samples.get(0)!.readBigInt64LE()).toBe(1n)
    late.close()
  })
})

// As above.
describe.skipIf(missing)(`an application with the agent${howTo}`, () => {
  test.each([
    ['ends at once', 'at-once', 3],
    ['exits', 'exit', 9],
    ['throws', 'throw', 1],
    ['does nothing but count', 'loop', 5],
    ['exits in another thread', 'thread', 5],
  ])('that %s says what it says without it', async (_, how, code) => {
    const without = await run(undefined, how).end()
    expect(without).toMatchObject({ code, out: expect.stringContaining('--flag') })
    expect(await run(`port=${inspector.port},interval=10,counters=all`, how).end()).toEqual(without)
    expect(await run(`port=${await freePort()}`, how).end()).toEqual(without)
    expect(await run('host=no.such.name.invalid', how).end()).toEqual(without)
  })

  test('that does nothing but count is sampled meanwhile', async () => {
    const application = run(`port=${inspector.port},interval=10`, 'loop')
    const agent = await inspector.agent()
    await agent.until('hello')
    for (let left = 5; left > 0; left--) await agent.until('sampling')
    expect(await application.end()).toMatchObject({ code: 5 })
  })

  /** Bytes that the agent could not get rid of, by the kernel's table of connections. */
  function sendQueue(): number {
    const port = inspector.port.toString(16).toUpperCase().padStart(4, '0')
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .find((each) => each.includes(` 0100007F:${port} 01 `))
    return Number.parseInt(/ 01 ([0-9A-F]+):/.exec(line ?? '')?.[1] ?? '0', 16)
  }

  test('goes on and ends though the inspector reads nothing', async () => {
    const { application, agent } = await connected('all')
    agent.socket.pause()
    agent.send(Buffer.alloc(2000, request.list))
    await eventually(() => expect(sendQueue()).toBeGreaterThan(100_000))
    await application.obey('throw 1000')
    expect(await application.end()).toMatchObject({ code: 7, err: 'on standard error\n' })
  })

  const untraced = existsSync(STRACE) ? '' : ' (not installed: apt-get install strace)'
  // No package of npm either.
  test.skipIf(untraced)(`ends while a name server is silent${untraced}`, async () => {
    const trace = join(directory, 'trace')
    const traced = ['-f', '-qq', '-o', trace, '-e', 'trace=sendmmsg,sendto,exit_group', '-e', 'signal=none']
    // What asks the name server is held up for longer than the test has.
    const slow = ['-e', 'inject=sendmmsg,sendto:delay_enter=120s']
    const application = [MONO, `--agent=${AGENT}:host=cinnabar.example.com`, program, 'obey', '--flag']
    const child = spawn(STRACE, [...traced, ...slow, ...application], { stdio: ['pipe', 'ignore', 'ignore'] })
    const has = (text: string) => eventually(() => expect(readFileSync(trace, 'latin1')).toContain(text))
    try {
      await has('send')
      child.stdin.end()
      await has('exit_group(7)')
    } finally {
      child.kill('SIGKILL')
    }
  })

  test('can be started as always, with the agent in the environment', async () => {
    const options = `--agent=${join(dirname(BUILD), 'CinnabarAgent.exe')}:port=${inspector.port}`
    const application = run(undefined, 'obey', { MONO_ENV_OPTIONS: options })
    await (await inspector.agent()).until('hello')
    expect(await application.end()).toMatchObject({ code: 7, out: 'arguments: obey --flag\n' })
  })

  test.each([
    ['prot=1', 'there is no option "prot", but host, port, interval, counters'],
    ['host=', 'host is a name or an address, not ""'],
    ['port=http', 'port is a number from 1 to 65535, not "http"'],
    ['port=65536', 'port is a number from 1 to 65535, not "65536"'],
    ['interval=5', 'interval is a number from 10 to 600000, not "5"'],
    ['interval', 'interval is a number from 10 to 600000, not ""'],
  ])('is reported that %s is no option, and runs', async (options, reported) => {
    const { code, err } = await run(options, 'at-once').end()
    expect(code).toBe(3)
    expect(err).toBe(`CinnabarAgent: ${reported}. The application runs without it.\non standard error\n`)
  })
})
