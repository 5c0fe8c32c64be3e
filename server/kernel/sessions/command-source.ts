/**
 * The source of a session's commands, binary or JSON: one by one and in order. The command reader pulls. While it decides an
 * AUTH it pulls nothing, and the commands that have arrived wait here.
 */
import { Framer, MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../../protocol/bytes/framer.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import { RecentByBytes } from '../../../protocol/bytes/recent.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { type CommandName, commandName, commands, readCommand } from '../../../protocol/monitor/commands.ts'
import {
  type JsonCommand,
  jsonCommandArguments,
  jsonCommandName,
  parseJsonCommands,
} from '../../../protocol/monitor/json.ts'

/** QUERYs of a session that are kept decoded. */
const KEPT_QUERIES = 128
/** Longer QUERYs are decoded each time. */
const MAX_KEPT_QUERY_BYTES = 256

export interface CommandSource {
  /** Moves to the next command. Returns false if it has not arrived. Throws ProtocolError for broken framing. */
  next(): boolean
  readonly seq: number
  /** The name of the current command, or undefined if there is no such command. */
  readonly name: CommandName | undefined
  /** The transaction id of a plain COMMIT, read in place: the hottest command makes no object. It is -1 for any other command. */
  readonly plainCommit: number
  /**
   * Takes the plain COMMITs that follow, as long as each has the seq and the transaction id after those of the one before it: at
   * most `most`. Returns how many. The current command is a plain COMMIT, and stays the current one.
   */
  takeCommits(most: number): number
  /** Decodes the fields of the current command. Throws ProtocolError. */
  read(): Record<string, unknown>
  /** True if nothing that has arrived waits. */
  readonly isDrained: boolean
  /** Allows longer frames, after AUTH. */
  authenticated(): void
  /** Gives up the receive buffer, at the end of a turn. */
  settle(): void
}

const COMMIT = commands.COMMIT.code
const QUERY = commands.QUERY.code
/** After cmd and seq. */
const FIELDS_AT = 8
/** The length of a COMMIT with cmd, seq and transaction id, without `through`; and with the length field before it. */
const COMMIT_BYTES = 16
const COMMIT_FRAME_BYTES = 4 + COMMIT_BYTES

export class XdrCommandSource implements CommandSource {
  readonly #framer = new Framer(MAX_FRAME_BYTES_BEFORE_AUTH)
  readonly #reader = new XdrReader()
  /** Programs ask for the same series again and again: the same bytes give the same object, which is read and never changed. */
  readonly #queries = new RecentByBytes<Record<string, unknown>>(KEPT_QUERIES, MAX_KEPT_QUERY_BYTES)
  seq = 0
  #code = 0

  push(chunk: Uint8Array): void {
    this.#framer.push(chunk)
  }

  next(): boolean {
    const framer = this.#framer
    if (!framer.next()) return false
    this.#code = framer.view.getUint32(framer.start)
    this.seq = framer.view.getUint32(framer.start + 4)
    return true
  }

  get name(): CommandName | undefined {
    return commandName(this.#code)
  }

  get plainCommit(): number {
    const { start, end, view } = this.#framer
    if (this.#code !== COMMIT || end - start !== COMMIT_BYTES) return -1
    return view.getUint32(start + 8) * 0x100000000 + view.getUint32(start + 12)
  }

  takeCommits(most: number): number {
    const framer = this.#framer
    const { view, start, end } = framer
    const high = view.getUint32(start + 8)
    const low = view.getUint32(start + 12)
    const frames = Math.min(most, Math.floor(framer.pending / COMMIT_FRAME_BYTES))
    let count = 0
    // By words: beyond 2^53 the ids are not exact, and where a word overflows, the run ends.
    for (let at = end; count < frames; at += COMMIT_FRAME_BYTES, count++) {
      if (view.getUint32(at) !== COMMIT_BYTES || view.getUint32(at + 4) !== COMMIT) break
      const next = count + 1
      if (view.getUint32(at + 8) !== this.seq + next || view.getUint32(at + 12) !== high) break
      if (view.getUint32(at + 16) !== low + next) break
    }
    framer.skip(count * COMMIT_FRAME_BYTES)
    return count
  }

  read(): Record<string, unknown> {
    if (this.#code !== QUERY) return this.#decode()
    const { view, start, end } = this.#framer
    const kept = this.#queries.get(view, start + FIELDS_AT, end)
    if (kept !== undefined) return kept
    const decoded = this.#decode()
    this.#queries.keep(view, start + FIELDS_AT, end, decoded)
    return decoded
  }

  #decode(): Record<string, unknown> {
    const { bytes, start, end, view } = this.#framer
    return readCommand(commands[this.name as CommandName], this.#reader.reset(bytes, start + FIELDS_AT, end, view))
  }

  get isDrained(): boolean {
    return this.#framer.pending === 0
  }

  authenticated(): void {
    this.#framer.maxFrameBytes = MAX_FRAME_BYTES
  }

  settle(): void {
    this.#framer.settle()
  }
}

export class JsonCommandSource implements CommandSource {
  readonly #waiting: JsonCommand[] = []
  #at = 0
  #current: JsonCommand | undefined
  /** The limit before AUTH. Afterwards only that of the WebSocket itself applies. */
  #maxBytes = MAX_FRAME_BYTES_BEFORE_AUTH
  readonly plainCommit = -1

  takeCommits(): number {
    return 0
  }

  /** Throws ProtocolError BAD_JSON, for close code 1007, or FRAME_TOO_LONG, for 1009. */
  push(text: string): void {
    if (text.length > this.#maxBytes || Buffer.byteLength(text) > this.#maxBytes) {
      throw new ProtocolError('FRAME_TOO_LONG', `a message of more than ${this.#maxBytes} bytes before AUTH`)
    }
    this.#waiting.push(...parseJsonCommands(text))
  }

  next(): boolean {
    this.#current = this.#waiting[this.#at]
    if (this.#current === undefined) {
      this.#waiting.length = 0
      this.#at = 0
      return false
    }
    this.#at++
    return true
  }

  get seq(): number {
    return this.#current?.seq ?? 0
  }

  get name(): CommandName | undefined {
    return jsonCommandName(this.#current?.cmd)
  }

  read(): Record<string, unknown> {
    return jsonCommandArguments(this.name as CommandName, this.#current?.object ?? {})
  }

  get isDrained(): boolean {
    return this.#at >= this.#waiting.length
  }

  authenticated(): void {
    this.#maxBytes = Number.POSITIVE_INFINITY
  }

  settle(): void {}
}
