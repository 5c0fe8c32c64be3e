/** What a connection to a feeder says of itself, and how it fails. The connection itself is used in test/server/start/feeder.test.ts. */
import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { compareLeads, connectToFeeder, feedStreamOf, kindOfFeeds } from '../../../server/cluster/feed-stream.ts'
import { bindTcp } from '../../../server/kernel/core/listen.ts'
import { freePort } from '../../support/free-port.ts'

const stream = { log: 3, epoch: 12, tenant: 'größe 2' }
const unsecured = { certificates: undefined }

describe('the kind of a stream', () => {
  it('says which lead it is of, and the tenant, whatever that is called', () => {
    expect(kindOfFeeds(stream)).toBe('feeds 3 12 größe 2')
    expect(feedStreamOf('feeds 3 12 größe 2')).toEqual(stream)
  })

  it.each(['tcp', 'feeds', 'feeds 1 2 ', 'feeds x 2 default', 'feeds 1 -2 default', 'feeds 1 2'])(
    'is none in %j',
    (kind) => {
      expect(feedStreamOf(kind)).toBeUndefined()
    },
  )
})

it('a lead is newer by its log, and then by its epoch', () => {
  const leads = [
    { log: 2, epoch: 1 },
    { log: 1, epoch: 9 },
    { log: 1, epoch: 10 },
  ]
  expect(leads.sort(compareLeads).map(({ log, epoch }) => `${log}.${epoch}`)).toEqual(['1.9', '1.10', '2.1'])
})

describe('connecting', () => {
  const server = createServer()
  afterEach(() => new Promise((resolve) => server.close(resolve)))

  it('fails where nobody listens, and where it is given up', async () => {
    const nowhere = { name: 'n2', address: { host: '127.0.0.1', port: await freePort() } }
    const { signal } = new AbortController()
    await expect(connectToFeeder(nowhere, stream, unsecured, signal)).rejects.toThrow('ECONNREFUSED')
    const there = { name: 'n2', address: await bindTcp(server, { host: '127.0.0.1', port: 0 }, 'test') }
    const given = connectToFeeder(there, stream, unsecured, AbortSignal.abort())
    await expect(given).rejects.toThrow('node n2 cannot be reached')
  })
})
