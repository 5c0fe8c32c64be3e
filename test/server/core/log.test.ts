import { expect, test } from 'vitest'
import { createLogger } from '../../../server/core/log.ts'

function logger(level = 'info') {
  const lines: Record<string, unknown>[] = []
  return { log: createLogger(level, { write: (line) => void lines.push(JSON.parse(line)) }), lines }
}

test('a line is one JSON object with message, level and fields', () => {
  const { log, lines } = logger()
  log.info({ channel: 7 }, 'opened')
  expect(lines).toEqual([expect.objectContaining({ level: 30, msg: 'opened', channel: 7, time: expect.any(Number) })])
})

test('what is below the level is not written', () => {
  const { log, lines } = logger('warn')
  log.info('quiet')
  log.warn('loud')
  expect(lines.map(({ msg }) => msg)).toEqual(['loud'])
})

test.each(['password', 'secret', 'token', 'data', 'Password'])('%s is masked wherever it stands', (key) => {
  const { log, lines } = logger()
  log.info({ [key]: 'hunter2', a: { [key]: ['hunter2'], b: [{ c: { d: { [key]: { e: 'hunter2' } } } }] } }, 'x')
  log.child({ [key]: 'hunter2', deep: { [key]: 'hunter2' } }).info('y')
  log.error({ err: Object.assign(new Error('z'), { [key]: 'hunter2' }) })
  log.error(Object.assign(new Error('z'), { detail: { [key]: 'hunter2' } }))
  expect(lines).toHaveLength(4)
  expect(JSON.stringify(lines)).not.toContain('hunter2')
  expect(JSON.stringify(lines)).toContain(`"${key}":"[masked]"`)
})

test('a key that only resembles one of these, and a word in a message, stay', () => {
  const { log, lines } = logger()
  log.info({ data_dir: 'x', tokens: 3, secret: 1 }, 'no "data": here')
  expect(lines[0]).toMatchObject({ data_dir: 'x', tokens: 3, secret: '[masked]', msg: 'no "data": here' })
})

test('an error keeps its message, code and stack', () => {
  const { log, lines } = logger()
  log.error(Object.assign(new TypeError('boom'), { code: 'E_BOOM' }))
  log.error({ err: new Error('bang') }, 'while testing')
  expect(lines[0]).toMatchObject({ msg: 'boom', err: { type: 'TypeError', message: 'boom', code: 'E_BOOM' } })
  expect(lines[0]).toHaveProperty('err.stack', expect.stringContaining('log.test.ts'))
  expect(lines[1]).toMatchObject({ msg: 'while testing', err: { message: 'bang' } })
})

test('neither a Buffer nor a ring stops the log', () => {
  const { log, lines } = logger()
  const ring: Record<string, unknown> = {}
  ring['self'] = ring
  log.info({ frame: Buffer.from('hunter2'), at: new Date(0), ring }, 'x')
  expect(lines[0]).toMatchObject({ frame: { type: 'Buffer', data: '[masked]' }, at: '1970-01-01T00:00:00.000Z' })
  expect(lines[0]).toHaveProperty('ring')
})
