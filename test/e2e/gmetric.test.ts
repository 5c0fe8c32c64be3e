/** What Ganglia's own programs send is what comes out. They are started here, each with a configuration of its own. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, machine, release, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { decodePacket } from '../../protocol/gmetric/decode.ts'
import type { GmetricPacket } from '../../protocol/gmetric/packet.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Address } from '../../server/kernel/core/address.ts'
import { parseNetwork } from '../../server/kernel/core/address.ts'
import { systemClock } from '../../server/kernel/core/clock.ts'
import { Hub } from '../../server/kernel/metrics/hub.ts'
import { FeedTurns } from '../../server/kit/io/pacer.ts'
import { listenUdp, type UdpListening } from '../../server/kit/io/udp.ts'
import { defaultConfig } from '../../server/start/config.ts'
import { GmetricSensor } from '../../server/wings/gmetric/sensor.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { MODULES, reported } from '../support/ganglia.ts'
import { hostsOf, metricsOf } from '../support/ganglia-xml.ts'
import { times } from '../support/long.ts'
import { boundTo, TestProducer } from '../support/producer.ts'
import { decoded, type Json } from '../support/records.ts'
import type { Seat } from '../support/seat.ts'
import { ServerProcess } from '../support/server-process.ts'

const { INT32, UINT32, DOUBLE, STRING } = BasicType
const GMETRIC = '/usr/bin/gmetric'
const GMOND = '/usr/sbin/gmond'
const missing = !existsSync(GMETRIC) || !existsSync(GMOND) || MODULES === undefined
const howTo = missing ? ' (not installed: apt-get install ganglia-monitor, and leave its services stopped)' : ''

interface Received {
  readonly id: number
  readonly packet: GmetricPacket
}

let directory: string
let sensor: GmetricSensor
let listening: UdpListening
let received: Received[]
let children: ChildProcess[]
/** Where else each packet goes. */
let relay: ((bytes: Uint8Array) => void) | undefined

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-gmetric-'))
  const allow = [parseNetwork('127.0.0.0/8')!]
  const clock = systemClock()
  sensor = new GmetricSensor(
    { ...defaultConfig().gmetric, allow, maxHosts: 100, maxMetrics: 1000 },
    new Hub(clock),
    clock,
  )
  received = []
  relay = undefined
  children = []
  listening = await listenUdp({
    address: { host: '127.0.0.1', port: 0 },
    key: 'gmetric.listen',
    rival: 'gmond',
    turns: new FeedTurns(clock),
    thread: undefined,
    packetFailed: (error) => expect.unreachable(String(error)),
    packet: (bytes, source) => {
      received.push({ id: Buffer.from(bytes).readUInt32BE(), packet: decodePacket(bytes) })
      sensor.packet(bytes, source)
      relay?.(bytes)
    },
    failed: (error) => expect.unreachable(String(error)),
  })
})

afterEach(async () => {
  await endChildren()
  await listening.close()
  rmSync(directory, { recursive: true })
})

async function endChildren(): Promise<void> {
  for (const child of children.splice(0)) {
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('close', resolve))
  }
}

/** A configuration for gmetric. */
function configuration({ host, port }: Address): string {
  const file = join(directory, 'gmond.conf')
  writeFileSync(
    file,
    `globals { daemonize = no setuid = no }
     cluster { name = "unspecified" }
     udp_send_channel { host = ${host} port = ${port} }`,
  )
  return file
}

/** Runs gmetric and waits for what it sends. */
async function gmetric(...options: string[]): Promise<void> {
  const before = received.length
  const { status, stderr, stdout } = spawnSync(GMETRIC, ['-c', configuration(listening.address), ...options])
  expect({ status, stderr: `${stderr}`, stdout: `${stdout}` }).toEqual({ status: 0, stderr: '', stdout: '' })
  await eventually(() => expect(received.length).toBe(before + 2))
}

/** The one series of a metric, with its last value. */
function shown(metric: string) {
  const [series, ...others] = sensor.series(`gmetric.${metric}`)
  expect(others).toEqual([])
  return { host: series?.labels.host, ...(series && sensor.last(series)) }
}

// Ganglia is no package of npm, and not every machine has it.
describe.skipIf(missing)(`gmetric${howTo}`, () => {
  const typed = [
    ['int8', '-128', INT32, -128],
    ['uint8', '255', UINT32, 255],
    ['int16', '-32768', INT32, -32_768],
    ['uint16', '65535', UINT32, 65_535],
    ['int32', '-2147483648', INT32, -2_147_483_648],
    ['uint32', '4294967295', UINT32, 4_294_967_295],
    ['float', '-1.5e3', DOUBLE, -1500],
    ['double', '0.1', DOUBLE, 0.1],
    ['double', ' 7', DOUBLE, 7],
    ['double', 'nan', DOUBLE, Number.NaN],
    ['double', '-inf', DOUBLE, Number.NEGATIVE_INFINITY],
    ['string', 'two words', STRING, 'two words'],
    ['string', 'größer', STRING, 'größer'],
    ['string', '42', STRING, '42'],
  ] as const

  test.each(typed)('of type %s sends %s', async (declared, text, basic, value) => {
    await gmetric('-n', 'foo', '-v', text, '-t', declared)
    expect(shown('foo')).toMatchObject({ host: '127.0.0.1', value: { type: basic, value } })
    expect(sensor.metric('gmetric.foo')?.type).toBe(basic)
  })

  test.each([
    ['zero', 0],
    ['positive', 1],
    ['negative', 2],
    ['both', 3],
    ['derivative', 5],
  ])('of slope %s sends %i', async (name, slope) => {
    await gmetric('-n', 'foo', '-v', '1', '-t', 'uint32', '-s', name)
    expect([...sensor.series()][0]?.received.metadata).toMatchObject({ slope, tmax: 60, dmax: 0 })
  })

  test('takes names with anything in them', async () => {
    for (const name of ['with space', 'a.b/c', 'größe', 'x'.repeat(247)]) {
      await gmetric('-n', name, '-v', '1', '-t', 'uint8')
      expect(shown(name)).toMatchObject({ value: { type: UINT32, value: 1 } })
    }
  })

  test('that changes the type of a metric changes it here', async () => {
    await gmetric('-n', 'foo', '-v', '1', '-t', 'uint32')
    await gmetric('-n', 'foo', '-v', 'one', '-t', 'string')
    expect(shown('foo')).toMatchObject({ value: { type: STRING, value: 'one' } })
    expect(sensor.metric('gmetric.foo')?.type).toBe(STRING)
    expect(sensor.status().counters).toMatchObject({ packets: 4, values: 2, metadata: 2, unparsable: 0, malformed: 0 })
  })
})

// As above.
describe.skipIf(missing)(`gmetric in all its options${howTo}`, () => {
  let producer: TestProducer
  let boss: Seat

  beforeEach(async () => {
    const any = { host: '127.0.0.1', port: 0 }
    producer = await TestProducer.start({ config: { gmetric: { listen: any, listenNamed: true, xml: any } } })
    await producer.addUser('boss', { role: 'admin' })
    boss = await producer.seat('boss')
  })
  afterEach(() => producer.stop())

  /** Runs gmetric, which sends two packets to the producer. */
  function run(...options: readonly string[]): void {
    const { status, stderr } = spawnSync(GMETRIC, options)
    expect({ status, stderr: `${stderr}` }).toEqual({ status: 0, stderr: '' })
  }

  const conf = () => configuration(boundTo(producer.server, 'gmetric.listen') as Address)
  const query = async (metric: string, host: string) =>
    decoded(await boss.query(metric, args(['host', type.string, str(host)])))
  const catalogue = async (metric: string) =>
    decoded(await boss.query('producer.metrics', args(['match', type.string, str(metric)])))[0]

  const given = {
    name: 'temp',
    value: '21.5',
    type: 'float',
    units: 'Celsius',
    slope: 'positive',
    tmax: '30',
    dmax: '300',
    group: 'rooms,cellar',
    cluster: 'home',
    desc: 'the cellar',
    title: 'Cellar',
    spoof: '10.0.0.9:spoofed.example',
  }
  const long = Object.entries(given).map(([name, value]) => `--${name}=${value}`)
  const letters = ['-n', '-v', '-t', '-u', '-s', '-x', '-d', '-g', '-C', '-D', '-T', '-S']
  const short = Object.values(given).flatMap((value, index) => [letters[index] as string, value])

  test.each([
    ['short', short, '-c'],
    ['long', long, '--conf'],
  ])('given in their %s form: each arrives', async (_, options, file) => {
    run(file, conf(), ...options)
    await eventually(async () => expect(await query('gmetric.temp', 'spoofed.example')).toBe(21.5))
    expect(await query('gmetric.temp', '10.0.0.9')).toBe(21.5)
    expect(await catalogue('gmetric.temp')).toMatchObject({
      ...{ name: 'gmetric.temp', type: 'double', unit: 'Celsius', description: 'the cellar' },
      details: {
        title: 'Cellar',
        groups: ['rooms', 'cellar'],
        slope: 'positive',
        tmax: 30,
        dmax: 300,
        monotonic: true,
      },
    })
    const xml = await reported(boundTo(producer.server, 'gmetric.xml')?.port ?? 0)
    expect(hostsOf(xml).map(({ attributes }) => [attributes['IP'], attributes['NAME']])).toEqual([
      ['10.0.0.9', 'spoofed.example'],
    ])
    const metric = metricsOf(xml, 'spoofed.example')?.get('temp')
    expect(metric?.attributes).toMatchObject({ VAL: '21.5', TYPE: 'float', SLOPE: 'positive', TMAX: '30', DMAX: '300' })
    const extra = metric?.children.flatMap((data) => data.children.map(({ attributes }) => attributes))
    expect(extra).toContainEqual({ NAME: 'CLUSTER', VAL: 'home' })
  })

  test('left out: what gmetric says by itself', async () => {
    run('-c', conf(), '-n', 'foo', '-v', '42', '-t', 'uint32')
    await eventually(async () => expect(await query('gmetric.foo', '127.0.0.1')).toBe(42))
    expect(await catalogue('gmetric.foo')).toMatchObject({
      ...{ type: 'uint32', unit: '', description: '' },
      details: { title: '', groups: [], slope: 'both', tmax: 60, dmax: 0 },
    })
  })

  test.each(['-H', '--heartbeat'])('%s: a heartbeat, and the host is up', async (option) => {
    run('-c', conf(), option, '-S', '10.0.0.9:spoofed.example')
    await eventually(async () => expect(await query('gmetric.heartbeat', 'spoofed.example')).toBe(0))
    producer.clock.advance(1000)
    expect(await query('ganglia.host.up', 'spoofed.example')).toBe(true)
  })

  test('that only tell of gmetric itself send nothing', async () => {
    for (const option of ['-h', '--help', '-V', '--version']) run(option)
    run('-c', conf(), '-n', 'last', '-v', '1', '-t', 'uint8')
    await eventually(async () => expect(await query('gmetric.last', '127.0.0.1')).toBe(1))
    const [shown] = decoded(await boss.query('producer.sensors')).filter(({ name }: Json) => name === 'gmetric')
    expect(shown).toMatchObject({ counters: { packets: 2 } })
  })
})

// As above.
describe.skipIf(missing)(`gmond${howTo}`, () => {
  let server: ServerProcess
  afterEach(() => server.remove())

  // No module that Debian packages has a metric of type int16 or int32 (130 and 131).
  const types = new Map([
    [129, 'uint32'],
    [132, 'uint32'],
    [133, 'string'],
    [134, 'double'],
    [135, 'double'],
  ])

  /** As gmond ships, but that all is said every second, to the listener. Gives the names of its metrics too. */
  function shipped(): { file: string; names: string[] } {
    const text = `${spawnSync(GMOND, ['-t']).stdout}`.replaceAll(/\/\*.*?\*\/|#[^\n]*/gs, '')
    const modules = text.match(/^modules \{.*?^\}/ms)?.[0] ?? ''
    const groups = [...text.matchAll(/^collection_group \{.*?^\}/gms)].join('\n')
    const file = join(directory, 'shipped.conf')
    writeFileSync(
      file,
      `globals { daemonize = no setuid = no deaf = yes module_dir = "${MODULES}" send_metadata_interval = 10 }
       host { location = "1,2,3" }
       udp_send_channel { host = 127.0.0.1 port = ${listening.address.port} }
       ${modules}
       ${groups.replaceAll(/(collect_every|time_threshold) = \d+/g, '$1 = 1')}`,
    )
    return { file, names: [...groups.matchAll(/name = "(\w+)"/g)].map(([, name = '']) => name) }
  }

  const rounds = times({ short: 2, long: 5 })

  /** Whether each of them has come, and all more than so many times on average. */
  function isEnough(names: readonly string[]): boolean {
    const values = received.flatMap(({ packet }) => (packet.kind === 'value' ? packet.metric : []))
    return new Set(values).size === names.length && values.length > names.length * rounds
  }

  test('sends all its metrics again and again, in the messages of their types, and a consumer gets each value', async () => {
    const port = await freePort()
    server = new ServerProcess(`[gmetric]\nlisten = "127.0.0.1:${port}"\n`)
    await server.start()
    const boss = await server.seat()
    const id = await boss.collect('gmetric.*')
    await boss.ok((seq) => command.subscribe(seq, id))
    const socket = createSocket('udp4')
    // Handed on, so that what is seen here is what the server is sent.
    relay = (bytes) => socket.send(Uint8Array.from(bytes), port, '127.0.0.1')
    const { file, names } = shipped()
    expect(names.length).toBeGreaterThan(30)
    const began = Date.now()
    children.push(spawn(GMOND, ['-c', file, '-f'], { stdio: 'ignore' }))
    await eventually(() => expect(received.length).toBeGreaterThan(0))
    // gmond sends them at its own pace, some of them rarely.
    await vi.waitFor(() => expect(isEnough(names)).toBe(true), { timeout: 100_000, interval: 50 })
    await endChildren()
    const counters = async () =>
      decoded(await boss.query('producer.sensors')).find(({ name }: Json) => name === 'gmetric').counters
    await eventually(async () => expect(Number((await counters()).packets)).toBe(received.length))
    socket.close()

    const sent = new Map<string, unknown[]>()
    for (const { id, packet } of received) {
      if (packet.kind !== 'value') continue
      expect([packet.metric, types.get(id)]).toEqual([packet.metric, expect.any(String)])
      sent.set(packet.metric, [...(sent.get(packet.metric) ?? []), packet.value])
    }
    expect([...sent.keys()].toSorted()).toEqual(names.toSorted())
    expect(new Set(received.map(({ id }) => id))).toEqual(new Set([128, ...types.keys()]))
    const count = [...sent.values()].reduce((sum, values) => sum + values.length, 0)
    expect(count).toBeGreaterThan(names.length * rounds)
    const got = new Map<string, unknown[]>()
    for (const value of await boss.values(count)) {
      const { name, host, value: number }: Json = decoded(value)
      expect(host).toBe('127.0.0.1')
      const metric = name.slice('gmetric.'.length)
      got.set(metric, [...(got.get(metric) ?? []), number])
    }
    expect(got).toEqual(sent)

    const catalogue: Json[] = decoded(
      await boss.query('producer.metrics', args(['match', type.string, str('gmetric.*')])),
    )
    for (const { id, packet } of received) {
      if (packet.kind !== 'value') continue
      expect(catalogue.find(({ name }) => name === `gmetric.${packet.metric}`)?.type).toBe(types.get(id))
    }
    expect(catalogue.find(({ name }) => name === 'gmetric.load_one')).toMatchObject({
      details: { title: 'One Minute Load Average', groups: ['load'], slope: 'both', tmax: 70 },
    })

    const last = (name: string) => Number(got.get(name)?.at(-1))
    const inProc = (file: string, name: string) =>
      Number(new RegExp(`^${name}:?\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${file}`, 'utf8'))?.[1])
    expect(got.get('os_name')?.at(-1)).toBe('Linux')
    expect(got.get('os_release')?.at(-1)).toBe(release())
    expect(got.get('machine_type')?.at(-1)).toBe(machine())
    expect(got.get('location')?.at(-1)).toBe('1,2,3')
    expect(last('mem_total')).toBeCloseTo(inProc('meminfo', 'MemTotal'), -2)
    expect(last('swap_total')).toBeCloseTo(inProc('meminfo', 'SwapTotal'), -2)
    expect(Math.abs(last('boottime') - inProc('stat', 'btime'))).toBeLessThan(5)
    expect(last('cpu_num')).toBe(cpus().length)
    expect(last('heartbeat') * 1000).toBeGreaterThan(began - 2000)
    expect(last('heartbeat') * 1000).toBeLessThan(Date.now())
    expect(Math.abs(last('load_fifteen') - (loadavg()[2] ?? 0))).toBeLessThan(5)
    expect(last('disk_free')).toBeLessThan(last('disk_total'))
    for (const name of names) {
      if (/^cpu_(?!num|speed)|^part_max_used/.test(name)) expect(last(name), name).toBeLessThanOrEqual(100.01)
      if (/^mem_/.test(name)) expect(last(name), name).toBeLessThanOrEqual(last('mem_total'))
      if (!/^(os_|machine|location|gexec)/.test(name)) expect(last(name), name).toBeGreaterThanOrEqual(0)
    }
    const { packets, values, metadata } = await counters()
    expect([Number(values), Number(packets)]).toEqual([count, received.length])
    expect(Number(values) + Number(metadata)).toBe(Number(packets))
  }, 120_000)
})
