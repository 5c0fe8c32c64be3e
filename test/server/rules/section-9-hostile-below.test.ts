/** Section 9.13 with a hostile producer below: whatever it says after its login costs itself alone. */
import { afterEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Metric } from '../../../server/kernel/metrics/metric.ts'
import { always, isCapabilities, isResponse, isValue, put, resized } from '../../conformance/mutations.ts'
import { args, command, frame, join, str, type, u32 } from '../../support/bytes.ts'
import { decoded } from '../../support/records.ts'
import { PushSensor } from '../../support/test-sensor.ts'
import { Tree } from '../../support/tree.ts'

let tree: Tree
afterEach(() => tree.stop())

const of = (text: string) => ['producer', type.string, str(text)] as const
/** PRODUCER_CAPS with more entries. */
const withMore = (frame: Buffer, ...entries: readonly (readonly [string, string])[]): Buffer => {
  put(frame, 16, frame.readUInt32BE(16) + entries.length)
  const added = entries.map(([name, text]) => Buffer.from(join(str(name), u32(type.string), str(text))))
  return resized(Buffer.concat([frame, ...added]))
}
/** Changes the PRODUCER_CAPS after the login. */
const afterLogin = (change: (frame: Buffer) => readonly Buffer[]) => () => {
  let seen = 0
  return (frame: Buffer) => (isCapabilities(frame) && ++seen > 1 ? change(frame) : [frame])
}

describe('PRODUCER_CAPS of a producer below', () => {
  it.each([
    ['an id that is too long', `${'f'.repeat(500_000)} x`],
    ['an id with a control character', '00\u001b[2J x'],
    ['a name that is too long', `id ${'n'.repeat(65)}`],
  ])('with %s are not used, and not passed on', async (_, text) => {
    tree = await Tree.start({ mutation: afterLogin((frame) => [withMore(frame, ['below', text])]) })
    await tree.until(async () => expect((await tree.state()).detail).toContain('cannot be used here'))
    const seat = await tree.upper.seat('watcher')
    const caps = seat.peer.log.filter((message) => message.kind === 'caps')
    expect(caps.at(-1)?.bytes.length).toBeLessThan(2_000)
  })

  it('with an id of its own that cannot be used are not, either', async () => {
    const mutation = afterLogin((frame) => {
      const text = Buffer.from(str('producer'))
      const at = frame.indexOf(text) + text.length + 4
      const end = at + 4 + ((frame.readUInt32BE(at) + 3) & ~3)
      return [resized(Buffer.concat([frame.subarray(0, at), str(`${'f'.repeat(500_000)} n1`), frame.subarray(end)]))]
    })
    tree = await Tree.start({ mutation })
    await tree.until(async () => expect((await tree.state()).detail).toContain('cannot be used here'))
  })

  it('that come again all the time are looked at once a second', async () => {
    const mutation = afterLogin((frame) => {
      const others = Array.from({ length: 200 }, (_, i) => withMore(Buffer.from(frame), ['below', `id x${i}`]))
      return [frame, ...others]
    })
    tree = await Tree.start({ mutation })
    await tree.connected()
    const { hub } = tree.upper.server.parts
    await tree.until(() => expect([...hub.sensors].flatMap(producersOf)).toContain('east/x199'))
    expect(hub.producersChanges).toBeLessThan(20)
  })
})

const producersOf = (sensor: object): string[] =>
  'producers' in sensor
    ? [...(sensor.producers as () => Iterable<{ readonly name: string }>)()].map(({ name }) => name)
    : []

describe('the answer of a producer below', () => {
  /** Records whose `time` is a DOUBLE that is no number. */
  const timeless = always((frame) => {
    const time = Buffer.from(join(str('time'), u32(type.uint64)))
    for (let at = frame.indexOf(time); isValue(frame) && at >= 0; at = frame.indexOf(time, at + 1)) {
      put(frame, at + 8, type.double)
      frame.write('7ff8000000000000', at + 12, 'hex')
    }
    return frame
  })

  it.each([
    ['a name that no catalogue has', 'test.new', 'east'],
    ['a pattern', 'test.*', '*'],
  ])('without a proper time is left out: %s', async (_, metric, producer) => {
    tree = await Tree.start({ mutation: timeless })
    await tree.connected()
    const seat = await tree.upper.seat('watcher')
    tree.upper.emit(1)
    tree.lower.emit(2, 'test.new')
    const answer = decoded(await tree.inTime(seat.query(metric, args(of(producer)))))
    expect(answer ?? []).toEqual(producer === '*' ? [expect.objectContaining({ producer: 'n1', value: 1 })] : [])
  })

  it('to a command that never comes costs the connection, and what was wanted comes over the next one', async () => {
    let isSwallowed = false
    tree = await Tree.start({
      mutation: always((frame) => {
        if (!isSwallowed || !isResponse(frame)) return frame
        isSwallowed = false
        return []
      }),
    })
    await tree.connected()
    const seat = await tree.upper.seat('watcher')
    await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['durable', type.boolean, u32(0)])
    isSwallowed = true
    const id = await seat.collect('test.a', args(of('east')))
    await seat.ok((seq) => command.subscribe(seq, id, 0))
    await tree.until(() => expect(isSwallowed).toBe(false))
    await tree.boundLive(1)
    tree.lower.emit(5)
    expect(decoded(await tree.inTime(seat.value()))).toMatchObject({ value: 5 })
  })

  it('that never comes is waited for half a minute, and the status says so', async () => {
    tree = await Tree.start({ mutation: always((frame) => (isValue(frame) ? [] : frame)) })
    await tree.until(async () => {
      tree.upper.clock.advance(1_000)
      expect(await tree.state()).toMatchObject({ state: 'failed', detail: expect.stringContaining('did not arrive') })
    })
  })

  it('with very long words is shortened for people', async () => {
    const words = 'lies '.repeat(100_000)
    const mutation = () => {
      let isUp = false
      return (bytes: Buffer) => {
        if (isCapabilities(bytes)) return [bytes]
        isUp ||= isValue(bytes)
        if (!isUp || !isResponse(bytes) || bytes.readUInt32BE(12) !== 0) return [bytes]
        return [Buffer.from(frame(u32(0xffffffff), u32(bytes.readUInt32BE(8)), u32(11), u32(0), str(words)))]
      }
    }
    tree = await Tree.start({ mutation })
    await tree.until(async () => expect((await tree.state()).detail).toContain('lies'))
    expect((await tree.state()).detail.length).toBeLessThan(2_000)
    expect(Math.max(...tree.upper.logged.map((line) => line.length))).toBeLessThan(3_000)
  })
})

it('a catalogue without an end is read until it is too large, and what is not listed can be asked for', async () => {
  tree = await Tree.start()
  await tree.connected()
  const { hub } = tree.lower.server.parts
  const endless = new PushSensor(hub, 'endless.') as PushSensor & {
    metrics: (prefix?: string, after?: string) => Iterable<Metric>
  }
  const description = 'x'.repeat(4_000)
  let highest = 0
  endless.metrics = function* (_?: string, after: string = '') {
    const from = after.startsWith('endless.') ? Number(after.slice('endless.'.length)) + 1 : 0
    for (let i = from; i < 1_000_000; i++) {
      highest = Math.max(highest, i)
      const name = `endless.${String(i).padStart(7, '0')}`
      yield { name, kind: 'continuous', type: BasicType.UINT32, unit: '', description, parameters: [] } as Metric
    }
  }
  endless.push('endless.0999999', { type: BasicType.UINT32, value: 7 }, 1)
  await tree.until(async () => expect((await tree.state()).detail).toContain('its catalogue is too large'))
  expect(highest).toBeLessThan(20_000)
  const seat = await tree.upper.seat('watcher')
  const answer = await tree.inTime(seat.query('endless.0999999', args(of('east'))))
  expect(decoded(answer)).toMatchObject([{ value: 7 }])
})
