/** The last life: everything is released, received, and seen to be everything; then committed, and the queues are empty. */
import type { Json } from '../../support/records.ts'
import type { Consumer } from './consumer.ts'
import { everyone, type Life } from './life.ts'
import type { Link } from './link.ts'
import type { Watcher } from './watcher.ts'

/** Longer than any drain: what did not come by then does not come. */
const DRAIN_MS = 60_000
const LOOK_MS = 20

type IsDone = (record: Json, consumer: Consumer) => boolean

/** False if the server ended meanwhile. Throws at the first fault, and if it takes too long. */
export async function drain(life: Life, watcher: Watcher, link: Link): Promise<boolean> {
  const { world } = life
  const end = performance.now() + DRAIN_MS
  if (!(await life.lookAround(watcher, link))) return false
  await life.comeBack()
  // The last of each source: a hole before it shows.
  for (const source of world.feed.sources) await world.feed.send(source)
  const isAllThere = await until(end, 'nothing waits', async () => {
    for (const index of [0, 1]) await life.get(index)
    for (const consumer of everyone(world)) if (consumer.narrow) consumer.commitAll()
    return (record, consumer) =>
      world.feed.idle && record.queued === 0 && record.unstored === 0 && consumer.history.arrived >= record.in_flight
  })
  if (!isAllThere) return false
  world.checker.judge()
  return until(end, 'the queues are empty', async () => {
    for (const consumer of everyone(world)) consumer.commitAll()
    return (record) => record.queued === 0 && record.in_flight === 0
  })

  async function until(endMs: number, what: string, act: () => Promise<IsDone>): Promise<boolean> {
    for (;;) {
      const isDone = await act()
      const records = await watcher.look(everyone(world))
      if (records === undefined) return false
      const left = everyone(world).filter((consumer) => !isDone(records.get(consumer.channel), consumer))
      if (left.length === 0) return true
      if (performance.now() > endMs) {
        const record = JSON.stringify(records.get(left[0]!.channel))
        throw new Error(`waited in vain until ${what}: ${record}, ${left[0]!.history.arrived} came`)
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}
