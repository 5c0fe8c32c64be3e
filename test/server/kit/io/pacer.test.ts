import { describe, expect, it } from 'vitest'
import { FeedTurns, Pacer } from '../../../../server/kit/io/pacer.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

/** Storage that is behind when told so, and bytes as they were taken, turn by turn. */
class Bench {
  isBehind = false
  readonly waiting: (() => void)[] = []
  readonly taken: string[] = []
  readonly failures: string[] = []
  readonly clock = new FakeClock()
  readonly turns = new FeedTurns(this.clock)
  readonly pacer = this.newPacer()

  newPacer(): Pacer {
    const failed = (error: unknown): void => void this.failures.push((error as Error).message)
    return new Pacer({ storage: this, turns: this.turns, clock: this.clock, failed })
  }

  behind(): boolean {
    return this.isBehind
  }

  whenStored(resume: () => void): void {
    this.waiting.push(resume)
  }

  stored(): void {
    for (const resume of this.waiting.splice(0)) resume()
  }

  feed(name: string, onPush: (bytes: number) => void = () => {}, pacer = this.pacer) {
    const reading = { paused: false, pause: () => (reading.paused = true), resume: () => (reading.paused = false) }
    let bytes = 0
    let isDestroyed = false
    const feed = pacer.feed(
      {
        push: (chunk) => {
          bytes += chunk.length
          this.taken.push(`${name}${chunk.length}`)
          onPush(chunk.length)
        },
        end: () => this.taken.push(`${name} end`),
      },
      {
        ...(reading as { pause(): void; resume(): void }),
        destroy: () => {
          isDestroyed = true
        },
      },
    )
    return { feed, reading, bytes: () => bytes, isDestroyed: () => isDestroyed }
  }

  /** The time that a feed takes for `bytesPerMs` bytes. */
  costs(bytesPerMs: number): (bytes: number) => void {
    return (bytes) => this.clock.advance(bytes / bytesPerMs)
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const KIB = 1024

describe('feeds', () => {
  it('have 5 ms in a turn, all together, and take turns', async () => {
    const bench = new Bench()
    const a = bench.feed('a', bench.costs(64))
    const b = bench.feed('b', bench.costs(64), bench.newPacer())
    a.feed.push(new Uint8Array(20 * KIB))
    b.feed.push(new Uint8Array(20 * KIB))
    expect(bench.taken).toEqual([])
    for (let n = 1; n <= 20; n++) {
      const beganMs = bench.clock.monotonicMs()
      await turn()
      // A piece that took less than 1 ms is doubled, and so may take 2 ms.
      expect(bench.clock.monotonicMs() - beganMs).toBeLessThanOrEqual(7)
      expect(Math.abs(a.bytes() - b.bytes())).toBeLessThanOrEqual(128)
      expect(a.bytes() + b.bytes()).toBeGreaterThanOrEqual(n * 5 * 64)
    }
  })

  it('are taken in pieces of about 1 ms, whatever a byte costs', async () => {
    const bench = new Bench()
    const a = bench.feed('a', bench.costs(0.5))
    a.feed.push(new Uint8Array(KIB))
    await turn()
    expect(bench.taken).toEqual(['a16'])
    // The smallest piece there is takes 4 ms here.
    await turn()
    expect(bench.taken).toEqual(['a16', 'a2', 'a2'])
    const b = bench.feed('b', bench.costs(1000), bench.newPacer())
    b.feed.push(new Uint8Array(60 * KIB))
    for (let n = 0; n < 40; n++) await turn()
    const pieces = bench.taken.filter((line) => line.startsWith('b')).map((line) => Number(line.slice(1)))
    expect(pieces.slice(0, 6)).toEqual([16, 32, 64, 128, 256, 512])
    expect(Math.max(...pieces)).toBeLessThanOrEqual(2048)
  })

  it('give a taker no bytes and no end while those before still make work for it', async () => {
    const bench = new Bench()
    let steps = 0
    const taken: string[] = []
    const taker = {
      push: (bytes: Uint8Array) => void taken.push(`${bytes.length}`),
      work: () => {
        bench.clock.advance(0.5)
        return ++steps % 15 !== 0
      },
      end: () => void taken.push('end'),
    }
    const feed = bench.pacer.feed(taker, { pause: () => {}, resume: () => {}, destroy: () => {} })
    feed.push(new Uint8Array(40))
    feed.end()
    await turn()
    expect([taken, steps]).toEqual([['16'], 10])
    await turn()
    expect(taken).toEqual(['16', '24'])
    for (let n = 0; n < 3; n++) await turn()
    expect([taken, steps]).toEqual([['16', '24', 'end'], 30])
  })

  it('are not taken while too much waits to be stored, not even the rest of a slice', async () => {
    const bench = new Bench()
    const a = bench.feed('a', () => {
      bench.isBehind = true
    })
    a.feed.push(new Uint8Array(4 * KIB))
    await turn()
    const first = a.bytes()
    expect(first).toBeLessThanOrEqual(KIB)
    await turn()
    expect(a.bytes()).toBe(first)
    bench.isBehind = false
    bench.stored()
    await turn()
    expect(a.bytes()).toBeGreaterThan(first)
    expect(a.bytes()).toBeLessThan(KIB)
    expect(bench.waiting).toHaveLength(1)
  })

  it('stop reading when 64 KiB wait, and read on when less do', async () => {
    const bench = new Bench()
    const { feed, reading } = bench.feed('a')
    feed.push(new Uint8Array(63 * KIB))
    expect(reading.paused).toBe(false)
    feed.push(new Uint8Array(KIB))
    expect(reading.paused).toBe(true)
    await turn()
    expect(reading.paused).toBe(false)
  })

  it('are given again what they have not taken', async () => {
    const bench = new Bench()
    const bytes: number[] = []
    const reading = { pause() {}, resume() {}, destroy() {} }
    const push = (chunk: Uint8Array): number => {
      bench.taken.push(`${chunk.length}`)
      bytes.push(...chunk.subarray(0, 3))
      return Math.min(3, chunk.length)
    }
    const feed = bench.pacer.feed({ push, end: () => bench.taken.push('end') }, reading)
    feed.push(Uint8Array.of(1, 2, 3, 4))
    feed.push(Uint8Array.of(5, 6, 7, 8))
    feed.end()
    await turn()
    expect(bytes).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(bench.taken).toEqual(['4', '1', '4', '1', 'end'])
  })

  it('end when everything was taken, in whatever pieces it came', async () => {
    const bench = new Bench()
    const { feed, bytes } = bench.feed('a')
    for (const size of [1, 0, 700, 3]) feed.push(new Uint8Array(size))
    feed.end()
    feed.end()
    feed.push(new Uint8Array(9))
    expect(bench.taken).toEqual([])
    await turn()
    expect(bytes()).toBe(704)
    expect(bench.taken.filter((line) => line === 'a end')).toHaveLength(1)
    expect(bench.taken.at(-1)).toBe('a end')
  })

  it('end at once where nothing waits', () => {
    const bench = new Bench()
    bench.feed('a').feed.end()
    expect(bench.taken).toEqual(['a end'])
  })
})

describe('a feed that throws', () => {
  it('is over and counted, and the others go on', async () => {
    const bench = new Bench()
    const a = bench.feed('a', () => {
      throw new Error('broken')
    })
    const b = bench.feed('b')
    a.feed.push(new Uint8Array(100))
    b.feed.push(new Uint8Array(100))
    await turn()
    expect([bench.failures, a.isDestroyed(), b.isDestroyed()]).toEqual([['broken'], true, false])
    expect([a.bytes(), b.bytes()]).toEqual([16, 100])
    a.feed.push(new Uint8Array(100))
    await turn()
    expect(bench.taken.filter((line) => line.startsWith('a'))).toEqual(['a16', 'a end'])
  })
})
