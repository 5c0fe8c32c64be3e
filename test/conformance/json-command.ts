/** The JSON command that says what a frame says [MON 13]. For frames that are right only: the others are for `only: xdr`. */
import { commands, types, wordOf } from './words.ts'
import { inside, NotXdr, opaqueEnd, valueEnd } from './xdr.ts'

type Json = Record<string, unknown>

export function commandToJson(frame: Buffer): Json {
  const reader = new Reader(frame)
  reader.uint32()
  const number = reader.uint32()
  const cmd = wordOf(commands, number)
  if (cmd === undefined) throw new Error(`command ${number} has no name in JSON: the script needs "only: xdr"`)
  const json = { cmd, seq: reader.uint32(), ...fields(cmd, reader) }
  if (!reader.atEnd) throw new Error(`${cmd} with bytes left over cannot be said in JSON: the script needs "only: xdr"`)
  return json
}

function fields(cmd: string, reader: Reader): Json {
  switch (cmd) {
    case 'NOP':
      return {}
    case 'COLLECT':
    case 'QUERY':
      return { metric: reader.text(), args: reader.args() }
    case 'EXECUTE':
      return { control: reader.text(), args: reader.args() }
    case 'DEF_CHANNEL':
      return { url: reader.text(), args: reader.args() }
    case 'AUTH':
      return { method: reader.text(), data: reader.opaque().toString('base64') }
    case 'WRAP':
      return { layer: reader.text() }
    case 'SET_CHANNEL':
    case 'DEL_CHANNEL':
      return { channel: reader.uint32() }
    case 'COMMIT': {
      const transaction = bigToJson(reader.uint64())
      return reader.atEnd ? { transaction } : { transaction, through: reader.uint32() === 1 }
    }
    default:
      return { metric: reader.uint32(), channel: reader.uint32() }
  }
}

/** A number as far as a number goes, else digits. */
export function bigToJson(value: bigint): number | string {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

/** The JSON of a number, string or opaque of a basic type, from its bytes. */
export function scalarToJson(type: number, bytes: Buffer): unknown {
  switch (type) {
    case types.INT32:
      return bytes.readInt32BE(0)
    case types.UINT32:
      return bytes.readUInt32BE(0)
    case types.BOOLEAN:
      return bytes.readUInt32BE(0) === 1
    case types.INT64:
      return bigToJson(bytes.readBigInt64BE(0))
    case types.UINT64:
      return bigToJson(bytes.readBigUInt64BE(0))
    case types.DOUBLE: {
      const number = bytes.readDoubleBE(0)
      return Number.isFinite(number) ? number : String(number)
    }
    case types.STRING:
      return inside(bytes).toString('utf8')
    case types.OPAQUE:
      return inside(bytes).toString('base64')
    case types.VOID:
      return null
    default:
      throw new NotXdr(`type ${type} is no scalar`, 0)
  }
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  uint32(): number {
    return this.#take(this.#at + 4).readUInt32BE(0)
  }

  uint64(): bigint {
    return this.#take(this.#at + 8).readBigUInt64BE(0)
  }

  opaque(): Buffer {
    return inside(this.#take(opaqueEnd(this.#bytes, this.#at)))
  }

  text(): string {
    return this.opaque().toString('utf8')
  }

  args(): Json {
    const json: Json = {}
    for (let left = this.uint32(); left > 0; left--) {
      const name = this.text()
      const type = this.uint32()
      json[name] = scalarToJson(type, this.#take(valueEnd(this.#bytes, this.#at, type)))
    }
    return json
  }

  #take(end: number): Buffer {
    if (end > this.#bytes.length) throw new NotXdr('the frame ends inside a field', this.#at)
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }
}
