import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { Painter, processScreen } from '../../../cli/top/screen.ts'

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

const listener = (told: string[]) => ({
  keys: (bytes: Uint8Array) => void told.push(`keys ${Buffer.from(bytes)}`),
  resized: () => void told.push('resized'),
  ended: () => void told.push('ended'),
})

describe('the screen of a process', () => {
  test('is none where input or output is no terminal', () => {
    const { keyboard, output, exiting } = terminal()
    expect(processScreen(Object.assign(keyboard, { isTTY: false }), output, exiting)).toBeUndefined()
    const other = terminal()
    other.output.isTTY = false
    expect(processScreen(other.keyboard, other.output, other.exiting)).toBeUndefined()
  })

  test('is taken over, and given back once', async () => {
    const { keyboard, output, exiting, done } = terminal()
    const told: string[] = []
    const screen = processScreen(keyboard, output, exiting)!
    expect(screen.size()).toEqual({ columns: 90, rows: 30 })
    const close = screen.open(listener(told))
    keyboard.write('q')
    output.emit('resize')
    await new Promise((resolve) => setImmediate(resolve))
    expect(told.sort()).toEqual(['keys q', 'resized'])
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
    const told: string[] = []
    const close = processScreen(keyboard, output, exiting)!.open(listener(told))
    keyboard.emit('error', new Error('EIO'))
    close()
    keyboard.emit('error', new Error('EIO'))
    expect(told).toEqual(['ended', 'ended'])
  })

  test('a hang-up ends it, so that the terminal is given back', () => {
    const { keyboard, output, exiting } = terminal()
    const told: string[] = []
    const close = processScreen(keyboard, output, exiting)!.open(listener(told))
    exiting.emit('SIGHUP')
    close()
    expect({ told, left: exiting.listenerCount('SIGHUP') }).toEqual({ told: ['ended'], left: 0 })
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

  test('begins anew where it has to', () => {
    const written: string[] = []
    const painter = new Painter((text) => void written.push(text))
    painter.draw(['one'])
    painter.draw(['one', 'two'])
    painter.forget()
    painter.draw(['one', 'two'])
    expect(written.slice(1)).toEqual(Array(2).fill('\x1b[2J\x1b[1;1H\x1b[Kone\x1b[0m\x1b[2;1H\x1b[Ktwo\x1b[0m'))
  })
})
