/** A consumer by the client library: its handlers take every value, and it commits by itself. */
import { connect, type Sample } from '../../client/index.ts'
import { ADMIN_PASSWORD } from './durable-consumer.ts'
import type { End, Job } from './processes/end.ts'

/**
 * How the values are taken: by a handler, by one that gives a promise, or by a loop; by a loop that commits itself: `each` value
 * without a wait, in `batches`, or each when it is `stored`, which the disk decides.
 */
export type Taking = 'handler' | 'async' | 'loop' | 'each' | 'batches' | 'stored'

const BATCH = 1_000

export async function openClientConsumer({ port, values, taking = 'handler' }: Job): Promise<End> {
  const isAutomatic = taking === 'handler' || taking === 'async' || taking === 'loop'
  const commit = isAutomatic ? 'automatic' : 'explicit'
  const login = { identity: 'admin', password: ADMIN_PASSWORD }
  const consumer = await connect(`tcp://127.0.0.1:${port}`, login, { commit })
  let taken = 0
  let last = 0
  const take = ({ transaction }: Sample): void => {
    if (transaction <= last) throw new Error(`id ${transaction} came after ${last}: ids have to ascend`)
    last = transaction
    if (++taken === values) void consumer.close()
  }
  const takeLater = async (sample: Sample): Promise<void> => take(sample)
  const committers = {
    each: (sample: Sample) => sample.commit(),
    batches: ({ transaction }: Sample) =>
      taken % BATCH === 0 || taken === values ? consumer.commit(transaction, { through: true }) : undefined,
    stored: ({ transaction }: Sample) => consumer.commit(transaction),
  }
  await consumer.follow('smon.*', {}, taking === 'handler' ? take : taking === 'async' ? takeLater : undefined)
  const closed = new Promise<void>((resolve, reject) => {
    consumer.on('closed', (error) => (error ? reject(error) : resolve()))
  })
  return {
    async run() {
      if (taking === 'handler' || taking === 'async') await consumer.run()
      else if (taking === 'loop') for await (const sample of consumer) take(sample)
      else {
        for await (const sample of consumer) {
          take(sample)
          await committers[taking](sample)
        }
      }
      // It closes when everything is committed and stored.
      await closed
      return { dropped: 0 }
    },
    close: () => void consumer.close(),
  }
}
