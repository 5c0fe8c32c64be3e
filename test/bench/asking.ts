/** Answers to QUERY as plain objects: the ledger of a channel, the counters of a sensor. */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readTyped } from '../../protocol/monitor/value.ts'
import { args, command, str, type } from '../support/bytes.ts'
import type { Json } from '../support/records.ts'
import type { BenchConnection } from './connection.ts'

/** Of a VALUE frame: after it stand the value's type and the value. */
const HEADER_BYTES = 24

/** The connection's listener is this one afterwards: it should be a connection that is only asked. */
export function answerTo(connection: BenchConnection, metric: string, list = args()): Promise<Json> {
  return new Promise((resolve, reject) => {
    connection.listener = {
      value(view, at) {
        const frame = new Uint8Array(view.buffer, view.byteOffset + at, 4 + view.getUint32(at))
        resolve(valueToJson(readTyped(new XdrReader(frame.slice(HEADER_BYTES)))))
      },
    }
    connection.ask((seq) => command.query(seq, metric, list)).catch(reject)
  })
}

export async function ledgerOf(connection: BenchConnection, channel: number): Promise<Json> {
  const [ledger] = await answerTo(connection, 'producer.channels', args(['channel', type.string, str(String(channel))]))
  return ledger
}
