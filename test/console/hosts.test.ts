import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Consumer } from '../../client/browser.ts'
import { Hosts } from '../../console/hosts.ts'

const SERIES = [
  { name: 'gmetric.load_one', host: 'web1', time: 1 },
  { name: 'host.load.one', host: 'mon1', time: 0 },
  { name: 'host.mem.free', host: 'mon1', time: 0 },
]

/** A server without others below it, which has these series. */
const consumer = {
  capabilities: { producer: { id: '01', name: 'main' }, below: [] },
  query: (metric: string) => Promise.resolve(metric === 'producer.series' ? { plain: SERIES } : { elements: [] }),
} as unknown as Consumer

beforeEach(() => vi.stubGlobal('window', { setTimeout: () => 0 }))
afterEach(() => vi.unstubAllGlobals())

async function namesFor(identity: string): Promise<string[] | undefined> {
  const hosts = new Hosts(consumer, identity)
  hosts.begin()
  await new Promise((resolve) => setImmediate(resolve))
  hosts.end()
  return hosts.state.value.hosts?.map(({ name }) => name)
}

it('asks other servers for nothing that has targets scraped', async () => {
  const asked: string[] = []
  const above = {
    capabilities: { producer: { id: '01', name: 'main' }, below: [{ id: '02', name: 'rack1' }] },
    query: (metric: string) => {
      asked.push(metric)
      return Promise.resolve(metric === 'producer.series' ? { plain: SERIES } : { elements: [] })
    },
  } as unknown as Consumer
  const hosts = new Hosts(above, 'root')
  hosts.begin()
  await new Promise((resolve) => setImmediate(resolve))
  hosts.end()
  expect(asked).toContain('gmetric.load_one*')
  // Names of what is scraped have one dot only, after `prometheus`.
  expect(asked.filter((pattern) => !/^(gmetric|host|producer)\.|^\*\.host\.up$/.test(pattern))).toEqual([])
})

it('shows no host before it is known whether that is silent', async () => {
  let answer: (up: object) => void = () => {}
  const up = new Promise((resolve) => {
    answer = resolve
  })
  const slow = {
    ...consumer,
    query: (metric: string) => (metric === 'producer.series' ? Promise.resolve({ plain: SERIES }) : up),
  } as unknown as Consumer
  const hosts = new Hosts(slow, 'root')
  hosts.begin()
  await new Promise((resolve) => setImmediate(resolve))
  expect(hosts.state.value.hosts).toBeUndefined()
  answer({ elements: [{ plain: false, labels: { host: 'web1' }, metric: 'gmetric.host.up', time: 1 }] })
  await new Promise((resolve) => setImmediate(resolve))
  hosts.end()
  expect(hosts.state.value.hosts?.map(({ name, isSilent }) => [name, isSilent])).toEqual([
    ['mon1', false],
    ['web1', true],
  ])
})

describe('the machine that the server runs on', () => {
  it.each([
    ['root', ['mon1', 'web1']],
    ['acme/bob', ['web1']],
  ])('for %s: %j', async (identity, names) => expect(await namesFor(identity)).toEqual(names))
})
