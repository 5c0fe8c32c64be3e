/**
 * A seeded mix of all commands that leave a connection open: valid ones, wrong ones, unknown ones, and frames that do not
 * decode. It keeps track of the current channel, so that it never deletes that.
 */
import { ALL, args, command, frame, i32, join, str, type, u32, u64 } from './bytes.ts'
import type { Seat } from './seat.ts'

/** What the mix may name. */
export interface Known {
  readonly metrics: readonly number[]
  readonly channels: readonly number[]
  readonly current: number
}

/** COLLECTs and defines what a mix needs. */
export async function prepareMix(seat: Seat): Promise<Known> {
  const metrics: number[] = []
  for (const name of ['test.a', 'test.b', 'events.thing', 'producer.stats', 'test.*', 'producer.metrics']) {
    metrics.push(await seat.collect(name), await seat.collect(name))
  }
  const channels: number[] = []
  for (let i = 0; i < 6; i++) channels.push(await seat.defChannel())
  return { metrics, channels, current: seat.channel }
}

/** Whole numbers below a bound, the same for the same seed. (Mulberry32.) */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * below)
  }
}

/** `count` frames with the seqs 0, 1, 2 ... */
export function mixedCommands(count: number, seed: number, known: Known): Uint8Array[] {
  const random = randomNumbers(seed)
  const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
  const names = ['test.a', 'test.x', 'events.thing', 'producer.stats', 'nothing.at.all', '*', 'host.load.*', 'test.*.*']
  const lists = [args(), args(['host', type.string, str('h1')]), args(['x', type.int32, i32(-1)])]
  const metric = () => (random(4) > 0 ? pick(known.metrics) : random(0x80000000))
  const channel = () => (random(3) > 0 ? pick([0, ...known.channels]) : random(2) > 0 ? ALL : random(0x80000000))
  const name = () => pick(names)
  const list = () => pick(lists)
  const own = args(['channel', type.uint32, u32(0)])
  let current = known.current
  const setChannel = (seq: number): Uint8Array => {
    const to = pick([0, known.current, 7, ...known.channels])
    if (to > 7) current = to
    return command.setChannel(seq, to)
  }
  const delChannel = (seq: number): Uint8Array => {
    const doomed = pick([8, 9, random(0x80000000), ...known.channels])
    return command.delChannel(seq, doomed === current ? 9 : doomed)
  }
  const make: readonly ((seq: number) => Uint8Array)[] = [
    command.nop,
    (seq) => command.collect(seq, name(), list()),
    (seq) => command.stop(seq, metric(), channel()),
    (seq) => command.subscribe(seq, metric(), channel()),
    (seq) => command.buffer(seq, metric(), channel()),
    (seq) => command.get(seq, metric(), channel()),
    (seq) => command.defChannel(seq, pick(['', '', 'tcp://127.0.0.1:1']), list()),
    setChannel,
    delChannel,
    (seq) => command.commit(seq, pick([0, 1, random(0x80000000)])),
    (seq) => command.commitThrough(seq, pick([0, 1, random(0x80000000)])),
    (seq) => frame(u32(10), u32(seq), u64(0xffffffffffffffffn)),
    (seq) => command.execute(seq, pick(['channel.purge', 'channel.configure', 'user.list', 'no.such']), own),
    (seq) => command.query(seq, name(), list()),
    (seq) => command.unknown(seq, 14 + random(0x7fffffff)),
    (seq) => frame(u32(1 + random(13)), u32(seq), str('undecodable'), u32(random(3))),
    (seq) => frame(u32(1 + random(5)), u32(seq)),
    (seq) => frame(u32(0), u32(seq), u32(0)),
  ]
  return Array.from({ length: count }, (_, seq) => pick(make)(seq))
}

/** The bytes in pieces of 1 to `most` bytes. */
export function* pieces(frames: readonly Uint8Array[], most: number, seed: number): Generator<Uint8Array> {
  const random = randomNumbers(seed)
  const bytes = join(...frames)
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(most)
    yield bytes.subarray(at, end)
    at = end
  }
}
