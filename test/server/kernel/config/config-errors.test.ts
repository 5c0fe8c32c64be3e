/** What is wrong with a configuration: where it stands, what was expected, what to do. */
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'

function load(text: string, env: NodeJS.ProcessEnv = {}) {
  return loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) })
}

function complaints(text: string, env: NodeJS.ProcessEnv = {}): string[] {
  try {
    load(text, env)
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

describe('an error', () => {
  test.each([
    ['[listen]\nhtpp = ""', 'c.toml:2: unknown key `listen.htpp`: did you mean `http`?'],
    ['[listen]\n\nudp = ""', 'c.toml:3: unknown key `listen.udp`: [listen] has tcp, http, tls, https'],
    ['[Listen]\ntcp = ""', 'c.toml:1: unknown section `Listen`: did you mean `listen`?'],
    ['[[notifyer]]\nname = "a"', 'c.toml:1: unknown section `notifyer`: did you mean `notify`?'],
    ['data_dir = "x"', 'c.toml:1: unknown section `data_dir`: did you mean `producer.data_dir`?'],
    ['listen = 5', 'c.toml:1: `listen`: expected a section [listen], found 5'],
    ['listen = 2026-01-01', 'c.toml:1: `listen`: expected a section [listen], found a date'],
    ['[[listen]]', 'c.toml:1: `listen`: expected a section [listen], found a list'],
    ['[log.level]', 'c.toml:1: `log.level`: expected one of "trace", .*, found a table'],
    ['[log]\nlevel = "Info"', 'c.toml:2: `log.level`: expected one of "trace", .*, found "Info"'],
    ['[host]\ninterval_ms = 9', 'c.toml:2: `host.interval_ms`: expected an integer from 10 to 86400000, found 9'],
    ['[host]\ninterval_ms = 50.0', 'c.toml:2: `host.interval_ms`: expected an integer .*, found the float 50.0'],
    ['[auth]\nscram_iterations = 10_000_001', 'c.toml:2: `auth.scram_iterations`: expected .*, found 10000001'],
    ['[auth]\nplain_on_loopback = "yes"', 'c.toml:2: `auth.plain_on_loopback`: expected true or false, found "yes"'],
    ['[channels]\nmax_age = 7', 'c.toml:2: `channels.max_age`: expected a duration from 1s to 3650d.*, found 7'],
    ['[channels]\nexpire = "1ms"', 'c.toml:2: `channels.expire`: expected a duration .*, found "1ms"'],
    ['[listen]\ntcp = "::1:7650"', 'c.toml:2: `listen.tcp`: expected an address like .*, found "::1:7650"'],
    ['[producer]\nname = ""', 'c.toml:2: `producer.name`: expected a name of 1 to 255 bytes .*, found ""'],
    ['[producer]\ndata_dir = ""', 'c.toml:2: `producer.data_dir`: expected a path, not empty, found ""'],
    ['[gmetric]\ntenant = "a/b"', 'c.toml:2: `gmetric.tenant`: expected a tenant: .*, found "a/b"'],
    ['[gmetric]\nallow = [\n"::/0",\n"::/129"]', 'c.toml:2: `gmetric.allow`: expected a list of .*, found "::/129"'],
    ['[[smon.source]]\nname = "a"', 'c.toml:1: `smon.source`: expected tables .*, found number 1 without `address`'],
    [
      '[smon]\n[[smon.source]]\nname = "a"\naddress = "::1"\n[[smon.source]]\nname = "b"\naddress = "::1:x"',
      'c.toml:2: `smon.source`: expected tables .*, found number 2 with address = "::1:x"',
    ],
    [
      '[[smon.source]]\nname = "a"\naddress = "::1"\nport = 1',
      'c.toml:1: `smon.source`: expected tables .*, found number 1 with the key `port`',
    ],
    [
      '[[smon.source]]\nname = "a"\naddress = "::1"\n[[smon.source]]\nname = "b"\naddress = "0::1"',
      'c.toml:1: `smon.source`: expected tables .*, no address twice, found a list',
    ],
    [
      '[gmetric]\nmulticast = "10.0.0.1"',
      'c.toml:2: `gmetric.multicast`: expected an IPv4 multicast .*, found "10.0.0.1"',
    ],
    [
      '[gmetric]\nmulticast_interface = "lo"',
      'c.toml:2: `gmetric.multicast_interface`: expected an IPv4 .*, found "lo"',
    ],
    ['[gmetric]\nrequest_metadata = "multicast"', 'c.toml:2: `gmetric.request_metadata`.* no group is joined: set .*'],
    ['[gmetric]\nallow = "::/0"', 'c.toml:2: `gmetric.allow`: expected a list of networks .*, found "::/0"'],
    ['[http]\nallowed_origins = ["https://a.b/"]', 'c.toml:2: `http.allowed_origins`: .*, found "https://a.b/"'],
    ['[http]\nallowed_origins = ["https://a.b:443"]', 'c.toml:2: .*no default port, found "https://a.b:443"'],
    ['[http]\nhosts = ["a.b:80"]', 'c.toml:2: `http.hosts`: .*without ports, found "a.b:80"'],
    ['[http]\nhosts = ["127.0.0.1"]', 'c.toml:2: `http.hosts`: .*, found "127.0.0.1"'],
    ['[http]\nallowed_origins = ["*"]', 'c.toml:2: .*, found "\\*"'],
    ['[listen]\n__proto__ = 1', 'c.toml:2: unknown key `listen.__proto__`: .*'],
  ])('for %j says where, what was expected and what was found', (text, expected) => {
    const pattern = expected.replaceAll(/[.?[\]](?!\*)/g, '\\$&')
    expect(complaints(text)).toEqual([expect.stringMatching(new RegExp(`^${pattern}$`))])
  })

  test('does not keep the others from being reported, in the order of the file', () => {
    const text = '[log]\nlevel = 1\n[nothing_like_it]\n[channels]\nmax_bytes = 5000\n[listen]\ntcp = 1\nhtpp = ""'
    const found = complaints(text, { CINNABAR_LIMITS_CONNECTIONS: '0', CINNABAR_NOTHING: '' })
    expect(found.map((line) => line.split(': ').slice(0, 2).join(': '))).toEqual([
      'c.toml:2: `log.level`',
      'c.toml:3: unknown section `nothing_like_it`',
      'c.toml:5: `channels.window_bytes`',
      'c.toml:7: `listen.tcp`',
      'c.toml:8: unknown key `listen.htpp`',
      'CINNABAR_LIMITS_CONNECTIONS: `limits.connections`',
      'CINNABAR_NOTHING: unknown environment variable',
    ])
  })

  test('carries source and line of every problem', () => {
    const problem = { source: 'c.toml', line: 2, message: 'unknown key `log.x`: [log] has level' }
    expect(() => load('[log]\nx = 1')).toThrow(expect.objectContaining({ code: 'BAD_CONFIG', problems: [problem] }))
  })

  test('tells a window larger than its channel where either was written', () => {
    const message = '8388608 is more than `channels.max_bytes` (5000): lower the one or raise the other'
    const at = (place: string) => [`${place}: \`channels.window_bytes\`: ${message}`]
    expect(complaints('[channels]\nmax_bytes = 5000')).toEqual(at('c.toml:2'))
    expect(complaints('[channels]\nmax_bytes = 5000\nwindow_bytes = 8388608')).toEqual(at('c.toml:3'))
    expect(complaints('', { CINNABAR_CHANNELS_MAX_BYTES: '5000' })).toEqual(at('CINNABAR_CHANNELS_MAX_BYTES'))
    expect(load('[channels]\nmax_bytes = 8388608').channels.maxBytes).toBe(8_388_608)
  })
})
