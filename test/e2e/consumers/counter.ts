/** The consumer of the test beside this folder: what it has handled stands in a file, a line for each value. */
import { appendFile } from 'node:fs/promises'
import { connect } from '../../../client/index.ts'

const [url = '', file = ''] = process.argv.slice(2)
const consumer = await connect(url, { identity: 'admin', password: process.env['CINNABAR_PASSWORD'] ?? '' })
await consumer.follow('gmetric.counter')
console.log(consumer.channel)

for await (const sample of consumer) {
  await appendFile(file, `${sample.number}\n`)
}
