/** A consumer by the client library: its handlers take every value, and it commits by itself. */
import { connect, type Sample } from '../../client/index.ts'
import { ADMIN_PASSWORD } from './durable-consumer.ts'
import type { End, Job } from './processes/end.ts'

/** How the values are taken: by a handler, by one that gives a promise, or by a loop. */
export type Taking = 'handler' | 'async' | 'loop'

export async function openClientConsumer({ port, values, taking = 'handler' }: Job): Promise<End> {
  const consumer = await connect(`tcp://127.0.0.1:${port}`, { identity: 'admin', password: ADMIN_PASSWORD })
  let taken = 0
  let last = 0
  const take = ({ transaction }: Sample): void => {
    if (transaction <= last) throw new Error(`id ${transaction} came after ${last}: ids have to ascend`)
    last = transaction
    if (++taken === values) void consumer.close()
  }
  const takeLater = async (sample: Sample): Promise<void> => take(sample)
  const handlers = { handler: take, async: takeLater, loop: undefined }
  await consumer.follow('smon.*', {}, handlers[taking])
  const closed = new Promise<void>((resolve, reject) => {
    consumer.on('closed', (error) => (error ? reject(error) : resolve()))
  })
  return {
    async run() {
      if (taking === 'loop') for await (const sample of consumer) take(sample)
      else await consumer.run()
      // It closes when everything is committed and stored.
      await closed
      return { dropped: 0 }
    },
    close: () => void consumer.close(),
  }
}
