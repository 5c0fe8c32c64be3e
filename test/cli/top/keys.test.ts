import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyReader } from '../../../cli/top/keys.ts'

const read = (text: string) => new KeyReader().read(Buffer.from(text))

describe('keys', () => {
  // As xterm sends them: "PC-Style Function Keys" in its control sequences.
  test.each([
    ['\x1b[A', 'up'],
    ['\x1bOB', 'down'],
    ['\x1b[C', 'right'],
    ['\x1b[D', 'left'],
    ['\x1b[H', 'home'],
    ['\x1bOF', 'end'],
    ['\x1b[5~', 'page-up'],
    ['\x1b[6~', 'page-down'],
    ['\x7f', 'backspace'],
    ['\r', 'enter'],
    ['\x03', 'interrupt'],
    ['\x0c', 'redraw'],
    ['q', 'q'],
    ['ü', 'ü'],
    ['😀', '😀'],
  ])('%j is %s, wherever it is cut', (sequence, key) => {
    expect(read(sequence)).toEqual([key])
    const keys = new KeyReader()
    expect([...Buffer.from(sequence)].flatMap((byte) => keys.read(Buffer.of(byte)))).toEqual([key])
    expect(keys.isPending).toBe(false)
  })

  test('come one after the other', () => {
    expect(read('j\x1b[Bk/a')).toEqual(['j', 'down', 'k', '/', 'a'])
  })

  test('that mean nothing here are swallowed whole', () => {
    expect(read('\x1b[15~\x1b[1;5C\x1bOPx\x1b[<0;1;1Mx\x01')).toEqual(['x', 'x'])
  })

  test('the Escape key is known by what does not follow it', () => {
    const keys = new KeyReader()
    expect(keys.read(Buffer.from('\x1b'))).toEqual([])
    expect(keys.isPending).toBe(true)
    expect(keys.settle()).toEqual(['escape'])
    expect(keys.isPending).toBe(false)
    expect(keys.read(Buffer.from('\x1bq'))).toEqual(['escape', 'q'])
    expect(keys.read(Buffer.from('\x1b\x1b[A'))).toEqual(['escape', 'up'])
  })

  test('a sequence that never ends is given up', () => {
    const keys = new KeyReader()
    expect(keys.read(Buffer.from('\x1b['))).toEqual([])
    expect(keys.settle()).toEqual([])
    expect(keys.read(Buffer.from(`\x1b[${'1;'.repeat(40)}`))).toEqual([])
    expect(keys.read(Buffer.from('q'))).toEqual(['q'])
  })

  test('of any bytes are the same however they are cut', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 6 })), (chunks) => {
        const cut = new KeyReader()
        const whole = new KeyReader()
        const all = chunks.flatMap((chunk) => cut.read(chunk))
        expect(all).toEqual(whole.read(Buffer.concat(chunks)))
        expect(all.join('').match(/\p{Cc}/u)?.[0] ?? '').toMatch(/^[\x80-\x9f]?$/)
      }),
    )
  })
})
