/** RECs of `producer.*` as plain objects, for assertions. The codec is tested elsewhere. */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readTyped } from '../../protocol/monitor/value.ts'
import { args, command, str, type } from './bytes.ts'
import { eventually } from './eventually.ts'
import type { RawPeer, Received } from './raw-peer.ts'

// biome-ignore lint/suspicious/noExplicitAny: the shape is what the test asserts
export type Json = any

export function decoded(message: Extract<Received, { kind: 'value' }>): Json {
  return valueToJson(readTyped(new XdrReader(message.bytes.subarray(20))))
}

/** The seq of every QUERY of a ledger, which is answered before the next one is sent. */
const LEDGER_SEQ = 0xffe00000

/** QUERYs `producer.channels` for one channel, by its id or name: its ledger. */
export async function ledgerOf(peer: RawPeer, channel: number | string): Promise<Json> {
  const list = args(['channel', type.string, str(String(channel))])
  peer.send(command.query(LEDGER_SEQ, 'producer.channels', list))
  const { result } = await peer.response(LEDGER_SEQ)
  for (;;) {
    const message = await peer.until('value')
    if (message.metric === result) return decoded(message)[0]
  }
}

/** The ledger of a channel, as soon as it is as wanted. Throws if it does not balance at any look, or stays otherwise. */
export async function ledgerWhen(
  peer: RawPeer,
  channel: number | string,
  isWanted: (ledger: Json) => boolean,
): Promise<Json> {
  const ledger = await eventually(async () => {
    const ledger = await ledgerOf(peer, channel)
    // There may be no channel of that name yet.
    const isThere = ledger !== undefined || typeof channel === 'number'
    if (isThere && (balance(ledger) !== 0 || isWanted(ledger))) return ledger
    throw new Error(`the ledger is not as wanted: ${JSON.stringify(ledger)}`)
  })
  if (balance(ledger) !== 0) throw new Error(`the ledger does not balance: ${JSON.stringify(ledger)}`)
  return ledger
}

/** What the ledger has to hold at every moment. */
export function balance(ledger: Json): number {
  const dropped = Object.values(ledger.dropped as Record<string, number>).reduce((sum, count) => sum + count, 0)
  return ledger.accepted - ledger.committed - ledger.in_flight - ledger.queued - dropped
}
