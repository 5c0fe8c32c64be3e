/** Processes that ask at the same time get different ports, and so does one that asks again before it has used any. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { compiled } from './compiled.ts'
import { freePort } from './free-port.ts'

const PORTS = 200

test('ports of this process and of another one are different, and stay so', async () => {
  const program = `
    import { freePort } from ${JSON.stringify(compiled('test/support/free-port.ts'))}
    console.log(JSON.stringify(await Promise.all(Array.from({ length: ${PORTS} }, () => freePort()))))
    process.stdin.resume()`
  const other = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [own, printed] = await Promise.all([
    Promise.all(Array.from({ length: PORTS }, () => freePort())),
    once(other.stdout, 'data').then(([text]) => JSON.parse(String(text)) as number[]),
  ])
  const late = await Promise.all(Array.from({ length: PORTS }, () => freePort()))
  expect(new Set([...own, ...printed, ...late]).size).toBe(3 * PORTS)
  other.stdin.end()
  await once(other, 'exit')
})
