import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { KeyReader, Painter, processScreen } from '../../../cli/top/screen.ts'

const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l'
const LEAVE = '\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l'

function terminal() {
  const done: string[] = []
  const keyboard = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode: (isRaw: boolean) => void done.push(`raw ${isRaw}`),
  })
  const output = Object.assign(new EventEmitter(), {
    isTTY: true,
    columns: 90,
    rows: 30,
    write: (text: string) => void done.push(text),
  })
  return { keyboard, output, exiting: new EventEmitter(), done }
}

const listener = (reported: string[]) => ({
  keys: (bytes: Uint8Array) => void reported.push(`keys ${Buffer.from(bytes)}`),
  resized: () => void reported.push('resized'),
  ended: () => void reported.push('ended'),
})

describe('the screen of a process', () => {
  test('is undefined if input or output is not a terminal', () => {
    const { keyboard, output, exiting } = terminal()
    expect(processScreen(Object.assign(keyboard, { isTTY: false }), output, exiting)).toBeUndefined()
    const other = terminal()
    other.output.isTTY = false
    expect(processScreen(other.keyboard, other.output, other.exiting)).toBeUndefined()
  })

  test('is taken over, and given back once', async () => {
    const { keyboard, output, exiting, done } = terminal()
    const reported: string[] = []
    const screen = processScreen(keyboard, output, exiting)!
    expect(screen.size()).toEqual({ columns: 90, rows: 30 })
    const close = screen.open(listener(reported))
    keyboard.write('q')
    output.emit('resize')
    await new Promise((resolve) => setImmediate(resolve))
    expect(reported.sort()).toEqual(['keys q', 'resized'])
    close()
    close()
    expect(done).toEqual([ENTER, 'raw true', 'raw false', LEAVE])
    expect(exiting.listenerCount('exit') + output.listenerCount('resize') + keyboard.listenerCount('data')).toBe(0)
    expect(keyboard.isPaused()).toBe(true)
  })

  test('is given back when the process exits, whatever the reason', () => {
    const { keyboard, output, exiting, done } = terminal()
    processScreen(keyboard, output, exiting)!.open(listener([]))
    exiting.emit('exit')
    expect(done.slice(2)).toEqual(['raw false', LEAVE])
  })

  test('tells when the terminal is gone, also afterwards', () => {
    const { keyboard, output, exiting } = terminal()
    const reported: string[] = []
    const close = processScreen(keyboard, output, exiting)!.open(listener(reported))
    keyboard.emit('error', new Error('EIO'))
    close()
    keyboard.emit('error', new Error('EIO'))
    expect(reported).toEqual(['ended', 'ended'])
  })

  test('a hang-up ends it, so that the terminal is given back', () => {
    const { keyboard, output, exiting } = terminal()
    const reported: string[] = []
    const close = processScreen(keyboard, output, exiting)!.open(listener(reported))
    exiting.emit('SIGHUP')
    close()
    expect({ reported, left: exiting.listenerCount('SIGHUP') }).toEqual({ reported: ['ended'], left: 0 })
  })
})

describe('the painter', () => {
  test('writes the lines that have changed, each at its place', () => {
    const written: string[] = []
    const painter = new Painter((text) => void written.push(text))
    painter.draw(['one', 'two'])
    painter.draw(['one', 'TWO'])
    painter.draw(['one', 'TWO'])
    expect(written).toEqual(['\x1b[2J\x1b[1;1H\x1b[Kone\x1b[0m\x1b[2;1H\x1b[Ktwo\x1b[0m', '\x1b[2;1H\x1b[KTWO\x1b[0m'])
  })

  test('redraws everything when needed', () => {
    const written: string[] = []
    const painter = new Painter((text) => void written.push(text))
    painter.draw(['one'])
    painter.draw(['one', 'two'])
    painter.forget()
    painter.draw(['one', 'two'])
    expect(written.slice(1)).toEqual(Array(2).fill('\x1b[2J\x1b[1;1H\x1b[Kone\x1b[0m\x1b[2;1H\x1b[Ktwo\x1b[0m'))
  })
})

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
