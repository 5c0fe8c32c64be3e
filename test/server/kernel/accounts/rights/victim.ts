/**
 * Somebody whose things others must not reach: a consumer with one of everything that has an id, and a picture of all that
 * it has, to be compared.
 */
import { args, command, type, u32 } from '../../../../support/bytes.ts'
import type { TestProducer } from '../../../../support/producer.ts'
import type { Seat } from '../../../../support/seat.ts'

export type IdKind = 'channel' | 'metric' | 'transaction'
/** What an id is, and the id. */
export type Ids = readonly (readonly [string, number])[]

export interface Victim {
  readonly name: string
  readonly tenant: string
  readonly seat: Seat
  readonly ids: Readonly<Record<IdKind, Ids>>
}

export async function makeVictim(producer: TestProducer, name: string, tenant: string): Promise<Victim> {
  const seat = await producer.seat(name, tenant)
  const follow = async (channel: number): Promise<number> => {
    const id = await seat.collect('events.thing')
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    return id
  }
  const waiting = await seat.defChannel()
  const doomed = await seat.defChannel()
  const bound = await follow(0)
  const elsewhere = await follow(waiting)
  const lost = await follow(doomed)
  const buffered = await seat.collect('events.thing')
  await seat.ok((seq) => command.buffer(seq, buffered, waiting))
  const unbound = await seat.collect('events.thing')
  const stopped = await follow(0)
  producer.things.happen(1, 1)
  const inFlight = await seat.value()
  const committed = await seat.value()
  await seat.ok((seq) => command.commit(seq, committed.transaction))
  await seat.ok((seq) => command.stop(seq, stopped))
  await seat.ok((seq) => command.delChannel(seq, doomed))
  const answer = await seat.ok((seq) => command.query(seq, 'slow.value'))
  const nothing = args(['channel', type.uint32, u32(0)], ['metric', type.uint32, u32(unbound)])
  const result = await seat.ok((seq) => command.execute(seq, 'channel.purge', nothing))
  await producer.settle()
  const of = (what: string): string => `${what} of ${tenant}/${name}`
  return {
    name,
    tenant,
    seat,
    ids: {
      channel: [
        [of('current channel'), seat.channel],
        [of('waiting channel'), waiting],
        [of('deleted channel'), doomed],
      ],
      metric: [
        [of('bound id'), bound],
        [of('id bound elsewhere'), elsewhere],
        [of('buffered id'), buffered],
        [of('unbound id'), unbound],
        [of('stopped id'), stopped],
        [of('id lost with its channel'), lost],
        [of('answer to come'), answer],
        [of('result'), result],
      ],
      transaction: [
        [of('value in flight'), inFlight.transaction],
        [of('committed value'), committed.transaction],
        [of('value to come'), committed.transaction + 2],
      ],
    },
  }
}

/** Everything that a user has, as far as others could change it. */
export function picture(producer: TestProducer, { name, tenant, ids }: Victim): unknown {
  const { accounts, registry, instances, answers } = producer.server.parts.producer
  const account = accounts.find(tenant, name)
  if (account === undefined) throw new Error(`there is no ${tenant}/${name}`)
  const channels = [...registry.of(account.id)].map((channel) => ({
    row: channel.row,
    state: channel.state,
    status: channel.queue.status(),
    bindings: [...channel.bindings.values()].map(({ instance, mode }) => [instance.id, mode]),
    results: [...channel.results],
    gets: [...channel.gets.keys()],
  }))
  const living = instances.of(account.id).map(({ id, boundOn }) => [id, ...boundOn])
  const awaited = ids.metric.filter(([, id]) => answers.has(accounts.identity(account), id))
  return structuredClone({ account, channels, living, awaited })
}
