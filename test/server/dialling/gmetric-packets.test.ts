import { describe, expect, it } from 'vitest'
import { decodePacket } from '../../../protocol/gmetric/decode.ts'
import type { GmetricPacket } from '../../../protocol/gmetric/packet.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { GmetricPackets } from '../../../server/dialling/gmetric-packets.ts'
import type { Instance } from '../../../server/metrics/instance.ts'
import { hex } from '../../support/bytes.ts'

const { INT32, UINT32, INT64, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE, REC, ARRAY, VOID } = BasicType

let nowMs = 0
const about = { unit: 'Bytes', description: 'what it is' }
const packets = (described: typeof about | undefined = about) =>
  new GmetricPackets({ name: 'n1', now: () => nowMs, metric: () => described })

interface Collected {
  readonly name: string
  readonly args?: readonly Field[]
  readonly isPattern?: boolean
}

/** What COLLECT has made of a name and arguments. */
const instance = ({ name, args = [], isPattern = false }: Collected) =>
  ({ selection: { name, args, isPattern } }) as unknown as Instance

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
    ['DOUBLE', { type: DOUBLE, value: 1e300 }, 'double', '1e+300'],
    ['DOUBLE', { type: DOUBLE, value: Number.NaN }, 'double', 'nan'],
    ['DOUBLE', { type: DOUBLE, value: Number.NEGATIVE_INFINITY }, 'double', '-inf'],
    ['BOOLEAN', { type: BOOLEAN, value: true }, 'uint8', '1'],
    ['BOOLEAN', { type: BOOLEAN, value: false }, 'uint8', '0'],
    ['STRING', { type: STRING, value: 'größer <&>' }, 'string', 'größer <&>'],
  ])('of type %s travels as %o: %s %s', (_, value, declared, shown) => {
    expect(sent(value, { name: 'gmetric.x' })).toMatchObject({ type: declared, value: shown })
  })

  it.each<[string, Value]>([
    ['an OPAQUE', { type: OPAQUE, value: new Uint8Array(3) }],
    ['a VOID', { type: VOID, value: null }],
    ['a REC that is no pattern', rec(text('a', 'b'))],
    ['an ARRAY', { type: ARRAY, value: { element: UINT32, items: [1, 2] } }],
    ['a text that fills more than a packet', { type: STRING, value: 'x'.repeat(1450) }],
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

  it('of another host is spoofed, whether its host is given or found', () => {
    const spoofed = { spoofed: true, address: 'web1', name: 'web1' }
    expect(sent(number, { name: 'gmetric.x', args: [text('host', 'web1')] }).host).toEqual(spoofed)
    const value = rec(text('name', 'gmetric.x'), text('host', 'web1'), { name: 'value', ...number })
    expect(sent(value, { name: 'gmetric.*', isPattern: true })).toMatchObject({ metric: 'x', host: spoofed })
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
      host: { address: 'h__1', name: 'h__1' },
      metadata: { units: '_/__x', extra: [{ data: 'h__1:h__1' }, { data: '__' }] },
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

  it('goes again when its type changes', () => {
    const one = packets()
    one.of(instance({ name: 'gmetric.x' }), number)
    expect(one.of(instance({ name: 'gmetric.x' }), { type: STRING, value: 'a' })).toHaveLength(2)
  })

  it('goes without its description where that is too long', () => {
    const [metadata] = packets({ unit: 'x', description: 'x'.repeat(2000) })
      .of(instance({ name: 'gmetric.x' }), number)
      .map(decodePacket)
    expect(metadata).toMatchObject({ kind: 'metadata', metadata: { units: 'x', extra: [] } })
  })
})
