/** A feed whose server is slow is promised something at last. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { PromisedFeed, SERIES } from './promised-feed.ts'

const PATIENCE_MS = 10
/** Far more than the first requests wait: with that patience alone none would ever be answered. */
const SLOW_MS = 30 * PATIENCE_MS

test('a server that never answers within the first patience is waited for longer', async () => {
  const server = createServer((request, response) => {
    request.resume()
    const answering = setTimeout(() => response.writeHead(204).end(), SLOW_MS)
    response.on('close', () => clearTimeout(answering))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const feed = new PromisedFeed({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  try {
    const isPromised = () => expect(feed.promised.size).toBeGreaterThanOrEqual(SERIES)
    const promised = eventually(isPromised).finally(() => {
      feed.isOver = true
    })
    await Promise.all([feed.run(0, PATIENCE_MS), promised])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
