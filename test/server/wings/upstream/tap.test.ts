/** Values of one request, split into series by the bytes of their labels. */
import { describe, expect, it } from 'vitest'
import { ProtocolError } from '../../../../protocol/errors.ts'
import type { RemoteFollower, RemoteSeries } from '../../../../server/kernel/metrics/metric.ts'
import { Tap } from '../../../../server/wings/upstream/tap.ts'
import { join, str, type, u32, u64 } from '../../../support/bytes.ts'

interface Emitted {
  readonly series: RemoteSeries
  readonly host: string | undefined
  readonly tail: string
  readonly time: number
}

function tapOf(maxSeries: number): { tap: Tap; emitted: Emitted[]; born: string[]; forgotten: string[] } {
  const [emitted, born, forgotten]: [Emitted[], string[], string[]] = [[], [], []]
  const tap = new Tap({
    request: { producer: 'east', name: 'test.a', args: [] },
    isDurable: false,
    hub: {
      emitEncoded(series, tail, time) {
        emitted.push({
          series: series as RemoteSeries,
          host: series.labels.host,
          tail: Buffer.from(tail).toString('hex'),
          time,
        })
      },
    },
    maxSeries,
    mayAsk: () => true,
  })
  const follower: RemoteFollower = {
    isDurable: false,
    queue: undefined,
    born: ({ labels }) => born.push(String(labels.host)),
    forget: ({ labels }) => forgotten.push(String(labels.host)),
    again() {},
    lost() {},
  }
  tap.add(follower)
  return { tap, emitted, born, forgotten }
}

/** The payload of a VALUE, as a producer sends it: a REC of the label `host` and a UINT32, or VOID. */
function payload(host: string, value: number | undefined, time = 1): Uint8Array {
  const typed = value === undefined ? u32(type.void) : join(u32(type.uint32), u32(value))
  const fields = join(str('host'), u32(type.string), str(host), str('value'), typed)
  return join(u32(7), u64(1), u64(time), u32(type.rec), u32(2), fields)
}

function take(tap: Tap, bytes: Uint8Array): void {
  tap.take(bytes, 0, bytes.length, new DataView(bytes.buffer, bytes.byteOffset, bytes.length))
}
const tailOf = (value: number | undefined) =>
  Buffer.from(value === undefined ? u32(type.void) : join(u32(type.uint32), u32(value))).toString('hex')

describe('a tap', () => {
  it('gives each value to its series, in whatever order series come, come back and end', () => {
    let seed = 7
    const random = (below: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % below
    }
    const { tap, emitted, born, forgotten } = tapOf(3)
    const sent: { host: string; tail: string; time: number }[] = []
    for (let time = 1; time <= 2_000; time++) {
      // Mostly in turns, as sources send them.
      const host = `h${random(4) === 0 ? random(6) : time % 3}`
      const value = random(10) === 0 ? undefined : time
      take(tap, payload(host, value, time))
      sent.push({ host, tail: tailOf(value), time })
    }
    expect(emitted.map(({ host, tail, time }) => ({ host, tail, time }))).toEqual(sent)
    expect(born.length - forgotten.length).toBe(tap.size)
    expect(tap.size).toBeLessThanOrEqual(3)
    // A series that has ended, or made room, gets nothing more: what comes then is a new one.
    const lives = new Map<RemoteSeries, number>()
    for (const [index, { series, tail }] of emitted.entries()) {
      const ended = lives.get(series)
      expect(ended, `value ${index}`).toBeUndefined()
      if (tail === tailOf(undefined)) lives.set(series, index)
    }
  })

  it('is the same series as long as it lasts, and keeps its last value', () => {
    const { tap, emitted } = tapOf(10)
    for (const value of [1, 2, 3]) for (const host of ['h1', 'h2']) take(tap, payload(host, value, value))
    expect(new Set(emitted.map(({ series }) => series)).size).toBe(2)
    const known = [...tap.series()].map(({ known }) => [Buffer.from(known?.tail ?? []).toString('hex'), known?.time])
    expect(known).toEqual([
      [tailOf(3), 3],
      [tailOf(3), 3],
    ])
  })

  it('takes every series that may be there: the producer is no label of theirs', () => {
    const { tap, emitted } = tapOf(10)
    const labels = (count: number, bytes: number) => {
      const texts = Array.from({ length: count }, (_, i) =>
        join(str(`l${String(i).padStart(3, '0')}`), u32(type.string)),
      )
      const each = Math.floor(bytes / count) - 4
      return join(...texts.map((text) => join(text, str('x'.repeat(each)))))
    }
    // 64 labels, and 4,096 bytes with the name `test.a`.
    for (const [count, bytes] of [
      [64, 64 * 5],
      [4, 4_088],
    ] as const) {
      const fields = join(labels(count, bytes), str('value'), u32(type.uint32), u32(1))
      take(tap, join(u32(7), u64(1), u64(1), u32(type.rec), u32(count + 1), fields))
    }
    expect(emitted.map(({ series }) => Object.keys(series.labels).length)).toEqual([65, 5])
  })

  it('forgets a series whole: those that have ended do not keep each other', () => {
    const { tap, emitted } = tapOf(1_000)
    take(tap, payload('first', 1, 1))
    for (let time = 2; time < 1_000; time++) {
      take(tap, payload(`h${time}`, time, time))
      if (time > 2) take(tap, payload(`h${time - 1}`, undefined, time))
    }
    const reached = new Set<unknown>()
    const after = (one: unknown) => (one as { after?: unknown }).after
    for (let one: unknown = emitted[0]?.series; one !== undefined && !reached.has(one); one = after(one))
      reached.add(one)
    expect(reached.size).toBeLessThan(5)
  })

  it('ends its series one at a time: there may be very many', () => {
    const { tap, emitted, forgotten } = tapOf(1_000)
    for (let i = 0; i < 10; i++) take(tap, payload(`h${i}`, 1))
    const steps = tap.end(u32(type.void), 2)
    for (let done = 1; done <= 10; done++) {
      steps.next()
      expect([emitted.length - 10, forgotten.length]).toEqual([done, done])
    }
    expect(steps.next().done).toBe(true)
    expect(tap.size).toBe(0)
  })

  it('compares a value with few series, also if somebody has made their labels so that all have one hash', () => {
    const { tap, born, forgotten } = tapOf(100_000)
    const view = new DataView(new ArrayBuffer(4))
    // The last two words of the text: the second makes up for the first, as the hash is computed.
    const hashed = (h: number, word: number) => Math.imul(h ^ word, 0x01000193)
    const word = (text: string) => new DataView(new TextEncoder().encode(text).buffer).getUint32(0)
    const prefix = payload('', 0).subarray(20, -20)
    const before = new DataView(join(prefix.subarray(0, -4), u32(8)).buffer)
    let start = 0x811c9dc5
    for (let at = 0; at < before.byteLength; at += 4) start = hashed(start, before.getUint32(at))
    const wanted = hashed(hashed(start, word('aaaa')), word('aaaa'))
    const inverse = 0x359c449b
    expect(Math.imul(0x01000193, inverse)).toBe(1)
    const alike: string[] = []
    for (let i = 36 ** 3; alike.length < 50 && i < 36 ** 4; i++) {
      const first = i.toString(36)
      view.setUint32(0, Math.imul(wanted, inverse) ^ hashed(start, word(first)))
      const second = String.fromCharCode(...new Uint8Array(view.buffer))
      if (/^[\x20-\x7e]{4}$/.test(second)) alike.push(first + second)
    }
    expect(alike).toHaveLength(50)
    for (const host of alike) take(tap, payload(host, 1))
    expect(born).toEqual(alike)
    expect(forgotten.length).toBeGreaterThan(30)
  })

  it.each([
    ['is cut', payload('h1', 1).subarray(0, 60)],
    ['goes on after its end', join(payload('h1', 1), u32(0))],
    ['has a basic type that there is not', join(payload('h1', 1).subarray(0, -8), u32(99), u32(1))],
  ])('refuses a value that %s, also of a series that it knows', (_, bytes) => {
    const { tap } = tapOf(10)
    take(tap, payload('h1', 1))
    take(tap, payload('h1', 2))
    expect(() => take(tap, new Uint8Array(bytes))).toThrow(ProtocolError)
  })
})
