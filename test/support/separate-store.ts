/** All servers of tests go back to one database, and so to one id: as servers that consume each other they would be a circle. */
import type { MemoryStore } from './memory-store/store.ts'
import { TestProducer } from './producer.ts'

/** A database of its own, after a first start. */
export async function separateStore(generation: string): Promise<MemoryStore> {
  const store: MemoryStore = await TestProducer.firstStart()
  const open = store.open.bind(store)
  const secret = new TextEncoder().encode(generation.padEnd(32))
  store.open = async (events) => ({ ...(await open(events)), generation, secret })
  return store
}
