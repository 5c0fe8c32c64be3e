import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { askSecret, type Keyboard } from '../../cli/prompt.ts'

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

test('where there is no terminal nobody is asked', async () => {
  await expect(terminal(false).ask('Password of alice: ')).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/Password of alice: cannot be asked here/),
  })
})
