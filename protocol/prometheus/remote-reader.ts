/** Remote read of Prometheus 1.0 as a reader has it: requests, and answers of the form `SAMPLES` (`remote.proto`). */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress } from 'hysnappy'
import { BYTES, FIXED64, MessageReader, VARINT } from '../protobuf.ts'
import type { ReadQuery, ReadSeries } from './remote-read.ts'
import { decompress } from './remote-write.ts'

/** LabelMatcher.Type. */
const TYPES = { '=': 0, '!=': 1, '=~': 2, '!~': 3 } as const
const FIRST_SAMPLES = 64

/** The body of a request with one query. */
export function encodeReadRequest({ fromMs, toMs, matchers }: ReadQuery): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).fork()
  writer.tag(1, WireType.Varint).int64(fromMs).tag(2, WireType.Varint).int64(toMs)
  for (const { label, operator, text } of matchers) {
    writer.tag(3, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).uint32(TYPES[operator])
    writer.tag(2, WireType.LengthDelimited).string(label).tag(3, WireType.LengthDelimited).string(text)
    writer.join()
  }
  return snappyCompress(writer.join().finish())
}

/** The series of the answer to a query. Throws ProtocolError; `bytes`: the most that it may have when it is decompressed. */
export function decodeReadResponse(body: Uint8Array, limits: { readonly bytes: number }): readonly ReadSeries[] {
  const reader = new MessageReader(decompress(body, limits), Number.MAX_SAFE_INTEGER)
  const all: ReadSeries[] = []
  while (!reader.isAtEnd)
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field !== 1 || wire !== BYTES) return false
        const end = reader.messageEnd()
        while (reader.offset < end)
          reader.field((inner, innerWire) => inner === 1 && innerWire === BYTES && all.push(readSeries(reader)) > 0)
        reader.endedAt(end)
        return true
      }),
    )
  return all
}

function readSeries(reader: MessageReader): ReadSeries {
  const end = reader.messageEnd()
  const labels: [string, string][] = []
  let [times, values] = [new Float64Array(FIRST_SAMPLES), new Float64Array(FIRST_SAMPLES)]
  let count = 0
  while (reader.offset < end)
    reader.field((field, wire) => {
      if (wire !== BYTES || (field !== 1 && field !== 2)) return false
      if (field === 1) {
        labels.push(readLabel(reader))
        return true
      }
      if (count === times.length) [times, values] = [doubled(times), doubled(values)]
      readSample(reader, times, values, count++)
      return true
    })
  reader.endedAt(end)
  return { labels, times: times.slice(0, count), values: values.slice(0, count) }
}

function readLabel(reader: MessageReader): [string, string] {
  const label: [string, string] = ['', '']
  reader.message((field, wire) => {
    if (wire !== BYTES || (field !== 1 && field !== 2)) return false
    label[field - 1] = reader.text()
    return true
  })
  return label
}

function readSample(reader: MessageReader, times: Float64Array, values: Float64Array, index: number): void {
  reader.message((field, wire) => {
    if (field === 1 && wire === FIXED64) {
      // A stale marker keeps its bits only as bytes.
      const at = reader.eight()
      const words = new Uint32Array(values.buffer, index * 8, 2)
      words[0] = reader.view.getUint32(at, true)
      words[1] = reader.view.getUint32(at + 4, true)
    } else if (field === 2 && wire === VARINT) times[index] = reader.milliseconds()
    else return false
    return true
  })
}

function doubled(column: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const wider = new Float64Array(2 * column.length)
  wider.set(column)
  return wider
}
