import { expect, test } from 'vitest'
import { printable } from '../../../../cli/format.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'

function logger(level = 'info') {
  const lines: Record<string, unknown>[] = []
  return { log: createLogger(level, { write: (line) => void lines.push(JSON.parse(line)) }), lines }
}

test('a line is one JSON object with message, level and fields', () => {
  const { log, lines } = logger()
  log.info({ channel: 7 }, 'opened')
  expect(lines).toEqual([{ level: 'info', msg: 'opened', channel: 7, time: expect.stringMatching(/^\d{4}-.*Z$/) }])
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

test('journald gets the priority of each line', () => {
  const lines: string[] = []
  const log = createLogger('trace', { write: (line) => void lines.push(line) }, 'journal')
  for (const level of ['debug', 'info', 'warn', 'error', 'fatal'] as const) log[level]('x')
  expect(lines.map((line) => line.slice(0, 3))).toEqual(['<7>', '<6>', '<4>', '<3>', '<2>'])
  expect(JSON.parse(lines[0]!.slice(3))).toMatchObject({ level: 'debug', msg: 'x' })
})

test('on a terminal a line is readable, and nobody can steer the terminal by it', () => {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) }, 'terminal')
  log.warn({ peer: '127.0.0.1:7', user: 'a\x1b[2J b', token: 'hunter2', count: 3 }, 'refused\x9b')
  log.error({ err: new TypeError('bang') }, 'while testing')
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d WARN {2}refused\\u009b peer=127\.0\.0\.1:7 user="a\\u001b\[2J b" token="\[masked\]" count=3\n$/,
  )
  expect(lines[1]).toMatch(/^\S+ ERROR while testing\n {4}TypeError: bang\n {4}at .*log\.test\.ts.*\n/)
})

test('on a terminal the log escapes whatever the command line escapes', () => {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) }, 'terminal')
  const all = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code)).join('')
  log.warn({ user: all.toWellFormed() }, all.toWellFormed())
  const line = lines.join('').slice(0, -1)
  expect(line.includes('\\u200b\u200c\u200d\\u200e')).toBe(true)
  // One by one: the whole of it would be too long to be shown.
  expect([...line].filter((character) => printable(character) !== character)).toEqual([])
})

test.each([
  [null, 'null'],
  [0, '0'],
  ['text', 'text'],
  [{ message: 404 }, '{"message":404}'],
  [{ stack: { deep: 1 }, message: 'why' }, 'why'],
])('on a terminal %o, which was thrown instead of an error, is shown', (err, shown) => {
  const lines: string[] = []
  createLogger('info', { write: (line) => void lines.push(line) }, 'terminal').error({ err }, 'while testing')
  expect(lines[0]).toMatch(/^\S+ ERROR while testing\n/)
  expect(lines[0]?.split('\n').slice(1)).toEqual([`    ${shown}`, ''])
})
