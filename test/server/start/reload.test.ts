/** A configuration that is read again: what is in force then, what stays, and what whoever writes the file can do wrong. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Address } from '../../../server/kernel/core/address.ts'
import { ConfigError, ReloadableConfig } from '../../../server/start/config.ts'
import type { ReloadedKeys, Reloader } from '../../../server/start/reload.ts'
import { done, run } from '../../support/administration.ts'
import { args, command, status, str, type } from '../../support/bytes.ts'
import { eventually } from '../../support/eventually.ts'
import { execTables } from '../../support/exec-tables.ts'
import { times } from '../../support/long.ts'
import { boundTo, TestProducer, type TestProducerOptions } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { Callee, SECRET } from '../edge/outbound/callee.ts'

/** How long a file has to be as it is before it is read, and a little more. */
const SETTLED_MS = 250
const LISTENING = { host: '127.0.0.1', port: 0 }

let directory: string
let file: string
let producer: TestProducer
let root: Seat
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
  file = join(directory, 'c.toml')
})
afterEach(async () => {
  await producer.stop()
  rmSync(directory, { recursive: true, force: true })
})

async function start(toml: string, options: Omit<TestProducerOptions, 'reloadable'> = {}): Promise<void> {
  writeFileSync(file, toml)
  // What is read again switches on no history either.
  const env = { CINNABAR_HISTORY_KEEP: '0' }
  producer = await TestProducer.start({ ...options, reloadable: new ReloadableConfig({ file, env }) })
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
}

const reloader = (): Reloader => producer.server.parts.reloader as Reloader

/** Reloads; `meanwhile` runs when the reload has begun and the file has not been read. */
async function reload(toml?: string, meanwhile: () => void = () => {}): Promise<ReloadedKeys> {
  if (toml !== undefined) writeFileSync(file, toml)
  const reloaded = reloader().reload()
  reloaded.catch(() => {})
  await producer.settle()
  meanwhile()
  producer.clock.advance(SETTLED_MS)
  return reloaded
}

/** EXECUTEs `config.reload`. */
async function ask(seat = root) {
  const result = run(seat, 'config.reload')
  await producer.settle()
  producer.clock.advance(SETTLED_MS)
  return result
}

const program = (name: string, script: string): string =>
  `[[exec]]\nname = "exec.${name}"\nargv = ["/bin/sh", "-c", ${JSON.stringify(script)}]\n`

describe('a reload', () => {
  test('puts quotas in force: what exists stays, and no more is taken', async () => {
    await start('[quota]\nchannels = 3\n')
    const kept = [await root.defChannel(), await root.defChannel(), await root.defChannel()]
    expect(await reload('[quota]\nchannels = 1\n')).toMatchObject({ changed: ['quota.channels'], needsRestart: [] })
    expect((await root.ask((seq) => command.defChannel(seq))).status).toBe(status.QUOTA_EXCEEDED)
    for (const channel of kept) await root.setChannel(channel)
    await reload('[quota]\nchannels = 4\n')
    await root.defChannel()
  })

  test('begins and ends targets of scraping, and leaves those alone that stay the same', async () => {
    const table = (name: string, more = ''): string =>
      `[[scrape]]\nname = "${name}"\nurl = "http://127.0.0.1:1"\n${more}`
    const scrapes = async () => {
      const sensors: { name: string; counters: Record<string, number> }[] = decoded(
        await root.query('producer.sensors'),
      )
      const targets = sensors.filter(({ name }) => name.startsWith('scrape/'))
      return Object.fromEntries(targets.map(({ name, counters }) => [name, counters['scrapes']]))
    }
    const up = async (): Promise<string[]> =>
      decoded(await root.query('prometheus.up')).map(({ job }: { job: string }) => job)
    await start('')
    await reload(table('a') + table('b') + table('c'))
    expect(await up()).toEqual(['a', 'b', 'c'])
    expect(await scrapes()).toEqual({ 'scrape/a': 1, 'scrape/b': 1, 'scrape/c': 1 })
    const change = await reload(table('b') + table('c', 'labels = { env = "test" }\n') + table('d'))
    expect(change).toMatchObject({ changed: ['scrape'], needsRestart: [] })
    expect(await scrapes()).toEqual({ 'scrape/b': 1, 'scrape/c': 0, 'scrape/d': 0 })
    await producer.settle()
    producer.clock.advance(1_000)
    expect((await up()).sort()).toEqual(['b', 'c', 'd'])
    expect(await reload(`${table('b')}interval = "1ms"\n`).catch(({ message }) => message)).toMatch(/interval/)
    expect(await scrapes()).toMatchObject({ 'scrape/d': 1 })
  })

  test('reads a prometheus.yml again, and leaves its targets alone if it cannot be used', async () => {
    const yml = join(directory, 'prometheus.yml')
    const write = (more: string) => writeFileSync(yml, `scrape_configs:\n  - job_name: a\n${more}`)
    const targets = async () => {
      const sensors: { name: string }[] = decoded(await root.query('producer.sensors'))
      return sensors.map(({ name }) => name).filter((name) => name.startsWith('scrape/'))
    }
    write('    static_configs: [{ targets: ["127.0.0.1:1"] }]\n')
    const toml = `[prometheus]\nscrape_config = "${yml}"\n`
    await start('')
    await reload(toml)
    await eventually(async () => expect(await targets()).toEqual(['scrape/a', 'scrape/a/127.0.0.1:1']))
    const notices = await root.collect('producer.notices')
    await root.ok((seq) => command.subscribe(seq, notices))
    write('    static_configs: [{ targets: ["127.0.0.1:2"] }]\n')
    await reload()
    await eventually(async () => expect(await targets()).toEqual(['scrape/a', 'scrape/a/127.0.0.1:2']))
    write('    proxy_url: http://p\n')
    await reload(`${toml}[[scrape]]\nname = "b"\nurl = "http://127.0.0.1:1"\n`)
    await eventually(async () => expect(await targets()).toEqual(['scrape/a', 'scrape/a/127.0.0.1:2', 'scrape/b']))
    expect(decoded(await root.value())).toMatchObject({
      severity: 'error',
      subject: 'scrape',
      detail: `prometheus.scrape_config: ${yml}:3: \`proxy_url\` is not supported`,
    })
    expect(await reload('# none\n')).toMatchObject({ changed: ['prometheus.scrape_config', 'scrape'] })
    expect(await targets()).toEqual([])
  })

  test('leaves a limit of the tenant itself as it is', async () => {
    await start('[quota]\nchannels = 3\n')
    await done(root, 'tenant.set', { tenant: 'default', channels: 2n })
    await reload('[quota]\nchannels = 9\n')
    // The result of `tenant.set` is stored, and with it the channel of the connection.
    await root.defChannel()
    expect((await root.ask((seq) => command.defChannel(seq))).status).toBe(status.QUOTA_EXCEEDED)
  })

  test('puts limits and the defaults of new channels in force', async () => {
    await start('')
    const old = await root.defChannel()
    await reload('[limits]\nchannels_per_identity = 2\ninstances_per_identity = 1\n[channels]\nwindow = 7\n')
    const channel = await root.defChannel()
    const windowOf = (id: number) => producer.server.parts.producer.registry.byId(id)?.row.window
    expect([windowOf(old), windowOf(channel)]).toEqual([65_536, 7])
    expect((await root.ask((seq) => command.defChannel(seq))).status).toBe(status.QUOTA_EXCEEDED)
    await root.collect('test.a')
    expect((await root.ask((seq) => command.collect(seq, 'test.b'))).status).toBe(status.QUOTA_EXCEEDED)
  })

  test('sets the level of the log', async () => {
    await start('')
    await reload('[log]\nlevel = "error"\n')
    expect(producer.server.parts.producer.log.level).toBe('error')
  })

  test('replaces the programs, and the one that runs ends normally', async () => {
    const [begun, go] = [join(directory, 'begun'), join(directory, 'go')]
    const script = `touch ${begun}; while [ ! -e ${go} ]; do sleep 0.02; done; echo old`
    const tables = program('a', script) + program('gone', 'true')
    await start(tables, { config: { exec: execTables(tables) } })
    const running = root.execute('exec.a')
    await eventually(() => expect(existsSync(begun)).toBe(true))
    const { changed } = await reload(program('a', 'echo new') + program('b', 'echo b'))
    expect(changed).toEqual(['exec'])
    writeFileSync(go, '')
    expect(await running).toMatchObject({ outcome: 'ok', value: { stdout: 'old\n' } })
    expect(await root.execute('exec.a')).toMatchObject({ value: { stdout: 'new\n' } })
    expect(await root.execute('exec.b')).toMatchObject({ value: { stdout: 'b\n' } })
    const gone = await root.ask((seq) => command.execute(seq, 'exec.gone'))
    expect(gone.status).toBe(status.NO_SUCH_CONTROL)
    const names = decoded(await root.query('producer.controls')).map(({ name }: { name: string }) => name)
    expect(names.filter((name: string) => name.startsWith('exec.'))).toEqual(['exec.a', 'exec.b'])
  })

  test('ends connections to destinations that are no longer permitted, and permits others', async () => {
    const phone = await Callee.listen()
    const url = `tcp://127.0.0.1:${phone.port}`
    const permits = () => producer.server.parts.dialler.permits(url)
    await start(`[dial]\nallow = ["${url}"]\n`, { config: { dial: { allow: [url] } } })
    await root.ok((seq) => command.defChannel(seq, url, args(['secret', type.opaque, str(SECRET)])))
    const called = await phone.answer('root')
    expect(await reload('# nothing\n')).toMatchObject({ changed: ['dial.allow'] })
    expect(await called.notice()).toMatchObject({ code: 4 })
    expect(permits()).toBe(false)
    await reload(`[dial]\nallow = ["${url}"]\n`)
    expect(permits()).toBe(true)
    await phone.close()
  })

  test('ends the streams of sources that may send no more, and lets in new ones', async () => {
    await start('', { config: { smon: { tcp: LISTENING } } })
    const open = (): Socket => {
      const socket = connect({ ...boundTo(producer.server, 'smon.tcp'), host: '127.0.0.1' } as never)
      // A refused connection is reset, perhaps before it is known to be open.
      return socket.on('error', () => {})
    }
    const closed = (socket: Socket) =>
      new Promise((resolve) => (socket.closed ? resolve(0) : socket.once('close', resolve)))
    const statuses = () => producer.server.parts.hub.sensors.flatMap((sensor) => sensor.status?.() ?? [])
    const streams = () => statuses().find(({ name }) => name === 'smon')?.counters['openStreams']
    const before = open()
    await eventually(() => expect(streams()).toBe(1))
    expect(await reload('[smon]\nallow = ["10.0.0.0/8"]\n')).toMatchObject({ changed: ['smon.allow'] })
    await closed(before)
    await closed(open())
    await reload('# nothing\n')
    const after = open()
    await eventually(() => expect(streams()).toBe(1))
    after.destroy()
  })

  test('lets browsers reach the server under other names', async () => {
    await start('', { config: { listen: { http: LISTENING } } })
    const { port } = producer.server.http as Address
    const answer = async (): Promise<number | undefined> => {
      const asked = request({ host: '127.0.0.1', port, path: '/', headers: { host: 'monitor.example' } }).end()
      const [response] = (await once(asked, 'response')) as [IncomingMessage]
      response.resume()
      return response.statusCode
    }
    expect(await answer()).toBe(421)
    await reload('[http]\nhosts = ["monitor.example"]\n')
    expect(await answer()).toBe(200)
  })

  test('names what needs a restart, and leaves it as it is', async () => {
    await start('')
    const { needsRestart } = await reload('[gmetric]\nspoof = false\n[producer]\nname = "other"\n')
    expect(needsRestart).toEqual(['producer.name', 'gmetric.spoof'])
    expect(producer.server.parts.producer.name).toBe('n1')
  })

  test('is in the audit log with the keys, and the secrets of the file are nowhere', async () => {
    await start('')
    const secret = 'SqueamishOssifrage'
    await reload(`${program('a', 'true')}environment = { PASS = "${secret}" }\n[jwt]\nissuer = "x"\n`)
    await reload(`[quota]\nchannels = "${secret}"`).catch(() => {})
    await producer.settle()
    const rows = (await producer.store.audit(0, 1000)).filter(({ action }) => action === 'reload')
    expect(rows.map(({ object, outcome }) => [object, outcome])).toEqual([
      [file, 'started'],
      [file, 'ok'],
      [file, 'failed'],
    ])
    expect(JSON.parse(rows[0]?.args as string)).toEqual({ changed: ['exec'], needs_restart: ['jwt.issuer'] })
    expect(JSON.stringify(rows[0])).not.toContain(secret)
    expect(producer.logged.filter((line) => line.includes('now in force')).join()).not.toContain(secret)
  })
})

describe('what is recorded of a reload', () => {
  const limit = (): number => producer.server.parts.producer.quotas.of('default').channels.limit
  const outcomes = async (): Promise<string[]> => {
    await producer.settle()
    const rows = await producer.store.audit(0, 1000)
    return rows.filter(({ action }) => action === 'reload').map(({ outcome }) => outcome)
  }

  test('is stored before it is in force', async () => {
    await start('[quota]\nchannels = 5\n')
    await producer.settle()
    producer.store.manual = true
    const reloaded = reload('[quota]\nchannels = 6\n')
    await producer.settle()
    await producer.settle()
    expect([limit(), await outcomes()]).toEqual([5, []])
    producer.store.manual = false
    producer.store.complete()
    await reloaded
    expect([limit(), await outcomes()]).toEqual([6, ['started', 'ok']])
  })

  test('says so if the server failed half-way', async () => {
    await start('[quota]\nchannels = 5\n')
    const { quotas } = producer.server.parts.producer
    quotas.allChanged = () => {
      throw new Error('not this time')
    }
    await expect(reload('[quota]\nchannels = 6\n')).rejects.toThrow('not this time')
    expect(await outcomes()).toEqual(['started', 'failed'])
  })
})

describe('the control config.reload', () => {
  test('answers with what changed and what needs a restart', async () => {
    await start('')
    writeFileSync(file, '[quota]\nchannels = 5\n[listen]\nhttp = ""\n')
    expect(await ask()).toMatchObject({
      outcome: 'ok',
      detail: 'now in force: quota.channels; only after a restart: listen.http',
      value: { changed: ['quota.channels'], needs_restart: ['listen.http'] },
    })
    writeFileSync(file, '')
    writeFileSync(file, '# nothing\n')
    await ask()
    expect(await ask()).toMatchObject({ outcome: 'ok', detail: 'nothing has changed' })
  })

  test('is for admins only', async () => {
    await start('')
    const seat = await producer.seat()
    const refused = await seat.ask((seq) => command.execute(seq, 'config.reload'))
    expect(refused.status).toBe(status.NO_SUCH_CONTROL)
  })

  test('fails with every problem, and nothing changes', async () => {
    await start('[quota]\nchannels = 5\n')
    writeFileSync(file, '[quota]\nchannels = 6\nchanels = 7\n[log]\nlevel = 9\n')
    const { outcome, detail } = await ask()
    expect(outcome).toBe('failed')
    expect(detail).toContain(`${file}:3: unknown key \`quota.chanels\``)
    expect(detail).toContain(`${file}:5: \`log.level\``)
    expect(producer.server.parts.producer.quotas.of('default').channels.limit).toBe(5)
  })

  test('fails for a program that is not there, and nothing changes', async () => {
    await start(program('a', 'echo a'), { config: { exec: execTables(program('a', 'echo a')) } })
    writeFileSync(file, '[quota]\nchannels = 6\n[[exec]]\nname = "exec.a"\nargv = ["/not/there"]\n')
    expect(await ask()).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('/not/there') })
    expect(await root.execute('exec.a')).toMatchObject({ value: { stdout: 'a\n' } })
    expect(producer.server.parts.producer.quotas.of('default').channels.limit).toBe(20_000)
  })

  test('shows a bounded number of problems', async () => {
    await start('')
    writeFileSync(file, Array.from({ length: 500 }, (_, index) => `[x${index}]\n`).join(''))
    const { detail } = await ask()
    expect(detail.split('\n')).toHaveLength(21)
    expect(detail).toMatch(/and 480 more, which are in the log$/)
  })

  test('fails on a server whose configuration cannot be read again', async () => {
    producer = await TestProducer.start()
    await producer.addUser('root', { role: 'admin' })
    expect(await run(await producer.seat('root'), 'config.reload')).toMatchObject({ outcome: 'failed' })
  })
})

describe('a file that cannot be used changes nothing', () => {
  const GOOD = '[quota]\nchannels = 6\n'
  const limit = (): number => producer.server.parts.producer.quotas.of('default').channels.limit
  const instead = (make: () => void) => (): void => {
    rmSync(file)
    make()
  }

  const bad: readonly (readonly [string, () => void, string | RegExp])[] = [
    ['no TOML', () => writeFileSync(file, `${GOOD}[log`), /:3: not TOML/],
    ['no UTF-8', () => writeFileSync(file, Buffer.from([0x23, 0xff, 0x0a])), 'not UTF-8'],
    ['empty: somebody has only begun to write it', () => writeFileSync(file, ''), 'empty'],
    ['cut off in a text', () => writeFileSync(file, `${GOOD}[log]\nlevel = "inf`), 'not TOML'],
    ['too large', () => writeFileSync(file, `${GOOD}#${'x'.repeat(1 << 20)}`), 'more than 1048576 bytes'],
    ['not there', instead(() => {}), 'cannot be read'],
    ['a directory', instead(() => mkdirSync(file)), 'not a regular file'],
    ['a pipe that nobody writes to', instead(() => void spawnSync('mkfifo', [file])), 'not a regular file'],
    ['endless', instead(() => symlinkSync('/dev/zero', file)), 'not a regular file'],
    ['a link to nothing', instead(() => symlinkSync('/not/there', file)), 'cannot be read'],
    ['a link to itself', instead(() => symlinkSync(file, file)), 'cannot be read'],
  ]
  test.each(bad)('%s', async (_, spoil, message) => {
    await start('[quota]\nchannels = 5\n')
    spoil()
    await expect(reload()).rejects.toThrow(ConfigError)
    await expect(reload()).rejects.toThrow(message)
    expect(limit()).toBe(5)
    rmSync(file, { recursive: true, force: true })
    await reload(GOOD)
    expect(limit()).toBe(6)
  })

  test('written while it is read', async () => {
    await start('[quota]\nchannels = 5\n')
    const half = reload('[quota]\nchannels = 7\n', () => writeFileSync(file, '[quota]\nchannels = 7\n[log]\n'))
    await expect(half).rejects.toThrow('is being written')
    expect(limit()).toBe(5)
  })

  test('a link that is swapped while it is read, as a mounted directory does', async () => {
    await start('[quota]\nchannels = 5\n')
    const [one, two, next] = ['one', 'two', 'next'].map((name) => join(directory, name)) as [string, string, string]
    writeFileSync(one, '[quota]\nchannels = 7\n')
    writeFileSync(two, '[quota]\nchannels = 8\n')
    rmSync(file)
    symlinkSync(one, file)
    const swap = (to: string) => (): void => {
      symlinkSync(to, next)
      renameSync(next, file)
    }
    await expect(reload(undefined, swap(two))).rejects.toThrow('is being written')
    expect(limit()).toBe(5)
    await reload()
    expect(limit()).toBe(8)
  })
})

describe('many reloads', () => {
  test('at once are two: the one that has begun, and one for all that came later', async () => {
    await start('[quota]\nchannels = 5\n')
    const first = reloader().reload()
    await producer.settle()
    const later = Array.from({ length: 100 }, () => reloader().reload())
    expect(new Set(later).size).toBe(1)
    producer.clock.advance(SETTLED_MS)
    await first
    writeFileSync(file, '[quota]\nchannels = 9\n')
    await producer.settle()
    producer.clock.advance(SETTLED_MS)
    for (const each of later) await each
    expect(producer.server.parts.producer.quotas.of('default').channels.limit).toBe(9)
    await producer.settle()
    const rows = await producer.store.audit(0, 1000)
    const outcomes = rows.filter(({ action }) => action === 'reload').map(({ outcome }) => outcome)
    expect(outcomes).toEqual(['started', 'ok', 'started', 'ok'])
  })

  test('under load lose no command and no value', async () => {
    await start('')
    const seat = await producer.seat()
    await seat.follow('test.a')
    const rounds = times({ short: 100, long: 1_000 })
    for (let round = 1; round <= rounds; round++) {
      const nops = Array.from({ length: 20 }, () => seat.send((seq) => command.nop(seq)))
      producer.emit(round)
      const isBad = round % 3 === 0
      const toml = isBad
        ? '[quota\n'
        : `[quota]\nchannels = ${round}\n[dial]\nallow = ["tcp://10.0.0.${round % 250}:1"]\n${program(`a${round}`, 'true')}`
      await reload(toml).then(
        () => expect(isBad).toBe(false),
        () => expect(isBad).toBe(true),
      )
      for (const seq of nops) expect((await seat.response(seq)).status).toBe(0)
      await seat.value()
    }
    await reload(`[quota]\nchannels = 4\n${program('last', 'echo last')}`)
    expect(await root.execute('exec.last')).toMatchObject({ value: { stdout: 'last\n' } })
    expect(producer.server.parts.producer.quotas.of('default').channels.limit).toBe(4)
    const names = decoded(await root.query('producer.controls')).map(({ name }: { name: string }) => name)
    expect(names.filter((name: string) => name.startsWith('exec.'))).toEqual(['exec.last'])
  })

  test('do not wait for room on a full disk, where they may be what helps', async () => {
    await start('[quota]\nchannels = 5\n')
    await producer.settle()
    producer.store.full = true
    const reloaded = reload('[quota]\nchannels = 6\n')
    await producer.settle()
    producer.clock.advance(SETTLED_MS)
    await producer.settle()
    producer.clock.advance(500)
    expect((await reloaded).changed).toEqual(['quota.channels'])
    expect(producer.logged.join()).toContain('the disk is full: a reload is in force before')
    producer.store.full = false
    await producer.settle()
    const rows = await producer.store.audit(0, 1000)
    expect(rows.filter(({ action }) => action === 'reload').map(({ outcome }) => outcome)).toEqual(['started', 'ok'])
  })

  test('end with the server: nothing is put in force any more', async () => {
    await start('[quota]\nchannels = 5\n')
    writeFileSync(file, '[quota]\nchannels = 6\n')
    const reloaded = reloader().reload()
    reloader().stop()
    await producer.settle()
    producer.clock.advance(SETTLED_MS)
    await expect(reloaded).rejects.toThrow('the server stops')
  })
})
