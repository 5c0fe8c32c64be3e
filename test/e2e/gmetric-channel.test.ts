/** A channel with a gmetric:// URL, as Ganglia's own gmond sees it, and gmetad behind that. */

import { createSocket } from 'node:dgram'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { COLLECTIONS, HELLO, SAMPLED } from '../server/wings/mono/fixture.ts'
import { ScriptedAgent } from '../server/wings/mono/scripted-agent.ts'
import { DEFINE_A } from '../server/wings/smon/fixture.ts'
import { args, command, str, type } from '../support/bytes.ts'
import { freePort } from '../support/free-port.ts'
import { Ganglia, missing, reported } from '../support/ganglia.ts'
import { type Element, hostsOf, metricsOf } from '../support/ganglia-xml.ts'
import { boundTo, TestProducer } from '../support/producer.ts'
import type { Seat } from '../support/seat.ts'

const { STRING, UINT64, BOOLEAN, VOID, REC } = BasicType
const howTo = missing.length > 0 ? ` (not installed: apt-get install ${missing.join(' ')}, services stopped)` : ''
const waiting = { timeout: 40_000, interval: 200 }
const ANY = { host: '127.0.0.1', port: 0 }
/** gmond tells hosts apart by address, and a feeder without a spoofed one is here too. */
const OWN = '127.0.0.1'

let ganglia: Ganglia
let gmond: { readonly udp: number; readonly tcp: number }
let producer: TestProducer
let boss: Seat
let channel: number

beforeEach(async () => {
  if (missing.length > 0) return
  ganglia = new Ganglia()
  gmond = { udp: await freePort(), tcp: await freePort() }
  ganglia.gmond(
    'mute = yes deaf = no',
    `udp_recv_channel { bind = 127.0.0.1 port = ${gmond.udp} } tcp_accept_channel { bind = 127.0.0.1 port = ${gmond.tcp} }`,
  )
  await vi.waitFor(shown, waiting)
  producer = await TestProducer.start({
    config: {
      dial: { allow: [`gmetric://127.0.0.1:${gmond.udp}`] },
      gmetric: { listen: ANY, listenNamed: true },
      smon: { udp: ANY },
      mono: { listeners: [{ key: 'mono.listen', listen: ANY, dialect: 'gist', agent: undefined }] },
    },
  })
  await producer.addUser('boss', { role: 'admin' })
  boss = await producer.seat('boss')
  channel = await boss.ok((seq) => command.defChannel(seq, `gmetric://127.0.0.1:${gmond.udp}`, args()))
})

afterEach(async () => {
  if (missing.length > 0) return
  await producer.stop()
  await ganglia.stop()
})

const shown = () => reported(gmond.tcp)

/** Feeds the producer as Ganglia's users do. */
function feed(...options: readonly string[]): void {
  ganglia.gmetric(`host = 127.0.0.1 port = ${boundTo(producer.server, 'gmetric.listen')?.port}`, ...options)
}

async function follow(metric: string, list = args()): Promise<void> {
  const id = await boss.collect(metric, list)
  await boss.ok((seq) => command.subscribe(seq, id, channel))
  await producer.settle()
}

const attributes = (text: string, host: string, metric: string) => metricsOf(text, host)?.get(metric)?.attributes
const extraOf = (text: string, host: string, metric: string) =>
  metricsOf(text, host)
    ?.get(metric)
    ?.children.flatMap(({ children }: Element) => children)
    .map(({ attributes: { NAME, VAL } }) => `${NAME} ${VAL}`)

// Ganglia is no package of npm, and not every machine has it.
describe.skipIf(missing.length > 0)(`a gmetric:// channel${howTo}`, () => {
  test('is seen by gmond: a spoofed host with its name and address, and all that was said of its metrics', async () => {
    await follow('gmetric.*')
    await follow('ganglia.host.up', args(['host', type.string, str('spoofed.example')]))
    const spoof = ['-S', '10.0.0.9:spoofed.example']
    const about = ['-u', 'Celsius', '-s', 'positive', '-x', '30', '-d', '300', '-g', 'rooms,cellar', '-C', 'home']
    feed('-n', 'temp', '-v', '36.6', '-t', 'float', ...about, '-T', 'Room', '-D', "it's the room", ...spoof)
    feed('-n', 'small', '-v', '7', '-t', 'uint8', '-S', '10.0.0.8:with:colons')
    feed('-n', 'words', '-v', 'two <words>', '-t', 'string')
    feed('-H', ...spoof)
    await vi.waitFor(async () => {
      producer.clock.advance(1000)
      const text = await shown()
      expect(attributes(text, 'spoofed.example', 'temp')).toMatchObject({
        ...{ VAL: '36.6', TYPE: 'float', UNITS: 'Celsius', TMAX: '30', DMAX: '300', SLOPE: 'positive' },
      })
      expect(attributes(text, 'spoofed.example', 'ganglia.host.up')).toMatchObject({ VAL: '1', TYPE: 'uint8' })
      expect(extraOf(text, 'spoofed.example', 'temp')?.toSorted()).toEqual([
        ...['CLUSTER home', 'DESC it_s the room', 'GROUP cellar', 'GROUP rooms'],
        ...['SPOOF_HOST 10.0.0.9:spoofed.example', 'TITLE Room'],
      ])
      expect(attributes(text, 'with:colons', 'small')).toMatchObject({ VAL: '7', TYPE: 'uint8' })
      expect(attributes(text, OWN, 'words')).toMatchObject({ VAL: 'two <words>', TYPE: 'string' })
      const hosts = hostsOf(text).map((host) => `${host.attributes['IP']} ${host.attributes['NAME']}`)
      expect(hosts).toEqual(
        expect.arrayContaining(['10.0.0.9 spoofed.example', '10.0.0.8 with:colons', expect.stringMatching(/^127/)]),
      )
      expect(hosts).toHaveLength(3)
      const [spoofed] = hostsOf(text).filter((host) => host.attributes['IP'] === '10.0.0.9')
      expect(spoofed?.attributes['GMOND_STARTED']).toBe('0')
    }, waiting)
    expect(await boss.ledger(channel)).toMatchObject({ state: 'connected', queued: 0, in_flight: 0 })
  })

  test('carries numbers and texts of every sensor, and counts what gmetric has no form for', async () => {
    for (const metric of ['host.load.one', 'host.mem.total', 'smon.*', 'mono.*']) await follow(metric)
    await follow('test.*')
    const agent = await ScriptedAgent.connect(boundTo(producer.server, 'mono.'))
    agent.say(HELLO)
    agent.say(SAMPLED)
    const socket = createSocket('udp4')
    await new Promise((sent) =>
      socket.send(DEFINE_A, boundTo(producer.server, 'smon.udp')?.port ?? 0, '127.0.0.1', sent),
    )
    producer.push.push('test.large', { type: UINT64, value: 18_446_744_073_709_551_615n }, 1)
    producer.push.push('test.yes', { type: BOOLEAN, value: true }, 1)
    producer.push.push('test.void', { type: VOID, value: null }, 1)
    producer.push.push('test.rec', { type: REC, value: [{ name: 'a', type: STRING, value: 'b' }] }, 1)
    await vi.waitFor(async () => {
      const text = await shown()
      expect(attributes(text, OWN, 'host.load.one')).toMatchObject({
        TYPE: 'double',
        VAL: expect.stringMatching(/^\d/),
      })
      expect(Number(attributes(text, OWN, 'host.mem.total')?.['VAL'])).toBeGreaterThan(1_000_000)
      const names = [...(metricsOf(text, OWN)?.keys() ?? [])]
      const aaaa = names.find((name) => name.startsWith('smon.aaaa.')) ?? ''
      expect(attributes(text, OWN, aaaa)).toMatchObject({ VAL: '100', TYPE: 'double' })
      const collections = names.find((name) => name.startsWith(COLLECTIONS)) ?? ''
      expect(attributes(text, OWN, collections)?.['VAL']).toMatch(/^\d+$/)
      expect(attributes(text, 'h1', 'test.large')).toMatchObject({ VAL: '18446744073709551615', TYPE: 'double' })
      expect(attributes(text, 'h1', 'test.yes')).toMatchObject({ VAL: '1', TYPE: 'uint8' })
      expect(metricsOf(text, 'h1')?.size).toBe(2)
    }, waiting)
    socket.close()
    await boss.ok((seq) => command.delChannel(seq, channel))
    await producer.settle()
    expect(producer.logged.join('')).toMatch(/"unsupported":2,"errors":0/)
    await agent.end()
  })

  test('spoils nothing for gmetad behind that gmond, whatever the names and texts', async () => {
    await follow('test.*')
    await follow('gmetric.*')
    producer.push.push('test./dev/sda1', { type: UINT64, value: 1n }, 1)
    producer.push.push(`test.${'x'.repeat(250)}`, { type: UINT64, value: 2n }, 1)
    producer.push.push('test.ok', { type: UINT64, value: 3n }, 1, '../..')
    producer.push.push('test.text', { type: STRING, value: 'größer \u0001 <&>' }, 1)
    producer.push.push('test.bytes', { type: STRING, value: Uint8Array.of(0x61, 0xff, 0x0a, 0x62) }, 1)
    producer.push.push('test.long', { type: STRING, value: '<'.repeat(140) }, 1)
    producer.push.push('test.longer', { type: STRING, value: '<'.repeat(160) }, 1)
    const long = ['-u', 'u'.repeat(64), '-D', 'd'.repeat(300), '-g', Array(20).fill('gggggggggg').join(',')]
    feed('-n', 'said', '-v', 'v'.repeat(800), '-t', 'string', ...long)
    const port = await freePort()
    const rrds = ganglia.gmetad(`127.0.0.1:${gmond.tcp}`, port, await freePort())
    const [x, dots] = [`test.${'x'.repeat(195)}`, '.._..']
    const files = ['h1/test._dev_sda1', `h1/${x}`, `${dots}/test.ok`].map((file) => join(rrds, 'test', `${file}.rrd`))
    await vi.waitFor(() => {
      for (const file of files) expect(existsSync(file), file).toBe(true)
    }, waiting)
    // It comes by way of a datagram, and so after what was pushed.
    await vi.waitFor(async () => expect(attributes(await shown(), OWN, 'said')).toBeDefined(), waiting)
    const text = await shown()
    expect(attributes(text, 'h1', 'test.text')?.['VAL']).toBe('gr__er _ <&>')
    expect(attributes(text, 'h1', 'test.bytes')?.['VAL']).toBe('a_\nb')
    expect(attributes(text, 'h1', 'test.longer')).toBeUndefined()
    expect(attributes(text, 'h1', 'test.long')?.['VAL']).toBe('<'.repeat(140))
    expect(attributes(text, OWN, 'said')?.['VAL']).toBe('v'.repeat(800))
    expect(ganglia.alive).toBe(true)
  })
})
