/** Controls of administration as tests write them, and seats that were opened with a token. */
import { createHash, randomBytes } from 'node:crypto'
import { args, command, str, type, u32, u64 } from './bytes.ts'
import type { TestProducer } from './producer.ts'
import type { Json } from './records.ts'
import { type Response, Seat } from './seat.ts'

/** Text is a string, numbers are uint32, bigints uint64. */
export type Arguments = Readonly<Record<string, string | number | bigint>>

function list(given: Arguments): (readonly [string, number, Uint8Array])[] {
  return Object.entries(given).map(([name, value]) => {
    if (typeof value === 'number') return [name, type.uint32, u32(value)]
    return typeof value === 'bigint' ? [name, type.uint64, u64(value)] : [name, type.string, str(value)]
  })
}

/** EXECUTEs a control that is answered OK; gives its result. */
export function run(seat: Seat, control: string, given: Arguments = {}): Promise<Json> {
  return seat.execute(control, ...list(given))
}

/** The same, whose outcome has to be ok; gives the value. */
export async function done(seat: Seat, control: string, given: Arguments = {}): Promise<Json> {
  const { outcome, detail, value } = await run(seat, control, given)
  if (outcome !== 'ok') throw new Error(`${control}: ${outcome}: ${detail}`)
  return value
}

/** EXECUTEs a control; gives the response. */
export function askFor(seat: Seat, control: string, given: Arguments = {}): Promise<Response> {
  return seat.ask((seq) => command.execute(seq, control, args(...list(given))))
}

export function newToken(): { readonly token: string; readonly hash: string } {
  const token = `cnb_${randomBytes(32).toString('base64url')}`
  return { token, hash: createHash('sha256').update(token).digest('hex') }
}

/** A connection that was opened with a token. */
export async function tokenSeat(producer: TestProducer, token: string): Promise<Seat> {
  const peer = producer.connect()
  await peer.until('caps')
  peer.send(command.auth(0xfff00000, 'token', new TextEncoder().encode(token)))
  const admitted = await peer.response(0xfff00000)
  if (admitted.status !== 0) throw new Error(`AUTH was answered with status ${admitted.status}`)
  await peer.until('caps')
  return new Seat(peer, admitted.result)
}
