/** The section [history]: what its keys may be, and what is wrong with others. */
import { describe, expect, it } from 'vitest'
import { ConfigError, defaultConfig, loadConfig } from '../../../../server/start/config.ts'
import { mostBytes } from '../../../../server/wings/history/config.ts'

const DAY_MS = 86_400_000
const GIBIBYTE = 2 ** 30

function load(text: string) {
  return loadConfig({ file: 'cinnabar.toml', env: {}, readFile: () => Buffer.from(text) }).history
}

function problemsOf(text: string): string {
  try {
    load(text)
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
  return ''
}

describe('the section', () => {
  it('keeps a month by default, in a tenth of the disk', () => {
    const bounds = { keepMs: 30 * DAY_MS, keepRollupsMs: 730 * DAY_MS, maxBytes: { share: 0.1 } }
    expect(defaultConfig().history).toMatchObject({ ...bounds, resolutionMs: 1_000, intervalMs: 10_000 })
  })

  it.each([
    ['of a large disk', '10%', 500 * GIBIBYTE, 50 * GIBIBYTE],
    ['no less than 1 GiB', '10%', 8 * GIBIBYTE, GIBIBYTE],
    ['no more than a quarter of a small disk', '10%', GIBIBYTE, GIBIBYTE / 4],
    ['as much as somebody says', '60%', GIBIBYTE, 0.6 * GIBIBYTE],
  ])('takes a share of the disk: %s', (_, share, size, most) => {
    const section = load(`[history]\nmax_bytes = "${share}"`)
    expect(mostBytes(section, size)).toBeCloseTo(most, -1)
  })

  it('takes the bytes that are named, whatever the disk has', () => {
    expect(mostBytes(load('[history]\nmax_bytes = 1000'), GIBIBYTE)).toBe(1_000)
  })

  it('has durations, a share of the disk or bytes, and names with a family', () => {
    const text =
      '[history]\nkeep = "30d"\nkeep_rollups = "60d"\nmax_bytes = 1000\nresolution = "0"\nmetrics = ["gmetric.*"]'
    expect(load(text)).toMatchObject({
      keepMs: 30 * DAY_MS,
      keepRollupsMs: 60 * DAY_MS,
      maxBytes: 1_000,
      resolutionMs: 0,
      metrics: ['gmetric.*'],
    })
    expect(load('[history]\nmax_bytes = "20%"').maxBytes).toEqual({ share: 0.2 })
  })

  it.each([
    ['keep = 30', 'history.keep'],
    ['keep = "30"', 'history.keep'],
    ['keep = "1s"', 'history.keep'],
    ['metrics = ["*"]', 'history.metrics'],
    ['metrics = ["gmetric"]', 'history.metrics'],
    ['metrics = ["*.load"]', 'history.metrics'],
    ['resolution = "1d"', 'history.resolution'],
    ['bytes = 1', 'bytes'],
  ])('is refused with %s, and the error names the key', (line, key) => {
    const problems = problemsOf(`[history]\n${line}`)
    expect(problems).toContain(key)
    expect(problems).toContain('cinnabar.toml')
  })
})

describe('another server', () => {
  const engine = (more: string) => load(`[history]\nengine = "https://metrics.example/prometheus"\n${more}`).engine

  it('answers if it is named, with the label of tenants', () => {
    expect(load('').engine).toBeUndefined()
    expect(engine('engine_tenant_label = "tenant"\nengine_token_file = "/t"')).toEqual({
      href: 'https://metrics.example/prometheus',
      tenantLabel: 'tenant',
      tokenFile: '/t',
      username: '',
      passwordFile: undefined,
      ca: undefined,
    })
  })

  it.each([
    ['engine = "metrics.example"', /`history\.engine`: expected ""/],
    ['engine = "https://ann:hunter2@metrics.example"', /without a user/],
    ['engine = "https://metrics.example?a=b"', /`history\.engine`/],
    ['engine = "https://metrics.example"', /needs `history.engine_tenant_label`/],
    ['engine = "https://metrics.example"\nengine_tenant_label = "a b"', /the name of a label/],
    ['engine = "https://h"\nengine_tenant_label = "t"\nengine_username = "u"', /goes together with/],
    [
      'engine = "https://h"\nengine_tenant_label = "t"\nengine_username = "u"\nengine_password_file = "p"\nengine_token_file = "t"',
      /one of them is sent/,
    ],
    ['engine = "http://192.0.2.1"\nengine_tenant_label = "t"\nengine_token_file = "t"', /in clear: use https/],
  ])('%s is refused', (lines, problem) => {
    const loading = (): unknown => load(`[history]\n${lines}`)
    expect(loading).toThrow(problem)
    expect(loading).not.toThrow(/hunter2/)
  })
})
