/** The section [history]: what its keys may be, and what is wrong with others. */
import { describe, expect, it } from 'vitest'
import { ConfigError, defaultConfig, loadConfig } from '../../../../server/start/config.ts'

const DAY_MS = 86_400_000

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
  it('switches nothing on by default', () => {
    expect(defaultConfig().history).toMatchObject({ keepMs: 0, resolutionMs: 1_000, intervalMs: 10_000 })
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
