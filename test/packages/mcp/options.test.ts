/** The command line of `cinnabar-mcp`, moments, and the words for why values wait. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { explainWait, toLedger } from '../../../cli/ledger.ts'
import { BasicType, type Field } from '../../../client/index.ts'
import { type McpOptions, readOptions, USAGE } from '../../../packages/mcp/options.ts'
import { millisecondsOf, momentOf } from '../../../packages/mcp/times.ts'
import { reasonToWait } from '../../../packages/mcp/tools/channels.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-mcp-'))
const file = join(directory, 'agent.token')
writeFileSync(file, 'cnb_first\nanother line\n')
afterAll(() => rmSync(directory, { recursive: true }))

const read = (argv: readonly string[], env: NodeJS.ProcessEnv = {}) => readOptions(argv, env) as McpOptions

describe('the command line', () => {
  it('takes the token from the first line of a file, which is read again each time, or from the environment', () => {
    const { token, urls, listen } = read(['--token-file', file])
    expect({ urls, listen, token: token?.() }).toEqual({
      ...{ urls: ['tcp://127.0.0.1:7650'], listen: undefined, token: 'cnb_first' },
    })
    writeFileSync(file, 'cnb_second\n')
    expect(token?.()).toBe('cnb_second')
    expect(read([], { CINNABAR_TOKEN: 'cnb_env', CINNABAR_URL: 'a:1, tls://b:2' })).toMatchObject({
      urls: ['tcp://a:1', 'tls://b:2'],
    })
  })

  it('knows where to listen', () => {
    const at = (listen: string) => read(['--listen', listen]).listen
    expect(at('7660')).toMatchObject({ host: '127.0.0.1', port: 7660, tls: undefined })
    expect(at('localhost:0')).toMatchObject({ host: 'localhost', port: 0 })
    expect(at('[::1]:7660')).toMatchObject({ host: '::1', port: 7660 })
    const tls = ['--tls-cert', 'c', '--tls-key', 'k', '--allow-host', 'a', '--allow-host', 'b']
    expect(read(['--listen', '0.0.0.0:1', ...tls]).listen).toMatchObject({
      ...{ host: '0.0.0.0', tls: { cert: 'c', key: 'k' }, names: ['a', 'b'] },
    })
  })

  it.each([
    [[], /a token is needed: give --token-file FILE or CINNABAR_TOKEN/],
    [['--token-file', '/nowhere/token'], /cannot read the token from \/nowhere\/token/],
    [['--token', 'cnb_x'], /'--token'/],
    [['--listen', '192.168.0.1:7660'], /others could read the tokens that clients send to 192.168.0.1/],
    [['--listen', '127.0.0.1.evil.example:7660'], /others could read the tokens/],
    [['--listen', 'nonsense'], /--listen takes HOST:PORT/],
    [['--listen', '1', '--tls-cert', 'c'], /a certificate needs its private key/],
    [['--listen', '1', '--max-sessions', '0'], /--max-sessions takes a whole number from 1 to 10000/],
    [['--token-file', file, '--allow-host', 'x'], /are for --listen/],
    [['word'], /word/],
  ])('refuses %j', (argv, message) => {
    expect(() => readOptions(argv, {})).toThrow(message)
  })

  it('has a help that names every option', () => {
    expect(readOptions(['--help'], {})).toBe('help')
    expect(readOptions(['--version'], {})).toBe('version')
    const options = [
      'url',
      'token-file',
      'ca',
      'listen',
      'tls-cert',
      'tls-key',
      'allow-host',
      'calls-per-minute',
      'max-answer',
    ]
    for (const option of [...options, 'max-sessions']) expect(USAGE).toContain(`--${option} `)
  })
})

describe('a moment', () => {
  const now = Date.parse('2026-11-22T08:00:00Z')

  it.each([
    ['15m', '2026-11-22T07:45:00.000Z'],
    ['7d', '2026-11-15T08:00:00.000Z'],
    ['2026-11-01', '2026-11-01T00:00:00.000Z'],
    ['2026-11-22T08:00:00+01:00', '2026-11-22T07:00:00.000Z'],
  ])('%s is %s', (text, time) => {
    expect(momentOf(text, now).toISOString()).toBe(time)
  })

  it.each(['yesterday', '5', '0m', '2026-13-01', '-1h', ''])('"%s" is none', (text) => {
    expect(() => momentOf(text, now)).toThrow(/is no (time|duration)/)
  })

  it('a step is a duration', () => {
    expect(millisecondsOf('90s')).toBe(90_000)
    expect(() => millisecondsOf('1w')).toThrow(/is no duration/)
  })
})

describe('why values wait', () => {
  const NOW = 1_700_000_000_000_000
  const states = ['connected', 'waiting', 'window-full', 'orphan']
  const modes = [[], ['subscribe'], ['buffer'], ['buffer', 'subscribe']]
  const cases = states.flatMap((state) =>
    modes.flatMap((bound) =>
      [0, 5].flatMap((inFlight) =>
        [0, 5].flatMap((queued) =>
          [0, 500_000, 5_000_000].flatMap((lag) =>
            ['', 'tcp://n1:1'].flatMap((url) =>
              [true, false].map((durable) => ({ state, bound, inFlight, queued, lag, url, durable })),
            ),
          ),
        ),
      ),
    ),
  )

  it('is said in the words of `cinnabar channels`', () => {
    const words = new Set<string>()
    for (const { state, bound, inFlight, queued, lag, url, durable } of cases) {
      const bindings = bound.map((mode) => ({ name: 'a', mode, metric: 1 }))
      const record = { state, url, durable, in_flight: inFlight, queued }
      const fields: Field[] = [
        { name: 'state', type: BasicType.STRING, value: state },
        { name: 'url', type: BasicType.STRING, value: url },
        { name: 'durable', type: BasicType.BOOLEAN, value: durable },
        { name: 'in_flight', type: BasicType.UINT64, value: BigInt(inFlight) },
        { name: 'queued', type: BasicType.UINT64, value: BigInt(queued) },
        { name: 'oldest', type: BasicType.UINT64, value: BigInt(lag === 0 ? 0 : NOW - lag) },
      ]
      const ledger = { ...toLedger(fields), bindings }
      const said = reasonToWait(record, bindings, lag / 1_000)
      expect(said, JSON.stringify(record)).toBe(explainWait(ledger, NOW))
      words.add(said)
    }
    expect(words.size).toBe(10)
  })
})
