/** What is in force after a configuration was read again, and what is only named. */
import { expect, test } from 'vitest'
import { changeOf } from '../../../../server/kernel/config/change.ts'
import { load } from '../../../../server/kernel/config/load.ts'
import { schema } from '../../../../server/start/config.ts'

const read = (toml: string, env: NodeJS.ProcessEnv = {}) =>
  load(schema, { file: 'c.toml', env, readFile: () => new TextEncoder().encode(toml) })
const change = (from: string, to: string, env: NodeJS.ProcessEnv = {}) =>
  changeOf(schema, read(from, env), read(to, env))

test('a live key is in force, another one only named', () => {
  const { changed, needsRestart, inForce } = change(
    '[quota]\nchannels = 5\n',
    '[quota]\nchannels = 6\n[limits]\nconnections = 7\nchannels_per_identity = 8\n[listen]\nhttp = ""\n',
  )
  expect(changed).toEqual(['limits.channels_per_identity', 'quota.channels'])
  expect(needsRestart).toEqual(['listen.http', 'limits.connections'])
  expect(inForce.config.quota.channels).toBe(6)
  expect(inForce.config.limits).toMatchObject({ connections: 10_000, channelsPerIdentity: 8 })
  expect(inForce.config.listen.http).toEqual({ host: '127.0.0.1', port: 7651 })
})

test('what waits for a restart is named again until the file has the old value again', () => {
  const old = read('')
  const first = changeOf(schema, old, read('[limits]\nconnections = 7\n')).inForce
  expect(changeOf(schema, first, read('[limits]\nconnections = 7\n')).needsRestart).toEqual(['limits.connections'])
  expect(changeOf(schema, first, read(''))).toMatchObject({ changed: [], needsRestart: [] })
})

test('durations, shares and lists are compared by what they mean', () => {
  const { changed, needsRestart } = change(
    '[audit]\nkeep = "48h"\n[quota]\nqueued_bytes = "50%"\n[dial]\nallow = ["tcp://10.0.0.1:1"]\n',
    '[audit]\nkeep = "2d"\n[dial]\nallow = [ "tcp://10.0.0.1:1" ] # the same\n',
  )
  expect({ changed, needsRestart }).toEqual({ changed: [], needsRestart: [] })
})

test('a list of tables is in force as a whole', () => {
  const table = (name: string): string => `[[exec]]\nname = "exec.${name}"\nargv = ["true"]\n`
  const { changed, inForce } = change(table('a'), table('a') + table('b'))
  expect(changed).toEqual(['exec'])
  expect(inForce.config.exec.map(({ name }) => name)).toEqual(['exec.a', 'exec.b'])
})

test('a section that only has to be there is named, and is not in force', () => {
  const { changed, needsRestart, inForce } = change('', '[mono]\nallow = ["10.0.0.0/8"]\n')
  expect({ changed, needsRestart }).toEqual({ changed: ['mono.allow'], needsRestart: ['mono'] })
  expect(inForce.config.mono.listeners).toEqual([])
})

test('a variable of the environment still stands above the file', () => {
  const { changed, inForce } = change('', '[log]\nlevel = "error"\n', { CINNABAR_LOG_LEVEL: 'debug' })
  expect([changed, inForce.config.log.level]).toEqual([[], 'debug'])
})
