/** Requests of remote write as columns: in steps for short ones, and in a thread, by the name `#prometheus-decoder`, for others. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { VOID } from '../../../protocol/monitor/value.ts'
import { distributionNumbered } from '../../../protocol/prometheus/distribution.ts'
import {
  decodeWriteRequest,
  decodeWriteRequest2,
  METRIC_NAME,
  type ReadLabels,
  type WriteRequest,
  type WrittenMetadata,
} from '../../../protocol/prometheus/remote-write.ts'
import { type ColumnKey, type Columns, ColumnWriter, type SaidMetadata, type SeriesLabel } from '../../kit/columns.ts'
import type { Decoder } from '../../kit/decoding.ts'
import { shownName } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { SeriesMemory } from '../../kit/series-memory.ts'
import { isCounter, PARTS, PROMETHEUS_FAMILY } from './metric-types.ts'

/** Fields and packed numbers. */
const LIMITS = { elements: 1_000_000 }
/** What is written in one step: samples and labels. */
const PER_STEP = 512
const SERIES_COST = 8
const NO_LABELS: ReadLabels['labels'] = []

export interface WriteOptions {
  /** io.prometheus.write.v2.Request, else prometheus.WriteRequest. */
  readonly isVersion2: boolean
}

/** Throws ProtocolError. */
export function* decodeWrite(
  bytes: Uint8Array,
  { isVersion2 }: WriteOptions,
  memory = new SeriesMemory<ReadLabels>(),
): Steps<Columns> {
  const { series, families } = yield* isVersion2
    ? decodeWriteRequest2(bytes, LIMITS)
    : decodeWriteRequest(bytes, LIMITS, memory.labels)
  const columns = new ColumnWriter(PROMETHEUS_FAMILY, memory.numbering())
  let sinceStep = 0
  for (const { name, labels, shared, samples, histograms, metadata, problem } of series) {
    columns.leave(name, histograms)
    if (samples.length > 0) {
      const make = (): ColumnKey => keyOf(columns, name, labels, problem)
      const key = shared === undefined ? make() : memory.keyOf(shared, make)
      // The key is remembered, and they are not needed any more.
      if (shared !== undefined) shared.labels = NO_LABELS
      columns.begin(name, key, described(name, metadata ?? familyOf(families, name)))
    }
    sinceStep += SERIES_COST + labels.length
    for (const { value, time } of samples) {
      if (value === undefined) columns.value(VOID, time)
      else columns.double(value, time)
      if (++sinceStep % PER_STEP === 0) yield
    }
    if (sinceStep < PER_STEP) continue
    sinceStep = 0
    yield
  }
  for (const [name, { type, help, unit }] of families) {
    columns.family([name, String(type), unit, help])
    if (++sinceStep % PER_STEP === 0) yield
  }
  return columns.columns(memory.forgotten())
}

export const writeDecoder: Decoder<WriteOptions> = {
  module: '#prometheus-decoder',
  name: decodeWrite.name,
  decode: decodeWrite,
}

function keyOf(
  columns: ColumnWriter,
  name: string,
  labels: readonly SeriesLabel[],
  problem = repeated(labels),
): ColumnKey {
  return problem === undefined ? columns.keyOf(name, labels) : { problem }
}

/** The problem of labels, besides `__name__`, of which a name is there twice: which text is meant, nobody can say. */
function repeated(labels: readonly SeriesLabel[]): string | undefined {
  const names = new Set<string>([METRIC_NAME])
  for (const [name] of labels) {
    if (names.has(name)) return `label ${shownName(name)} is there twice`
    names.add(name)
  }
  return undefined
}

/** What the same request says of the family of a series. */
function familyOf(families: WriteRequest['families'], name: string): WrittenMetadata | undefined {
  return families.size === 0 ? undefined : (families.get(name) ?? families.get(name.replace(PARTS, '')))
}

function described(name: string, metadata: WrittenMetadata | undefined): SaidMetadata | undefined {
  if (metadata === undefined) return undefined
  const { type, help, unit } = metadata
  const texts = { unit: unit || undefined, description: help || undefined }
  return {
    ...texts,
    type: BasicType.DOUBLE,
    isCounter: isCounter(name, type),
    distribution: distributionNumbered(type),
  }
}
