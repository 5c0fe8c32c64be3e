/** The last life: everything is released, received, and seen to be everything; then committed, and the queues are empty. */
import type { Json } from '../../support/records.ts'
import { Standstill } from '../patience.ts'
import type { Consumer } from './consumer.ts'
import { everyone, type Life } from './life.ts'
import type { Link } from './link.ts'
import type { Watcher } from './watcher.ts'

/** How long nothing may come, be stored or be committed: what did not come by then does not come. */
const STILL_MS = 60_000
const LOOK_MS = 20

type IsDone = (record: Json, consumer: Consumer) => boolean

/** False if the server ended meanwhile. Throws at the first fault, and if nothing moves any more. */
export async function drain(life: Life, watcher: Watcher, link: Link): Promise<boolean> {
  const { world } = life
  if (!(await life.lookAround(watcher, link))) return false
  await life.comeBack()
  // The last of each source: a hole before it shows.
  for (const source of world.feed.sources) await world.feed.send(source)
  const isAllThere = await until('nothing waits', async () => {
    for (const index of [0, 1]) await life.get(index)
    for (const consumer of everyone(world)) if (consumer.narrow) consumer.commitAll()
    return (record, consumer) =>
      watcher.hasTakenAll &&
      record.queued === 0 &&
      record.unstored === 0 &&
      consumer.history.arrived >= record.in_flight
  })
  if (!isAllThere) return false
  world.checker.judge()
  return until('the queues are empty', async () => {
    for (const consumer of everyone(world)) consumer.commitAll()
    return (record) => record.queued === 0 && record.in_flight === 0
  })

  async function until(what: string, act: () => Promise<IsDone>): Promise<boolean> {
    const standstill = new Standstill(STILL_MS)
    for (;;) {
      const isDone = await act()
      const records = await watcher.look(everyone(world))
      if (records === undefined) return false
      const left = everyone(world).filter((consumer) => !isDone(records.get(consumer.channel), consumer))
      if (left.length === 0) return true
      const states = left.map(({ channel, history }) => {
        return `${JSON.stringify(records.get(channel))}, ${history.arrived} came`
      })
      if (standstill.isReached(states.join('\n'))) throw new Error(`waited in vain until ${what}: ${states[0]}`)
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    }
  }
}
