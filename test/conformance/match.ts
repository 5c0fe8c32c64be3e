/** Compares a frame that came with the parts that were expected, and keeps what the holes took. */
import { type Hole, MAX_ID, type Resolved, type Variable, type Variables } from './pattern.ts'
import { fieldsEnd, isWhole, NotXdr, opaqueEnd, typedEnd, uint32 } from './xdr.ts'

export type Bindings = Map<string, Variable>

/** Up to here a frame says which message it is: its length and its first word. */
const BEGINNING = 8

/** What came is not what was expected. `at`: where in the frame; of JSON only whether it is another message. */
export class Mismatch extends Error {
  readonly at: number

  constructor(message: string, at = BEGINNING) {
    super(message)
    this.at = at
  }

  /** Not a wrong one, but one of another kind. */
  get isOfAnotherKind(): boolean {
    return this.at < BEGINNING
  }
}

/** What the holes of `parts` take of a frame. Throws Mismatch. */
export function matchFrame(parts: readonly Resolved[], frame: Buffer, variables: Variables): Bindings {
  const bindings: Bindings = new Map()
  let at = 0
  for (const part of parts) {
    if (part.is === 'hole') {
      const end = holeEnd(part.hole, frame, at)
      bind(part.hole, frame.subarray(at, end), variables, bindings, at)
      at = end
    } else {
      const bytes = part.is === 'bytes' ? part.bytes : uint32(frame.length - 4)
      for (const [index, byte] of bytes.entries()) {
        if (frame[at + index] !== byte)
          throw new Mismatch(at + index < frame.length ? 'other bytes' : 'too short', at + index)
      }
      at += bytes.length
    }
  }
  if (at < frame.length) throw new Mismatch('too long', at)
  return bindings
}

function holeEnd({ kind }: Hole, frame: Buffer, at: number): number {
  try {
    switch (kind) {
      case 'u32':
      case 'id':
      case 'channel':
        return isWhole(frame, at, 4)
      case 'u64':
      case 'f64':
        return isWhole(frame, at, 8)
      case 'str':
      case 'opaque':
        return opaqueEnd(frame, at)
      case 'value':
        return typedEnd(frame, at)
      case 'arglist':
        return fieldsEnd(frame, at)
      case 'rest':
        return frame.length
    }
  } catch (error) {
    if (error instanceof NotXdr) throw new Mismatch(error.message, error.at)
    throw error
  }
}

/** Keeps what a hole took, if it may take it. `at`: for the message. */
export function bind(hole: Hole, bytes: Buffer, variables: Variables, bindings: Bindings, at = 0): void {
  const { name, kind, above, not } = hole
  const known = (other: string): Buffer => {
    const variable = bindings.get(other) ?? variables.get(other)
    if (variable === undefined) throw new Error(`{${other}} holds nothing yet`)
    return variable.bytes
  }
  if (kind === 'id' || kind === 'channel') {
    const id = bytes.readUInt32BE(0)
    if (id < 1 || id > MAX_ID) throw new Mismatch(`${id} is no id: those go from 1 to ${MAX_ID}`, at)
  }
  // Big-endian numbers of one length are in the order of their bytes.
  if (above !== undefined && Buffer.compare(bytes, known(above)) <= 0) throw new Mismatch(`not above {${above}}`, at)
  if (not !== undefined && bytes.equals(known(not))) throw new Mismatch(`the same as {${not}}`, at)
  if (name !== '_') bindings.set(name, { kind, bytes: Buffer.from(bytes) })
}
