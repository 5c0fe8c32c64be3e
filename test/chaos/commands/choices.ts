/**
 * How the numbers of a command choose a connection, a channel, an id. They are taken modulo what there is, so that every
 * command of a sequence that was cut shorter still means something; and what cannot be modelled is not chosen.
 */
import { ALL } from '../../support/bytes.ts'
import type { ConnectionModel } from './model.ts'
import { idOf, inFlight } from './queue-model.ts'
import { users } from './stage.ts'
import type { Walk } from './walk.ts'

/** An id that nobody has: ids are random in 31 bits. */
const NOBODY = 0x7ffffff1
/** Above every transaction id. */
export const NEVER = Number.MAX_SAFE_INTEGER

function pick<T>(of: readonly T[], number: number): T | undefined {
  return of[number % Math.max(1, of.length)]
}

/** A connection; one is made where there is none. */
export async function who(walk: Walk, number: number): Promise<number> {
  const { connections } = walk.model
  const living = [...connections.keys()].filter((index) => {
    const { alive, closing } = connections[index] as ConnectionModel
    return alive && !closing
  })
  return pick(living, number) ?? walk.connect(number % users.length)
}

/** Mostly a channel of theirs, sometimes none of theirs, one that is gone, or all. */
export function whichChannel({ model }: Walk, index: number, number: number): number {
  const { user } = model.connections[index] as ConnectionModel
  const of = (whose: number): number[] =>
    model
      .of(whose)
      .map((channel) => model.idOf(channel))
      .filter((id) => id > 0)
  const kind = number % 16
  const rest = Math.floor(number / 16)
  if (kind < 5) return 0
  if (kind < 12) return pick(of(user), number) ?? 0
  if (kind === 12) return pick(of(1 - user), rest) ?? NOBODY
  if (kind === 13)
    return (
      pick(
        model.deadChannels.filter((id) => id > 0),
        rest,
      ) ?? NOBODY
    )
  return kind === 14 ? ALL : 0
}

/** Mostly a metric id of theirs; or a result's, somebody else's, or one that is gone. */
export function whichId({ model }: Walk, index: number, number: number): number {
  const { user } = model.connections[index] as ConnectionModel
  const of = (whose: number): number[] => {
    return [...model.state.instances.values()].filter((one) => one.user === whose).map(({ id }) => id)
  }
  const kind = number % 16
  const rest = Math.floor(number / 16)
  if (kind < 13) return pick(of(user), number) ?? NOBODY
  if (kind === 13) return pick([...model.resultIds.values()], rest) ?? NOBODY
  if (kind === 14) return pick(of(1 - user), rest) ?? NOBODY
  return (
    pick(
      model.deadIds.filter((id) => id > 0),
      rest,
    ) ?? NOBODY
  )
}

/** A transaction id: in flight mostly; queued, settled, another channel's, 0, or never given. */
export function whichTransaction({ model }: Walk, index: number, number: number): number {
  const { channel: key } = model.connections[index] as ConnectionModel
  const { queue } = model.channel(key)
  const kind = number % 16
  const rest = Math.floor(number / 16)
  const sent = inFlight(queue)
  const seen = (of: (other: number) => boolean): number[] => {
    return [...model.seen].filter(([other]) => of(other)).flatMap(([, ids]) => [...ids.values()])
  }
  if (kind < 4) return sent[0]?.id ?? 0
  if (kind < 11) return pick(sent, rest)?.id ?? 0
  // Where limits drop, nobody knows what a COMMIT of something that is not in flight finds.
  if (kind < 13 && queue.loose) return 0
  if (kind === 11)
    return (
      pick(
        seen((other) => other === key),
        rest * 7,
      ) ?? 0
    )
  if (kind === 12)
    return (
      pick(
        queue.sending.map((one) => idOf(queue, one)),
        rest,
      ) ?? 0
    )
  if (kind === 13) return NEVER
  if (kind === 14)
    return (
      pick(
        seen((other) => other !== key),
        rest * 7,
      ) ?? 0
    )
  return queue.base > 0 && !queue.loose ? queue.base + queue.next : 0
}

/** What limits have dropped without the model knowing cannot be copied by it. */
export function isUnsure({ model }: Walk, index: number): boolean {
  const { channel } = model.connections[index] as ConnectionModel
  return model.channel(channel).queue.missing > 0
}

/** Whether it is empty, a GAP of a limit more or less, nobody knows. */
export function isLoose({ model }: Walk, index: number, id: number): boolean {
  const { user, channel } = model.connections[index] as ConnectionModel
  if (id === 0) return model.channel(channel).queue.loose
  return model.of(user).some((one) => model.idOf(one) === id && one.queue.loose)
}

/**
 * GET and EXECUTE: where nothing is stored, or limits drop, it cannot be known which batch their response waits for, and so
 * not what comes first. Then everything before them is stored first.
 */
export async function calm(walk: Walk, index: number): Promise<void> {
  const { user } = walk.model.connections[index] as ConnectionModel
  const isVague = walk.model.of(user).some(({ queue }) => queue.loose || !queue.durable)
  if (isVague && walk.stage.manual) await walk.quiesce()
}
