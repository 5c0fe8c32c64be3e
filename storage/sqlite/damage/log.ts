/**
 * Checks whether the log (-wal) is as the last process left it. SQLite replays it up to the first invalid frame and does not report
 * the rest: acknowledged transactions would be lost silently, and their transaction ids used again. The index (-shm)
 * survives a killed process and says how much was committed. The check must run before SQLite opens anything.
 * The formats: https://sqlite.org/fileformat2.html section 4, https://sqlite.org/walformat.html section 2.
 */
import { closeSync, copyFileSync, existsSync, openSync, readSync, renameSync } from 'node:fs'
import { endianness } from 'node:os'
import { refuse } from '../errors.ts'

const HEADER_BYTES = 32
const FRAME_BYTES = 24
/** The last bit is the byte order of the checksums. */
const MAGIC = 0x377f0682
const INDEX_BYTES = 136
const INDEX_HEADER_BYTES = 48

interface Index {
  /** Frames up to the last committed one. */
  readonly committed: number
  /** Frames that are synced to the database file, and those that may be. */
  readonly carried: number
  readonly attempted: number
  readonly salt: Buffer
}

interface Log {
  readonly salt: Buffer
  /** Frames up to the last commit that SQLite finds. */
  readonly committed: number
  /** After the valid frames there are others of the same log. */
  readonly broken: boolean
}

export interface LogFinding {
  /** Acknowledged transactions may be lost. */
  readonly short: boolean
  /** The path of the copy of the damaged log. */
  readonly kept: string | undefined
}

/**
 * Keeps a copy of a damaged log, or moves it away if the database does not need it. Throws StorageError DAMAGED, without touching
 * anything, if the rest of the log cannot make the database consistent.
 */
export function examineLog(path: string): LogFinding {
  const file = `${path}-wal`
  const log = readLog(file)
  const index = indexOf(`${path}-shm`, log)
  const committed = index?.committed ?? 0
  const sound = index === undefined ? log === undefined || !log.broken : (log?.committed ?? 0) >= committed
  if (sound) return { short: false, kept: undefined }
  const left = log !== undefined && (index === undefined || log.salt.equals(index.salt)) ? log.committed : 0
  if (index !== undefined && index.carried === committed) {
    // A part of it must not be replayed over newer pages.
    return { short: false, kept: keep(file, renameSync) }
  }
  if (index !== undefined && index.attempted > left) {
    throw refuse('DAMAGED', path, `the log ${file} was damaged during a checkpoint`)
  }
  return { short: true, kept: keep(file, copyFileSync) }
}

function keep(file: string, put: (from: string, to: string) => void): string | undefined {
  if (!existsSync(file)) return undefined
  let number = 1
  while (existsSync(`${file}.damaged-${number}`)) number++
  put(file, `${file}.damaged-${number}`)
  return `${file}.damaged-${number}`
}

/** Reads the log; undefined if it does not exist or is empty. */
function readLog(path: string): Log | undefined {
  if (!existsSync(path)) return undefined
  const file = openSync(path, 'r')
  try {
    const header = Buffer.alloc(HEADER_BYTES)
    const length = readSync(file, header, 0, HEADER_BYTES, 0)
    return length === 0 ? undefined : framesOf(file, header)
  } finally {
    closeSync(file)
  }
}

function framesOf(file: number, header: Buffer): Log {
  const salt = header.subarray(16, 24)
  const magic = header.readUInt32BE(0)
  const swapped = (magic & 1 ? 'BE' : 'LE') !== endianness()
  let sum = checksum([0, 0], header.subarray(0, 24), swapped)
  if (magic >>> 1 !== MAGIC >>> 1 || !isSum(sum, header, 24)) return { salt, committed: 0, broken: true }
  const frame = Buffer.alloc(FRAME_BYTES + header.readUInt32BE(8))
  let [committed, right] = [0, true]
  for (let number = 1; ; number++) {
    const at = HEADER_BYTES + (number - 1) * frame.length
    const length = readSync(file, frame, 0, frame.length, at)
    const isOurs = length >= FRAME_BYTES && frame.subarray(8, 16).equals(salt)
    if (length < frame.length || !right) {
      if (isOurs) return { salt, committed, broken: true }
      if (length < frame.length) return { salt, committed, broken: false }
      continue
    }
    if (isOurs) sum = checksum(checksum(sum, frame.subarray(0, 8), swapped), frame.subarray(FRAME_BYTES), swapped)
    right = isOurs && isSum(sum, frame, 16)
    if (!right && isOurs) return { salt, committed, broken: true }
    if (right && frame.readUInt32BE(4) !== 0) committed = number
  }
}

function isSum([first, second]: readonly [number, number], bytes: Buffer, at: number): boolean {
  return bytes.readUInt32BE(at) === first && bytes.readUInt32BE(at + 4) === second
}

/** Reads the index; undefined if it is not reliable: it is not synced, so after a power cut it may belong to an older log. */
function indexOf(path: string, log: Log | undefined): Index | undefined {
  if (!existsSync(path)) return undefined
  const file = openSync(path, 'r')
  const bytes = Buffer.alloc(INDEX_BYTES)
  try {
    if (readSync(file, bytes, 0, INDEX_BYTES, 0) < INDEX_BYTES) return undefined
  } finally {
    closeSync(file)
  }
  const number = (at: number): number => (endianness() === 'LE' ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at))
  const copies = [0, INDEX_HEADER_BYTES]
  const start = copies.find((at) => {
    const [first, second] = checksum([0, 0], bytes.subarray(at, at + 40), false)
    return bytes[at + 12] === 1 && number(at + 40) === first && number(at + 44) === second
  })
  if (start === undefined) return undefined
  const salt = bytes.subarray(start + 32, start + 40)
  // Each new log increments the first salt by one.
  const ahead = log === undefined ? 0 : (log.salt.readUInt32BE(0) - salt.readUInt32BE(0)) | 0
  if (ahead > 0 && log?.committed !== 0) return undefined
  return { committed: number(start + 16), carried: number(96), attempted: number(128), salt }
}

/** The checksum of both formats, over pairs of 32-bit words. */
function checksum(from: readonly [number, number], bytes: Buffer, swapped: boolean): [number, number] {
  let [first, second] = from
  const aligned = Uint8Array.from(bytes)
  if (swapped) Buffer.from(aligned.buffer).swap32()
  const words = new Uint32Array(aligned.buffer)
  for (let at = 0; at < words.length; at += 2) {
    first = (first + (words[at] as number) + second) >>> 0
    second = (second + (words[at + 1] as number) + first) >>> 0
  }
  return [first, second]
}
