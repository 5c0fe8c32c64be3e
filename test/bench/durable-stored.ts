/**
 * Up to which id the server has stored: `producer.channels` of the current channel, asked again and again. `stored` also
 * counts what is committed; a consumer that commits only what is stored sees by it what the disk has.
 */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readTyped } from '../../protocol/monitor/value.ts'
import { args, command, str, type } from '../support/bytes.ts'
import type { Json } from '../support/records.ts'

const QUERY_SEQ = 0xf1000000
const PAUSE_MS = 1

export class StoredMark {
  readonly #ask: (query: Uint8Array) => void
  readonly #reached: (id: number) => void
  #timer: NodeJS.Timeout | undefined

  constructor(options: { readonly ask: (query: Uint8Array) => void; readonly reached: (id: number) => void }) {
    this.#ask = options.ask
    this.#reached = options.reached
  }

  poll(): void {
    this.#ask(command.query(QUERY_SEQ, 'producer.channels', args(['channel', type.string, str('0')])))
  }

  /** `typed`: basic type and value of the answer; not kept. */
  answered(typed: Uint8Array): void {
    const records: Json = valueToJson(readTyped(new XdrReader(typed)))
    this.#reached(Number(records[0].stored))
    this.#timer = setTimeout(() => this.poll(), PAUSE_MS)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
