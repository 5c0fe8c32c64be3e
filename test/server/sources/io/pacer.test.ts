import { describe, expect, it } from 'vitest'
import { Pacer } from '../../../../server/sources/io/pacer.ts'

/** Storage that is behind when told so, and bytes as they were taken, turn by turn. */
class Bench {
  isBehind = false
  readonly waiting: (() => void)[] = []
  readonly taken: string[] = []
  readonly pacer = new Pacer(this)

  behind(): boolean {
    return this.isBehind
  }

  whenStored(resume: () => void): void {
    this.waiting.push(resume)
  }

  stored(): void {
    for (const resume of this.waiting.splice(0)) resume()
  }

  feed(name: string, onPush: () => void = () => {}) {
    const reading = { paused: false, pause: () => (reading.paused = true), resume: () => (reading.paused = false) }
    let bytes = 0
    const feed = this.pacer.feed(
      {
        push: (chunk) => {
          bytes += chunk.length
          this.taken.push(`${name}${chunk.length}`)
          onPush()
        },
        end: () => this.taken.push(`${name} end`),
      },
      reading as { pause(): void; resume(): void },
    )
    return { feed, reading, bytes: () => bytes }
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const KIB = 1024

describe('feeds', () => {
  it('are taken 16 KiB in a turn, all together, by turns', async () => {
    const bench = new Bench()
    const a = bench.feed('a')
    const b = bench.feed('b')
    a.feed.push(new Uint8Array(20 * KIB))
    b.feed.push(new Uint8Array(20 * KIB))
    expect(bench.taken).toEqual([])
    await turn()
    expect([a.bytes(), b.bytes()]).toEqual([8 * KIB, 8 * KIB])
    await turn()
    expect([a.bytes(), b.bytes()]).toEqual([16 * KIB, 16 * KIB])
    await turn()
    expect([a.bytes(), b.bytes()]).toEqual([20 * KIB, 20 * KIB])
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
    expect(a.bytes()).toBe(2 * first)
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
