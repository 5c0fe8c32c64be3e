import { duplexPair } from 'node:stream'
import { constants, createInflateRaw, deflateRawSync, inflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DeflateLink } from '../../../protocol/link/layers/deflate.ts'
import type { Link, LinkListener } from '../../../protocol/link/link.ts'
import { StreamLink } from '../../../protocol/link/stream.ts'
import { toHex } from '../../support/bytes.ts'

/** The link below: what is written to it is kept, and is out when the test says so. */
class Below implements Link {
  readonly written: Buffer[] = []
  readonly calls: string[] = []
  #out: (() => void)[] = []
  listener: LinkListener | undefined

  write(bytes: Uint8Array, written?: () => void): void {
    this.written.push(Buffer.from(bytes))
    if (written) this.#out.push(written)
  }
  drain(): void {
    for (const out of this.#out.splice(0)) out()
  }
  pause(): void {
    this.calls.push('pause')
  }
  resume(): void {
    this.calls.push('resume')
  }
  end(code?: number, reason?: string): void {
    this.calls.push(`end ${code} ${reason}`)
  }
  destroy(): void {
    this.calls.push('destroy')
  }
  listen(listener: LinkListener): void {
    this.listener = listener
  }
}

/** Records the calls that a session would get. */
class Recorder implements LinkListener {
  bytes = Buffer.alloc(0)
  readonly events: string[] = []

  data(chunk: Uint8Array): void {
    this.bytes = Buffer.concat([this.bytes, chunk])
  }
  finished(): void {
    this.events.push('finished')
  }
  broken(detail: string): void {
    this.events.push(detail)
  }
  closed(): void {
    this.events.push('closed')
  }
}

function make(): { below: Below; recorder: Recorder; link: DeflateLink } {
  const below = new Below()
  const recorder = new Recorder()
  const link = new DeflateLink(below)
  link.listen(recorder)
  return { below, recorder, link }
}

/** Waits for what a thread of zlib does. */
async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve))
}

const inflated = (bytes: Uint8Array) => inflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })
const arrive = (below: Below, bytes: Uint8Array) => below.listener?.data(bytes)

describe('what is written', () => {
  it('can be read to its end after each write: one batch, one write below', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 40_000 }), { maxLength: 8 }), async (list) => {
        const { below, link } = make()
        for (const bytes of list) link.write(bytes)
        await until(() => below.written.length === list.length)
        for (let count = 1; count <= list.length; count++) {
          const batches = below.written.slice(0, count)
          expect(toHex(inflated(Buffer.concat(batches)))).toBe(toHex(Buffer.concat(list.slice(0, count))))
        }
        link.destroy()
        below.listener?.closed()
      }),
      { numRuns: 50 },
    )
  })

  it('is out when the link below says so, in the order of the writes', async () => {
    const { below, link } = make()
    const out: number[] = []
    link.write(new Uint8Array(10), () => out.push(1))
    link.write(new Uint8Array(300_000), () => out.push(2))
    await until(() => below.written.length === 2)
    expect(out).toEqual([])
    below.drain()
    expect(out).toEqual([1, 2])
  })

  it('is called out when the link closes first, once', async () => {
    const { below, recorder, link } = make()
    let out = 0
    for (let writes = 0; writes < 5; writes++) link.write(new Uint8Array(100_000), () => out++)
    below.listener?.closed()
    expect(out).toBe(5)
    link.write(new Uint8Array(1), () => out++)
    expect(out).toBe(6)
    await until(() => recorder.events.length > 0)
    expect(recorder.events).toEqual(['closed'])
  })

  it('goes out before the end, with its reason', async () => {
    const { below, link } = make()
    link.write(Buffer.from('last words'))
    link.end(1001, 'going')
    link.write(Buffer.from('too late'))
    await until(() => below.calls.includes('end 1001 going'))
    expect(inflateRawSync(Buffer.concat(below.written)).toString()).toBe('last words')
  })
})

describe('what arrives', () => {
  it('is the same however it is cut', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5_000 }), sizes, async (bytes, cuts) => {
        const { below, recorder } = make()
        const stream = deflateRawSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH })
        for (let at = 0, turn = 0; at < stream.length; turn++) {
          const size = cuts[turn % cuts.length] ?? 1
          const chunk = Buffer.from(stream.subarray(at, at + size))
          arrive(below, chunk)
          // It is valid until the end of the turn only.
          chunk.fill(0)
          at += size
        }
        await until(() => recorder.bytes.length === bytes.length)
        expect(toHex(recorder.bytes)).toBe(toHex(bytes))
        below.listener?.closed()
        await until(() => recorder.events.includes('closed'))
      }),
      { numRuns: 50 },
    )
  })

  it('may be as dense as a first batch of like commands is', async () => {
    const { below, recorder } = make()
    arrive(below, deflateRawSync(Buffer.alloc(60_000)))
    await until(() => recorder.bytes.length === 60_000)
    expect(recorder.events).not.toContain(expect.stringContaining('100 times'))
  })

  it('and would inflate to more than 100 times its size is reported, and not delivered', async () => {
    const { below, recorder } = make()
    const bomb = deflateRawSync(Buffer.alloc(64 << 20))
    for (let at = 0; at < bomb.length; at += 1_000) arrive(below, bomb.subarray(at, at + 1_000))
    await until(() => recorder.events.length > 0)
    expect(recorder.events[0]).toContain('100 times')
    expect(recorder.bytes.length).toBeLessThanOrEqual((1 << 16) + 100 * bomb.length)
    const delivered = recorder.bytes.length
    arrive(below, bomb)
    await new Promise((resolve) => setImmediate(resolve))
    expect(recorder.bytes.length).toBe(delivered)
  })

  it('and is not deflate data is reported once, and writing still works', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
        const { below, recorder, link } = make()
        // A stored block whose lengths contradict each other, after any bytes that may come first.
        arrive(below, Buffer.from('00ffff0f0f', 'hex'))
        arrive(below, bytes)
        await until(() => recorder.events.length > 0)
        expect(recorder.events).toEqual([expect.stringContaining('not deflate data')])
        link.write(Buffer.from('why'))
        await until(() => below.written.length === 1)
        expect(inflated(below.written[0] ?? Buffer.alloc(0)).toString()).toBe('why')
      }),
      { numRuns: 20 },
    )
  })

  it('stays with the sender while the reader rests: no more than a buffer is inflated ahead', async () => {
    const { below, recorder, link } = make()
    link.pause()
    const incompressible = Buffer.from(Array.from({ length: 1 << 18 }, (_, index) => (index * index * 31) >> 7))
    const stream = deflateRawSync(incompressible, { finishFlush: constants.Z_SYNC_FLUSH, level: 0 })
    for (let at = 0; at < stream.length; at += 65_536) arrive(below, stream.subarray(at, at + 65_536))
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(recorder.bytes.length).toBe(0)
    expect(below.calls).toContain('pause')
    link.resume()
    await until(() => recorder.bytes.length === incompressible.length)
    expect(toHex(recorder.bytes)).toBe(toHex(incompressible))
    await until(() => below.calls.at(-1) === 'resume')
  })

  it('stays with the sender too while more waits to be inflated than a buffer holds', async () => {
    const { below, recorder } = make()
    arrive(below, deflateRawSync(Buffer.alloc(1_000), { level: 0, finishFlush: constants.Z_SYNC_FLUSH }))
    await until(() => recorder.bytes.length === 1_000)
    expect(below.calls).toEqual([])
    arrive(below, deflateRawSync(Buffer.alloc(60_000), { level: 0, finishFlush: constants.Z_SYNC_FLUSH }))
    expect(below.calls).toEqual(['pause'])
    await until(() => recorder.bytes.length === 61_000 && below.calls.length > 1)
    expect(below.calls).toEqual(['pause', 'resume'])
  })

  it('is read to its end before the listener hears that no more comes, or that the link is closed', async () => {
    for (const [event, end] of [
      ['finished', (below: Below) => below.listener?.finished()],
      ['closed', (below: Below) => below.listener?.closed()],
    ] as const) {
      const { below, recorder } = make()
      arrive(below, deflateRawSync(Buffer.alloc(50_000, 'x'), { finishFlush: constants.Z_SYNC_FLUSH }))
      end(below)
      await until(() => recorder.events.length > 0)
      expect([recorder.events, recorder.bytes.length]).toEqual([[event], 50_000])
    }
  })
})

it('two ends over a stream understand each other', async () => {
  const [near, far] = duplexPair()
  const [one, other] = [new DeflateLink(new StreamLink(near)), new DeflateLink(new StreamLink(far))]
  const [heard, answered] = [new Recorder(), new Recorder()]
  one.listen(answered)
  other.listen(heard)
  one.write(Buffer.from('a question'))
  await until(() => heard.bytes.length === 10)
  other.write(Buffer.from('an answer'))
  other.end()
  await until(() => answered.events.length > 0)
  expect([answered.bytes.toString(), answered.events]).toEqual(['an answer', ['finished']])
  one.destroy()
  await until(() => heard.events.includes('closed'))
})

it('an inflater of Node reads what was written as a stream that was never ended', async () => {
  const { below, link } = make()
  const inflate = createInflateRaw()
  let text = ''
  inflate.on('data', (bytes: Buffer) => {
    text += bytes.toString()
  })
  link.write(Buffer.from('to be read at once'))
  await until(() => below.written.length === 1)
  inflate.write(below.written[0])
  await until(() => text.length > 0)
  expect(text).toBe('to be read at once')
})
