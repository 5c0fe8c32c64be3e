/** The numbers of the wire [MON 2, 3, 5, 8]. */

/** Basic types of values and arguments. */
export const BasicType = {
  INT32: 1,
  UINT32: 2,
  INT64: 3,
  UINT64: 4,
  DOUBLE: 5,
  BOOLEAN: 6,
  STRING: 7,
  OPAQUE: 8,
  REC: 9,
  ARRAY: 10,
  VOID: 11,
} as const
export type BasicType = (typeof BasicType)[keyof typeof BasicType]

/** Message identifiers above the range of metric ids. */
export const MessageId = {
  RESPONSE: 0xffffffff,
  PRODUCER_CAPS: 0xfffffffe,
  AUTH: 0xfffffffd,
  GAP: 0xfffffffc,
  NOTICE: 0xfffffffb,
} as const

/** Channel ids with a special meaning. */
export const CURRENT_CHANNEL = 0
export const ALL_CHANNELS = 0xffffffff

/** Metric, result and channel ids are 1..MAX_ID. */
export const MAX_ID = 0x7fffffff

export const GapReason = {
  overflow: 1,
  expired: 2,
  damaged: 3,
  purged: 4,
  restart: 5,
  full: 6,
  restored: 7,
  paused: 8,
  replaced: 9,
} as const
export type GapReason = (typeof GapReason)[keyof typeof GapReason]
export type GapReasonName = keyof typeof GapReason

export const NoticeCode = {
  WINDOW_FULL: 1,
  SUPERSEDED: 2,
  SHUTTING_DOWN: 3,
  WITHDRAWN: 4,
  CHANNEL_DELETED: 5,
  PROTOCOL_ERROR: 6,
  INTERNAL: 7,
} as const
export type NoticeCode = (typeof NoticeCode)[keyof typeof NoticeCode]
export type NoticeName = keyof typeof NoticeCode

export const PROTOCOL_MAJOR = 1
export const PROTOCOL_MINOR = 1
export const MAX_NAME_BYTES = 255
export const MAX_URL_BYTES = 2048
/** REC and ARRAY nest at most this deep. */
export const MAX_NESTING = 4
/** The bytes before the value in a VALUE frame: length, metric, transaction id, time, type. */
export const VALUE_HEADER_BYTES = 28

/**
 * The labels with a place of their own in a pattern's REC, in their order [MON 9 Patterns]. Others follow by their bytes, and
 * `value` is last.
 */
export const labelNames = [
  'name',
  'producer',
  'node',
  'host',
  'cpu',
  'mount',
  'device',
  'interface',
  'agent',
  'source',
  'index',
  'broker',
  'object',
] as const

/** The families whose series have any labels, besides those of plug-ins [MON 9 Labels]. */
export const openLabelFamilies = ['otlp.', 'prometheus.', 'statsd.', 'upstream.'] as const

const gapReasonNames = new Map<number, string>(Object.entries(GapReason).map(([name, code]) => [code, name]))
const noticeNames = new Map<number, string>(Object.entries(NoticeCode).map(([name, code]) => [code, name]))

/** The word for the reason of a GAP; undefined for a number that this version does not know. */
export function gapReasonName(code: number): GapReasonName | undefined {
  return gapReasonNames.get(code) as GapReasonName | undefined
}

/** The word for the code of a NOTICE; undefined for a number that this version does not know. */
export function noticeName(code: number): NoticeName | undefined {
  return noticeNames.get(code) as NoticeName | undefined
}
