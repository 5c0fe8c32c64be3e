import { expect, test } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'

const load = (text: string) => loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(text) })

test.each([
  ['keys = "jwks.json"\naudience = "cinnabar"', /^c\.toml:2: `jwt\.issuer`: is missing/],
  ['keys = "jwks.json"\nissuer = "https://login.example"', /^c\.toml:2: `jwt\.audience`: is missing/],
  ['identity = ""', /^c\.toml:2: `jwt\.identity`/],
])('[jwt] with %j alone would let in whoever a stranger vouches for', (keys, problem) => {
  expect(() => load(`[jwt]\n${keys}`)).toThrow(problem)
})

test('[jwt] without keys is off, whatever else it says', () => {
  expect(load('[jwt]\nissuer = "https://login.example"').jwt.keys).toBeUndefined()
})
