/**
 * What each nats-server has of the log on its own disk. A request is always answered by the one that leads the stream, so differences
 * between them can only be seen in their files: blocks of messages, as the file store of nats-server 2.9 to 2.15 writes them.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Totals } from '../../rig/rig.ts'

const STREAM = /^CIN_/
const BLOCK = /^(\d+)\.blk$/
/** Length, sequence, time and the length of the subject come first, a hash last. */
const HEAD_BYTES = 22
const HASH_BYTES = 8
/** Set in the length of a message that has headers. */
const HAS_HEADERS = 0x8000_0000
/** Set in the sequence of a message that was erased. */
const ERASED = 1n << 63n

/** The sequences of the log at which two nats-servers have different messages; directories are those of their stores. */
export function compareReplicas(directories: readonly string[]): Totals {
  let differing = 0
  const replicas = directories.map((directory) => streamsOf(directory))
  for (const name of new Set(replicas.flatMap((streams) => [...streams.keys()]))) {
    const stored = replicas.map((streams) => storedRecords(streams.get(name)))
    for (const sequence of new Set(stored.flatMap((records) => [...records.keys()]))) {
      const found = stored.map((records) => records.get(sequence)).filter((record) => record !== undefined)
      if (new Set(found).size > 1) differing++
    }
  }
  return { 'places that nats-servers have differently': differing }
}

/** The directories of the streams of logs, by name. */
function streamsOf(directory: string): Map<string, string> {
  const streams = join(directory, 'jetstream', '$G', 'streams')
  const names = readdirSync(streams).filter((name) => STREAM.test(name))
  return new Map(names.map((name) => [name, join(streams, name, 'msgs')]))
}

/** Which part of which record is at each sequence. */
export function storedRecords(directory: string | undefined): Map<number, string> {
  const records = new Map<number, string>()
  for (const name of directory === undefined ? [] : readdirSync(directory)) {
    if (!BLOCK.test(name)) continue
    const bytes = readFileSync(join(directory as string, name))
    for (let at = 0; at + HEAD_BYTES < bytes.length; ) {
      const length = bytes.readUInt32LE(at) & ~HAS_HEADERS
      if (length < HEAD_BYTES + HASH_BYTES || at + length > bytes.length) break
      const sequence = bytes.readBigUInt64LE(at + 4)
      if (sequence !== 0n && (sequence & ERASED) === 0n)
        records.set(Number(sequence), recordOf(bytes.subarray(at, at + length)))
      at += length
    }
  }
  return records
}

function recordOf(message: Buffer): string {
  if (message.readUInt32LE(0) < HAS_HEADERS) return ''
  const start = HEAD_BYTES + message.readUInt16LE(HEAD_BYTES - 2)
  const headers = message.toString('latin1', start + 4, start + 4 + message.readUInt32LE(start))
  const header = (name: string): string => new RegExp(`^${name}: *(.*?)\\r?$`, 'm').exec(headers)?.[1] ?? ''
  return `${header('Cin-Record')} ${header('Cin-Part')}`
}
