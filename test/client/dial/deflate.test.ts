/** The layer `deflate` over a transport, against Node's own inflater and deflater at the other end. */
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { deflatable } from '../../../client/dial/deflate.ts'
import type { Transport } from '../../../client/index.ts'
import { FakeProducer } from '../fake-producer.ts'

const SYNC = { finishFlush: constants.Z_SYNC_FLUSH } as const
const NO_BYTES = new Uint8Array(0)
const END_OF_FLUSH = '0000ffff'

/** What a transport delivers to a test, and what its other end was sent. */
async function layered(rest: Uint8Array = NO_BYTES) {
  const below = new Below()
  const transport = deflatable(below)
  const heard: Buffer[] = []
  const causes: (Error | undefined)[] = []
  const closed = new Promise<void>((resolve) => {
    transport.open({
      data: (bytes) => heard.push(Buffer.from(bytes)),
      closed: (cause) => {
        causes.push(cause)
        resolve()
      },
    })
  })
  await transport.wrap?.('deflate', rest)
  return { below, transport, heard: () => Buffer.concat(heard), causes, closed }
}

/** The transport under the layer. */
class Below extends FakeProducer {
  readonly pieces: Buffer[] = []
  #more = () => {}

  override send(bytes: Uint8Array): void {
    this.pieces.push(Buffer.from(bytes))
    this.#more()
  }

  get all(): Buffer {
    return Buffer.concat(this.pieces)
  }

  async until(isThere: () => boolean): Promise<void> {
    while (!isThere()) {
      await new Promise<void>((resolve) => {
        this.#more = resolve
      })
    }
  }
}

const until = async (isThere: () => boolean) => {
  while (!isThere()) await new Promise(setImmediate)
}

describe('what is sent', () => {
  test('is raw deflate, and can be read to the end of each batch', async () => {
    const { below, transport } = await layered()
    for (const text of ['first', 'second']) {
      const before = below.all.length
      transport.send(Buffer.from(text))
      await below.until(() => below.all.toString('hex', before).endsWith(END_OF_FLUSH))
      expect(inflateRawSync(below.all, SYNC).toString().endsWith(text)).toBe(true)
    }
  })

  test('with a secret shares nothing with the data before and after it', async () => {
    const { below, transport } = await layered()
    const text = 'the same words, the same words, the same words'
    let times = 0
    const sent = async (isSecret: boolean) => {
      const before = below.all.length
      transport.send(Buffer.from(text), isSecret)
      times++
      await until(() => inflateRawSync(below.all, SYNC).length === times * text.length)
      await until(() => below.all.toString('hex').endsWith(END_OF_FLUSH))
      return below.all.length - before
    }
    const first = await sent(false)
    const repeated = await sent(false)
    const secret = await sent(true)
    const after = await sent(false)
    expect(repeated).toBeLessThan(first / 2)
    expect(secret).toBeGreaterThanOrEqual(first)
    expect(after).toBeGreaterThanOrEqual(first - END_OF_FLUSH.length)
  })

  test('goes out before the close', async () => {
    const { below, transport } = await layered()
    transport.send(Buffer.from('last words'))
    transport.close()
    await until(() => below.isClosed)
    expect(inflateRawSync(below.all, SYNC).toString()).toBe('last words')
  })
})

describe('what comes', () => {
  test('is inflated, from the first byte after the response on, however it is split', async () => {
    const words = deflateRawSync('some words, and some words more', SYNC)
    const { below, heard } = await layered(words.subarray(0, 3))
    for (const byte of words.subarray(3)) below.say(Uint8Array.of(byte))
    await until(() => heard().length === 31)
    expect(heard().toString()).toBe('some words, and some words more')
  })

  test('before the layer was added is passed on as it is', async () => {
    const below = new Below()
    const transport: Transport = deflatable(below)
    const heard: string[] = []
    transport.open({ data: (bytes) => heard.push(Buffer.from(bytes).toString()), closed() {} })
    below.say(Buffer.from('plain'))
    transport.send(Buffer.from('plain too'))
    expect([heard, below.all.toString()]).toEqual([['plain'], 'plain too'])
  })

  test('before the end is still heard, and then the end, once', async () => {
    const { below, heard, causes, closed } = await layered()
    below.say(deflateRawSync('last words', SYNC))
    below.hangUp()
    await closed
    expect([heard().toString(), causes]).toEqual(['last words', [undefined]])
  })

  test('rests while it is paused', async () => {
    const { below, transport, heard } = await layered()
    transport.pause()
    expect(below.isPaused).toBe(true)
    below.say(deflateRawSync('patience', SYNC))
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
    expect(heard().toString()).toBe('')
    transport.resume()
    await until(() => heard().length === 8)
    expect(below.isPaused).toBe(false)
  })

  test('and is damaged ends the connection, and says so', async () => {
    const { below, causes, closed } = await layered()
    below.say(Buffer.from('no deflate at all'))
    await closed
    expect(causes).toEqual([
      expect.objectContaining({ code: 'PROTOCOL', message: expect.stringContaining('inflated') }),
    ])
    expect(below.isClosed).toBe(true)
  })

  test('as a bomb is given up after a hundred times its size, and never held', async () => {
    const bomb = deflateRawSync(Buffer.alloc(64 << 20), SYNC)
    const { below, heard, causes, closed } = await layered()
    below.say(bomb)
    await closed
    expect(causes).toEqual([expect.objectContaining({ message: expect.stringContaining('more than 100 times') })])
    expect(heard().length).toBeLessThanOrEqual(100 * bomb.length + (1 << 20))
    expect(below.isClosed).toBe(true)
  })

  test('is not inflated ahead of a reader that rests', async () => {
    const { below, transport, heard } = await layered()
    transport.pause()
    below.say(deflateRawSync(Buffer.alloc(1 << 20, 'abcdefghij0123456789'), SYNC))
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    expect(heard().length).toBe(0)
    transport.resume()
    await until(() => heard().length === 1 << 20)
  })
})
