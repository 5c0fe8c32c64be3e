/**
 * Commands as they come in, binary or JSON, one by one and in order. A session pulls: while it decides an AUTH it pulls
 * nothing, and what has arrived waits here.
 */
import { Framer, MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { readCommand } from '../../protocol/monitor/command.ts'
import { type CommandName, commandName, commands } from '../../protocol/monitor/commands/index.ts'
import {
  type JsonCommand,
  jsonCommandArguments,
  jsonCommandName,
  parseJsonCommands,
} from '../../protocol/monitor/json.ts'

/** One command. `name` is undefined if there is no such command. Valid until the next `next`. */
export interface Incoming {
  readonly seq: number
  readonly name: CommandName | undefined
  /** The transaction id of a plain COMMIT, read in place: the hottest command makes no object. -1: it is something else. */
  readonly plainCommit: number
  /** Decodes the fields. Throws ProtocolError. */
  read(): Record<string, unknown>
}

export interface Intake {
  /** True once the next command is there; its parts are then in `seq`, `name` and `read`. Throws ProtocolError for broken framing. */
  next(): boolean
  readonly incoming: Incoming
  /** Nothing that arrived waits. */
  readonly drained: boolean
  /** After AUTH frames may be longer. */
  authenticated(): void
  /** The end of a turn: nothing of the receive buffer is kept. */
  settle(): void
}

const COMMIT = commands.COMMIT.code
/** cmd, seq and transaction id, without `through`. */
const COMMIT_BYTES = 16

export class XdrIntake implements Intake, Incoming {
  readonly #framer = new Framer(MAX_FRAME_BYTES_BEFORE_AUTH)
  readonly #reader = new XdrReader()
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

  get incoming(): Incoming {
    return this
  }

  get name(): CommandName | undefined {
    return commandName(this.#code)
  }

  get plainCommit(): number {
    const { start, end, view } = this.#framer
    if (this.#code !== COMMIT || end - start !== COMMIT_BYTES) return -1
    return view.getUint32(start + 8) * 0x100000000 + view.getUint32(start + 12)
  }

  read(): Record<string, unknown> {
    const { bytes, start, end, view } = this.#framer
    return readCommand(commands[this.name as CommandName], this.#reader.reset(bytes, start + 8, end, view))
  }

  get drained(): boolean {
    return this.#framer.pending === 0
  }

  authenticated(): void {
    this.#framer.maxFrameBytes = MAX_FRAME_BYTES
  }

  settle(): void {
    this.#framer.settle()
  }
}

export class JsonIntake implements Intake, Incoming {
  readonly #waiting: JsonCommand[] = []
  #at = 0
  #current: JsonCommand | undefined
  /** Afterwards the limit of the WebSocket itself is the only one. */
  #maxBytes = MAX_FRAME_BYTES_BEFORE_AUTH
  readonly plainCommit = -1

  /** Throws ProtocolError: BAD_JSON, close 1007; FRAME_TOO_LONG, close 1009. */
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

  get incoming(): Incoming {
    return this
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

  get drained(): boolean {
    return this.#at >= this.#waiting.length
  }

  authenticated(): void {
    this.#maxBytes = Number.POSITIVE_INFINITY
  }

  settle(): void {}
}
