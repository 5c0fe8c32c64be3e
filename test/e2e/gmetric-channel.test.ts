/** A channel with a gmetric:// URL, as Ganglia's own gmond sees it. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { args, command, str, type } from '../support/bytes.ts'
import { TestProducer } from '../support/producer.ts'
import type { Seat } from '../support/seat.ts'

const GMOND = '/usr/sbin/gmond'
const GMETRIC = '/usr/bin/gmetric'
const missing = !existsSync(GMOND) || !existsSync(GMETRIC)
const howTo = missing ? ' (not installed: apt-get install ganglia-monitor, and leave its services stopped)' : ''

const waiting = { timeout: 30_000, interval: 100 }

let directory: string
let gmond: ChildProcess
let udp: number
let tcp: number
let producer: TestProducer
let boss: Seat

async function freeTcpPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  await new Promise<void>((resolve) => socket.close(resolve))
  return port
}

/** What gmond tells whoever connects. */
function xml(): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(tcp, '127.0.0.1')
    let text = ''
    socket.setEncoding('utf8')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}

beforeEach(async () => {
  if (missing) return
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-gmond-'))
  udp = await freeUdpPort()
  tcp = await freeTcpPort()
  const file = join(directory, 'gmond.conf')
  writeFileSync(
    file,
    `globals { daemonize = no setuid = no mute = yes deaf = no }
     cluster { name = "test" }
     udp_recv_channel { bind = 127.0.0.1 port = ${udp} }
     tcp_accept_channel { bind = 127.0.0.1 port = ${tcp} }`,
  )
  gmond = spawn(GMOND, ['-c', file, '-f'], { stdio: 'ignore' })
  await vi.waitFor(xml, waiting)
  producer = await TestProducer.start({
    config: {
      dial: { allow: [`gmetric://127.0.0.1:${udp}`] },
      gmetric: { listen: { host: '127.0.0.1', port: 0 }, listenNamed: true },
    },
  })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
})

afterEach(async () => {
  if (missing) return
  await producer.stop()
  gmond.kill('SIGKILL')
  await new Promise((resolve) => gmond.once('close', resolve))
  rmSync(directory, { recursive: true })
})

/** Feeds the producer as Ganglia's users do. */
function feed(...options: readonly string[]): void {
  const file = join(directory, 'feed.conf')
  const port = producer.server.gmetric?.port
  writeFileSync(
    file,
    `globals { daemonize = no setuid = no } cluster { name = "test" } udp_send_channel { host = 127.0.0.1 port = ${port} }`,
  )
  const { status, stderr } = spawnSync(GMETRIC, ['-c', file, ...options])
  expect({ status, stderr: `${stderr}` }).toEqual({ status: 0, stderr: '' })
}

async function follow(channel: number, metric: string, list = args()): Promise<void> {
  const id = await boss.collect(metric, list)
  await boss.ok((seq) => command.subscribe(seq, id, channel))
}

/** The attributes of a metric of a host as gmond shows it. */
function shown(text: string, host: RegExp, metric: string): Record<string, string> | undefined {
  const hosts = text.split('<HOST ').find((part) => host.test(part))
  const element = hosts?.match(new RegExp(`<METRIC NAME="${metric.replaceAll('.', '[.]')}" [^>]*>`))?.[0]
  return (
    element && Object.fromEntries([...element.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
  )
}

// Ganglia is no package of npm, and not every machine has it.
describe.skipIf(missing)(`a gmetric:// channel${howTo}`, () => {
  test('is seen by gmond: this host under its own address, others under their names', async () => {
    const channel = await boss.ok((seq) => command.defChannel(seq, `gmetric://127.0.0.1:${udp}`, args()))
    await follow(channel, 'host.load.one')
    await follow(channel, 'host.mem.total')
    await follow(channel, 'gmetric.fed*')
    await follow(channel, 'test.a', args(['host', type.string, str('h1')]))
    await producer.settle()
    const about = ['-u', 'Celsius', '-s', 'positive', '-x', '30', '-d', '300', '-g', 'rooms', '-T', 'Room']
    feed('-n', 'fed_temp', '-v', '36.6', '-t', 'float', ...about, '-S', '10.0.0.9:spoofed.example')
    feed('-n', 'fed_words', '-v', 'two <words>', '-t', 'string')
    producer.push.push('test.a', { type: 4, value: 18_446_744_073_709_551_615n }, 1)
    await vi.waitFor(async () => {
      const text = await xml()
      const own = /IP="127[.]0[.]0[.]1"/
      expect(shown(text, own, 'host.load.one')).toMatchObject({ TYPE: 'double', VAL: expect.stringMatching(/^\d/) })
      expect(Number(shown(text, own, 'host.mem.total')?.['VAL'])).toBeGreaterThan(1_000_000)
      expect(shown(text, /NAME="spoofed[.]example"/, 'fed_temp')).toMatchObject({
        VAL: '36.6',
        TYPE: 'double',
        UNITS: 'Celsius',
        TMAX: '30',
        DMAX: '300',
        SLOPE: 'positive',
      })
      expect(text).toContain('<EXTRA_ELEMENT NAME="GROUP" VAL="rooms"/>')
      expect(text).toContain('<EXTRA_ELEMENT NAME="TITLE" VAL="Room"/>')
      // gmond tells hosts apart by address, and the feeder is here too.
      expect(shown(text, own, 'fed_words')).toMatchObject({
        VAL: 'two &lt;words&gt;',
        TYPE: 'string',
        SLOPE: 'both',
      })
      expect(shown(text, /NAME="h1"/, 'test.a')).toMatchObject({ VAL: '18446744073709551615', TYPE: 'double' })
    }, waiting)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', queued: 0, in_flight: 0 })
  })
})
