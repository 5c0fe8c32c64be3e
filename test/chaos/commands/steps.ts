/**
 * The commands of a sequence, each with its weight: what is sent and what is done in the model. Its numbers choose who does it
 * to what, see `choices.ts`.
 */
import { args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH } from '../../support/producer.ts'
import { atH1 } from '../../support/seat.ts'
import { calm, isLoose, isUnsure, NEVER, whichChannel, whichId, whichTransaction, who } from './choices.ts'
import type { ChannelModel } from './model.ts'
import { append } from './queue-model.ts'
import { users } from './stage.ts'
import * as verbs from './verbs.ts'
import type { Walk } from './walk.ts'

export type Numbers = readonly [number, number, number]
type Step = (walk: Walk, numbers: Numbers) => Promise<void>

const PATTERN = 'test.*'
const EVENT = 'events.thing'
const metrics = ['test.a', 'test.b', EVENT, PATTERN]
const MOST_CONNECTIONS = 4

/** DEF_CHANNEL and `channel.configure` are given the same. */
function settingsOf(number: number, defining: boolean): verbs.Settings {
  const window = [undefined, 1, 2, 3, 10, 0][Math.floor(number / 8) % 6]
  const shared = window === undefined ? {} : { window }
  switch (number % 8) {
    case 1:
      return { ...shared, maxBytes: 1_500 }
    case 2:
      return { ...shared, durable: false }
    case 3:
      return { ...shared, durable: true }
    case 4:
      return defining ? { ...shared, overflow: 'keep-latest' } : shared
    case 5:
      return defining ? { ...shared, maxBytes: 1_500, overflow: 'drop-newest' } : shared
    case 6:
      return { ...shared, maxAgeMs: 3_000 }
    case 7:
      return [{ maxBytes: 1_000, windowBytes: 2_000 }, { overflow: 'sometimes' }, { window: 70_000 }][
        Math.floor(number / 8) % 3
      ] as verbs.Settings
    default:
      return shared
  }
}

function listOf(
  { durable, window, maxBytes, maxAgeMs, overflow, windowBytes }: verbs.Settings,
  channel?: number,
): Uint8Array {
  const list: [string, number, Uint8Array][] = []
  if (channel !== undefined) list.push(['channel', type.uint32, u32(channel)])
  if (durable !== undefined) list.push(['durable', type.boolean, u32(durable ? 1 : 0)])
  if (window !== undefined) list.push(['window', type.uint32, u32(window)])
  if (windowBytes !== undefined) list.push(['window_bytes', type.uint64, u64(windowBytes)])
  if (maxBytes !== undefined) list.push(['max_bytes', type.uint64, u64(maxBytes)])
  if (maxAgeMs !== undefined) list.push(['max_age_ms', type.uint64, u64(maxAgeMs)])
  if (overflow !== undefined) list.push(['overflow', type.string, str(overflow)])
  return args(...list)
}

/** A step of a connection, with what its numbers choose. */
function by(act: (walk: Walk, index: number, second: number, third: number) => Promise<void>): Step {
  return async (walk, [first, second, third]) => act(walk, await who(walk, first), second, third)
}

/** COLLECT, and bound at once, else hardly anything would ever flow. */
async function collect(walk: Walk, index: number, second: number): Promise<number> {
  const name = metrics[second % metrics.length] as string
  const list = name === EVENT ? args() : atH1
  await walk.command(
    index,
    (seq) => command.collect(seq, name, list),
    () => verbs.collect(walk.model, index, name),
  )
  return [...walk.model.state.instances.keys()].at(-1) as number
}

function bind(mode: 'subscribe' | 'buffer', index: number, walk: Walk, id: number, to: number): Promise<void> {
  return walk.command(
    index,
    (seq) => command[mode](seq, id, to),
    () => verbs.bind(walk.model, index, mode, id, to),
  )
}

function emit(walk: Walk, name: string): void {
  const { model, stage } = walk
  const value = ++walk.emitted
  walk.counts.values++
  model.group++
  for (const channel of model.state.channels.values()) {
    for (const [metric, mode] of channel.bindings)
      take(walk, channel, metric, mode === 'buffer' ? metric : 0, name, value)
  }
  if (name === EVENT) {
    stage.producer.things.happen(value, EPOCH + value)
    return
  }
  model.last.set(name, value)
  stage.producer.emit(value, name)
}

function take(
  { model }: Walk,
  { queue }: ChannelModel,
  metric: number,
  waiting: number,
  name: string,
  value: number,
): void {
  const wanted = model.state.instances.get(metric)?.name
  const pattern = wanted === PATTERN && name !== EVENT
  if (wanted !== name && !pattern) return
  append(queue, waiting, {
    kind: 'value',
    metric,
    payload: pattern ? `${name}=${value}@${value}` : `${value}@${value}`,
    series: pattern ? `${metric}/${name}` : `${metric}`,
    group: model.group,
    at: ++model.order,
  })
}

/** Each with its weight. */
export const steps: Readonly<Record<string, readonly [number, Step]>> = {
  emit: [
    24,
    async (walk, [first, second]) => {
      for (let count = 0; count <= second % 4; count++) emit(walk, metrics[first % 3] as string)
      await walk.stage.settle()
      await walk.check()
    },
  ],
  collect: [2, by(async (walk, index, second) => void (await collect(walk, index, second)))],
  follow: [
    5,
    by(async (walk, index, second, third) => {
      const id = await collect(walk, index, second)
      if (!isUnsure(walk, index)) await bind('subscribe', index, walk, id, whichChannel(walk, index, third))
    }),
  ],
  hoard: [
    4,
    by(async (walk, index, second, third) => {
      await bind('buffer', index, walk, await collect(walk, index, second), whichChannel(walk, index, third))
    }),
  ],
  subscribe: [
    7,
    by(async (walk, index, second, third) => {
      if (isUnsure(walk, index)) return
      await bind('subscribe', index, walk, whichId(walk, index, second), whichChannel(walk, index, third))
    }),
  ],
  buffer: [
    4,
    by((walk, index, second, third) => {
      return bind('buffer', index, walk, whichId(walk, index, second), whichChannel(walk, index, third))
    }),
  ],
  get: [
    7,
    by(async (walk, index, second, third) => {
      await calm(walk, index)
      const [id, on] = [whichId(walk, index, second), whichChannel(walk, index, third)]
      return walk.command(
        index,
        (seq) => command.get(seq, id, on),
        () => verbs.get(walk.model, index, id, on),
      )
    }),
  ],
  stop: [
    4,
    by((walk, index, second, third) => {
      const [id, on] = [whichId(walk, index, second), whichChannel(walk, index, third)]
      return walk.command(
        index,
        (seq) => command.stop(seq, id, on),
        () => verbs.stopped(walk.model, index, id, on),
      )
    }),
  ],
  commit: [
    12,
    by((walk, index, second, third) => {
      const id = whichTransaction(walk, index, second)
      const through = third % 4 === 0
      const make = through ? command.commitThrough : command.commit
      return walk.command(
        index,
        (seq) => make(seq, id),
        () => verbs.committed(walk.model, index, id, through),
      )
    }),
  ],
  setChannel: [
    9,
    by((walk, index, second) => {
      const id = whichChannel(walk, index, second)
      return walk.command(
        index,
        (seq) => command.setChannel(seq, id),
        () => verbs.setChannel(walk.model, index, id),
      )
    }),
  ],
  defChannel: [
    3,
    by((walk, index, second) => {
      const settings = settingsOf(second, true)
      const make = (seq: number): Uint8Array => command.defChannel(seq, '', listOf(settings))
      return walk.command(index, make, () => verbs.defChannel(walk.model, index, settings))
    }),
  ],
  delChannel: [
    1,
    by((walk, index, second) => {
      const id = whichChannel(walk, index, second)
      return walk.command(
        index,
        (seq) => command.delChannel(seq, id),
        () => verbs.delChannel(walk.model, index, id),
      )
    }),
  ],
  configure: [
    3,
    by(async (walk, index, second, third) => {
      await calm(walk, index)
      const [id, settings] = [whichChannel(walk, index, second), settingsOf(third, false)]
      if (settings.durable !== undefined && isLoose(walk, index, id)) return
      const make = (seq: number): Uint8Array => command.execute(seq, 'channel.configure', listOf(settings, id))
      await walk.command(index, make, () => verbs.configure(walk.model, index, id, settings))
    }),
  ],
  purge: [
    2,
    by(async (walk, index, second, third) => {
      await calm(walk, index)
      const id = whichChannel(walk, index, second)
      const metric = third % 3 === 1 ? whichId(walk, index, third) : undefined
      const upTo = whichTransaction(walk, index, Math.floor(third / 3))
      // How another channel's ids stand to these nobody knows.
      const isOurs = id === 0 && Math.floor(third / 3) % 16 !== 14
      const through = third % 3 === 2 ? (isOurs ? upTo : NEVER) : undefined
      const list: [string, number, Uint8Array][] = [['channel', type.uint32, u32(id)]]
      if (metric !== undefined) list.push(['metric', type.uint32, u32(metric)])
      if (through !== undefined) list.push(['through', type.uint64, u64(through)])
      const make = (seq: number): Uint8Array => command.execute(seq, 'channel.purge', args(...list))
      return walk.command(index, make, () => verbs.purged(walk.model, index, id, metric, through))
    }),
  ],
  connect: [
    4,
    async (walk, [first]) => {
      const { connections } = walk.model
      if (connections.filter(({ alive }) => alive).length >= MOST_CONNECTIONS) return
      await walk.connect(first % users.length)
      await walk.check()
    },
  ],
  disconnect: [4, by((walk, index) => walk.disconnect(index))],
  hold: [2, (walk) => walk.hold(true)],
  complete: [14, (walk) => walk.complete()],
  let: [1, (walk) => walk.hold(false)],
  tick: [
    3,
    async (walk, [first]) => {
      walk.stage.producer.clock.advance([500, 1_100, 4_000, 11_000][first % 4] as number)
      await walk.stage.settle()
      await walk.check()
    },
  ],
  crash: [2, (walk) => walk.crash()],
  restart: [1, (walk) => walk.restart()],
}
