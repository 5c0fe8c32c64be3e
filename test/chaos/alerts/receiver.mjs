/**
 * Takes webhooks: writes each to a journal on the disk, and answers 200 only then, some milliseconds later. So it may be killed between
 * the two, and so may the sender. Its arguments are the journal and the port.
 */
import { fdatasyncSync, openSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'

/** How long it takes for an answer, at most, in ms. */
const MOST_DELAY_MS = 50

const [journal = '', port = '0'] = process.argv.slice(2)
const file = openSync(journal, 'a')
// What the one before had only begun to write is a line of its own.
writeSync(file, '\n')

createServer(async (request, response) => {
  const parts = []
  try {
    for await (const part of request) parts.push(part)
  } catch {
    // The sender was killed.
    return
  }
  const body = Buffer.concat(parts).toString()
  const { 'idempotency-key': key, 'webhook-timestamp': time, 'webhook-signature': signature } = request.headers
  writeSync(file, `${JSON.stringify({ path: request.url, key, time, signature, body })}\n`)
  fdatasyncSync(file)
  setTimeout(() => response.writeHead(200).end('written'), Math.random() * MOST_DELAY_MS)
}).listen(Number(port), '127.0.0.1', () => console.log('listening'))
