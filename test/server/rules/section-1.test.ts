import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { args, command, frame, hex, i32, join, opaque, status, str, type, u32, u64 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { RawPeer } from '../../support/raw-peer.ts'

let producer: TestProducer
beforeAll(async () => {
  producer = await TestProducer.start()
})
afterAll(() => producer.stop())

const MAX_BEFORE = 65_536
const MAX_AFTER = 1_048_576

async function fresh(): Promise<RawPeer> {
  const peer = producer.connect()
  await peer.until('caps')
  return peer
}

async function expectRefused(peer: RawPeer): Promise<void> {
  expect(await peer.next()).toMatchObject({ kind: 'notice', code: 6 })
  expect(await peer.next()).toEqual({ kind: 'closed' })
}

describe('a length out of bounds closes, from the length alone', () => {
  it.each([0, 4, 7, 10, MAX_BEFORE + 4, 0x80000000, 0xffffffff])('%i before AUTH', async (length) => {
    const peer = await fresh()
    peer.send(u32(length))
    await expectRefused(peer)
  })

  it.each([0, 4, 6, 4_098, MAX_AFTER + 4, 0xfffffffc])('%i after AUTH', async (length) => {
    const { peer } = await producer.login()
    peer.send(u32(length))
    await expectRefused(peer)
  })

  it('and what came whole before it is answered, what comes after it is not', async () => {
    const { peer } = await producer.login()
    peer.send(join(command.nop(1), u32(9), command.nop(2)))
    expect(await peer.next()).toMatchObject({ kind: 'response', seq: 1, status: status.OK })
    await expectRefused(peer)
  })

  it('but not before all four bytes of it are there', async () => {
    const peer = await fresh()
    peer.send(hex('ffffff'))
    await producer.settle()
    expect(peer.closed).toBe(false)
    peer.send(hex('ff'))
    await expectRefused(peer)
  })
})

describe('the longest frame', () => {
  it('has 64 KiB before AUTH', async () => {
    const peer = await fresh()
    peer.send(frame(u32(0), u32(1), new Uint8Array(MAX_BEFORE - 8)), command.nop(2))
    expect(await peer.response(1)).toMatchObject({ status: status.INVALID_ARGUMENT })
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
  })

  it('has 1 MiB after AUTH', async () => {
    const { peer } = await producer.login()
    peer.send(frame(u32(0), u32(1), new Uint8Array(MAX_AFTER - 8)), command.nop(2))
    expect(await peer.response(1)).toMatchObject({ status: status.INVALID_ARGUMENT })
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
  })
})

describe('a sound frame that does not decode is INVALID_ARGUMENT, and the connection goes on', () => {
  const collect = 1
  const long = 'n'.repeat(256)
  const bare = (code: number, ...rest: Uint8Array[]) => frame(u32(code), u32(1), ...rest)
  it.each<[string, Uint8Array]>([
    ['a field that is not there', bare(2, u32(5))],
    ['half a field', bare(10, u32(0))],
    ['a string that reaches beyond the frame', bare(collect, u32(5), hex('61626300'))],
    ['a string of 4 GiB', bare(collect, u32(0xffffffff), hex('61626300'))],
    ['padding that is not zero', bare(collect, u32(1), hex('61000001'), args())],
    ['bytes left over after NOP', bare(0, u32(0))],
    ['bytes left over after an arglist', bare(collect, str('test.a'), args(), u32(0))],
    ['bytes left over after through', bare(10, u64(0), u32(1), u32(0))],
    ['a name that is no UTF-8', bare(collect, u32(2), hex('c3280000'), args())],
    ['a name that is an overlong UTF-8', bare(collect, u32(2), hex('c0af0000'), args())],
    ['a name with a surrogate', bare(collect, u32(3), hex('eda08000'), args())],
    ['an empty name', bare(collect, str(''), args())],
    ['a name of 256 bytes', bare(collect, str(long), args())],
    ['a name with a control character', bare(collect, str('test.\n'), args())],
    ['a url of 2,049 bytes', bare(7, str('u'.repeat(2_049)), args())],
    ['an empty argument name', bare(collect, str('test.a'), args(['', type.string, str('x')]))],
    ['an argument that stands twice', bare(12, str('test.a'), twice('host', type.string, str('x')))],
    ['an argument of type REC', bare(collect, str('test.a'), args(['host', type.rec, u32(0)]))],
    ['an argument of type VOID', bare(collect, str('test.a'), args(['host', type.void, new Uint8Array(0)]))],
    ['an argument of type 0', bare(collect, str('test.a'), args(['host', 0, str('x')]))],
    ['a boolean that is 2', bare(collect, str('test.a'), args(['host', type.boolean, u32(2)]))],
    ['a count that cannot fit', bare(collect, str('test.a'), u32(0xffffffff))],
    ['through that is 2', bare(10, u64(0), u32(2))],
    ['an empty control', bare(11, str(''), args())],
    ['an empty layer', bare(13, str(''))],
  ])('%s', async (_, bytes) => {
    const { peer } = await producer.login()
    peer.send(bytes, command.nop(2))
    const refused = await peer.response(1)
    expect(refused).toMatchObject({ status: status.INVALID_ARGUMENT, result: 0 })
    expect(refused.detail).not.toBe('')
    expect(await peer.response(2)).toMatchObject({ status: status.OK })
  })

  it('while what is at the limit decodes', async () => {
    const { peer } = await producer.login()
    const name = `test.${'n'.repeat(250)}`
    peer.send(
      command.collect(1, name),
      command.defChannel(2, `ws://h/${'u'.repeat(2_041)}`, args(['secret', type.opaque, opaque(new Uint8Array(16))])),
    )
    expect(await peer.response(1)).toMatchObject({ status: status.OK })
    expect((await peer.response(2)).status).not.toBe(status.INVALID_ARGUMENT)
  })

  it('while a STRING value passes as it came, control characters too', async () => {
    const { peer } = await producer.login()
    peer.send(command.collect(1, 'test.a', args(['host', type.string, str('a\u0000\nb')])))
    expect(await peer.response(1)).toMatchObject({ status: status.OK })
  })
})

function twice(name: string, basicType: number, value: Uint8Array): Uint8Array {
  return args([name, basicType, value], [name, basicType, value])
}

describe('arguments', () => {
  const which = (basicType: number, value: Uint8Array) => args(['which', basicType, value])
  it.each<[string, Uint8Array, number]>([
    ['a uint32 where it is declared', which(type.uint32, u32(7)), status.OK],
    ['an int32 that fits', which(type.int32, i32(7)), status.OK],
    ['an int64 that fits', which(type.int64, u64(7)), status.OK],
    ['a uint64 that fits', which(type.uint64, u64(0xffffffff)), status.OK],
    ['an int32 that is negative', which(type.int32, i32(-1)), status.INVALID_ARGUMENT],
    ['an int64 that is negative', which(type.int64, u64(0xffffffffffffffffn)), status.INVALID_ARGUMENT],
    ['a uint64 that is too large', which(type.uint64, u64(0x100000000)), status.INVALID_ARGUMENT],
    ['a double', which(type.double, hex('4000000000000000')), status.INVALID_ARGUMENT],
    ['a string of digits', which(type.string, str('7')), status.INVALID_ARGUMENT],
    ['a boolean', which(type.boolean, u32(1)), status.INVALID_ARGUMENT],
    ['a name that the metric does not know', args(['other', type.uint32, u32(7)]), status.INVALID_ARGUMENT],
  ])('%s', async (_, list, expected) => {
    const { peer } = await producer.login()
    peer.send(command.collect(1, 'slow.value', list))
    expect(await peer.response(1)).toMatchObject({ status: expected })
  })
})
