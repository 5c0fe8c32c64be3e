import { describe, expect, it } from 'vitest'
import type { Datagram } from '../../../../../server/kit/io/datagrams/batch.ts'
import { DatagramFeed } from '../../../../../server/kit/io/datagrams/feed.ts'
import { FeedTurns, Pacer } from '../../../../../server/kit/io/pacer.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

/** Turns of feeds, with datagrams that come by hand, and a stream beside them. */
class Bench {
  readonly taken: string[] = []
  readonly clock = new FakeClock()
  readonly turns = new FeedTurns(this.clock)
  readonly #waiting: Datagram[] = []
  readonly #socket = { next: () => this.#waiting.shift(), isEmpty: true }
  readonly #feed: DatagramFeed

  constructor(take: (this: Bench, port: number) => Generator<void, void> | undefined | void) {
    Object.defineProperty(this.#socket, 'isEmpty', { get: () => this.#waiting.length === 0 })
    this.#feed = new DatagramFeed(this.turns, ({ port }) => take.call(this, port))
  }

  /** Datagrams come, from these ports. */
  come(...ports: number[]): void {
    for (const port of ports) {
      this.#waiting.push({ bytes: new Uint8Array(1), address: '127.0.0.1', port })
      this.#feed.received(this.#socket)
    }
  }

  /** 16 bytes of a stream come. */
  stream(bytesPerMs: number): void {
    const storage = { behind: () => false, whenStored: () => {} }
    const failed = (error: unknown): never => expect.unreachable(String(error))
    const push = (bytes: Uint8Array): void => {
      this.taken.push(`a${bytes.length}`)
      this.clock.advance(bytes.length / bytesPerMs)
    }
    const pacer = new Pacer({ storage, turns: this.turns, clock: this.clock, failed })
    const reading = { pause: () => {}, resume: () => {}, destroy: () => {} }
    pacer.feed({ push, end: () => {} }, reading).push(new Uint8Array(16))
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const PORTS = Array.from({ length: 20 }, (_, index) => index + 1)

describe('datagrams', () => {
  it('have their part of the 5 ms, in their order', async () => {
    const taken: number[] = []
    const bench = new Bench(function (port) {
      taken.push(port)
      this.clock.advance(2)
    })
    bench.come(...PORTS)
    expect(taken).toEqual([])
    await turn()
    expect(taken).toHaveLength(3)
    while (taken.length < 20) await turn()
    expect(taken).toEqual(PORTS)
  })

  it('are taken for 1 ms before other feeds have their turn, however many that are', async () => {
    const bench = new Bench(function () {
      this.taken.push('datagram')
      this.clock.advance(1 / 8)
    })
    bench.come(...PORTS)
    bench.stream(16)
    await turn()
    const cheap = PORTS.map(() => 'datagram')
    expect(bench.taken).toEqual([...cheap.slice(0, 8), 'a16', ...cheap.slice(8)])
  })

  it('that ask for much are taken in steps, each before the next datagram, and others have their turns between', async () => {
    const bench = new Bench(function (port) {
      const clock = this.clock
      const { taken } = this
      function* steps() {
        for (let step = 1; step <= 4; step++) {
          clock.advance(2)
          taken.push(`${port}.${step}`)
          if (step < 4) yield
        }
      }
      const begun = steps()
      begun.next()
      return begun
    })
    bench.come(1, 2)
    bench.stream(8)
    await turn()
    expect(bench.taken).toEqual(['1.1', 'a16', '1.2'])
    // One that comes while nothing but a begun one is left does not bring the feed into the row twice.
    await turn()
    await turn()
    bench.come(3)
    while (bench.taken.length < 13) await turn()
    const expected = [1, 2, 3].flatMap((port) => [1, 2, 3, 4].map((step) => `${port}.${step}`))
    expect(bench.taken.filter((line) => line !== 'a16')).toEqual(expected)
  })
})
