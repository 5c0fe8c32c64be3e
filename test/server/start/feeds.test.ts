/** Which sources a node of a cluster has while it follows, and for whom. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Config, loadConfig } from '../../../server/start/config.ts'
import { feedsAlone, tenantsOfFeeds } from '../../../server/start/feeds.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-feeds-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function configured(toml: string): Config {
  const file = join(directory, 'cinnabar.toml')
  writeFileSync(file, toml)
  return loadConfig({ file, env: {} })
}

const FEED = '[[gmetric.feed]]\ntenant = "blue"\nallow = ["10.0.0.0/8"]\n'

describe('the tenants that may be sent something', () => {
  it.each([
    ['', ['default']],
    ['[gmetric]\nlisten = ""\n', []],
    [`[gmetric]\ntenant = "red"\n${FEED}`, ['blue', 'red']],
    [`[gmetric]\nlisten = ""\n${FEED}[smon]\nudp = "127.0.0.1:1"\ntenant = "green"\n`, ['green']],
    ['[gmetric]\nlisten = ""\n[[statsd]]\nudp = "127.0.0.1:1"\ntenant = "green"\n', ['green']],
    ['[gmetric]\nlisten = ""\n[mono]\ntenant = "pink"\n', ['pink']],
  ])('with %j', (toml, tenants) => {
    expect(tenantsOfFeeds(configured(toml))).toEqual(tenants)
  })
})

it('what reaches out, is heard everywhere, or is a file, is left to the node that leads', () => {
  const config = configured(
    '[gmetric]\nmulticast = "239.2.11.71"\nrequest_metadata = "multicast"\n[mono]\n' +
      '[[mono.file]]\npath = "/var/log/counters"\nagent = "a"\n[[scrape]]\nname = "a"\nurl = "http://127.0.0.1:1/metrics"\n' +
      '[prometheus]\nscrape_config = "/etc/prometheus/prometheus.yml"\n',
  )
  const alone = feedsAlone(config)
  expect([config.mono.files.length, config.scrape.length]).toEqual([1, 1])
  expect(alone).toMatchObject({ qmf: [], scrape: [], upstream: [], plugin: [], mono: { files: [] } })
  expect(alone.prometheus).toEqual({ ...config.prometheus, scrapeConfig: undefined })
  expect(alone.gmetric).toMatchObject({ multicast: undefined, requestMetadata: 'off', listen: config.gmetric.listen })
  expect(alone.mono.listeners).toEqual(config.mono.listeners)
})
