/**
 * A consumer that is called: what it has handled stands in a file, a line for each value with its transaction id, so that
 * effect and progress are one write. The last line says where to go on.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { listen } from '../../../client/index.ts'

const [url = '', file = ''] = process.argv.slice(2)
const lines = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
const [last, , generation = ''] = lines.at(-1)?.split(' ') ?? []
const after = last ? { generation, transaction: Number(last) } : undefined
const secret = process.env['CHANNEL_SECRET'] ?? ''
const refused = (error: Error) => console.error(error.message)
const calls = await listen({ url, identity: 'admin', secret, after: () => after, refused })
console.log(calls.address.port)

for await (const consumer of calls) {
  for await (const sample of consumer) {
    appendFileSync(file, `${sample.transaction} ${sample.number} ${sample.place.generation}\n`)
  }
}
