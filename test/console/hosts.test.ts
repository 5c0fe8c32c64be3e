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

describe('the machine that the server runs on', () => {
  it.each([
    ['root', ['mon1', 'web1']],
    ['acme/bob', ['web1']],
  ])('for %s: %j', async (identity, names) => expect(await namesFor(identity)).toEqual(names))
})
