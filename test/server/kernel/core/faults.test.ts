import { describe, expect, test } from 'vitest'
import { Faults, ForeignCode, guarded } from '../../../../server/kernel/core/faults.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

function rig() {
  const clock = new FakeClock()
  const lines: { level: string; owner: string; msg: string; err: { stack: string }; unlogged?: number }[] = []
  const log = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) })
  return { clock, lines, faults: new Faults(clock, log) }
}

test('a fault is counted, and logged with its owner and its stack', () => {
  const { faults, lines } = rig()
  faults.report('session', new TypeError('broken'), { peer: '192.0.2.1' })
  expect(faults.count).toBe(1)
  expect(lines).toEqual([expect.objectContaining({ level: 'error', owner: 'session', peer: '192.0.2.1' })])
  expect(lines[0]?.err.stack).toMatch(/TypeError: broken\n +at .*faults\.test\.ts/)
})

test('of many faults of one owner ten are logged in a minute, and the others are counted', () => {
  const { clock, faults, lines } = rig()
  for (let n = 0; n < 1000; n++) faults.report('sensor a.*', new Error(String(n)))
  faults.report('sensor b.*', new Error('another'))
  expect([faults.count, lines.length]).toEqual([1001, 11])
  clock.advance(60_000)
  faults.report('sensor a.*', new Error('later'))
  expect(lines.at(-1)).toMatchObject({ owner: 'sensor a.*', unlogged: 990 })
})

test('what a guarded callback throws goes to its owner', () => {
  const seen: unknown[] = []
  const error = new Error('broken')
  const act = guarded(
    (number: number) => {
      if (number === 2) throw error
      seen.push(number)
    },
    (failure) => seen.push(failure),
  )
  for (const number of [1, 2, 3]) act(number)
  expect(seen).toEqual([1, error, 3])
})

describe('foreign code', () => {
  test('takes the exceptions of what it has begun, but not those of the server that it has called', async () => {
    const foreign = new ForeignCode()
    const taken: unknown[] = []
    const seen: boolean[] = []
    const later = (act: () => void) => new Promise<void>((resolve) => setImmediate(() => resolve(act())))
    const [mine, others] = foreign.enter(
      (error) => taken.push(error),
      () => [later(() => seen.push(foreign.take('a'))), foreign.leave(() => later(() => seen.push(foreign.take('b'))))],
    )
    await Promise.all([mine, others])
    expect([seen, taken, foreign.take('c')]).toEqual([[true, false], ['a'], false])
  })

  test('throws to its caller what it throws at once', () => {
    const enter = () =>
      new ForeignCode().enter(
        () => {},
        () => {
          throw new Error('now')
        },
      )
    expect(enter).toThrow('now')
  })
})
