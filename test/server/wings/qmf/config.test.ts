/** The tables `[[qmf]]`: what they read to, and what is said of those that are not right, never with a password. */
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../../../server/start/config.ts'
import { parseBrokerUrl } from '../../../../server/wings/qmf/config.ts'

const load = (text: string) =>
  loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) }).qmf

function complaint(text: string): string {
  try {
    load(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

const local = { host: '127.0.0.1', port: 5672, isTls: false, user: undefined, password: undefined, virtualHost: '' }

describe('a table', () => {
  test('needs a name and a URL; everything else has a default', () => {
    expect(load('[[qmf]]\nname = "b1"\nurl = "amqp://127.0.0.1"')).toEqual([
      {
        ...local,
        name: 'b1',
        passwordFile: undefined,
        ca: undefined,
        cert: undefined,
        key: undefined,
        version: 'auto',
        intervalMs: 5_000,
        tenant: 'default',
        maxObjects: 20_000,
        isAgent: false,
      },
    ])
  })

  test('with everything', () => {
    const text = `[[qmf]]
name = "b1"
url = "amqps://mon%40x@qpid.example/%2Fprod"
password_file = "/run/secret"
ca = "/ca.pem"
cert = "/me.pem"
key = "/run/key"
interval_ms = 1000
tenant = "t1"
max_objects = 7
agent = true
[[qmf]]
name = "b2"
url = "amqp://guest:a%3Ab@[::1]:5673"`
    expect(load(text)).toMatchObject([
      {
        host: 'qpid.example',
        port: 5671,
        isTls: true,
        user: 'mon@x',
        password: undefined,
        passwordFile: '/run/secret',
        virtualHost: '/prod',
        ca: '/ca.pem',
        cert: '/me.pem',
        key: '/run/key',
        intervalMs: 1_000,
        tenant: 't1',
        maxObjects: 7,
        isAgent: true,
      },
      { host: '::1', port: 5673, isTls: false, user: 'guest', password: 'a:b', virtualHost: '' },
    ])
  })

  const b1 = '[[qmf]]\nname = "b1"\n'
  test.each([
    [
      `${b1}url = "amqp://u:hunter2@127.0.0.1:0"`,
      /^c\.toml:3: `\[\[qmf]]` b1: `url`: expected a URL .* \(not shown\)$/,
    ],
    [`${b1}url = "http://u:hunter2@h"`, /`url`: expected a URL/],
    [`${b1}url = "amqp://u:hunter2@h"\npassword_file = "p"`, /b1: the password is given twice/],
    [`${b1}url = "amqp://u@h"`, /b1: the user needs a password, or a `password_file`/],
    [`${b1}url = "amqp://h"\npassword_file = "p"`, /b1: `password_file` is for a `url` with a user/],
    [`${b1}url = "amqp://h"\nca = "ca.pem"`, /b1: `ca` is for an `amqps:\/\/` url/],
    [`${b1}url = "amqp://h"\ncert = "c"\nkey = "k"`, /b1: `cert` is for an `amqps:\/\/` url/],
    [`${b1}url = "amqps://h"\nkey = "k"`, /b1: `cert` and `key` are needed together/],
    [b1, /b1: it needs `url`: a URL like/],
    ['[[qmf]]\nurl = "amqp://u:hunter2@h"', /`\[\[qmf]]` 1: it needs `name`/],
    [`${b1}url = "amqp://h"\ninterval = 5`, /b1: unknown key `interval`: did you mean `interval_ms`/],
    [`${b1}url = "amqp://h"\ninterval_ms = 5`, /b1: `interval_ms`: expected an integer from 1000 to 86400000, found 5/],
    [`${b1}url = "amqp://h"\n${b1}url = "amqp://i"`, /`qmf`: two of them have the same `name`/],
    ['qmf = "amqp://u:hunter2@h"', /^c\.toml:1: `qmf`: expected tables \[\[qmf]], found another text \(not shown\)$/],
    ['qmf = ["amqp://u:hunter2@h"]', /`\[\[qmf]]` 1: expected a table, found another text \(not shown\)$/],
    ['[qmf]\nname = "b1"', /`qmf`: expected tables \[\[qmf]], found a table/],
  ])('%j is refused in words', (text, words) => {
    const said = complaint(text)
    expect(said).toMatch(words)
    expect(said).not.toContain('hunter2')
  })
})

describe('a URL', () => {
  test.each([
    ['amqp://127.0.0.1:5672', local],
    ['amqp://anonymous@127.0.0.1', local],
    ['amqp://anonymous:x@127.0.0.1/', local],
    ['amqp://@127.0.0.1', local],
    ['AMQP://127.0.0.1', local],
    ['amqp://u:@127.0.0.1', { ...local, user: 'u', password: '' }],
    ['amqp://u:p@127.0.0.1/a/b', { ...local, user: 'u', password: 'p', virtualHost: 'a/b' }],
  ])('%j is read', (text, expected) => {
    expect(parseBrokerUrl(text)).toEqual(expected)
  })

  test.each([
    '',
    'amqp://',
    'amqp:127.0.0.1',
    'amqp://h:99999',
    'amqp://h:0',
    'amqp://h?x',
    'amqp://h#x',
    'amqp://h/a?x',
    'amqp://:secret@h',
    'amqp://u:%zz@h',
    'amqp://u:%00@h',
    'amqp://a b@h',
    'amqp://u:p@h@i',
    'amqp://127.0.0.300',
  ])('%j is none', (text) => {
    expect(parseBrokerUrl(text)).toBeUndefined()
  })
})
