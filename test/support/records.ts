/** RECs of `producer.*` as plain objects, for assertions. The codec is tested elsewhere. */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readTyped } from '../../protocol/monitor/value.ts'
import { args, command, str, type } from './bytes.ts'
import type { RawPeer, Received } from './raw-peer.ts'

// biome-ignore lint/suspicious/noExplicitAny: the shape is what the test asserts
export type Json = any

export function decoded(message: Extract<Received, { kind: 'value' }>): Json {
  return valueToJson(readTyped(new XdrReader(message.bytes.subarray(20))))
}

/** QUERYs `producer.channels` for one channel: its ledger. */
export async function ledgerOf(peer: RawPeer, channel: number, seq: number): Promise<Json> {
  peer.send(command.query(seq, 'producer.channels', args(['channel', type.string, str(String(channel))])))
  const { result } = await peer.response(seq)
  for (;;) {
    const message = await peer.until('value')
    if (message.metric === result) return decoded(message)[0]
  }
}

/** What the ledger has to hold at every moment. */
export function balance(ledger: Json): number {
  const dropped = Object.values(ledger.dropped as Record<string, number>).reduce((sum, count) => sum + count, 0)
  return ledger.accepted - ledger.committed - ledger.in_flight - ledger.queued - dropped
}
