import { expect, test } from 'vitest'
import { loadConfig } from '../../../../server/start/config.ts'

const load = (toml: string) =>
  loadConfig({ file: 'c.toml', env: {}, readFile: () => new TextEncoder().encode(toml) }).plugin

test('a plug-in has a module, and defaults for everything else', () => {
  expect(load('[[plugin]]\nmodule = "./a.js"')).toEqual([
    {
      module: './a.js',
      tenant: 'default',
      options: {},
      timeoutMs: 10_000,
      valuesPerSecond: 10_000,
      anywhere: false,
      maxSeries: 10_000,
    },
  ])
})

test('its options are any table; integers are numbers as far as those are exact', () => {
  const [plugin] = load(
    '[[plugin]]\nmodule = "a"\noptions = { n = 4, far = 9007199254740993, list = [1, { x = 2 }], on = true, at = 2026-01-01 }',
  )
  expect(plugin?.options).toEqual({
    n: 4,
    far: 9007199254740993n,
    list: [1, { x: 2 }],
    on: true,
    at: expect.any(Date),
  })
})

test.each([
  ['', /module/],
  ['module = ""', /a path that begins with/],
  ['module = "a"\ntenant = "no tenant"', /or "\*" for all/],
  ['module = "a"\ntimeout = "1h"', /a duration from 10ms to 10m/],
  ['module = "a"\nvalues_per_second = 0', /an integer from 1/],
  ['module = "a"\nmodul = "b"', /modul/],
])('%j is refused', (keys, why) => {
  expect(() => load(`[[plugin]]\n${keys}`)).toThrow(why)
})

test('no message shows the options, which may hold secrets', () => {
  expect(() => load('[[plugin]]\nmodule = "a"\noptions = "hunter2"')).toThrow(/^(?!.*hunter2)/s)
})
