import { describe, expect, it } from 'vitest'
import { decodePacket } from '../../../../protocol/gmetric/decode.ts'
import type { GmetricPacket } from '../../../../protocol/gmetric/packet.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import type { MetricInstance } from '../../../../server/kernel/metrics/instance.ts'
import type { ListeningSensor } from '../../../../server/kernel/metrics/metric.ts'
import { GmetricPackets } from '../../../../server/wings/gmetric/send-packets.ts'
import { hex } from '../../../support/bytes.ts'
import { FakeHub, makeSensor, metadata as packetOf, text as packetText, SENDER, xdr } from './fixture.ts'

const { INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE, REC, ARRAY, VOID } = BasicType

let nowMs = 0
const about = { unit: 'Bytes', description: 'what it is' }
const packets = (described: typeof about | undefined = about) =>
  new GmetricPackets({ name: 'n1', now: () => nowMs, metric: () => described })

interface Collected {
  readonly name: string
  readonly args?: readonly Field[]
  readonly isPattern?: boolean
  readonly sensors?: readonly ListeningSensor[]
}

/** What COLLECT has made of a name and arguments. */
const instance = ({ name, args = [], isPattern = false, sensors = [] }: Collected) =>
  ({ selection: { name, args, carriesLabels: () => isPattern, listening: () => sensors } }) as unknown as MetricInstance

const text = (name: string, value: string): Field => ({ name, type: STRING, value })
const rec = (...fields: readonly Field[]): Value => ({ type: REC, value: fields })
const number = { type: UINT32, value: 42 } as const

const decoded = (given: Value, collected: Collected): GmetricPacket[] =>
  packets().of(instance(collected), given).map(decodePacket)

/** Metric, host and value of the second packet. */
function sent(given: Value, collected: Collected) {
  const [metadata, value] = decoded(given, collected)
  if (metadata?.kind !== 'metadata' || value?.kind !== 'value') throw new Error('metadata and a value were expected')
  expect([metadata.metric, metadata.host]).toEqual([value.metric, value.host])
  return { metric: value.metric, host: value.host, type: metadata.metadata.type, value: value.value }
}

describe('a value', () => {
  it('is sent as gmetric sends it', () => {
    // As captured of `gmetric -n foo -v 42 -t uint32 -u Bytes` on a host called n1, but for DMAX: 86,400 s.
    const [metadata, value] = new GmetricPackets({
      name: 'n1',
      now: () => 0,
      metric: () => ({ unit: 'Bytes', description: '' }),
    }).of(instance({ name: 'gmetric.foo' }), number)
    expect(metadata).toEqual(
      hex(`00000080 00000002 6e310000 00000003 666f6f00 00000000 00000006 75696e7433320000 00000003 666f6f00
           00000005 4279746573000000 00000003 0000003c 00015180 00000000`),
    )
    expect(value).toEqual(
      hex('00000085 00000002 6e310000 00000003 666f6f00 00000000 00000002 25730000 00000002 34320000'),
    )
  })

  it.each<[string, Value, string, string]>([
    ['INT32', { type: INT32, value: -2_147_483_648 }, 'int32', '-2147483648'],
    ['UINT32', { type: UINT32, value: 4_294_967_295 }, 'uint32', '4294967295'],
    ['INT64', { type: INT64, value: -9_223_372_036_854_775_808n }, 'double', '-9223372036854775808'],
    ['UINT64', { type: UINT64, value: 18_446_744_073_709_551_615n }, 'double', '18446744073709551615'],
    ['DOUBLE', { type: DOUBLE, value: 0.1 }, 'double', '0.1'],
    ['DOUBLE', { type: DOUBLE, value: -1e90 }, 'double', '-1e+90'],
    // gmetad adds up what is a number.
    ['DOUBLE', { type: DOUBLE, value: 1e91 }, 'string', '1e+91'],
    ['DOUBLE', { type: DOUBLE, value: Number.NaN }, 'string', 'nan'],
    ['DOUBLE', { type: DOUBLE, value: Number.NEGATIVE_INFINITY }, 'string', '-inf'],
    ['BOOLEAN', { type: BOOLEAN, value: true }, 'uint8', '1'],
    ['BOOLEAN', { type: BOOLEAN, value: false }, 'uint8', '0'],
    ['STRING', { type: STRING, value: 'two "words" <&>' }, 'string', 'two "words" <&>'],
    // gmond's escaping of anything else is read by no parser of XML, and so ends all that it shows.
    ['STRING', { type: STRING, value: 'größer\t\r\n\u0001' }, 'string', 'gr__er\t\r\n_'],
    ['STRING', { type: STRING, value: Uint8Array.of(0x61, 0xff, 0) }, 'string', 'a__'],
  ])('of type %s travels as %o: %s %s', (_, value, declared, shown) => {
    expect(sent(value, { name: 'gmetric.x' })).toMatchObject({ type: declared, value: shown })
  })

  it.each<[string, Value]>([
    ['an OPAQUE', { type: OPAQUE, value: new Uint8Array(3) }],
    ['a VOID', { type: VOID, value: null }],
    ['a REC that is no pattern', rec(text('a', 'b'))],
    ['an ARRAY', { type: ARRAY, value: { element: UINT32, items: [1, 2] } }],
    ['a text that is longer than a line of gmond', { type: STRING, value: 'x'.repeat(900) }],
    ['a text that gmond makes longer than its line', { type: STRING, value: '<'.repeat(200) }],
  ])('that is %s cannot be sent', (_, value) => {
    expect(decoded(value, { name: 'gmetric.x' })).toEqual([])
  })
})

describe('a metric', () => {
  it('of gmetric has its name without the prefix, any other the one it has', () => {
    expect(sent(number, { name: 'gmetric.load_one' }).metric).toBe('load_one')
    expect(sent(number, { name: 'host.load.one' }).metric).toBe('host.load.one')
  })

  it('that has more than a host to tell it apart has that in its name', () => {
    expect(sent(number, { name: 'host.net.in', args: [text('index', 'eth0')] }).metric).toBe('host.net.in.eth0')
    const value = rec(text('name', 'smon.x'), text('agent', 'a1'), text('source', 's'), { name: 'value', ...number })
    expect(sent(value, { name: 'smon.*', isPattern: true }).metric).toBe('smon.x.a1.s')
  })

  it('that would be no name of a file is one: gmetad keeps each metric and host in a file or directory', () => {
    const args = [text('index', '/dev/sda1'), text('host', '..')]
    const { metric, host } = sent(number, { name: 'host.disk.free', args })
    expect([metric, host]).toEqual(['host.disk.free._dev_sda1', { spoofed: true, address: '__', name: '__' }])
    expect(sent(number, { name: `gmetric.${'x'.repeat(247)}` }).metric).toBe('x'.repeat(200))
  })

  it('of another host is spoofed, whether its host is given or found', () => {
    const spoofed = { spoofed: true, address: 'web1', name: 'web1' }
    expect(sent(number, { name: 'gmetric.x', args: [text('host', 'web1')] }).host).toEqual(spoofed)
    const value = rec(text('name', 'gmetric.x'), text('host', 'web1'), { name: 'value', ...number })
    expect(sent(value, { name: 'gmetric.*', isPattern: true })).toMatchObject({ metric: 'x', host: spoofed })
  })

  it("of one of Ganglia's hosts has the address that came with it", () => {
    const { sensor } = makeSensor(new FakeHub())
    sensor.packet(packetText('10.0.0.9:web1', 'x', '1'), SENDER)
    sensor.packet(packetText('', 'x', '1'), SENDER)
    // A name of the host's that is this producer's own too changes nothing.
    sensor.packet(packetText('10.0.0.8:n1', 'x', '1'), SENDER)
    const sensors = [sensor, sensor.liveness]
    const hostOf = (name: string, host: string) => sent(number, { name, args: [text('host', host)], sensors }).host
    const web1 = { spoofed: true, address: '10.0.0.9', name: 'web1' }
    for (const host of ['web1', '10.0.0.9']) expect(hostOf('gmetric.x', host)).toEqual(web1)
    expect(hostOf('gmetric.never.seen', 'web1')).toEqual(web1)
    expect(hostOf('ganglia.host.late', 'web1')).toEqual(web1)
    expect(hostOf('gmetric.x', 'n1')).toEqual({ spoofed: true, address: '10.0.0.8', name: 'n1' })
    expect(hostOf('gmetric.x', SENDER)).toEqual({ spoofed: true, address: SENDER, name: SENDER })
    const value = rec(text('name', 'gmetric.x'), text('host', 'web1'), { name: 'value', ...number })
    expect(sent(value, { name: 'gmetric.*', isPattern: true, sensors }).host).toEqual(web1)
    // Not Ganglia's: others that are called so are others.
    expect(hostOf('smon.x', 'web1')).toEqual({ spoofed: true, address: 'web1', name: 'web1' })
    expect(hostOf('host.load.one', 'n1')).toEqual({ spoofed: false, label: 'n1' })
  })

  it('keeps a colon in the name of a host, which begins at the first one, and has none in the address', () => {
    const { sensor } = makeSensor(new FakeHub())
    sensor.packet(packetText('10.0.0.9:a:b', 'x', '1'), SENDER)
    const args = [text('host', 'a:b')]
    expect(sent(number, { name: 'gmetric.x', args, sensors: [sensor] }).host).toEqual({
      spoofed: true,
      address: '10.0.0.9',
      name: 'a:b',
    })
    const other = [text('host', 'fe80::1')]
    expect(sent(number, { name: 'gmetric.x', args: other }).host).toMatchObject({ address: 'fe80__1' })
  })

  it('of this producer is its own', () => {
    expect(sent(number, { name: 'host.load.one', args: [text('host', 'n1')] }).host).toEqual({
      spoofed: false,
      label: 'n1',
    })
  })

  it('cannot break out of what gmond writes: names and units are not escaped there', () => {
    const nasty = packets({ unit: '"/><x', description: "'&" })
    const [metadata] = nasty
      .of(instance({ name: 'gmetric.a"b<c', args: [text('host', 'h:"1')] }), number)
      .map(decodePacket)
    expect(metadata).toMatchObject({
      metric: 'a_b_c',
      host: { address: 'h__1', name: 'h:_1' },
      metadata: { units: '_/__x', extra: [{ data: 'h__1:h:_1' }, { data: '__' }] },
    })
  })
})

describe('what is known of a metric', () => {
  it('goes first, and again every minute', () => {
    nowMs = 0
    const one = packets()
    const kinds = () => one.of(instance({ name: 'gmetric.x' }), number).map((packet) => decodePacket(packet).kind)
    expect(kinds()).toEqual(['metadata', 'value'])
    nowMs = 59_999
    expect(kinds()).toEqual(['value'])
    nowMs = 60_000
    expect(kinds()).toEqual(['metadata', 'value'])
    expect(kinds()).toEqual(['value'])
  })

  it('goes again when its type changes, and when it changes back', () => {
    const one = packets()
    const types = [number, { type: STRING, value: 'a' } as const, number, number].map((value) => {
      const [metadata] = one.of(instance({ name: 'gmetric.x' }), value).map(decodePacket)
      return metadata?.kind === 'metadata' && metadata.metadata.type
    })
    expect(types).toEqual(['uint32', 'string', 'uint32', false])
  })

  it('goes without its description where that is too long', () => {
    const [metadata] = packets({ unit: 'x', description: 'x'.repeat(2000) })
      .of(instance({ name: 'gmetric.x' }), number)
      .map(decodePacket)
    expect(metadata).toMatchObject({ kind: 'metadata', metadata: { units: 'x', extra: [] } })
  })

  it("goes on as Ganglia's own senders said it, of each host apart", () => {
    const { sensor } = makeSensor(new FakeHub())
    const extra = ['CLUSTER', 'home', 'GROUP', 'rooms', 'GROUP', 'cellar', 'DESC', "it's cold", 'SPOOF_HOST', 'x:y']
    sensor.packet(packetOf('10.0.0.9:web1', 'x', 'uint8', { units: 'C<', tmax: 30, dmax: 300, extra }), SENDER)
    sensor.packet(packetOf('10.0.0.8:web2', 'x', 'timestamp', { units: 's', tmax: 5 }), SENDER)
    const said = (host: string) => {
      const [packet] = decoded(number, { name: 'gmetric.x', args: [text('host', host)], sensors: [sensor] })
      return packet?.kind === 'metadata' ? packet.metadata : undefined
    }
    expect(said('web1')).toEqual({
      ...{ type: 'uint8', units: 'C_', slope: 3, tmax: 30, dmax: 300 },
      extra: [
        { key: 'SPOOF_HOST', data: '10.0.0.9:web1' },
        { key: 'CLUSTER', data: 'home' },
        { key: 'GROUP', data: 'rooms' },
        { key: 'GROUP', data: 'cellar' },
        { key: 'DESC', data: 'it_s cold' },
      ],
    })
    expect(said('web2')).toMatchObject({ type: 'timestamp', units: 's', slope: 3, tmax: 5, dmax: 0 })
  })

  it('has the type of the value where that was declared as something else since, and a slope that gmond knows', () => {
    const { sensor } = makeSensor(new FakeHub())
    sensor.packet(xdr(128, '10.0.0.9:web1', 'x', 1, 'string', 'x', '', 77, 60, 0, 0), SENDER)
    const [packet] = decoded(number, { name: 'gmetric.x', args: [text('host', 'web1')], sensors: [sensor] })
    expect(packet).toMatchObject({ metadata: { type: 'uint32', slope: 4 } })
  })

  it('is never more than a packet holds, or gmetad with the value', () => {
    const { sensor } = makeSensor(new FakeHub())
    const extra = Array.from({ length: 40 }, (_, index) => [`KEY${index}`, 'ü'.repeat(20)]).flat()
    const [host, name] = ['10.0.0.9:'.padEnd(250, 'h'), 'x'.repeat(200)]
    sensor.packet(packetOf(host, name, 'uint8', { units: 'ü'.repeat(200), extra }), SENDER)
    sensor.packet(packetOf(host, 'text', 'string', { units: 'ü'.repeat(200), extra }), SENDER)
    const args = [text('host', host.slice(9))]
    const made = (metric: string, value: Value) => {
      return packets().of(instance({ name: `gmetric.${metric}`, args, sensors: [sensor] }), value)
    }
    for (const each of [made(name, number), made('text', { type: STRING, value: 'y'.repeat(600) })]) {
      expect(each).toHaveLength(2)
      for (const { length } of each) expect(length).toBeLessThanOrEqual(1464)
      const [metadata] = each.map(decodePacket)
      if (metadata?.kind !== 'metadata') throw new Error('metadata was expected')
      const { units, type } = metadata.metadata
      const shown = metadata.metadata.extra.flatMap(({ key, data }) => [key, data])
      const bytes = Buffer.byteLength(shown.join('') + units) + (type === 'string' ? 600 : 3)
      expect(shown.length).toBeGreaterThan(2)
      expect(bytes).toBeLessThanOrEqual(1500)
    }
  })
})

describe('what gmond shows of the host', () => {
  const { sensor } = makeSensor(new FakeHub())
  const args = [text('host', 'web1')]
  sensor.packet(packetText('10.0.0.9:web1', 'x', '1'), SENDER)

  it('is a heartbeat, sent as the number that gmond reads it as', () => {
    const [, value] = decoded(number, { name: 'gmetric.heartbeat', args, sensors: [sensor] })
    expect(value).toMatchObject({ kind: 'value', metric: 'heartbeat', type: 'uint32', value: 42, format: '%u' })
  })

  it('and a location, which is not escaped there', () => {
    const at = (place: string) => ({ type: STRING, value: place }) as const
    const [, value] = decoded(at('<1>,"2"\n'), { name: 'gmetric.location', args, sensors: [sensor] })
    expect(value).toMatchObject({ kind: 'value', metric: 'location', type: 'string', value: '_1_,_2__' })
    expect(decoded(at('x'.repeat(256)), { name: 'gmetric.location', args, sensors: [sensor] })).toEqual([])
  })
})
