/** How long a command takes until its OK, which comes when it is durable: one after the other, with nothing else going on. */
import { command } from '../support/bytes.ts'
import { seatAt } from './durable-consumer.ts'

const COMMANDS = 500

export interface OkLatency {
  readonly p50Ms: number
  readonly p99Ms: number
}

/** DEF_CHANNEL and DEL_CHANNEL in turn. */
export async function okLatency(port: number): Promise<OkLatency> {
  const seat = await seatAt(port)
  const times: number[] = []
  const timed = async (make: (seq: number) => Uint8Array): Promise<number> => {
    const began = performance.now()
    const result = await seat.ok(make)
    times.push(performance.now() - began)
    return result
  }
  for (let count = 0; count < COMMANDS / 2; count++) {
    const channel = await timed((seq) => command.defChannel(seq))
    await timed((seq) => command.delChannel(seq, channel))
  }
  seat.peer.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number): number => Number((times[Math.floor(times.length * share)] as number).toFixed(2))
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}
