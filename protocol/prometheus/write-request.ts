/** Writes requests of Prometheus remote write 1.0: WriteRequest in protocol buffers, compressed as a block of Snappy. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress } from 'hysnappy'
import type { FamilyMetadata, FamilyType } from './samples.ts'
import { STALE_NAN } from './stale-marker.ts'

const NAME = '__name__'
const DOUBLE_BYTES = 8
const SERIES_PER_STEP = 64

/** A sample; `undefined` is the stale marker. Time: milliseconds since 1970. */
export interface OutgoingSample {
  readonly value: number | undefined
  readonly timeMs: number
}

/** A series under a name and labels that Prometheus takes. Its samples ascend by time. */
export interface OutgoingSeries {
  readonly name: string
  readonly labels: readonly (readonly [name: string, text: string])[]
  readonly samples: readonly OutgoingSample[]
}

/** What is known of a family, under the name that its samples begin with. */
export interface OutgoingFamily extends FamilyMetadata {
  readonly name: string
}

/** MetricMetadata.MetricType */
const TYPES: Readonly<Record<FamilyType, number>> = { unknown: 0, counter: 1, gauge: 2, histogram: 3, summary: 5 }

const staleBytes = new Uint8Array(DOUBLE_BYTES)
new DataView(staleBytes.buffer).setUint32(0, STALE_NAN.low, true)
new DataView(staleBytes.buffer).setUint32(4, STALE_NAN.high, true)

/** The body of a request, with places to pause. Labels stand in the order of their names, as the specification demands. */
export function* encodeWriteRequest(
  series: Iterable<OutgoingSeries>,
  families: Iterable<OutgoingFamily> = [],
): Generator<undefined, Uint8Array> {
  const writer = new BinaryWriter()
  let written = 0
  for (const { name, labels, samples } of series) {
    writer.tag(1, WireType.LengthDelimited).fork()
    const all = [[NAME, name] as const, ...labels].sort(([one], [other]) => (one < other ? -1 : 1))
    for (const [label, text] of all) {
      writer.tag(1, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.LengthDelimited).string(label)
      writer.tag(2, WireType.LengthDelimited).string(text)
      writer.join()
    }
    for (const { value, timeMs } of samples) {
      writer.tag(2, WireType.LengthDelimited).fork()
      writer.tag(1, WireType.Bit64)
      // A NaN keeps its bits only as bytes.
      if (value === undefined) writer.raw(staleBytes)
      else writer.double(value)
      writer.tag(2, WireType.Varint).int64(timeMs)
      writer.join()
    }
    writer.join()
    if (++written % SERIES_PER_STEP === 0) yield
  }
  for (const { name, type, help, unit } of families) {
    writer.tag(3, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).int32(TYPES[type])
    writer.tag(2, WireType.LengthDelimited).string(name)
    if (help !== '') writer.tag(4, WireType.LengthDelimited).string(help)
    if (unit !== '') writer.tag(5, WireType.LengthDelimited).string(unit)
    writer.join()
    if (++written % SERIES_PER_STEP === 0) yield
  }
  return snappyCompress(writer.finish())
}
