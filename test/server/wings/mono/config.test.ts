import { describe, expect, test } from 'vitest'
import { ConfigError, defaultConfig, loadConfig } from '../../../../server/start/config.ts'

const load = (text: string, env: NodeJS.ProcessEnv = {}) =>
  loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) }).mono

function complaint(text: string): string {
  try {
    load(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

const usual = { key: 'mono.listen', listen: { host: '127.0.0.1', port: 8888 }, dialect: 'gist', agent: undefined }

describe('[mono]', () => {
  test('that is absent is off; that is there, be it empty, listens at the default address', () => {
    expect(defaultConfig().mono).toMatchObject({ listeners: [], files: [], maxAgents: 1_000, maxCounters: 4_096 })
    expect(load('[smon]').listeners).toEqual([])
    expect(load('[mono]').listeners).toEqual([usual])
    expect(load('', { CINNABAR_MONO_DIALECT: 'mono-2014' }).listeners).toEqual([{ ...usual, dialect: 'mono-2014' }])
  })

  test('has further listeners and files by tables; an empty `listen` leaves only those', () => {
    const tables = `[mono]
listen = ""
[[mono.listener]]
listen = "[::1]:8889"
dialect = "mono-2014"
agent = "shop"
[[mono.listener]]
listen = "127.0.0.1:8890"
[[mono.file]]
path = "/var/tmp/shop"
agent = "file"
follow = false
`
    expect(load(tables)).toMatchObject({
      listeners: [
        { key: 'mono.listener', listen: { host: '::1', port: 8889 }, dialect: 'mono-2014', agent: 'shop' },
        { key: 'mono.listener', listen: { host: '127.0.0.1', port: 8890 }, dialect: 'gist', agent: undefined },
      ],
      files: [{ path: '/var/tmp/shop', agent: 'file', follow: false }],
    })
  })

  test.each([
    ['[mono]\ndialect = "2014"', /`mono\.dialect`: expected one of "gist", "mono-2014"/],
    ['[[mono.listener]]\nlisten = "nowhere"', /`mono\.listener`: expected tables, each with a `listen`/],
    ['[[mono.listener]]\ndialect = "gist"', /`mono\.listener`: expected .* found number 1 without `listen`/],
    [
      '[[mono.file]]\npath = "a"\nagent = "x"\n[[mono.file]]\npath = "b"\nagent = "x"',
      /`mono\.file`: expected .*\(a unique name\)/,
    ],
    ['[mono]\nmax_counters = 40000', /`mono\.max_counters`: expected an integer from 1 to 32767/],
  ])('%j is refused in words', (text, words) => {
    expect(complaint(text)).toMatch(words)
  })
})
