/** The section [history]: what is remembered, for how long, and how much of the disk it may take (docs/history.md). */
import { z } from 'zod'
import { bytesOrShare, duration, inBytes, liveKey, type SectionConfig } from '../../kit/config.ts'

/** What is pushed comes anyway; what is measured or scraped is so all the time because of this. */
const METRICS = ['gmetric.*', 'smon.*', 'mono.*', 'statsd.*', 'otlp.*', 'prometheus.*', 'host.*', 'producer.stats.*']

const MEBIBYTE = 2 ** 20
const PEBIBYTE = 2 ** 50

/** `"0"`, also with a unit, or a duration. */
function durationOrOff(min: string, max: string) {
  const { type, expected } = duration(min, max)
  const off = z
    .string()
    .regex(/^0(ms|s|m|h|d)?$/)
    .transform(() => 0)
  return { type: z.union([off, type]), expected: `"0" for off, or ${expected}` }
}

function patterns() {
  return {
    // The family has to be known: whose metrics they are, the server's or a tenant's, depends on it.
    type: z.array(z.string().regex(/^[^*.\p{Cc}]+[.]\P{Cc}{1,250}$/u)).max(64),
    expected:
      'a list of at most 64 names or patterns of metrics that begin with a family and a dot, like ["gmetric.*", "host.load.one"]',
  }
}

const keys = z
  .strictObject({
    keep: liveKey(durationOrOff('1h', '36500d'), '30d', 'How long samples are kept; `"0"` switches the history off.'),
    keep_rollups: liveKey(duration('1h', '36500d'), '730d', 'How long rollups of five minutes are kept.'),
    max_bytes: liveKey(
      bytesOrShare(PEBIBYTE),
      '10%',
      'Bytes of all files, or a share of the file system with `data_dir`, at least 1 GiB or a quarter of a small one; beyond that ' +
        'the oldest days go first.',
    ),
    metrics: liveKey(
      patterns(),
      METRICS,
      'What is recorded. It is measured or scraped all the time, as any consumer has it.',
    ),
    resolution: liveKey(
      durationOrOff('1ms', '1h'),
      '1s',
      'Of the values of a pushed series in one such span of time only the first is recorded; `"0"`: all are.',
    ),
    interval: liveKey(
      duration('1s', '1h'),
      '10s',
      'How often what is measured on request, such as `host.*`, is measured.',
    ),
  })
  .describe(
    'The history: what was accepted is remembered. What it records, and what that costs: [history.md](history.md).',
  )

export const historySection = {
  type: keys,
  read: ({ keep, keep_rollups, max_bytes, metrics, resolution, interval }: z.output<typeof keys>) => ({
    keepMs: keep,
    keepRollupsMs: keep_rollups,
    maxBytes: max_bytes,
    metrics,
    resolutionMs: resolution,
    intervalMs: interval,
  }),
}
export type HistorySection = SectionConfig<typeof historySection>

/** A share is no less than this, */
const LEAST_BYTES = 1_024 * MEBIBYTE
/** but no more than this part of a small file system. */
const MOST_OF_SMALL = 0.25

/** How many bytes all files may have on a file system of this size. */
export function mostBytes({ maxBytes }: Pick<HistorySection, 'maxBytes'>, sizeBytes: number): number {
  const most = inBytes(maxBytes, sizeBytes)
  if (typeof maxBytes === 'number') return most
  return Math.max(most, Math.min(LEAST_BYTES, Math.floor(sizeBytes * MOST_OF_SMALL)))
}
