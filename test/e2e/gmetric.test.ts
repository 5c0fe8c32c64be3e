/** What Ganglia's own programs send is what comes out. They are started here, each with a configuration of its own. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { decodePacket } from '../../protocol/gmetric/decode.ts'
import type { GmetricPacket } from '../../protocol/gmetric/packet.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { systemClock } from '../../server/clock.ts'
import { parseNetwork } from '../../server/config/address.ts'
import { defaultConfig } from '../../server/config.ts'
import { listenUdp, type UdpListening } from '../../server/listeners/udp.ts'
import { Hub } from '../../server/metrics/hub.ts'
import { GmetricSensor } from '../../server/sensors/gmetric/sensor.ts'

const { INT32, UINT32, DOUBLE, STRING } = BasicType
const GMETRIC = '/usr/bin/gmetric'
const GMOND = '/usr/sbin/gmond'
const MODULES = (existsSync('/usr/lib') ? readdirSync('/usr/lib') : [])
  .map((folder) => join('/usr/lib', folder, 'ganglia'))
  .find((folder) => existsSync(join(folder, 'modcpu.so')))
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
  children = []
  listening = await listenUdp({
    address: { host: '127.0.0.1', port: 0 },
    key: 'gmetric.listen',
    rival: 'gmond',
    packet: (bytes, source) => {
      received.push({ id: Buffer.from(bytes).readUInt32BE(), packet: decodePacket(bytes) })
      sensor.packet(bytes, source)
    },
    failed: (error) => expect.unreachable(String(error)),
  })
})

afterEach(async () => {
  for (const child of children) {
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('close', resolve))
  }
  await listening.close()
  rmSync(directory, { recursive: true })
})

/** A configuration that sends to the listener and receives nothing. */
function configuration(globals: string, rest: string): string {
  const file = join(directory, 'gmond.conf')
  const { host, port } = listening.address
  writeFileSync(
    file,
    `globals { daemonize = no setuid = no mute = no deaf = yes ${globals} }
     cluster { name = "unspecified" }
     host { location = "1,2,3" }
     udp_send_channel { host = ${host} port = ${port} }
     ${rest}`,
  )
  return file
}

/** Runs gmetric and waits for what it sends. */
async function gmetric(...options: string[]): Promise<void> {
  const before = received.length
  const { status, stderr, stdout } = spawnSync(GMETRIC, ['-c', configuration('', ''), ...options])
  expect({ status, stderr: `${stderr}`, stdout: `${stdout}` }).toEqual({ status: 0, stderr: '', stdout: '' })
  await vi.waitFor(() => expect(received.length).toBe(before + 2), { timeout: 10_000 })
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

  test.each(typed)('of type %s sends %s', async (type, text, basic, value) => {
    await gmetric('-n', 'foo', '-v', text, '-t', type)
    expect(shown('foo')).toMatchObject({ host: '127.0.0.1', value: { type: basic, value } })
    expect(sensor.metric('gmetric.foo')?.type).toBe(basic)
  })

  test('sends what is known about a metric', async () => {
    const about = ['-u', 'Celsius', '-g', 'rooms,cellar', '-C', 'home', '-D', 'the cellar', '-T', 'Cellar']
    await gmetric('-n', 'temp', '-v', '21.5', '-t', 'float', '-s', 'positive', '-x', '30', '-d', '300', ...about)
    expect(sensor.metric('gmetric.temp')).toMatchObject({ type: DOUBLE, unit: 'Celsius', description: 'the cellar' })
    const [series] = sensor.series('gmetric.temp')
    const { extra, ...metadata } = series!.received.metadata!
    expect(metadata).toEqual({ type: 'float', units: 'Celsius', slope: 1, tmax: 30, dmax: 300 })
    expect(extra).toEqual(
      expect.arrayContaining([
        { key: 'CLUSTER', data: 'home' },
        { key: 'GROUP', data: 'rooms' },
        { key: 'GROUP', data: 'cellar' },
        { key: 'DESC', data: 'the cellar' },
        { key: 'TITLE', data: 'Cellar' },
      ]),
    )
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

  test('speaks for another host', async () => {
    await gmetric('-n', 'foo', '-v', '1', '-t', 'uint32', '-S', '10.0.0.9:spoofed.example')
    expect(shown('foo')).toMatchObject({ host: 'spoofed.example', value: { value: 1 } })
    const [series] = sensor.series('gmetric.foo')
    for (const name of ['spoofed.example', '10.0.0.9']) {
      expect(series?.matches('host', (text) => text === name)).toBe(true)
    }
    expect(series?.matches('host', (text) => text === '127.0.0.1')).toBe(false)
  })

  test('sends the heartbeat of another host', async () => {
    await gmetric('-H', '-S', '10.0.0.9:spoofed.example')
    expect(shown('heartbeat')).toMatchObject({ host: 'spoofed.example', value: { type: UINT32, value: 0 } })
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
describe.skipIf(missing)(`gmond${howTo}`, () => {
  // No module that Debian packages has a metric of type int16 or int32 (130 and 131).
  const metrics = [
    ['cpu_num', 129, UINT32],
    ['boottime', 132, UINT32],
    ['heartbeat', 132, UINT32],
    ['os_name', 133, STRING],
    ['location', 133, STRING],
    ['load_one', 134, DOUBLE],
    ['mem_total', 134, DOUBLE],
    ['disk_total', 135, DOUBLE],
  ] as const

  function startGmond(): void {
    const modules = ['cpu', 'disk', 'load', 'mem', 'sys'].map((name) => {
      return `module { name = "${name}_module" path = "mod${name}.so" }`
    })
    const file = configuration(
      `module_dir = "${MODULES}" send_metadata_interval = 1`,
      `modules { module { name = "core_metrics" } ${modules.join(' ')} }
       collection_group {
         collect_every = 1
         time_threshold = 1
         ${metrics.map(([name]) => `metric { name = "${name}" }`).join('\n')}
       }`,
    )
    children.push(spawn(GMOND, ['-c', file, '-f'], { stdio: 'ignore' }))
  }

  const isThere = (name: string, kind: GmetricPacket['kind']) =>
    received.some(({ packet }) => packet.kind === kind && packet.metric === name)

  test('sends values in the messages of their types', async () => {
    startGmond()
    const waiting = { timeout: 30_000, interval: 100 }
    await vi.waitFor(() => {
      for (const [name] of metrics) expect([isThere(name, 'value'), isThere(name, 'metadata')]).toEqual([true, true])
    }, waiting)
    for (const [name, id, type] of metrics) {
      const sent = received.filter(({ packet }) => packet.kind === 'value' && packet.metric === name)
      expect(new Set(sent.map((each) => each.id))).toEqual(new Set([id]))
      expect(shown(name)).toMatchObject({ host: '127.0.0.1', value: { type } })
      expect(sensor.metric(`gmetric.${name}`)?.type).toBe(type)
    }
    const value = (name: string) => Number(shown(name).value?.value)
    expect(shown('os_name').value?.value).toBe('Linux')
    expect(shown('location').value?.value).toBe('1,2,3')
    expect(value('cpu_num')).toBeGreaterThanOrEqual(1)
    expect(value('mem_total')).toBeGreaterThan(1000)
    expect(value('boottime')).toBeLessThan(value('heartbeat') + 1)
    expect(received[0]?.packet.host).toEqual({ spoofed: false, label: hostname() })
    const { packets, values, metadata } = sensor.status().counters
    expect(values! + metadata!).toBe(packets)
  })
})
