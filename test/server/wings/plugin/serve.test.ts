/** Plug-ins in `cinnabar serve`: what they add, whom it is for, and that a fault of one costs nobody else anything. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Consumer, connect, type Sample } from '../../../../client/index.ts'
import { eventually } from '../../../support/eventually.ts'
import { isLong } from '../../../support/long.ts'
import { PROGRAM } from '../../../support/program.ts'
import { PASSWORD, ServerProcess } from '../../../support/server-process.ts'

/** A polled sensor with one metric, as JavaScript that a module can contain. */
const polled = (name: string, measure: string, more = '') => `{
  polled: true, family: '${name}.', personal: false,
  metrics: () => [metric], metric: (name) => (name === metric.name ? metric : undefined),
  labels: ({ name }) => ({ name }), check() {}, measure: ${measure}, ${more}
}`
const metricOf = (name: string) =>
  `const metric = { name: '${name}.one', kind: 'continuous', type: 5, unit: '1', description: 'a test', parameters: [] }`
const sensor = (name: string, measure: string, more = '') =>
  `${metricOf(name)}\nexport function plugin({ hub }) {\n  hub.add(${polled(name, measure, more)})\n}\n`
const at = '({ value: { type: 5, value: 42 }, time: 1700000000000000 })'

const MODULES: Readonly<Record<string, string>> = {
  'good.js': `${metricOf('good')}
    import { writeFileSync } from 'node:fs'
    export async function plugin({ hub, addControl, options, log, signal, BasicType, StatusError }) {
      signal.addEventListener('abort', () => writeFileSync(new URL('stopped.txt', import.meta.url), signal.reason.message))
      await new Promise((resolve) => setTimeout(resolve, 5))
      log.info('hello from ' + JSON.stringify(options))
      hub.add(${polled('good', `() => ({ value: { type: BasicType.DOUBLE, value: options.factor * 2 }, time: Date.now() * 1000 })`)})
      addControl({
        name: 'plugin.double',
        description: 'Doubles a number.',
        parameters: [{ name: 'number', type: BasicType.INT32, description: 'It.' }],
        prepare(args, { identity }) {
          const number = args.get('number')
          if (number < 0) throw new StatusError('INVALID_ARGUMENT', 'it must not be negative')
          if (number === 13) throw new Error('unlucky')
          return async () => ({ outcome: 'ok', detail: identity.name, value: { type: BasicType.INT32, value: 2 * number } })
        },
      })
    }`,
  'strays.js': `export function plugin({ addControl, BasicType }) {
      const ways = {
        throws: async () => { throw new Error('later') },
        invents: async () => ({ outcome: 'perhaps' }),
        hangs: () => new Promise(() => {}),
        revolts: (signal) => new Promise(() => signal.addEventListener('abort', () => { throw new Error('at the end') })),
      }
      addControl({
        name: 'plugin.stray',
        description: 'Misbehaves.',
        parameters: [{ name: 'way', type: BasicType.STRING, description: 'How.' }],
        maxRunning: 4,
        prepare: (args) => ways[args.get('way')],
      })
    }`,
  'acme.js': sensor('acme', `() => ${at}`),
  'throws-at-load.js': `throw new Error('broken at load')`,
  'syntax.js': 'export function plugin( {',
  'no-plugin.js': 'export const other = 1',
  'fails.js': `${metricOf('half')}\nexport function plugin({ hub }) {\n  hub.add(${polled('half', `() => ${at}`)})\n  throw new Error('half done')\n}`,
  'never.js': 'export const plugin = () => new Promise(() => {})',
  'reserved.js': sensor('host', `() => ${at}`),
  'taken.js': sensor('good', `() => ${at}`),
  'taken-by-all.js': sensor('good', `() => ${at}`),
  'control.js': `export const plugin = ({ addControl }) => addControl({ name: 'user.add', description: '', parameters: [], prepare: () => () => {} })`,
  'throws.js': sensor('throws', `() => { throw new Error('cannot measure') }`),
  'rejects.js': sensor('rejects', `() => Promise.reject(new Error('cannot measure later'))`),
  'slow.js': sensor('slow', '() => new Promise(() => {})'),
  'wrong.js': sensor('wrong', `() => ({ value: { type: 5, value: 'text' }, time: 1 })`),
  'lies.js': sensor(
    'lies',
    `() => ${at}`,
    `status: () => ({ name: 'lies', state: 'measuring', detail: '', counters: { bad: NaN } })`,
  ).replace(
    'metrics: () => [metric]',
    'metrics: () => [metric, { name: 7 }, { get name() { throw new Error("look") } }, { ...metric, details() { throw new Error("more") } }, { ...metric, name: "host.load.one" }]',
  ),
  'timer.js': `import { connect } from 'node:net'
    export function plugin() {
      setTimeout(() => { throw new Error('in a timer') }, 1)
      connect(1, '127.0.0.1')
      void (async () => { await null; throw new Error('in a promise') })()
    }`,
  'floods.js': `export function plugin({ hub, signal, VOID }) {
      const metric = (name) => ({ name, kind: 'continuous', type: undefined, unit: '', description: '', parameters: [] })
      const all = Array.from({ length: 30 }, (_, i) => ({ name: 'floods.n' + i, labels: { name: 'floods.n' + i }, subscriptions: [], matches: () => false }))
      const sensor = { polled: false, family: 'floods.', metrics: () => all.map(({ name }) => metric(name)), metric, series: () => all, last: () => undefined }
      hub.add(sensor)
      let rounds = 0
      const flood = setInterval(() => {
        for (const series of all) hub.born(sensor, series)
        if (all.every(({ subscriptions }) => subscriptions.length === 0)) return
        for (const series of all) for (let i = 0; i < 100; i++) hub.emit(series, { type: 5, value: i }, Date.now() * 1000)
        if (++rounds === 10) clearInterval(flood)
      }, 20).unref()
    }`,
  'half-again.js': sensor('half', `() => ${at}`),
  'endless.js': 'export function plugin() { setInterval(() => {}, 1000) }',
  'odd.js': `export function plugin({ hub, addControl, BasicType, StatusError }) {
      const metric = (name, ...labels) => ({ name, kind: 'continuous', type: 5, unit: '', description: '',
        parameters: labels.map((label) => ({ name: label, type: BasicType.STRING, description: '', selects: 'part' })) })
      const all = [metric('odd.room', 'room'), metric('odd.two', 'cpu', 'mount'), metric('odd.code')]
      hub.add({ polled: true, family: 'odd.', personal: false, metrics: () => all, metric: (name) => all.find((one) => one.name === name),
        labels: ({ name }) => ({ name }), parts: () => ['x'], measure: () => ${at},
        check({ name }) { if (name === 'odd.code') throw new StatusError('NOPE', 'no such status') } })
      const control = (name, prepare) => addControl({ name: 'plugin.odd.' + name, description: '', parameters: [], prepare })
      control('big', () => () => ({ outcome: 'ok', value: { type: BasicType.STRING, value: 'x'.repeat(1 << 20) } }))
      control('code', () => { throw new StatusError('NOPE', 'no such status') })
      control('long', () => { throw new StatusError('BUSY', 'x'.repeat(1 << 20)) })
    }`,
  'many.js': `export const plugin = ({ addControl }) => addControl({ name: 'plugin.many', description: '', parameters: [], maxRunning: 'many', prepare: () => () => {} })`,
  'public.js': sensor('public', `() => ${at}`),
}

const table = (module: string, more = '') => `[[plugin]]\nmodule = "${module}"\n${more}`
const TOML = [
  table('./plugins/good.js', 'tenant = "*"\noptions = { factor = 4, name = "x" }'),
  table('./plugins/acme.js', 'tenant = "acme"'),
  ...['missing', 'throws-at-load', 'syntax', 'no-plugin', 'fails', 'reserved', 'control', 'many'].map((name) =>
    table(`./plugins/${name}.js`),
  ),
  table('./plugins/never.js', 'timeout = "50ms"'),
  table('./plugins/taken.js', 'tenant = "*"'),
  table('./plugins/taken-by-all.js'),
  table('./plugins/public.js'),
  ...['throws', 'rejects', 'wrong', 'lies', 'timer'].map((name) => table(`./plugins/${name}.js`)),
  ...['slow', 'strays'].map((name) => table(`./plugins/${name}.js`, 'timeout = "2s"')),
  table('./plugins/floods.js', 'values_per_second = 50\nmax_series = 10'),
  ...['half-again', 'endless', 'odd'].map((name) => table(`./plugins/${name}.js`)),
  table('pack', ''),
].join('\n')

const server = new ServerProcess(TOML)
let admin: Consumer

beforeAll(async () => {
  const folder = join(server.directory, 'plugins')
  const pack = join(server.directory, 'node_modules', 'pack')
  for (const directory of [folder, pack]) mkdirSync(directory, { recursive: true })
  writeFileSync(join(server.directory, 'package.json'), '{ "type": "module" }')
  for (const [name, text] of Object.entries(MODULES)) writeFileSync(join(folder, name), text)
  chmodSync(join(folder, 'public.js'), 0o666)
  writeFileSync(join(pack, 'package.json'), '{ "name": "pack", "type": "module", "main": "entry.js" }')
  writeFileSync(join(pack, 'entry.js'), sensor('pack', `() => ${at}`))
  await server.start()
  admin = await login('admin')
  await admin.execute('tenant.add', { tenant: 'acme' })
  for (const [name, tenant] of [
    ['alice', 'acme'],
    ['bob', 'default'],
  ]) {
    await admin.execute('user.add', { user: name!, tenant: tenant!, role: 'consumer', password: PASSWORD })
  }
})
afterAll(() => server.remove())

const login = (identity: string) =>
  connect(`tcp://127.0.0.1:${server.tcpPort}`, { identity, password: PASSWORD }, { durable: false })
const listOf = async (consumer: Consumer, metric: string) =>
  (await consumer.query(metric)).elements.map((element) => element.plain as Record<string, unknown>)
const namesOf = async (consumer: Consumer) => {
  const names = (await listOf(consumer, 'producer.metrics')).map(({ name }) => String(name))
  return names.filter((name) => !/^(host|producer|gmetric|control)\./.test(name))
}
const entryOf = async (name: string) => {
  const all = await listOf(admin, 'producer.sensors')
  return all.find((entry) => entry['name'] === `plugin ${name}`) as Record<string, unknown> & {
    readonly counters: Record<string, number>
  }
}
const result = ({ plain }: Sample) => plain as { outcome: string; detail: string; value: unknown }

describe('a plug-in', () => {
  test('adds sensors, with the options of its table', async () => {
    expect((await admin.query('good.one')).number).toBe(8)
    expect((await admin.query('pack.one')).number).toBe(42)
    expect(server.errors).toContain(String.raw`hello from {\"factor\":4,\"name\":\"x\"}`)
    expect(await entryOf('./plugins/good.js')).toMatchObject({ state: 'measuring', detail: '' })
  })

  test('adds controls, that nobody may run without a rule', async () => {
    expect(result(await admin.execute('plugin.double', { number: 21 }))).toEqual({
      outcome: 'ok',
      detail: 'admin',
      value: 42,
    })
    await expect(admin.execute('plugin.double', { number: -1 })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      detail: 'it must not be negative',
    })
    const bob = await login('bob')
    await expect(bob.execute('plugin.double', { number: 1 })).rejects.toMatchObject({ status: 'NO_SUCH_CONTROL' })
    await bob.close()
  })

  test('is for its tenant, or for all', async () => {
    const [alice, bob] = [await login('acme/alice'), await login('bob')]
    expect(await namesOf(alice)).toEqual(['acme.one', 'good.one'])
    expect(await namesOf(bob)).toEqual(expect.arrayContaining(['good.one', 'pack.one']))
    expect(await namesOf(bob)).not.toContain('acme.one')
    await expect(bob.query('acme.one')).rejects.toMatchObject({ status: 'NO_SUCH_METRIC' })
    const shown = (await listOf(alice, 'producer.sensors')).map(({ name }) => name)
    expect(shown).toEqual(expect.arrayContaining(['plugin ./plugins/acme.js', 'plugin ./plugins/good.js']))
    expect(shown).not.toContain('plugin ./plugins/slow.js')
    await Promise.all([alice.close(), bob.close()])
  })
})

describe('a plug-in that cannot be loaded is left out, reported, and the server serves on:', () => {
  test.each([
    ['missing', /no such file/],
    ['throws-at-load', /broken at load/],
    ['syntax', /Unexpected/],
    ['no-plugin', /exports no function `plugin`/],
    ['fails', /half done/],
    ['never', /was not loaded after 50 ms/],
    ['reserved', /the server has the family "host\." itself/],
    ['taken', /another plug-in has the family "good\."/],
    ['taken-by-all', /another plug-in has the family "good\."/],
    ['control', /has to begin with "plugin\."/],
    ['many', /`maxRunning` is not a whole number/],
    ['public', /public\.js can be written by everybody \(chmod o-w\)/],
  ])('%s', async (name, why) => {
    const { state, detail } = await entryOf(`./plugins/${name}.js`)
    expect([state, detail]).toEqual(['failed', expect.stringMatching(why)])
    const lines = server.errors.split('\n').filter((line) => line.includes(`./plugins/${name}.js`))
    expect(lines.join()).toMatch(/the server goes on without it/)
    expect((await namesOf(admin)).filter((one) => /^public\./.test(one))).toEqual([])
  })
})

// At once, because some of them wait for the limit of the plug-in.
describe.concurrent('a plug-in', () => {
  test.each(['throws', 'rejects', 'slow', 'wrong'])(
    'that %s when it measures gives VOID, and is counted',
    async (name) => {
      expect((await admin.query(`${name}.one`)).plain).toBeNull()
      const { state, counters } = await entryOf(`./plugins/${name}.js`)
      expect([state, counters['faults']]).toEqual(['failed', 1])
      expect((await entryOf('./plugins/good.js'))['state']).toBe('measuring')
    },
  )

  test.each([
    ['throws', 'failed', /the plug-in failed/],
    ['invents', 'failed', /the plug-in failed/],
    ['hangs', 'timeout', /not ended after 2000 ms/],
    ['revolts', 'timeout', /not ended after 2000 ms/],
  ])('whose control %s gives the outcome %s', async (way, outcome, detail) => {
    const answer = result(await admin.execute('plugin.stray', { way }))
    expect(answer).toMatchObject({ outcome, detail: expect.stringMatching(detail) })
    expect((await admin.query('good.one')).number).toBe(8)
  })
})

describe('a plug-in', () => {
  test('whose catalogue and status are wrong shows what is right in it', async () => {
    expect(await namesOf(admin)).toContain('lies.one')
    expect((await admin.query('lies.one')).number).toBe(42)
    const shown = (await listOf(admin, 'producer.sensors')).map(({ name }) => name)
    expect(shown).toContain('lies.')
    expect((await entryOf('./plugins/lies.js')).counters['faults']).toBeGreaterThan(0)
  })

  test('that throws in a timer, on a socket and in a promise does not end the server', async () => {
    await eventually(async () => expect((await entryOf('./plugins/timer.js')).counters['faults']).toBe(3))
    for (const text of ['in a timer', 'in a promise', 'ECONNREFUSED']) expect(server.errors).toContain(text)
  })

  test('that brings in too much is cut, and what is cut is counted', async () => {
    const seen = new Set<string>()
    await admin.follow('floods.*', {}, ({ metric }) => seen.add(metric))
    void admin.run().catch(() => {})
    await eventually(async () => {
      const { counters } = await entryOf('./plugins/floods.js')
      expect(counters['overRate']).toBeGreaterThan(100)
      expect(counters['values']).toBeGreaterThan(0)
      expect(counters['seriesFull']).toBeGreaterThan(0)
      expect(seen.size).toBeGreaterThan(0)
    })
    expect(seen.size).toBeLessThanOrEqual(10)
  })

  test('whose control throws while it checks is refused', async () => {
    await expect(admin.execute('plugin.double', { number: 13 })).rejects.toMatchObject({
      status: 'INTERNAL',
      detail: 'the plug-in of plugin.double failed',
    })
    expect((await admin.query('good.one')).number).toBe(8)
  })
})

describe('a plug-in', () => {
  test('may have the family of one that could not be loaded', async () => {
    expect((await entryOf('./plugins/half-again.js'))['state']).toBe('measuring')
    expect((await admin.query('half.one')).number).toBe(42)
  })

  test('whose control gives a result that fits no frame has failed', async () => {
    expect(result(await admin.execute('plugin.odd.big'))).toMatchObject({ outcome: 'failed' })
  })

  test.each(['code', 'long'])('that refuses with what cannot be sent (%s) is at fault', async (name) => {
    await expect(admin.execute(`plugin.odd.${name}`)).rejects.toMatchObject({
      status: 'INTERNAL',
      detail: `the plug-in of plugin.odd.${name} failed`,
    })
  })

  test('whose sensor refuses with a status that there is not is at fault', async () => {
    const refused = { status: 'INTERNAL', detail: 'the sensor of odd.code failed' }
    await expect(admin.query('odd.code')).rejects.toMatchObject(refused)
  })

  test.each(['odd.room', 'odd.two'])('with %s, whose parts cannot be labels, does not have it', async (name) => {
    await expect(
      admin.query(name, name === 'odd.room' ? { room: '*' } : { cpu: '*', mount: '*' }),
    ).rejects.toMatchObject({
      status: 'NO_SUCH_METRIC',
    })
  })
})

test('a reload says that plug-ins need a restart', async () => {
  const answer = result(await admin.execute('config.reload'))
  expect(answer.detail).toBe('nothing has changed')
  appendFileSync(server.config, '\n[[plugin]]\nmodule = "./plugins/other.js"\n')
  expect(result(await admin.execute('config.reload')).detail).toBe('only after a restart: plugin')
})

/** Two of them wait for as long as a plug-in may take. */
const theEnd = (): void => {
  test('a plug-in is informed when the server stops', async () => {
    await admin.close()
    expect(await server.end('SIGTERM')).toBe(0)
    expect(readFileSync(join(server.directory, 'plugins', 'stopped.txt'), 'utf8')).toBe('the server stops')
  })

  test('a plug-in that goes on does not keep a server that cannot start', async () => {
    const folder = join(server.directory, 'taken')
    mkdirSync(folder)
    const occupied = createServer().listen(0, '127.0.0.1')
    await once(occupied, 'listening')
    const { port } = occupied.address() as AddressInfo
    const config = join(folder, 'cinnabar.toml')
    writeFileSync(
      config,
      `[producer]\ndata_dir = "data"\n[listen]\ntcp = "127.0.0.1:${port}"\nhttp = "127.0.0.1:0"\n${table('../plugins/endless.js')}`,
    )
    const child = spawn(process.execPath, [PROGRAM, 'serve', '--config', config], { cwd: folder, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    occupied.close()
    expect(code).toBe(1)
  })

  test('`cinnabar config check` names every module that cannot be used, and loads none', () => {
    const { status, stderr, stdout } = spawnSync(process.execPath, [
      PROGRAM,
      'config',
      'check',
      '--config',
      server.config,
    ])
    expect([status, String(stdout)]).toEqual([2, ''])
    expect(String(stderr)).toMatch(/\[\[plugin\]\] \.\/plugins\/missing\.js: .*no such file/)
    expect(String(stderr)).toMatch(/\[\[plugin\]\] \.\/plugins\/public\.js: .*can be written by everybody/)
    expect(String(stderr)).not.toContain('throws-at-load')
  })
}
if (isLong) describe.concurrent('the end', theEnd)
