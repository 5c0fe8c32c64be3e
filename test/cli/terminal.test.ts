import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ask, askSecret, processTerminal, type Terminal, withProgress } from '../../cli/terminal.ts'
import type { Keyboard } from '../../cli/top/screen.ts'

/** A process whose standard output takes nothing. */
function failing(code: string): NodeJS.Process {
  const stdout = Object.assign(new EventEmitter(), {
    write: (_: string, done: (error: Error) => void) => done(Object.assign(new Error(`${code}: why`), { code })),
  })
  const parts = { argv: [], cwd: () => '/', env: {}, stdin: new PassThrough(), stdout, stderr: new PassThrough() }
  return Object.assign(new EventEmitter(), parts) as unknown as NodeJS.Process
}

test('a full disk under the output is a failure in plain words', async () => {
  await expect(processTerminal(failing('ENOSPC')).print('x')).rejects.toMatchObject({
    name: 'Failure',
    exitCode: 1,
    message: 'cannot write the output: ENOSPC: why',
  })
})

test('a closed pipe is distinguished from that', async () => {
  await expect(processTerminal(failing('EPIPE')).print('x')).rejects.toMatchObject({ name: 'Error', code: 'EPIPE' })
})

function terminal(isTTY = true) {
  const raw: boolean[] = []
  const keyboard: Keyboard = Object.assign(new PassThrough(), {
    isTTY,
    setRawMode: (isRaw: boolean) => raw.push(isRaw),
  })
  const screen: string[] = []
  const ask = (question: string) => askSecret(question, keyboard, { write: (text) => screen.push(text) })
  return { type: (keys: string | Uint8Array) => keyboard.push(keys), raw, screen, ask }
}

test('a line is read without being shown, rubouts and all', async () => {
  const { type, raw, screen, ask } = terminal()
  const asked = ask('Password: ')
  type('pe')
  type('m\x7fnci')
  type(Buffer.from('lä').subarray(0, 2))
  type(Buffer.from('lä').subarray(2))
  type('\b\r')
  expect(await asked).toBe('pencil')
  expect(raw).toEqual([true, false])
  expect(screen.join('')).toBe('Password: \n')
})

test('Ctrl-U begins anew', async () => {
  const { type, ask } = terminal()
  const asked = ask('')
  type('wrong\x15pencil\r')
  expect(await asked).toBe('pencil')
})

test('two lines that come at once answer two questions', async () => {
  const { type, ask } = terminal()
  type('one\rtwo\n')
  expect(await ask('')).toBe('one')
  expect(await ask('')).toBe('two')
})

test('Ctrl-C gives up and leaves the terminal as it was', async () => {
  const { type, raw, ask } = terminal()
  const asked = ask('Password: ')
  type('abc\x03')
  await expect(asked).rejects.toMatchObject({ name: 'Failure', exitCode: 1 })
  expect(raw).toEqual([true, false])
})

test('there is no prompt without a terminal', async () => {
  await expect(terminal(false).ask('Password of alice: ')).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/cannot prompt for "Password of alice:" without a terminal/),
  })
})

describe('progress notes', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  async function waiting(ms: number, isWatched: boolean, why?: () => Promise<string>) {
    const said: string[] = []
    const terminal = { isWatched, note: (text) => void said.push(text) } as Partial<Terminal> as Terminal
    const done = withProgress(terminal, 'reading', new Promise((resolve) => setTimeout(resolve, ms, 'done')), why)
    await vi.advanceTimersByTimeAsync(ms)
    expect(await done).toBe('done')
    // A note that was not cancelled would come now. Timers are not counted: other files in this worker may have some.
    await vi.advanceTimersByTimeAsync(5_000)
    return said
  }

  test('work that takes more than a second is noted once on a terminal', async () => {
    expect(await waiting(5_000, true)).toEqual(['reading …'])
    expect(await waiting(900, true)).toEqual([])
    expect(await waiting(5_000, false)).toEqual([])
  })

  test('the note says what is waited for, if that is known before the end', async () => {
    const why = (ms: number, text: string) => () => new Promise<string>((resolve) => void setTimeout(resolve, ms, text))
    expect(await waiting(5_000, true, why(100, 'no answer yet from a'))).toEqual(['reading; no answer yet from a …'])
    expect(await waiting(5_000, true, why(100, ''))).toEqual(['reading …'])
    expect(await waiting(5_000, true, why(4_500, 'too late'))).toEqual([])
    expect(await waiting(5_000, false, why(100, 'nobody reads'))).toEqual([])
  })
})

test('a question is answered by a line, by the end of the input, or not at all without a terminal', async () => {
  const asked = (isTTY: boolean) => {
    const keyboard: Keyboard & PassThrough = Object.assign(new PassThrough(), { isTTY })
    const shown: string[] = []
    return { keyboard, shown, answer: ask('Sure? ', keyboard, { write: (text) => shown.push(text) }) }
  }
  const typed = asked(true)
  typed.keyboard.write('y')
  typed.keyboard.write('es\n')
  expect([await typed.answer, typed.shown]).toEqual(['yes', ['Sure? ']])
  const ended = asked(true)
  ended.keyboard.end('n')
  expect(await ended.answer).toBe('n')
  const nobody = asked(false)
  expect([await nobody.answer, nobody.shown]).toEqual([undefined, []])
})
