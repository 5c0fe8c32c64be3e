import { expect, test } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'

const text = '[listen]\ntcp = "file:1"\nhttp = "file:2"\n[gmetric]\nallow = ["10.0.0.0/8"]\n'
const load = (env: NodeJS.ProcessEnv) =>
  loadConfig({ file: 'c.toml', env, readFile: () => new TextEncoder().encode(text) })

test('a variable overrides its key and no other', () => {
  const { listen } = load({ CINNABAR_LISTEN_TCP: 'env:3' })
  expect(listen).toEqual({ tcp: { host: 'env', port: 3 }, http: { host: 'file', port: 2 } })
})

test('a variable is read as the type of its key', () => {
  const config = load({
    CINNABAR_LISTEN_HTTP: '',
    CINNABAR_PRODUCER_NAME: '17',
    CINNABAR_LIMITS_CONNECTIONS: '17',
    CINNABAR_AUTH_PLAIN_ON_LOOPBACK: 'false',
    CINNABAR_GMETRIC_SPOOF: 'true',
    CINNABAR_CHANNELS_MAX_AGE: '1h',
    CINNABAR_HTTP_ALLOWED_ORIGINS: 'https://a.example, http://b.example:81',
    CINNABAR_GMETRIC_ALLOW: '',
  })
  expect(config.listen.http).toBeUndefined()
  expect(config.producer.name).toBe('17')
  expect(config.limits.connections).toBe(17)
  expect(config.auth.plainOnLoopback).toBe(false)
  expect(config.gmetric.spoof).toBe(true)
  expect(config.channels.maxAgeMs).toBe(3_600_000)
  expect(config.http.allowedOrigins).toEqual(['https://a.example', 'http://b.example:81'])
  expect(config.gmetric.allow).toEqual([])
})

test.each([
  ['CINNABAR_LIMITS_CONNECTIONS', 'many', 'expected an integer from 1 to 1000000, found "many"'],
  ['CINNABAR_LIMITS_CONNECTIONS', '1.5', 'expected an integer from 1 to 1000000, found "1.5"'],
  ['CINNABAR_LIMITS_CONNECTIONS', '', 'expected an integer from 1 to 1000000, found ""'],
  ['CINNABAR_GMETRIC_SPOOF', 'yes', 'expected true or false, found "yes"'],
  ['CINNABAR_GMETRIC_ALLOW', '::1,x', 'found "x"'],
])('%s=%s is refused by its name', (variable, value, message) => {
  expect(() => load({ [variable]: value })).toThrow(message)
  expect(() => load({ [variable]: value })).toThrow(new RegExp(`^${variable}: `))
})

test('the names that are not keys are left alone, and so is what is not ours', () => {
  const env = {
    CINNABAR_URL: 'a',
    CINNABAR_USER: 'b',
    CINNABAR_PASSWORD: 'c',
    CINNABAR_ADMIN_PASSWORD: 'd',
    PATH: 'e',
    cinnabar_listen_tcp: 'f',
  }
  expect(load(env)).toEqual(load({}))
})

test('any other variable of our prefix is an error that does not repeat its value', () => {
  const load = () => loadConfig({ env: { CINNABAR_ADMIN_PASSWROD: 'hunter2', CINNABAR_LISTEN_TPC: 'x' } })
  expect(load).toThrow(
    'CINNABAR_ADMIN_PASSWROD: unknown environment variable: did you mean `CINNABAR_ADMIN_PASSWORD`?\n' +
      'CINNABAR_LISTEN_TPC: unknown environment variable: did you mean `CINNABAR_LISTEN_TCP`?',
  )
  expect(load).not.toThrow('hunter2')
})
