import { EventEmitter } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { processTerminal } from '../../cli/terminal.ts'

/** A process whose standard output takes nothing. */
function failing(code: string): NodeJS.Process {
  const stdout = Object.assign(new EventEmitter(), {
    write: (_: string, done: (error: Error) => void) => done(Object.assign(new Error(`${code}: why`), { code })),
  })
  const parts = { env: {}, stdin: new PassThrough(), stdout, stderr: new PassThrough() }
  return Object.assign(new EventEmitter(), parts) as unknown as NodeJS.Process
}

test('a full disk under the output is a failure in plain words', async () => {
  await expect(processTerminal(failing('ENOSPC')).print('x')).rejects.toMatchObject({
    name: 'Failure',
    exitCode: 1,
    message: 'the output takes no more: ENOSPC: why',
  })
})

test('a reader that has seen enough is told apart from that', async () => {
  await expect(processTerminal(failing('EPIPE')).print('x')).rejects.toMatchObject({ name: 'Error', code: 'EPIPE' })
})
