/** A store that fails while the parts of the server are still being joined. */
import { expect, test } from 'vitest'
import { StorageError } from '../../../storage/store.ts'
import { TestProducer } from '../../support/producer.ts'

test('a store that fails before all parts are there fails the start, and nothing else does', async () => {
  const store = (await TestProducer.firstStart()).crash()
  const open = store.open.bind(store)
  store.open = async (events) => {
    const recovered = await open(events)
    // They are read while the parts are made, long before the last.
    const fences = (): typeof recovered.fences => {
      events.onFailed(new StorageError('IO', 'the disk is gone'))
      return recovered.fences
    }
    return Object.defineProperty({ ...recovered }, 'fences', { get: fences })
  }
  await expect(TestProducer.start({ store })).rejects.toThrow('the disk is gone')
})
